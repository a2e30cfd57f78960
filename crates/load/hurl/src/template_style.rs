//! Notations of templates: where one ends, and which characters are escaped.

use std::fmt;

use crate::error::Parsed;
use crate::reader::Reader;

/// Notation of a template, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TemplateStyle {
    /// Value up to the end of the line: URL, header, parameter.
    Value,
    /// Name before a colon.
    Key,
    /// Content of `"..."`.
    Quoted,
    /// Content of `` `...` ``.
    OneLine,
    /// Name of a file, up to a space or `;`.
    File,
    /// Name of a certificate's file, before the colon of its password.
    Certificate,
    /// Name in `cookie "name[attribute]"`.
    Cookie,
    /// Lines up to ```` ``` ````, without escapes.
    Block,
    /// Query in a GraphQL block, up to its variables or the end of the block.
    GraphQl,
    /// Whole text, without escapes.
    Plain,
}

impl TemplateStyle {
    /// Whether a template ends before the next character, which is `c`.
    pub(crate) fn ends_before(self, c: char, reader: &Reader<'_>) -> bool {
        match self {
            Self::Value => c == '#' || is_break(c),
            Self::Key => !is_key(c),
            Self::Quoted => c == '"' || is_break(c),
            Self::OneLine => c == '`' || is_break(c),
            Self::File => !is_file_name(c),
            Self::Certificate => c == ':' || !is_file_name(c),
            Self::Cookie => matches!(c, '"' | '[') || is_break(c),
            Self::Block => reader.starts_with("```"),
            Self::Plain => false,
            Self::GraphQl => reader.starts_with("```") || (reader.position().column == 1 && is_variables(reader)),
        }
    }

    pub(crate) fn has_escapes(self) -> bool {
        !matches!(self, Self::Block | Self::GraphQl | Self::Plain)
    }

    /// Whether spaces at the end belong to the line instead of the template.
    pub(crate) fn is_trimmed(self) -> bool {
        matches!(self, Self::Value | Self::Cookie)
    }

    /// Characters that stand for themselves after a backslash.
    fn escaped_symbols(self) -> &'static str {
        match self {
            Self::Value | Self::Quoted | Self::OneLine => "#\"`\\/",
            Self::Key => "#:\\/",
            Self::File | Self::Certificate => "\\#; {}:",
            Self::Cookie => "#\\/",
            Self::Block | Self::GraphQl | Self::Plain => "",
        }
    }

    /// Character of an escape sequence, which is next.
    pub(crate) fn read_escape(self, reader: &mut Reader<'_>) -> Parsed<char> {
        reader.need("\\")?;
        let start = reader.cursor();
        let c = match reader.bump() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return read_code_point(reader),
            Some(c) if self.escaped_symbols().contains(c) => c,
            _ => {
                let symbols: Vec<String> = self.escaped_symbols().chars().map(|c| format!("\\{c}")).collect();
                let expected =
                    format!("an escape sequence: {}, \\b, \\f, \\n, \\r, \\t or \\u{{hex}}", symbols.join(", "));
                return Err(reader.expected_at(start, expected));
            }
        };
        Ok(c)
    }

    /// Writes text so that it is read back; see [`TextEdges`].
    pub(crate) fn write(self, text: &str, edges: TextEdges, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.has_escapes() {
            return f.write_str(text);
        }
        let mut chars = text.chars().peekable();
        let mut is_first = edges.is_first;
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            let is_brace = c == '{' && next.map_or(edges.is_before_expression, |next| next == '{');
            let is_edge = c == ' ' && self.is_trimmed() && (is_first || (edges.is_last && next.is_none()));
            let is_escaped = is_brace || is_edge || self.is_special(c, is_first);
            is_first = false;
            match c {
                c if !is_escaped => fmt::Write::write_char(f, c)?,
                '\u{8}' => f.write_str("\\b")?,
                '\u{c}' => f.write_str("\\f")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if self.escaped_symbols().contains(c) => write!(f, "\\{c}")?,
                c => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            }
        }
        Ok(())
    }

    /// Whether a character is always escaped in this notation.
    fn is_special(self, c: char, is_first: bool) -> bool {
        let is_ended = match self {
            Self::Value => c == '#',
            Self::Key => !is_key(c) || (is_first && c == '['),
            Self::Quoted => c == '"',
            Self::OneLine => c == '`',
            Self::File => !is_file_name(c) || (is_first && c == '['),
            Self::Certificate => c == ':' || !is_file_name(c) || (is_first && c == '['),
            // hurl ends a cookie's name at '#'.
            Self::Cookie => matches!(c, '"' | '[' | '#'),
            Self::Block | Self::GraphQl | Self::Plain => false,
        };
        c == '\\' || c.is_control() || is_ended
    }
}

/// Neighbors of a text within its template.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextEdges {
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
    pub(crate) is_before_expression: bool,
}

/// Characters that end a line, or that only escapes express.
fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t' | '\u{8}' | '\u{c}')
}

fn is_key(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']' | '@' | '$')
}

fn is_file_name(c: char) -> bool {
    !matches!(c, '#' | ';' | '{' | '}' | ' ' | '\n' | '\r')
}

/// Whether `variables {` is next.
fn is_variables(reader: &Reader<'_>) -> bool {
    let rest = reader.rest().strip_prefix("variables");
    rest.is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with('{'))
}

/// Character of `{hex}`, after `\u`.
fn read_code_point(reader: &mut Reader<'_>) -> Parsed<char> {
    reader.need("{")?;
    let start = reader.cursor();
    let digits = reader.take_while(|c| c.is_ascii_hexdigit());
    let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    let c = c.ok_or_else(|| reader.expected_at(start, "a code point in hexadecimal digits, such as 1f600"))?;
    reader.need("}")?;
    Ok(c)
}
