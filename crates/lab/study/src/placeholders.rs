//! `{placeholders}` in the texts of a study file.

use std::collections::BTreeMap;

use weir_base::placeholder::placeholders;

/// Values of placeholders, by name.
pub(super) type PlaceholderValues = BTreeMap<String, String>;

/// Piece of a text with `{placeholders}`.
#[derive(Debug, PartialEq, Eq)]
enum TextPiece<'a> {
    Text(&'a str),
    Placeholder(&'a str),
    /// `{{name}}`: the braces themselves.
    Literal(&'a str),
}

/// Names of the placeholders in a text.
pub(super) fn names(text: &str) -> Vec<&str> {
    let name = |piece| if let TextPiece::Placeholder(name) = piece { Some(name) } else { None };
    pieces(text).into_iter().filter_map(name).collect()
}

/// Text with all placeholders filled in.
///
/// # Errors
/// The name of the first unknown placeholder.
pub(super) fn fill(text: &str, values: &PlaceholderValues) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            TextPiece::Text(text) => filled.push_str(text),
            TextPiece::Literal(name) => filled.push_str(&format!("{{{name}}}")),
            TextPiece::Placeholder(name) => filled.push_str(values.get(name).ok_or_else(|| name.to_owned())?),
        }
    }
    Ok(filled)
}

/// Pieces of a text.
fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let (mut pieces, mut end) = (Vec::new(), 0);
    for field in placeholders(text, is_part) {
        if !field.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            continue;
        }
        let before = &text[end..field.start];
        let is_literal = before.ends_with('{') && text[field.end..].starts_with('}');
        let piece = if is_literal { TextPiece::Literal(field.name) } else { TextPiece::Placeholder(field.name) };
        pieces.extend([TextPiece::Text(if is_literal { &before[..before.len() - 1] } else { before }), piece]);
        end = field.end + usize::from(is_literal);
    }
    pieces.push(TextPiece::Text(&text[end..]));
    pieces
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(text: &str) -> Result<String, String> {
        let values = [("port", "80"), ("up.port", "81")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        fill(text, &values.into_iter().collect())
    }

    #[test]
    fn names_in_braces_are_filled_in_and_nothing_else_is() {
        for (text, expected) in [
            ("http://h:{port}/", "http://h:80/"),
            ("{port}{up.port}", "8081"),
            (r#"{"a": {"b": {port}}}"#, r#"{"a": {"b": 80}}"#),
            ("{{port}}", "{port}"),
            ("{ port }", "{ port }"),
            ("{}", "{}"),
            ("${1} {", "${1} {"),
            ("{1}", "{1}"),
            ("\u{e4}{port}\u{e4}", "\u{e4}80\u{e4}"),
        ] {
            assert_eq!(filled(text), Ok(expected.to_owned()), "{text}");
        }
        assert_eq!(filled("a {nothing} b"), Err("nothing".to_owned()));
        assert_eq!(names("{a} {{b}} {c.d}"), ["a", "c.d"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[{}a.\u{e4} ]{0,30}") {
            let values = names(&text).into_iter().map(|name| (name.to_owned(), String::new())).collect();
            prop_assert!(fill(&text, &values).is_ok());
        }
    }
}
