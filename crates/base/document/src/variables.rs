//! References to environment variables in strings: `${NAME}`, `${NAME:-default}`, and `$${` for a literal `${`.

use std::env::VarError;
use std::fmt;

/// Looks up a variable, as [`std::env::var`] does.
pub type VariableLookup<'l> = &'l dyn Fn(&str) -> Result<String, VarError>;

/// A string with its references replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandedText {
    /// The string.
    pub text: String,
    /// Whether the string was one reference and nothing else, so that its value may stand for a number or a boolean.
    pub is_one_reference: bool,
}

/// Error of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableError {
    /// Not closed, or not a name: the text from `${` on.
    Syntax(String),
    /// The variable of this name is not set.
    Unset(String),
    /// The value of the variable of this name is not UTF-8.
    NotUnicode(String),
}

impl VariableError {
    /// Remedy for the user, in one line.
    pub fn remedy(&self) -> String {
        match self {
            Self::Syntax(_) => r#"write it as "${NAME}" or "${NAME:-default}"; a literal ${ is $${"#.to_owned(),
            Self::Unset(name) => format!("set it, or give a default: \"${{{name}:-default}}\""),
            Self::NotUnicode(_) => "give it a value in UTF-8".to_owned(),
        }
    }
}

impl fmt::Display for VariableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(text) => write!(f, "invalid variable {text:?}"),
            Self::Unset(name) => write!(f, "the environment variable {name} is not set"),
            Self::NotUnicode(name) => write!(f, "the environment variable {name} is not UTF-8"),
        }
    }
}

/// Longest text of a reference in an error, in characters.
const MAX_SHOWN: usize = 40;

/// Replaces all references; None if there is none. A default counts if the variable is unset or empty, as in a shell.
///
/// # Errors
/// The first reference that has no value.
pub fn expand(text: &str, lookup: VariableLookup<'_>) -> Result<Option<ExpandedText>, VariableError> {
    if !text.contains("${") {
        return Ok(None);
    }
    let (mut expanded, mut rest, mut references) = (String::new(), text, 0);
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = &from[2..];
            continue;
        }
        expanded.push_str(before);
        let syntax = || VariableError::Syntax(from.chars().take(MAX_SHOWN).collect());
        let (inner, after) = from[2..].split_once('}').ok_or_else(syntax)?;
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if !is_name(name) || default.is_some_and(|default| default.contains("${")) {
            return Err(syntax());
        }
        let value = match (lookup(name), default) {
            (Ok(value), None) => value,
            (Ok(value), Some(_)) if !value.is_empty() => value,
            (Ok(_) | Err(VarError::NotPresent), Some(default)) => default.to_owned(),
            (Err(VarError::NotPresent), None) => return Err(VariableError::Unset(name.to_owned())),
            (Err(VarError::NotUnicode(_)), _) => return Err(VariableError::NotUnicode(name.to_owned())),
        };
        expanded.push_str(&value);
        references += 1;
        rest = after;
    }
    expanded.push_str(rest);
    let is_one_reference = references == 1 && text.starts_with("${") && text.find('}') == Some(text.len() - 1);
    Ok(Some(ExpandedText { text: expanded, is_one_reference }))
}

/// Whether a text is a variable's name: a letter or `_`, then letters, digits and `_`.
fn is_name(text: &str) -> bool {
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<Option<(String, bool)>, VariableError> {
        let lookup = |name: &str| match name {
            "PORT" => Ok("8080".to_owned()),
            "EMPTY" => Ok(String::new()),
            "NESTED" => Ok("${PORT}".to_owned()),
            "BYTES" => Err(VarError::NotUnicode("x".into())),
            _ => Err(VarError::NotPresent),
        };
        expand(text, &lookup).map(|it| it.map(|it| (it.text, it.is_one_reference)))
    }

    fn becomes(text: &str, is_one_reference: bool) -> Result<Option<(String, bool)>, VariableError> {
        Ok(Some((text.to_owned(), is_one_reference)))
    }

    #[test]
    fn references_become_values() {
        assert_eq!(expanded("${PORT}"), becomes("8080", true));
        assert_eq!(expanded("127.0.0.1:${PORT}"), becomes("127.0.0.1:8080", false));
        assert_eq!(expanded("${PORT}${PORT}"), becomes("80808080", false));
        assert_eq!(expanded("${EMPTY}"), becomes("", true));
        assert_eq!(expanded("${EMPTY:-a}${NONE:-b:-c}${PORT:-d}"), becomes("ab:-c8080", false));
        assert_eq!(expanded("${NONE:-}"), becomes("", true));
        assert_eq!(expanded("${NESTED}"), becomes("${PORT}", true), "values are not expanded again");
    }

    #[test]
    fn other_dollars_and_braces_stay() {
        for text in ["", "$PORT", "{PORT}", "$", "$$", "a$", "$ {PORT}", "^v[0-9]{2}$"] {
            assert_eq!(expanded(text), Ok(None), "{text}");
        }
        assert_eq!(expanded("$${PORT}"), becomes("${PORT}", false));
        assert_eq!(expanded("$$${PORT}"), becomes("$${PORT}", false));
        assert_eq!(expanded("a$${b ${PORT}"), becomes("a${b 8080", false));
    }

    #[test]
    fn references_without_a_value_are_errors() {
        assert_eq!(expanded("a${NONE}"), Err(VariableError::Unset("NONE".to_owned())));
        assert_eq!(expanded("${BYTES:-a}"), Err(VariableError::NotUnicode("BYTES".to_owned())));
        for (text, shown) in [
            ("a ${PORT", "${PORT"),
            ("${}", "${}"),
            ("${9}", "${9}"),
            ("${a-b}", "${a-b}"),
            ("${PORT:-${PORT}}", "${PORT:-${PORT}}"),
            ("${PORT:=1}", "${PORT:=1}"),
        ] {
            assert_eq!(expanded(text), Err(VariableError::Syntax(shown.to_owned())), "{text}");
        }
    }
}
