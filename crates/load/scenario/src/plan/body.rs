//! Bodies of requests.

use weir_hurl::{
    BlockContent, BodyContent, BytesLiteral, FieldTemplate, HurlBody, JsonPiece, JsonText, Template, TemplatePart,
};

use super::encoding::PieceEncoding;
use super::files::StepFiles;
use super::piece::{PieceCompiler, PieceList};
use super::place::{self, TextBodyUse};

const JSON: &str = "application/json";
const XML: &str = "application/xml";

/// Content type that a body has by its kind.
pub(super) fn content_type(body: &HurlBody) -> Option<&'static str> {
    match &body.content {
        BodyContent::Json(_) => Some(JSON),
        BodyContent::Xml(_) => Some(XML),
        BodyContent::Block(block) => match &block.content {
            BlockContent::Json(_) | BlockContent::GraphQl { .. } => Some(JSON),
            BlockContent::Xml(_) => Some(XML),
            BlockContent::Text(_) | BlockContent::Raw(_) => None,
        },
        BodyContent::OneLine(_) | BodyContent::Bytes(_) | BodyContent::File(_) => None,
    }
}

/// Appends a body.
pub(super) fn push_body(
    body: &HurlBody,
    usage: TextBodyUse,
    files: &mut StepFiles<'_>,
    list: &mut PieceList,
    compiler: &mut PieceCompiler<'_>,
) {
    match &body.content {
        BodyContent::Json(json) => push_json(json, list, compiler),
        BodyContent::Xml(text) => list.push_fixed(text.as_bytes()),
        BodyContent::OneLine(template) => push_text(template, usage, list, compiler),
        BodyContent::Bytes(BytesLiteral::Base64(bytes) | BytesLiteral::Hex(bytes)) => list.push_fixed(bytes),
        BodyContent::File(name) => {
            if let Some((_, bytes)) = files.read(name, compiler) {
                list.push_fixed(&bytes);
            }
        }
        BodyContent::Block(block) => match &block.content {
            BlockContent::Text(template) | BlockContent::Json(template) => {
                push_text(template, usage, list, compiler);
            }
            BlockContent::Xml(template) => list.push(template, PieceEncoding::Verbatim, compiler),
            BlockContent::Raw(text) => list.push_fixed(text.as_bytes()),
            BlockContent::GraphQl { query, variables } => {
                list.push_fixed(b"{\"query\":\"");
                list.push(&trimmed(query), PieceEncoding::JsonString, compiler);
                list.push_fixed(b"\"");
                if let Some(variables) = variables {
                    list.push_fixed(b",\"variables\":");
                    push_json(variables, list, compiler);
                }
                list.push_fixed(b"}");
            }
        },
    }
}

fn push_text(template: &Template, usage: TextBodyUse, list: &mut PieceList, compiler: &mut PieceCompiler<'_>) {
    // Variables that never change may be any part of a form; in JSON all are values, as in a body that is JSON.
    let template = if usage == TextBodyUse::Form { compiler.folded(template) } else { template.clone() };
    let encodings = place::in_text(&template, usage);
    list.push_each(template, PieceEncoding::Verbatim, encodings, compiler);
}

fn push_json(json: &JsonText, list: &mut PieceList, compiler: &mut PieceCompiler<'_>) {
    for piece in &json.pieces {
        match piece {
            JsonPiece::Verbatim(text) => list.push_fixed(text.as_bytes()),
            JsonPiece::Value(expression) => {
                list.push_expression(expression.clone(), PieceEncoding::JsonValue, compiler);
            }
            JsonPiece::InString(expression) => {
                list.push_expression(expression.clone(), PieceEncoding::JsonString, compiler);
            }
        }
    }
}

/// The template without spaces around it.
fn trimmed(template: &Template) -> Template {
    let mut trimmed = template.clone();
    if let Some(TemplatePart::Text(text)) = trimmed.parts.first_mut() {
        *text = text.trim_start().to_owned();
    }
    if let Some(TemplatePart::Text(text)) = trimmed.parts.last_mut() {
        *text = text.trim_end().to_owned();
    }
    trimmed
}

/// Appends `name=value&name=value`: a query string or a form. The text of names is not encoded, as in hurl.
pub(super) fn push_parameters(
    fields: &[FieldTemplate],
    name_encoding: PieceEncoding,
    list: &mut PieceList,
    compiler: &mut PieceCompiler<'_>,
) {
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            list.push_fixed(b"&");
        }
        let name = compiler.folded(&field.name);
        let encodings = place::in_name(&name, name_encoding);
        list.push_each(name, name_encoding, encodings, compiler);
        list.push_fixed(b"=");
        list.push(&field.value, PieceEncoding::Parameter, compiler);
    }
}
