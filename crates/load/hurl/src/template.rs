//! Templates: text with expressions.

use std::fmt;

use crate::error::{ParseError, Parsed};
use crate::expression::Expression;
use crate::position::TextPosition;
use crate::reader::Reader;
use crate::template_style::{TemplateStyle, TextEdges};

const FILE_PREFIX: &str = "file,";

/// Text with expressions, such as `/items/{{id}}`. Escape sequences are resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// Texts and expressions in order; empty for an empty text.
    pub parts: Vec<TemplatePart>,
    /// Start, after an opening quote.
    pub position: TextPosition,
}

/// Fixed text or expression within a template.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplatePart {
    /// Text that is sent as it is.
    Text(String),
    /// `{{...}}`.
    Expression(Expression),
}

impl Template {
    /// Template that is a fixed text; `{{` in it is text too.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let parts = if text.is_empty() { Vec::new() } else { vec![TemplatePart::Text(text)] };
        Self { parts, position: TextPosition::default() }
    }

    /// Parses a whole text, in which nothing but `{{` is special.
    ///
    /// # Errors
    /// The first invalid expression.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::read(&mut Reader::new(text), TemplateStyle::Plain)
    }

    /// Text of a template without expressions.
    pub fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Expressions in order.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Text(_) => None,
            TemplatePart::Expression(expression) => Some(expression),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Reads up to the end of the notation, which is not consumed.
    pub(crate) fn read(reader: &mut Reader<'_>, style: TemplateStyle) -> Parsed<Self> {
        let mut template = Self { parts: Vec::new(), position: reader.position() };
        let mut text = String::new();
        // Where spaces begin that end the template, unless text follows.
        let mut spaces = None;
        while let Some(c) = reader.peek() {
            if reader.starts_with("{{") {
                template.push_text(std::mem::take(&mut text));
                template.parts.push(TemplatePart::Expression(Expression::read(reader)?));
                spaces = None;
            } else if c == '\\' && style.has_escapes() {
                text.push(style.read_escape(reader)?);
                spaces = None;
            } else if style.ends_before(c, reader) {
                break;
            } else {
                match c {
                    ' ' if style.is_trimmed() => spaces = spaces.or(Some((reader.cursor(), text.len()))),
                    _ => spaces = None,
                }
                text.push(c);
                reader.bump();
            }
        }
        if let Some((cursor, len)) = spaces {
            reader.seek(cursor);
            text.truncate(len);
        }
        template.push_text(text);
        Ok(template)
    }

    fn push_text(&mut self, text: String) {
        if !text.is_empty() {
            self.parts.push(TemplatePart::Text(text));
        }
    }

    /// Reads the name before a colon.
    pub(crate) fn read_key(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let key = Self::read(reader, TemplateStyle::Key)?;
        // A line that begins with a bracket is a section.
        if key.is_empty() || reader.text_since(start).starts_with('[') {
            return Err(reader.expected_at(start, "a name"));
        }
        Ok(key)
    }

    /// Reads the value before the end of a line.
    pub(crate) fn read_value(reader: &mut Reader<'_>) -> Parsed<Self> {
        Self::read(reader, TemplateStyle::Value)
    }

    /// Reads `"..."`.
    pub(crate) fn read_quoted(reader: &mut Reader<'_>) -> Parsed<Self> {
        if !reader.eat("\"") {
            return Err(reader.expected("a string in double quotes"));
        }
        let template = Self::read(reader, TemplateStyle::Quoted)?;
        reader.need("\"")?;
        Ok(template)
    }

    /// Reads `` `...` ``.
    pub(crate) fn read_one_line(reader: &mut Reader<'_>) -> Parsed<Self> {
        reader.need("`")?;
        let template = Self::read(reader, TemplateStyle::OneLine)?;
        reader.need("`")?;
        Ok(template)
    }

    /// Reads the name of a file.
    pub(crate) fn read_file_name(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let name = Self::read(reader, TemplateStyle::File)?;
        if name.is_empty() || reader.text_since(start).starts_with('[') {
            return Err(reader.expected_at(start, "a file name"));
        }
        Ok(name)
    }

    /// Whether `file,` is next.
    pub(crate) fn is_file(reader: &Reader<'_>) -> bool {
        reader.starts_with(FILE_PREFIX)
    }

    /// Reads `file,NAME;`.
    pub(crate) fn read_file(reader: &mut Reader<'_>) -> Parsed<Self> {
        reader.need(FILE_PREFIX)?;
        reader.skip_spaces();
        let name = Self::read_file_name(reader)?;
        reader.skip_spaces();
        reader.need(";")?;
        Ok(name)
    }

    /// The template in a notation, without quotes.
    pub(crate) fn in_style(&self, style: TemplateStyle) -> StyledTemplate<'_> {
        StyledTemplate { template: self, style }
    }

    /// The template as `file,NAME;`.
    pub(crate) fn as_file(&self) -> String {
        format!("{FILE_PREFIX}{};", self.in_style(TemplateStyle::File))
    }

    /// The template as the value of a multipart field, where text that begins as a file does is escaped.
    pub(crate) fn as_multipart_text(&self) -> String {
        let text = self.to_string();
        match text.strip_prefix(FILE_PREFIX) {
            Some(rest) => format!("\\u{{66}}{}{rest}", FILE_PREFIX.trim_start_matches('f')),
            None => text,
        }
    }

    /// The template in double quotes.
    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.in_style(TemplateStyle::Quoted))
    }
}

/// The template as the value of a header or parameter.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.in_style(TemplateStyle::Value).fmt(f)
    }
}

/// Template that is displayed in a notation.
#[derive(Debug)]
pub(crate) struct StyledTemplate<'a> {
    template: &'a Template,
    style: TemplateStyle,
}

impl fmt::Display for StyledTemplate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = &self.template.parts;
        for (index, part) in parts.iter().enumerate() {
            match part {
                TemplatePart::Text(text) => {
                    let next = parts.get(index + 1);
                    let is_before_expression = matches!(next, Some(TemplatePart::Expression(_)));
                    let edges = TextEdges { is_first: index == 0, is_last: next.is_none(), is_before_expression };
                    self.style.write(text, edges, f)?;
                }
                TemplatePart::Expression(expression) => expression.fmt(f)?,
            }
        }
        Ok(())
    }
}
