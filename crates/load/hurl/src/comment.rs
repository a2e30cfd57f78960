//! Comments.

use std::fmt;

use crate::position::TextPosition;

/// Comment, which begins with `#` and ends with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Text after `#`.
    pub text: String,
    /// Place of `#`.
    pub position: TextPosition,
}

impl Comment {
    /// Comment that was not read from a file; a line break in `text` begins another comment when it is printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), position: TextPosition::default() }
    }

    /// Value of `# @key value`; `@key: value` and `@key=value` are accepted too.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let rest = self.text.trim().strip_prefix('@')?.strip_prefix(key)?;
        let value = rest.strip_prefix([' ', '\t', ':', '='])?.trim();
        (!value.is_empty()).then_some(value)
    }
}

/// `# text` with its line end.
impl fmt::Display for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.split('\n').try_for_each(|line| writeln!(f, "#{}", line.trim_end_matches('\r')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_has_a_key_and_a_value() {
        let value = |text: &str| Comment::new(text).annotation("name").map(str::to_owned);
        assert_eq!(value(" @name log in").as_deref(), Some("log in"));
        assert_eq!(value("@name: login").as_deref(), Some("login"));
        assert_eq!(value(" @names login"), None);
        assert_eq!(value(" @name "), None);
        assert_eq!(value(" name login"), None);
    }
}
