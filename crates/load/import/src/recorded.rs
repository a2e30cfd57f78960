//! Values of a recorded response that a machine has made, and how a capture finds them.

use weir_hurl::{FilterKind, QueryKind, RegexPattern, Template, TextPosition, TextQuery, ValueFilter};

use crate::names::snake_case;
use crate::text::regex_escaped;
use crate::tree::{SourceNode, SourceValue, parse_json};

/// Length of a value of one or more kinds of characters.
const MIN_CHARS: usize = 8;

/// Length of a number, such as an ID.
const MIN_DIGITS: usize = 4;

/// Longest value.
const MAX_CHARS: usize = 8192;

/// Value of a response, and how it is captured.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedValue {
    /// Value.
    pub value: String,
    /// Name for a variable.
    pub name: String,
    /// Query that finds it.
    pub query: QueryKind,
    /// Filters after the query.
    pub filters: Vec<ValueFilter>,
    /// Place of the value, for the comment.
    pub place: String,
}

/// Response that was recorded with a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedResponse {
    /// Headers in order.
    pub(crate) headers: Vec<(String, String)>,
    /// Media type of the body, in small letters.
    pub(crate) media_type: String,
    /// Body as text; empty if it is not text.
    pub(crate) body: String,
}

/// Whether a machine may have made a text: a number of several digits, or characters of two kinds that are not a word,
/// no date and no address.
pub(crate) fn is_made(value: &str) -> bool {
    let length = value.chars().count();
    if length > MAX_CHARS || value.contains("://") || value.contains(char::is_whitespace) {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    if digits == length {
        return (MIN_DIGITS..=40).contains(&length);
    }
    let upper = value.bytes().filter(u8::is_ascii_uppercase).count();
    let lower = value.bytes().filter(u8::is_ascii_lowercase).count();
    let kinds = usize::from(digits > 0) + usize::from(upper > 1) + usize::from(lower > 0);
    let is_name = value.starts_with('.')
        || value.ends_with(".html")
        || value.ends_with(".php")
        || value.contains('.') && length < 20;
    let distinct = value.chars().collect::<std::collections::BTreeSet<char>>().len();
    length >= MIN_CHARS && kinds >= 2 && digits * 12 >= length && distinct >= 5 && !is_name && !is_date(value)
}

/// Whether a text begins as a date does: `2026-01-02`.
fn is_date(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

pub(crate) fn values(recorded: &RecordedResponse, comes_again: &dyn Fn(&str) -> bool) -> Vec<RecordedValue> {
    let mut found = Vec::new();
    for (name, value) in &recorded.headers {
        // Several headers of a name are a list, not a text.
        if recorded.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).count() > 1 {
            continue;
        }
        let title = Template::text(name.as_str());
        if is_made(value) && comes_again(value) {
            found.push(RecordedValue {
                value: value.clone(),
                name: snake_case(name),
                query: QueryKind::Text(TextQuery::Header, title),
                filters: Vec::new(),
                place: format!("the header {name}"),
            });
        } else if name.eq_ignore_ascii_case("location") {
            found.extend(location_candidates(value, comes_again));
        }
    }
    let body = recorded.body.trim_start();
    if recorded.media_type.contains("json") || (body.starts_with(['{', '[']) && recorded.media_type.is_empty()) {
        if let Ok(root) = parse_json(body) {
            json_candidates(&root, "$", &mut found, comes_again, "");
        }
    } else if recorded.media_type.contains("html") || recorded.media_type.contains("xml") {
        html_candidates(body, &mut found, comes_again);
    }
    found
}

/// Values in the path and the query of a redirect.
fn location_candidates(location: &str, comes_again: &dyn Fn(&str) -> bool) -> Vec<RecordedValue> {
    let mut found = Vec::new();
    for word in location.split(['/', '?', '&', '#', '=']).filter(|word| is_made(word) && comes_again(word)) {
        let Some((before, after)) = location.split_once(word) else { continue };
        let before: String = before.chars().rev().take(24).collect::<Vec<_>>().into_iter().rev().collect();
        let key = before.trim_end_matches(['=', '/']).rsplit(['?', '&', '/']).next().unwrap_or_default().to_owned();
        let end = match after.chars().next() {
            Some(c) => format!("([^{}]+)", if c == '/' { "/?&" } else { "?&#" }),
            None => "([^/?&#]+)".to_owned(),
        };
        let pattern = Template::text(format!("{}{end}", regex_escaped(&before)));
        let kind = FilterKind::Regex(RegexPattern::Quoted(pattern));
        found.push(RecordedValue {
            value: word.to_owned(),
            name: if key.is_empty() { "location_id".to_owned() } else { snake_case(&key) },
            query: QueryKind::Text(TextQuery::Header, Template::text("Location")),
            filters: vec![ValueFilter { kind, position: TextPosition::default() }],
            place: "the header Location".to_owned(),
        });
    }
    found
}

fn json_candidates(
    node: &SourceNode<'_>,
    path: &str,
    found: &mut Vec<RecordedValue>,
    comes_again: &dyn Fn(&str) -> bool,
    key: &str,
) {
    match &node.value {
        SourceValue::Map(_) => {
            for (name, member) in node.members() {
                let is_plain = !name.is_empty()
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                    && !name.starts_with(|c: char| c.is_ascii_digit());
                let path = match is_plain {
                    true => format!("{path}.{name}"),
                    false => format!("{path}['{}']", name.replace('\\', "\\\\").replace('\'', "\\'")),
                };
                json_candidates(member, &path, found, comes_again, &name);
            }
        }
        SourceValue::List(items) => {
            for (index, item) in items.iter().enumerate() {
                json_candidates(item, &format!("{path}[{index}]"), found, comes_again, key);
            }
        }
        SourceValue::Text(_) | SourceValue::Number(_) => {
            let Some(value) = node.scalar() else { return };
            if is_made(&value) && comes_again(&value) {
                found.push(RecordedValue {
                    value,
                    name: snake_case(key),
                    query: QueryKind::Text(TextQuery::JsonPath, Template::text(path)),
                    filters: Vec::new(),
                    place: format!("the JSON at {path}"),
                });
            }
        }
        SourceValue::Null | SourceValue::Bool(_) | SourceValue::Unread(_) => {}
    }
}

/// Values of hidden fields and of `<meta>` elements.
fn html_candidates(body: &str, found: &mut Vec<RecordedValue>, comes_again: &dyn Fn(&str) -> bool) {
    for (start, _) in body.match_indices('<') {
        let tag = &body[start..];
        let lower_name = tag.get(1..6).unwrap_or_default().to_ascii_lowercase();
        let (value_name, kind) = match lower_name.as_str() {
            "input" => ("value", "input"),
            "meta " | "meta\n" => ("content", "meta"),
            _ => continue,
        };
        let Some(tag) = tag.find('>').map(|end| &tag[..end]) else { continue };
        let (Some(name), Some(value)) = (attribute(tag, "name"), attribute(tag, value_name)) else { continue };
        if !is_made(value) || !comes_again(value) || name.contains(['\'', '"']) {
            continue;
        }
        let path = format!("string(//{kind}[@name='{name}']/@{value_name})");
        found.push(RecordedValue {
            value: value.to_owned(),
            name: snake_case(name),
            query: QueryKind::Text(TextQuery::XPath, Template::text(path)),
            filters: Vec::new(),
            place: format!("the field {name} of the page"),
        });
    }
}

/// Value of an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    for (at, _) in tag.match_indices(name) {
        let rest = tag[at + name.len()..].trim_start();
        let is_whole = tag[..at].ends_with(char::is_whitespace);
        if let (true, Some(rest)) = (is_whole, rest.strip_prefix('=')) {
            let rest = rest.trim_start();
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            return match quote {
                Some(quote) => rest[1..].split(quote).next(),
                None => rest.split([' ', '/', '>']).next(),
            };
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_has_made_is_told_from_words() {
        for made in ["a81f3c9e77", "123456", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123", "t1-0-59ea4717472f1c4b"] {
            assert!(is_made(made), "{made}");
        }
        for word in
            ["application", "12", "2026-01-02T03:04:05Z", "index.html", "http://h/12345678a", "en-US", "aaaaaaaa1"]
        {
            assert!(!is_made(word), "{word}");
        }
    }

    #[test]
    fn attributes_are_read_in_any_order_and_quotes() {
        assert_eq!(attribute("<input value='x' name = \"csrf\" ", "name"), Some("csrf"));
        assert_eq!(attribute("<input data-name='x' name=csrf", "name"), Some("csrf"));
        assert_eq!(attribute("<input", "name"), None);
    }
}
