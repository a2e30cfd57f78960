//! Blocks of lines between ```` ``` ````.

use std::fmt;

use crate::error::{ParseError, Parsed};
use crate::json::JsonText;
use crate::position::TextPosition;
use crate::reader::Reader;
use crate::template::{Template, TemplatePart};
use crate::template_style::TemplateStyle;

const FENCE: &str = "```";
const VARIABLES: &str = "variables";

/// Lines between ```` ``` ````, without escape sequences.
///
/// A block expresses neither ```` ``` ```` nor, as text of a template, `{{`. With such a text, which no file contains,
/// it is displayed as `` `...` ``, without its language.
#[derive(Clone, Debug, PartialEq)]
pub struct TextBlock {
    /// Language and lines.
    pub content: BlockContent,
    /// Place of the opening ```` ``` ````.
    pub position: TextPosition,
}

/// Language and lines of a [`TextBlock`]. The line break before the closing ```` ``` ```` belongs to the lines.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockContent {
    /// Lines without a language.
    Text(Template),
    /// `json`: sent as application/json.
    Json(Template),
    /// `xml`: sent as application/xml.
    Xml(Template),
    /// `raw`: without expressions.
    Raw(String),
    /// `graphql`: sent as JSON with the query, without spaces around it, and its variables.
    GraphQl {
        /// Query.
        query: Template,
        /// JSON object after `variables`, without spaces.
        variables: Option<JsonText>,
    },
}

crate::words::words! {
    /// Language tag of a multiline block: ```` ```json ````.
    pub(crate) enum BlockLanguage {
        /// [`BlockContent::GraphQl`].
        GraphQl = "graphql",
        /// [`BlockContent::Json`].
        Json = "json",
        /// [`BlockContent::Raw`].
        Raw = "raw",
        /// [`BlockContent::Xml`].
        Xml = "xml",
    }
}

impl TextBlock {
    pub(crate) fn is_start(reader: &Reader<'_>) -> bool {
        reader.starts_with(FENCE)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let position = reader.position();
        reader.need(FENCE)?;
        let language = read_language(reader)?;
        let content = match language {
            None => BlockContent::Text(Template::read(reader, TemplateStyle::Block)?),
            Some(BlockLanguage::Json) => BlockContent::Json(Template::read(reader, TemplateStyle::Block)?),
            Some(BlockLanguage::Xml) => BlockContent::Xml(Template::read(reader, TemplateStyle::Block)?),
            Some(BlockLanguage::Raw) => BlockContent::Raw(read_raw(reader)),
            Some(BlockLanguage::GraphQl) => {
                let query = Template::read(reader, TemplateStyle::GraphQl)?;
                let variables = if reader.eat(VARIABLES) { Some(read_variables(reader)?) } else { None };
                BlockContent::GraphQl { query, variables }
            }
        };
        if !reader.eat(FENCE) {
            let error = reader.expected("a block that ends with ```");
            return Err(ParseError { position, ..error });
        }
        Ok(Self { content, position })
    }
}

/// Reads the rest of the opening line.
fn read_language(reader: &mut Reader<'_>) -> Parsed<Option<BlockLanguage>> {
    let start = reader.cursor();
    let text = reader.take_while(|c| !matches!(c, '\n' | '\r' | '`')).trim_end_matches([' ', '\t']);
    let language = match text {
        "" => None,
        // hurl accepts a comma, since attributes followed it once.
        "graphql," => Some(BlockLanguage::GraphQl),
        text => Some(BlockLanguage::from_word(text).ok_or_else(|| {
            let languages = BlockLanguage::spellings().collect::<Vec<_>>().join(", ");
            let error = reader.expected_at(start, format!("the end of the line or one of {languages}"));
            error.with_nearest(text, BlockLanguage::spellings())
        })?),
    };
    if !reader.eat("\n") && !reader.eat("\r\n") {
        return Err(reader.expected("the end of the line"));
    }
    Ok(language)
}

fn read_raw(reader: &mut Reader<'_>) -> String {
    let start = reader.cursor();
    while !reader.starts_with(FENCE) && reader.bump().is_some() {}
    reader.text_since(start).to_owned()
}

/// Reads the object after `variables`, and the spaces after it.
fn read_variables(reader: &mut Reader<'_>) -> Parsed<JsonText> {
    reader.skip_spaces();
    let variables = JsonText::read_compact(reader)?;
    reader.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
    Ok(variables)
}

impl BlockContent {
    fn language(&self) -> &'static str {
        match self {
            Self::Text(_) => "",
            Self::Json(_) => BlockLanguage::Json.as_str(),
            Self::Xml(_) => BlockLanguage::Xml.as_str(),
            Self::Raw(_) => BlockLanguage::Raw.as_str(),
            Self::GraphQl { .. } => BlockLanguage::GraphQl.as_str(),
        }
    }
}

/// Whether text of a template is read back from a block.
fn is_expressible(template: &Template) -> bool {
    let mut parts = template.parts.iter().peekable();
    while let Some(part) = parts.next() {
        if let TemplatePart::Text(text) = part
            && (text.contains(FENCE) || text.contains("{{") || (text.ends_with('{') && parts.peek().is_some()))
        {
            return false;
        }
    }
    true
}

impl fmt::Display for TextBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let language = self.content.language();
        match &self.content {
            BlockContent::Text(text) | BlockContent::Json(text) | BlockContent::Xml(text) if !is_expressible(text) => {
                write!(f, "`{}`", text.in_style(TemplateStyle::OneLine))
            }
            BlockContent::Text(text) | BlockContent::Json(text) | BlockContent::Xml(text) => {
                write!(f, "{FENCE}{language}\n{}{FENCE}", text.in_style(TemplateStyle::Block))
            }
            BlockContent::Raw(text) if text.contains(FENCE) => {
                write!(f, "`{}`", Template::text(text).in_style(TemplateStyle::OneLine))
            }
            BlockContent::Raw(text) => write!(f, "{FENCE}{language}\n{text}{FENCE}"),
            BlockContent::GraphQl { query, variables: None } => {
                write!(f, "{FENCE}{language}\n{}{FENCE}", query.in_style(TemplateStyle::GraphQl))
            }
            BlockContent::GraphQl { query, variables: Some(variables) } => {
                let query = query.in_style(TemplateStyle::GraphQl).to_string();
                // `variables` is recognized at the start of a line only.
                let end = if query.is_empty() || query.ends_with('\n') { "" } else { "\n" };
                write!(f, "{FENCE}{language}\n{query}{end}{VARIABLES} {variables}\n{FENCE}")
            }
        }
    }
}
