//! Brace expansion of bash: `{a,b}` and `{1..3}` outside of quotes make several words.

/// Braces and commas outside of quotes, as characters that no text has.
pub(super) const OPEN: char = '\u{f_fff0}';
pub(super) const COMMA: char = '\u{f_fff1}';
pub(super) const CLOSE: char = '\u{f_fff2}';

/// Most words that a word becomes.
pub(super) const MAX_WORDS: usize = 256;

/// Most braces of a word.
const MAX_BRACES: usize = 64;

/// Most items of a range.
const MAX_RANGE: i64 = 256;

/// Words of a word; `None` if they are too many.
pub(super) fn expand(word: &str) -> Option<Vec<String>> {
    if word.matches(OPEN).count() > MAX_BRACES {
        return None;
    }
    let mut made = vec![String::new()];
    let mut rest = word;
    while let Some(at) = rest.find(OPEN) {
        let inner = &rest[at + OPEN.len_utf8()..];
        let Some((items, after)) = items(inner) else {
            let through = at + OPEN.len_utf8();
            made.iter_mut().for_each(|word| word.push_str(&rest[..through]));
            rest = inner;
            continue;
        };
        made.iter_mut().for_each(|word| word.push_str(&rest[..at]));
        if made.len() * items.len() > MAX_WORDS {
            return None;
        }
        made = made.iter().flat_map(|word| items.iter().map(move |item| format!("{word}{item}"))).collect();
        rest = after;
    }
    made.iter_mut().for_each(|word| word.push_str(rest));
    // Braces within an item.
    let is_nested = |word: &String| word != &made[0] || made.len() > 1;
    if made.iter().any(|word| word.contains(OPEN) && is_nested(word)) {
        let nested: Option<Vec<Vec<String>>> = made.iter().map(|word| expand(word)).collect();
        made = nested?.concat();
    }
    (made.len() <= MAX_WORDS).then(|| made.iter().map(|word| plain(word)).collect())
}

/// Word without the marks.
pub(super) fn plain(word: &str) -> String {
    if !word.contains([OPEN, COMMA, CLOSE]) {
        return word.to_owned();
    }
    let plain = |c| match c {
        OPEN => '{',
        COMMA => ',',
        CLOSE => '}',
        c => c,
    };
    word.chars().map(plain).collect()
}

/// Items of braces after the opening one, and the text after the closing one.
fn items(text: &str) -> Option<(Vec<String>, &str)> {
    let (mut depth, mut start, mut items) = (0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            OPEN => depth += 1,
            COMMA if depth == 0 => {
                items.push(text[start..at].to_owned());
                start = at + c.len_utf8();
            }
            CLOSE if depth > 0 => depth -= 1,
            CLOSE => {
                let after = &text[at + c.len_utf8()..];
                if items.is_empty() {
                    return range(&text[..at]).map(|items| (items, after));
                }
                items.push(text[start..at].to_owned());
                return (items.len() <= MAX_WORDS).then_some((items, after));
            }
            _ => {}
        }
    }
    None
}

/// Items of `1..3`, `01..10..3` or `a..c`.
fn range(text: &str) -> Option<Vec<String>> {
    let mut ends = text.split("..");
    let (from, to, step) = (ends.next()?, ends.next()?, ends.next());
    let step = step.map_or(Some(1), |step| step.parse::<i64>().ok())?.unsigned_abs().max(1);
    if ends.next().is_some() {
        return None;
    }
    let letter = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|c| c.is_ascii_alphabetic() && chars.next().is_none()).map(|c| i64::from(u32::from(c)))
    };
    let is_letters = letter(from).is_some() && letter(to).is_some();
    let end = |text: &str| if is_letters { letter(text) } else { text.parse().ok() };
    let (first, last): (i64, i64) = (end(from)?, end(to)?);
    if first.abs_diff(last) / step >= MAX_RANGE.unsigned_abs() {
        return None;
    }
    let has_zero = |text: &str| text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0');
    let width = if has_zero(from) || has_zero(to) { from.len().max(to.len()) } else { 0 };
    let sign = if last < first { -1 } else { 1 };
    let step = i64::try_from(step).ok()? * sign;
    let numbers = std::iter::successors(Some(first), |number| number.checked_add(step));
    let numbers = numbers.take_while(|number| if sign < 0 { *number >= last } else { *number <= last });
    let shown = |number: i64| match u32::try_from(number).ok().and_then(char::from_u32).filter(|_| is_letters) {
        Some(letter) => letter.to_string(),
        None => format!("{number:0width$}"),
    };
    Some(numbers.map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Vec<String> {
        let marked: String = text
            .chars()
            .map(|c| match c {
                '{' => OPEN,
                ',' => COMMA,
                '}' => CLOSE,
                c => c,
            })
            .collect();
        expand(&marked).unwrap_or_default()
    }

    #[test]
    fn braces_are_those_of_bash() {
        assert_eq!(expanded("a{b,c}d"), ["abd", "acd"]);
        assert_eq!(expanded("{a,b{1..3}}x"), ["ax", "b1x", "b2x", "b3x"]);
        assert_eq!(expanded("{01..03}{c..a..2}"), ["01c", "01a", "02c", "02a", "03c", "03a"]);
        for same in ["{}", "{a}", "a{", "}{", "x{1..}", "{\"a\":1}"] {
            assert_eq!(expanded(same), [same], "{same}");
        }
        assert_eq!(expanded("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"), Vec::<String>::new());
        assert_eq!((expanded(&"{".repeat(60)).len(), expanded(&"{".repeat(10_000)).len()), (1, 0));
    }
}
