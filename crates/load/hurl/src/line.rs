//! Kinds of lines: what a line begins, by its first characters.

use crate::body::HurlBody;
use crate::field::FieldTemplate;
use crate::reader::Reader;
use crate::section::SectionName;

/// Part of a file that a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// End of the file.
    End,
    /// Request: `GET URL`.
    Request,
    /// Response: `HTTP 200`.
    Response,
    /// Title of a section.
    Section,
    /// Body.
    Body,
    /// Line of a section or header, valid or not.
    Item,
}

impl LineKind {
    /// Kind of the next line, in `[Asserts]` or elsewhere.
    pub(crate) fn of(reader: &mut Reader<'_>, is_assert: bool) -> Self {
        let line = reader.line();
        if reader.is_end() {
            Self::End
        } else if SectionName::is_title(line) {
            Self::Section
        } else if !is_assert && FieldTemplate::is_next(reader) {
            Self::Item
        } else if is_response(line) {
            Self::Response
        } else if is_request(line) {
            Self::Request
        } else if HurlBody::is_start(reader) {
            Self::Body
        } else if is_misspelled_request(line, !is_assert) {
            Self::Request
        } else {
            Self::Item
        }
    }

    /// Whether parsing goes on at this line after an error in a body, whose lines may look like many things.
    pub(crate) fn is_anchor(line: &str) -> bool {
        let line = line.trim_start_matches([' ', '\t']);
        SectionName::is_known_title(line) || is_response(line) || Self::is_request_anchor(line)
    }

    /// Whether a line is a request, with what looks like a URL.
    pub(crate) fn is_request_anchor(line: &str) -> bool {
        let line = line.trim_start_matches([' ', '\t']);
        is_request(line) && is_misspelled_request(line, true)
    }
}

fn is_response(line: &str) -> bool {
    line.strip_prefix("HTTP").is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ' ', '\t']))
}

fn is_request(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_uppercase());
    rest.len() < line.len() && (rest.is_empty() || rest.starts_with([' ', '\t', '#', '/']))
}

/// Whether a line is a word of letters in any case, and what looks like a URL: with a scheme, or as a path.
fn is_misspelled_request(line: &str, is_path_allowed: bool) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let url = rest.trim_start_matches([' ', '\t']);
    let scheme = url.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let is_path = is_path_allowed && (url.starts_with('/') || url.starts_with("{{"));
    let is_url = is_path || (scheme.len() < url.len() && scheme.starts_with("://"));
    rest.len() < line.len() && url.len() < rest.len() && is_url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_kind() {
        let cases = [
            ("GET http://h", LineKind::Request),
            ("GET", LineKind::Request),
            ("get http://h", LineKind::Request),
            ("Get {{base}}/x", LineKind::Request),
            ("GET/items", LineKind::Request),
            ("GET: x", LineKind::Item),
            ("HTTP 200", LineKind::Response),
            ("HTTP/1.1 200", LineKind::Response),
            ("HTTP: x", LineKind::Item),
            ("[Query]", LineKind::Section),
            ("[Qery] # x", LineKind::Section),
            ("[Query] x", LineKind::Section),
            ("[a, b]", LineKind::Body),
            ("[1]", LineKind::Body),
            ("[true]", LineKind::Body),
            ("{{key}}: x", LineKind::Item),
            ("{{value}}", LineKind::Body),
            ("123: x", LineKind::Item),
            ("-1", LineKind::Body),
            ("truely", LineKind::Item),
            ("true", LineKind::Body),
            ("file,x;", LineKind::Body),
            ("file: x", LineKind::Item),
            ("hex,00;", LineKind::Body),
            ("<a/>", LineKind::Body),
            ("Accept text/html", LineKind::Item),
            ("?", LineKind::Item),
            ("", LineKind::End),
        ];
        for (text, kind) in cases {
            assert_eq!(LineKind::of(&mut Reader::new(text), false), kind, "{text}");
        }
        assert_eq!(LineKind::of(&mut Reader::new("regex /http:/ exists"), true), LineKind::Item);
        assert_eq!(LineKind::of(&mut Reader::new("GET /x"), true), LineKind::Request);
        assert_eq!(LineKind::of(&mut Reader::new("get http://h"), true), LineKind::Request);
    }

    #[test]
    fn an_anchor_is_unlikely_in_a_body() {
        assert!(["GET http://h", " [Asserts]", "HTTP *"].into_iter().all(LineKind::is_anchor));
        assert!(!["SELECT * FROM x", "GET", "[abc]", "\"GET /\"", ""].into_iter().any(LineKind::is_anchor));
    }
}
