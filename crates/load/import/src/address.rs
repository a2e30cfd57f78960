//! URLs of imported requests: made absolute, and checked as far as their text is fixed.

use weir_hurl::{Template, TemplatePart};

use crate::text;

/// Variable before paths without a host.
pub(crate) const BASE_URL: &str = "base_url";

/// URL as a request needs it: with a scheme and a host, or a variable in their place; without a fragment.
///
/// # Errors
/// Reason why weir does not send it.
pub(crate) fn absolute(url: &Template) -> Result<Template, String> {
    let url = without_fragment(url);
    let start = text::start(&url);
    if text::is_empty(&url) {
        return Err("no URL".to_owned());
    }
    let begins_with_variable = start.is_empty();
    let prefixed = |prefix: &str| text::concat([&Template::text(prefix), &url]);
    if begins_with_variable {
        return Ok(url);
    }
    let lower = start.get(..8).unwrap_or(start).to_ascii_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        let (scheme, rest) = start.split_once("://").unwrap_or_default();
        check_authority(rest, url.parts.len() > 1)?;
        let mut checked = url.clone();
        if let Some(TemplatePart::Text(first)) = checked.parts.first_mut() {
            *first = format!("{}://{rest}", scheme.to_ascii_lowercase());
        }
        return Ok(checked);
    }
    if let Some(rest) = start.strip_prefix("//") {
        check_authority(rest, url.parts.len() > 1)?;
        return Ok(prefixed("http:"));
    }
    if start.starts_with(['/', '?']) {
        return Ok(text::concat([&text::variable(BASE_URL), &url]));
    }
    match start.split_once("://") {
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')) => {
            return Err(format!("the scheme {}, weir sends http and https", text::one_line(scheme, 20)));
        }
        _ => {}
    }
    check_authority(start, url.parts.len() > 1)?;
    Ok(prefixed("http://"))
}

/// Checks the host and port at the beginning of a text, as far as they are in it.
fn check_authority(rest: &str, goes_on: bool) -> Result<(), String> {
    let end = rest.find(['/', '?', '\\']);
    let is_whole = end.is_some() || !goes_on;
    let authority = &rest[..end.unwrap_or(rest.len())];
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if !is_whole {
        let is_valid = host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c));
        return if is_valid { Ok(()) } else { Err(format!("the host {}", text::one_line(host, 60))) };
    }
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            let is_hex = address.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
            let is_address = is_hex && (address.contains("::") || address.matches(':').count() == 7);
            (if is_address { "v6" } else { "" }, port)
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_host =
        !name.is_empty() && name.len() <= 255 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let digits = port.strip_prefix(':').unwrap_or(port);
    let is_port = port.is_empty() || (digits.len() < port.len() && digits.parse::<u16>().is_ok_and(|port| port > 0));
    match is_host && is_port {
        true => Ok(()),
        false if host.is_empty() => Err("a URL without a host".to_owned()),
        false => Err(format!("the host {}", text::one_line(host, 60))),
    }
}

/// URL up to `#`, without spaces around it and line breaks in it.
fn without_fragment(url: &Template) -> Template {
    let mut parts = Vec::new();
    let last = url.parts.len().saturating_sub(1);
    for (index, part) in url.parts.iter().enumerate() {
        let TemplatePart::Text(fixed) = part else {
            parts.push(part.clone());
            continue;
        };
        let fixed: String = fixed.chars().filter(|c| !c.is_control()).collect();
        let fixed = if index == 0 { fixed.trim_start() } else { fixed.as_str() };
        let fixed = if index == last { fixed.trim_end() } else { fixed };
        // As browsers and the other tools write it, also in a query.
        let fixed = fixed.replace(' ', "%20");
        let fixed = fixed.as_str();
        match fixed.split_once('#') {
            Some((before, _)) => {
                parts.push(TemplatePart::Text(before.to_owned()));
                break;
            }
            None => parts.push(TemplatePart::Text(fixed.to_owned())),
        }
    }
    text::from_parts(parts)
}

/// Scheme and authority of a URL, if both are fixed.
pub(crate) fn origin(url: &Template) -> Option<&str> {
    let start = text::start(url);
    let after = start.find("://")? + 3;
    let length = start[after..].find(['/', '?']).or_else(|| (url.parts.len() == 1).then_some(start.len() - after))?;
    Some(&start[..after + length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(url: &str) -> Result<String, String> {
        absolute(&Template::parse(url).unwrap()).map(|url| text::source(&url))
    }

    #[test]
    fn urls_are_made_absolute() {
        for (url, expected) in [
            ("example.com/a#b", "http://example.com/a"),
            (" HTTPS://h:80/{{id}} ", "https://h:80/{{id}}"),
            ("/a?b", "{{base_url}}/a?b"),
            ("/a b?c d", "{{base_url}}/a%20b?c%20d"),
            ("{{host}}/a", "{{host}}/a"),
            ("http://{{host}}/a", "http://{{host}}/a"),
            ("api.{{domain}}/a", "http://api.{{domain}}/a"),
            ("//h/a", "http://h/a"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
        ] {
            assert_eq!(made(url).as_deref(), Ok(expected), "{url}");
        }
    }

    #[test]
    fn what_weir_does_not_send_has_a_reason() {
        assert_eq!(made("wss://h/").unwrap_err(), "the scheme wss, weir sends http and https");
        assert_eq!(made("http://").unwrap_err(), "a URL without a host");
        assert_eq!(made("http://<host>/").unwrap_err(), "the host <host>");
        assert_eq!(made("http://h:port/").unwrap_err(), "the host h:port");
        assert!(made("http://bücher.example/").is_err() && made("").is_err());
    }

    #[test]
    fn an_origin_is_known_where_it_is_fixed() {
        let origin_of = |url: &str| origin(&Template::parse(url).unwrap()).map(str::to_owned);
        assert_eq!(origin_of("http://h:1/a").as_deref(), Some("http://h:1"));
        assert_eq!(origin_of("http://h").as_deref(), Some("http://h"));
        assert_eq!(origin_of("http://h{{port}}/a"), None);
    }
}
