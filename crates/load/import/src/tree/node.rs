//! Nodes of a document.

use std::borrow::Cow;

/// Value with its line.
#[derive(Clone, Debug)]
pub(crate) struct SourceNode<'a> {
    /// Line, from 1.
    pub(crate) line: u32,
    pub(crate) value: SourceValue<'a>,
}

/// Value of a [`SourceNode`].
#[derive(Clone, Debug)]
pub(crate) enum SourceValue<'a> {
    Null,
    Bool(bool),
    /// Digits as they are written.
    Number(Cow<'a, str>),
    Text(SourceText<'a>),
    List(Vec<SourceNode<'a>>),
    /// Members in order.
    Map(Vec<(SourceText<'a>, SourceNode<'a>)>),
    /// A list or an object as JSON, to be read by [`SourceNode::read`].
    Unread(&'a str),
}

/// Text of a document. A string of JSON keeps its escape sequences until it is read: recorded bodies make up most
/// of a large file, and hardly any is looked into.
#[derive(Clone, Debug)]
pub(crate) enum SourceText<'a> {
    /// Content of a string of JSON, between its quotes.
    Escaped(&'a str),
    Plain(Cow<'a, str>),
}

impl<'a> SourceText<'a> {
    pub(crate) fn get(&self) -> Cow<'_, str> {
        match self {
            Self::Escaped(text) if !text.contains('\\') => Cow::Borrowed(text),
            Self::Escaped(text) => Cow::Owned(unescape(text)),
            Self::Plain(text) => Cow::Borrowed(text),
        }
    }

    fn is(&self, other: &str) -> bool {
        match self {
            Self::Escaped(text) if !text.contains('\\') => *text == other,
            _ => self.get() == other,
        }
    }
}

/// Resolves the escape sequences of JSON; half of a surrogate pair is U+FFFD.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let mut chars = rest.chars();
        match chars.next() {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let (c, length) = code_point(rest);
                out.push(c);
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            Some(c) => out.push(c),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

/// Character of `uXXXX` or `uXXXX\uXXXX`, and the length of the text.
fn code_point(text: &str) -> (char, usize) {
    let unit = |text: &str| {
        let digits = text.get(1..5).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        digits.and_then(|digits| u32::from_str_radix(digits, 16).ok())
    };
    let Some(first) = unit(text) else { return (char::REPLACEMENT_CHARACTER, 1) };
    if (0xd800..0xdc00).contains(&first)
        && let Some(second) = text.get(5..).and_then(|rest| rest.strip_prefix('\\')).and_then(unit)
        && (0xdc00..0xe000).contains(&second)
    {
        let c = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER), 11);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 5)
}

impl<'a> SourceNode<'a> {
    /// Member of a map; the first one of its name.
    pub(crate) fn get(&self, key: &str) -> Option<&SourceNode<'a>> {
        match &self.value {
            SourceValue::Map(members) => members.iter().find(|(name, _)| name.is(key)).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Text of a member; of numbers and booleans, too.
    pub(crate) fn text_of(&self, key: &str) -> Option<String> {
        self.get(key).and_then(Self::scalar)
    }

    /// Members of a map with their names; none of another value.
    pub(crate) fn members(&self) -> impl Iterator<Item = (Cow<'_, str>, &SourceNode<'a>)> {
        let members = match &self.value {
            SourceValue::Map(members) => members.as_slice(),
            _ => &[],
        };
        members.iter().map(|(name, node)| (name.get(), node))
    }

    /// Items of a list; none of another value.
    pub(crate) fn items(&self) -> &[SourceNode<'a>] {
        match &self.value {
            SourceValue::List(items) => items,
            _ => &[],
        }
    }

    /// Items of a list that is a member.
    pub(crate) fn items_of(&self, key: &str) -> &[SourceNode<'a>] {
        self.get(key).map(Self::items).unwrap_or_default()
    }

    /// Text of a string.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match &self.value {
            SourceValue::Text(text) => Some(text.get()),
            _ => None,
        }
    }

    /// Text of a string, a number or a boolean.
    pub(crate) fn scalar(&self) -> Option<String> {
        match &self.value {
            SourceValue::Text(text) => Some(text.get().into_owned()),
            SourceValue::Number(digits) => Some(digits.clone().into_owned()),
            SourceValue::Bool(value) => Some(value.to_string()),
            SourceValue::Null | SourceValue::List(_) | SourceValue::Map(_) | SourceValue::Unread(_) => None,
        }
    }

    /// Number.
    pub(crate) fn number(&self) -> Option<f64> {
        self.scalar()?.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Whether a member is true.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|node| matches!(node.value, SourceValue::Bool(true)))
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.value, SourceValue::Map(_))
    }

    /// Noun for messages.
    pub(crate) fn noun(&self) -> &'static str {
        match self.value {
            SourceValue::Null => "null",
            SourceValue::Bool(_) => "a boolean",
            SourceValue::Number(_) => "a number",
            SourceValue::Text(_) => "a string",
            SourceValue::List(_) => "a list",
            SourceValue::Map(_) => "an object",
            SourceValue::Unread(_) => "a list or an object",
        }
    }

    /// The node as compact JSON.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match &self.value {
            SourceValue::Null => out.push_str("null"),
            SourceValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            SourceValue::Number(digits) => out.push_str(digits),
            SourceValue::Unread(text) => out.push_str(text),
            SourceValue::Text(text) => out.push_str(&quoted(&text.get())),
            SourceValue::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    item.write_json(out);
                }
                out.push(']');
            }
            SourceValue::Map(members) => {
                out.push('{');
                for (index, (name, node)) in members.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    out.push_str(&quoted(&name.get()));
                    out.push_str(": ");
                    node.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

/// String of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_resolved_as_serde_json_resolves_them() {
        for text in [r"a\nb", r"\u00e4", r"\ud83d\ude00", r"\\u", r"\/\b\f\r\t", r#"\""#, "plain"] {
            let expected: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
            assert_eq!(SourceText::Escaped(text).get(), expected, "{text}");
        }
        assert_eq!(SourceText::Escaped(r"\ud83dx\u12\u+041").get(), "\u{fffd}x\u{fffd}12\u{fffd}+041");
    }
}
