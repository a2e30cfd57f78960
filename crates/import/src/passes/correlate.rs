//! Values of recorded responses that come again in later requests: they become captures, so that each user has its own.
//!
//! A value is taken if a machine has made it: long enough, of several kinds of characters, and not a word, a date or a
//! URL; if no request before the response has it, since then the client knew it already; and if it stands by itself in
//! the later request. Where it is from is tried in this order: a header of the response, a path of its JSON, a hidden
//! field of its HTML. Each capture has a comment with its reason.

use std::collections::HashMap;

use weir_hurl::{
    Capture, ExpectedResponse, FilterKind, QueryKind, RegexPattern, ResponseQuery, Template, TextPosition, TextQuery,
    ValueFilter,
};

use super::occurrence::replace;
use crate::builder::percent_decoded;
use crate::collection::{Import, ImportedScenario};
use crate::names::{VariableNameTable, snake_case};
use crate::request::{ImportedRequest, RecordedResponse};
use crate::text;
use crate::tree::{SourceNode, SourceValue, parse_json};

/// Length of a value of one or more kinds of characters.
const MIN_CHARS: usize = 8;

/// Length of a number, such as an ID.
const MIN_DIGITS: usize = 4;

/// Longest value.
const MAX_CHARS: usize = 8192;

/// Values of a scenario that become captures, at most.
const MAX_CAPTURES: usize = 500;

/// Value of a response, and how it is captured.
#[derive(Debug)]
struct Candidate {
    value: String,
    name: String,
    query: QueryKind,
    filters: Vec<ValueFilter>,
    /// Where it is, for the comment.
    place: String,
}

/// Makes captures in all scenarios.
pub(super) fn correlate(import: &mut Import, names: &mut VariableNameTable) {
    for scenario in &mut import.scenarios {
        correlate_scenario(scenario, names);
    }
}

fn correlate_scenario(scenario: &mut ImportedScenario, names: &mut VariableNameTable) {
    // The requests that have a word, in order.
    let mut seen: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, step) in scenario.steps.iter().enumerate() {
        for word in words(&step.request) {
            let requests = seen.entry(word).or_default();
            if requests.last() != Some(&index) {
                requests.push(index);
            }
        }
    }
    let requests_of = |value: &str| seen.get(value).or_else(|| seen.get(percent_decoded(value)?.as_str()));
    let mut captures = 0;
    for index in 0..scenario.steps.len() {
        let step = &scenario.steps[index];
        let Some(recorded) = step.recorded.as_ref().filter(|_| !step.is_disabled) else { continue };
        let comes_again =
            |value: &str| requests_of(value).and_then(|all| all.first()).is_some_and(|first| *first > index);
        let mut found = Vec::new();
        for candidate in candidates(recorded, &comes_again) {
            if !found.iter().any(|other: &Candidate| other.value == candidate.value) {
                found.push(candidate);
            }
        }
        // A value that contains another one is replaced first.
        found.sort_by_key(|candidate| std::cmp::Reverse(candidate.value.len()));
        for candidate in found {
            if captures >= MAX_CAPTURES {
                return;
            }
            let later = requests_of(&candidate.value).cloned().unwrap_or_default();
            captures += usize::from(capture(scenario, index, &later, candidate, names));
        }
    }
}

/// Replaces a value in the requests that have it, and captures it at the step before them; whether any has had it.
fn capture(
    scenario: &mut ImportedScenario,
    index: usize,
    requests: &[usize],
    candidate: Candidate,
    names: &mut VariableNameTable,
) -> bool {
    let Candidate { value, name, query, filters, place } = candidate;
    let variable = names.unique(&name);
    let mut uses = Vec::new();
    for later in requests.iter().copied() {
        let Some(step) = scenario.steps.get_mut(later) else { continue };
        for used in replace(&mut step.request, &value, &variable) {
            uses.push(format!("{used} of request {}", later + 1));
        }
    }
    let Some(first) = uses.first() else { return false };
    let others = if uses.len() > 1 { format!(" and {} more", uses.len() - 1) } else { String::new() };
    let length = value.chars().count();
    let note = format!("{variable}: {length} characters of {place} that come again in the {first}{others}");
    let Some(step) = scenario.steps.get_mut(index) else { return false };
    step.notes.push(text::one_line(&note, 200));
    let query = ResponseQuery { kind: query, position: TextPosition::default() };
    let capture = Capture { name: Template::text(variable), query, filters, is_redacted: false };
    step.response.get_or_insert_with(ExpectedResponse::default).captures.push(capture);
    true
}

