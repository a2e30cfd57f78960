//! Bodies of requests and responses.

use std::fmt;

use crate::block::TextBlock;
use crate::bytes::BytesLiteral;
use crate::error::Parsed;
use crate::json::JsonText;
use crate::position::TextPosition;
use crate::reader::Reader;
use crate::template::Template;
use crate::template_style::TemplateStyle;
use crate::xml::read_xml;

/// Body that is sent, or that a response must have.
#[derive(Clone, Debug, PartialEq)]
pub struct HurlBody {
    /// Content.
    pub content: BodyContent,
    /// Start of the content.
    pub position: TextPosition,
}

/// Content of a [`HurlBody`].
#[derive(Clone, Debug, PartialEq)]
pub enum BodyContent {
    /// JSON, sent as application/json.
    Json(JsonText),
    /// XML without expressions, sent as application/xml.
    Xml(String),
    /// `` `...` ``.
    OneLine(Template),
    /// Lines between ```` ``` ````.
    Block(TextBlock),
    /// Bytes.
    Bytes(BytesLiteral),
    /// `file,...;`: content of a file.
    File(Template),
}

impl HurlBody {
    /// Body that was not read from a file.
    pub fn new(content: BodyContent) -> Self {
        Self { content, position: TextPosition::default() }
    }

    /// Whether a body is next, by its first characters.
    pub(crate) fn is_start(reader: &Reader<'_>) -> bool {
        BytesLiteral::is_start(reader)
            || Template::is_file(reader)
            || reader.starts_with("`")
            || reader.starts_with("<")
            || JsonText::is_start(reader.rest())
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let position = reader.position();
        let content = match reader.peek() {
            Some('`') if TextBlock::is_start(reader) => BodyContent::Block(TextBlock::read(reader)?),
            Some('`') => BodyContent::OneLine(Template::read_one_line(reader)?),
            Some('<') => BodyContent::Xml(read_xml(reader)?),
            _ if BytesLiteral::is_start(reader) => BodyContent::Bytes(BytesLiteral::read(reader)?),
            _ if Template::is_file(reader) => BodyContent::File(Template::read_file(reader)?),
            _ => BodyContent::Json(JsonText::read(reader)?),
        };
        reader.end_of_line()?;
        Ok(Self { content, position })
    }
}

impl fmt::Display for HurlBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            BodyContent::Json(json) => json.fmt(f),
            BodyContent::Xml(text) => f.write_str(text),
            BodyContent::OneLine(text) => write!(f, "`{}`", text.in_style(TemplateStyle::OneLine)),
            BodyContent::Block(block) => block.fmt(f),
            BodyContent::Bytes(bytes) => bytes.fmt(f),
            BodyContent::File(name) => name.as_file().fmt(f),
        }
    }
}
