//! Globs of curl in URLs: `{a,b}` and `[1-3]` make several requests.

use super::marks;

/// Most URLs of a glob.
pub(super) const MAX_URLS: usize = 100;

/// URLs of a URL in the order in which curl sends them.
///
/// # Errors
/// Reason why it has none.
pub(super) fn expand(url: &str) -> Result<Vec<String>, String> {
    if !url.contains(['{', '[', '}', ']']) {
        return Ok(vec![url.to_owned()]);
    }
    let mut made = vec![String::new()];
    let mut rest = url;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let (items, next) = match c {
            '{' => set(after)?,
            '[' => match ipv6(rest) {
                Some(address) => (vec![address.to_owned()], &rest[address.len()..]),
                None => range(after)?,
            },
            '}' | ']' => return Err(format!("a '{c}' that closes nothing, which curl rejects without -g")),
            '\\' if after.starts_with(['{', '[', '}', ']']) => (vec![after[..1].to_owned()], &after[1..]),
            c => (vec![c.to_string()], after),
        };
        if made.len() * items.len() > MAX_URLS {
            return Err(format!("more than {MAX_URLS} URLs"));
        }
        match items.as_slice() {
            [one] => made.iter_mut().for_each(|url| url.push_str(one)),
            _ => made = made.iter().flat_map(|url| items.iter().map(move |item| format!("{url}{item}"))).collect(),
        }
        rest = next;
    }
    Ok(made)
}

/// `[::1]` at the beginning.
fn ipv6(text: &str) -> Option<&str> {
    let length = text.find(']')? + 1;
    let address = &text[1..length - 1];
    let is_address = address.matches(':').count() >= 2
        && address.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.' | '%'));
    is_address.then_some(&text[..length])
}

/// Items of `a,b}`.
fn set(text: &str) -> Result<(Vec<String>, &str), String> {
    let mut items = Vec::new();
    let mut item = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '}' => {
                items.push(item);
                return Ok((items, &text[at + 1..]));
            }
            ',' if items.len() >= MAX_URLS => return Err(format!("more than {MAX_URLS} URLs")),
            ',' => items.push(std::mem::take(&mut item)),
            '{' | '[' | ']' => return Err("nested braces, which curl rejects without -g".to_owned()),
            '\\' => item.extend(chars.next().map(|(_, c)| c)),
            c => item.push(c),
        }
    }
    Err("a brace without its end, which curl rejects without -g".to_owned())
}

/// Items of `1-3]`, `001-100:10]` or `a-z]`.
fn range(text: &str) -> Result<(Vec<String>, &str), String> {
    let bad = || "a range that curl rejects without -g".to_owned();
    let end = text.find(']').ok_or_else(bad)?;
    let (inner, after) = (&text[..end], &text[end + 1..]);
    if inner.chars().any(marks::is_expression) {
        return Err("a range with a variable".to_owned());
    }
    let (ends, step) = inner.split_once(':').unwrap_or((inner, "1"));
    let step = step.parse::<u32>().ok().filter(|step| *step > 0).ok_or_else(bad)?;
    let (from, to) = ends.split_once('-').ok_or_else(bad)?;
    let letter =
        |text: &str| (text.len() == 1).then(|| text.chars().next()).flatten().filter(char::is_ascii_alphabetic);
    let (first, last, is_letters) = match (letter(from), letter(to)) {
        (Some(first), Some(last)) => (u64::from(u32::from(first)), u64::from(u32::from(last)), true),
        _ => (from.parse().map_err(|_| bad())?, to.parse().map_err(|_| bad())?, false),
    };
    if last < first {
        return Err(bad());
    }
    if (last - first) / u64::from(step) >= MAX_URLS as u64 {
        return Err(format!("more than {MAX_URLS} URLs"));
    }
    let width = if from.starts_with('0') { from.len() } else { 0 };
    let numbers = std::iter::successors(Some(first), |number| number.checked_add(u64::from(step)));
    let shown = |number: u64| match u32::try_from(number).ok().and_then(char::from_u32).filter(|_| is_letters) {
        Some(letter) => letter.to_string(),
        None => format!("{number:0width$}"),
    };
    Ok((numbers.take_while(|number| *number <= last).map(shown).collect(), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_those_of_curl() {
        let made = |url| expand(url).map_err(|reason| reason.split(' ').next().unwrap_or_default().to_owned());
        let urls = |urls: &[&str]| Ok(urls.iter().map(|url| (*url).to_owned()).collect::<Vec<_>>());
        assert_eq!(made("http://h/g[1-3]"), urls(&["http://h/g1", "http://h/g2", "http://h/g3"]));
        assert_eq!(made("h/{a,b}[08-10:2]"), urls(&["h/a08", "h/a10", "h/b08", "h/b10"]));
        assert_eq!(made("h/[a-c]"), urls(&["h/a", "h/b", "h/c"]));
        assert_eq!(made("http://[::1]:80/"), urls(&["http://[::1]:80/"]));
        assert_eq!(made("h/\\{x\\}"), urls(&["h/{x}"]));
        for bad in ["h/{a", "h/[a]", "h/a]", "h/[1-9999]", "h/{{x}}", "h/[3-1]"] {
            assert!(made(bad).is_err(), "{bad}");
        }
    }
}