/// Words of a request that a machine may have made.
fn words(request: &ImportedRequest) -> Vec<String> {
    let mut found = Vec::new();
    for fixed in request.texts().into_iter().flat_map(|text| &text.parts) {
        let weir_hurl::TemplatePart::Text(fixed) = fixed else { continue };
        if fixed.len() > 1 << 20 {
            continue;
        }
        let separators = |c: char| c.is_whitespace() || "/?&=;,\"'<>(){}[]|\\".contains(c);
        for word in fixed.split(separators) {
            for word in [word, word.split(':').next_back().unwrap_or_default()] {
                if is_made(word) {
                    found.push(word.to_owned());
                    found.extend(percent_decoded(word).filter(|decoded| decoded != word));
                }
            }
        }
        // Values with separators in them are whole values of parameters and fields.
        if is_made(fixed) {
            found.push(fixed.clone());
        }
        for value in fixed.split(['&', ' ', '"']).filter_map(|pair| pair.split_once('=')).map(|(_, value)| value) {
            if is_made(value) {
                found.push(value.to_owned());
                found.extend(percent_decoded(value));
            }
        }
    }
    found
}

/// Whether a machine may have made a text: a number of several digits, or characters of two kinds that are no word, no
/// date and no address.
fn is_made(value: &str) -> bool {
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

fn candidates(recorded: &RecordedResponse, comes_again: &dyn Fn(&str) -> bool) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (name, value) in &recorded.headers {
        // Several headers of a name are a list, not a text.
        if recorded.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).count() > 1 {
            continue;
        }
        let title = Template::text(name.as_str());
        if is_made(value) && comes_again(value) {
            found.push(Candidate {
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
fn location_candidates(location: &str, comes_again: &dyn Fn(&str) -> bool) -> Vec<Candidate> {
    let mut found = Vec::new();
    for word in location.split(['/', '?', '&', '#', '=']).filter(|word| is_made(word) && comes_again(word)) {
        let Some((before, after)) = location.split_once(word) else { continue };
        let before: String = before.chars().rev().take(24).collect::<Vec<_>>().into_iter().rev().collect();
        let key = before.trim_end_matches(['=', '/']).rsplit(['?', '&', '/']).next().unwrap_or_default().to_owned();
        let end = match after.chars().next() {
            Some(c) => format!("([^{}]+)", if c == '/' { "/?&" } else { "?&#" }),
            None => "([^/?&#]+)".to_owned(),
        };
        let pattern = Template::text(format!("{}{end}", escaped(&before)));
        let kind = FilterKind::Regex(RegexPattern::Quoted(pattern));
        found.push(Candidate {
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
    found: &mut Vec<Candidate>,
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
                found.push(Candidate {
                    value,
                    name: snake_case(key),
                    query: QueryKind::Text(TextQuery::JsonPath, Template::text(path)),
                    filters: Vec::new(),
                    place: format!("the JSON at {path}"),
                });
            }
        }
        SourceValue::Null | SourceValue::Bool(_) => {}
    }
}

/// Values of hidden fields and of `<meta>` elements.
fn html_candidates(body: &str, found: &mut Vec<Candidate>, comes_again: &dyn Fn(&str) -> bool) {
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
        found.push(Candidate {
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

/// Text as a regular expression that matches it.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
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
