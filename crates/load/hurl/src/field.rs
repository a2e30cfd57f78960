//! Names with values: headers, parameters, cookies, parts of a multipart body.

use std::fmt;

use crate::error::Parsed;
use crate::reader::Reader;
use crate::template::Template;
use crate::template_style::TemplateStyle;

/// `name: value`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldTemplate {
    /// Name.
    pub name: Template,
    /// Value; may be empty.
    pub value: Template,
}

/// Part of a multipart body.
#[derive(Clone, Debug, PartialEq)]
pub struct MultipartField {
    /// Name.
    pub name: Template,
    /// Value.
    pub value: MultipartValue,
}

/// Value of a [`MultipartField`].
#[derive(Clone, Debug, PartialEq)]
pub enum MultipartValue {
    /// Text; may be empty.
    Text(Template),
    /// `file,NAME; CONTENT-TYPE`.
    File {
        /// Name of the file.
        name: Template,
        /// Content type; guessed by the name without one.
        content_type: Option<Template>,
    },
}

impl FieldTemplate {
    /// Whether the line is a field, by its name and colon.
    pub(crate) fn is_next(reader: &mut Reader<'_>) -> bool {
        let start = reader.cursor();
        let is_next = read_name(reader).is_ok();
        reader.seek(start);
        is_next
    }

    /// Reads a line.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let name = read_name(reader)?;
        let value = Template::read_value(reader)?;
        reader.end_of_line()?;
        Ok(Self { name, value })
    }
}

impl MultipartField {
    /// Reads a line.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let name = read_name(reader)?;
        let value = if Template::is_file(reader) {
            let name = Template::read_file(reader)?;
            reader.skip_spaces();
            let content_type = Template::read_value(reader)?;
            MultipartValue::File { name, content_type: (!content_type.is_empty()).then_some(content_type) }
        } else {
            MultipartValue::Text(Template::read_value(reader)?)
        };
        reader.end_of_line()?;
        Ok(Self { name, value })
    }
}

/// Reads a name, a colon and the spaces around the colon.
pub(crate) fn read_name(reader: &mut Reader<'_>) -> Parsed<Template> {
    let name = Template::read_key(reader)?;
    reader.skip_spaces();
    reader.need(":")?;
    reader.skip_spaces();
    Ok(name)
}

/// Writes `name:`.
pub(crate) fn write_name(name: &Template, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}:", name.in_style(TemplateStyle::Key))
}

impl fmt::Display for FieldTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(&self.name, f)?;
        write_value(&self.value.to_string(), f)
    }
}

/// Writes a value after a space; an empty one is nothing.
fn write_value(value: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if value.is_empty() { Ok(()) } else { write!(f, " {value}") }
}

impl fmt::Display for MultipartField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(&self.name, f)?;
        match &self.value {
            MultipartValue::Text(value) => write_value(&value.as_multipart_text(), f),
            MultipartValue::File { name, content_type } => {
                write_value(&name.as_file(), f)?;
                content_type.as_ref().map_or(Ok(()), |content_type| write_value(&content_type.to_string(), f))
            }
        }
    }
}
