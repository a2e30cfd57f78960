//! Steps as entries of a `.hurl` file.

use weir_hurl::{
    BlockContent, BodyContent, BytesLiteral, Comment, FieldTemplate, HurlBody, HurlEntry, HurlRequest, JsonText,
    Template, TemplatePart, TextBlock, TextPosition,
};

use crate::request::{ImportedBody, ImportedRequest, ImportedStep};
use crate::text;

const JSON: &str = "application/json";
const XML: &str = "application/xml";

/// Entry of a step.
pub(crate) fn entry(step: &ImportedStep) -> HurlEntry {
    let name = text::one_line(&step.name, 80);
    let named = (!name.is_empty()).then(|| Comment::new(format!(" @name {name}")));
    let success = step.success.map(|rule| Comment::new(format!(" @success {}", rule.predicate())));
    let comments = named.into_iter().chain(success).chain(step.notes.iter().map(|note| comment(note))).collect();
    HurlEntry { comments, request: request(&step.request), response: step.response.clone() }
}

/// Comment on one line, without a meaning of its own.
pub(super) fn comment(text: &str) -> Comment {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = clean.trim();
    Comment::new(format!(" {}{clean}", if clean.starts_with('@') { "note: " } else { "" }))
}

fn request(request: &ImportedRequest) -> HurlRequest {
    let (body, default_type) = body(&request.body);
    let is_default = |header: &&FieldTemplate| {
        let is_type = header.name.as_text().is_some_and(|name| name.eq_ignore_ascii_case("Content-Type"));
        !(is_type && header.value.as_text() == default_type)
    };
    let mut made = HurlRequest::new(request.method.clone(), request.url.clone());
    made.headers = request.headers.iter().filter(is_default).cloned().collect();
    made.query.clone_from(&request.query);
    made.cookies.clone_from(&request.cookies);
    made.basic_auth.clone_from(&request.basic_auth);
    made.options.clone_from(&request.options);
    match &request.body {
        ImportedBody::Form(fields) => made.form.clone_from(fields),
        ImportedBody::Multipart(fields) => made.multipart.clone_from(fields),
        _ => made.body = body.map(HurlBody::new),
    }
    made
}

/// Content-Type that a body has without a header.
pub(super) fn default_type(body: &ImportedBody) -> Option<&'static str> {
    self::body(body).1
}

/// Body, and the Content-Type that it has by itself.
fn body(body: &ImportedBody) -> (Option<BodyContent>, Option<&'static str>) {
    match body {
        ImportedBody::None => (None, None),
        ImportedBody::Form(_) => (None, Some("application/x-www-form-urlencoded")),
        // With its boundary, which is another one each time.
        ImportedBody::Multipart(_) => (None, Some("multipart/form-data")),
        ImportedBody::Bytes(bytes) => (Some(BodyContent::Bytes(BytesLiteral::Base64(bytes.clone()))), None),
        ImportedBody::File(name) => (Some(BodyContent::File(Template::text(name))), None),
        ImportedBody::Text { text, media_type } => text_body(text, media_type),
    }
}

fn text_body(text: &Template, media_type: &str) -> (Option<BodyContent>, Option<&'static str>) {
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let block = |content| Some(BodyContent::Block(TextBlock { content, position: TextPosition::default() }));
    if media_type == JSON || media_type.ends_with("+json") {
        if let Some(json) = json(text) {
            return (Some(BodyContent::Json(json)), Some(JSON));
        }
        return match is_block(text) {
            true => (block(BlockContent::Json(text.clone())), Some(JSON)),
            false => (Some(BodyContent::OneLine(text.clone())), None),
        };
    }
    if !is_block(text) {
        return (Some(BodyContent::OneLine(text.clone())), None);
    }
    match media_type.as_str() {
        XML => (block(BlockContent::Xml(text.clone())), Some(XML)),
        _ if text::source(text).contains('\n') => (block(BlockContent::Text(text.clone())), None),
        _ => (Some(BodyContent::OneLine(text.clone())), None),
    }
}

/// Whether a block of lines can hold a text: without carriage returns, fences and braces that are not an expression.
fn is_block(text: &Template) -> bool {
    let is_plain = |part: &TemplatePart| match part {
        TemplatePart::Text(text) => !text.contains("```") && !text.contains("{{") && !text.contains('\r'),
        TemplatePart::Expression(_) => true,
    };
    let ends_open = text.parts.windows(2).any(|pair| match pair {
        [TemplatePart::Text(text), _] => text.ends_with('{'),
        _ => false,
    });
    // A backtick at the end would be a part of the fence.
    let ends_with_backtick = matches!(text.parts.last(), Some(TemplatePart::Text(last)) if last.ends_with('`'));
    text.parts.iter().all(is_plain) && !ends_open && !ends_with_backtick
}

/// JSON of a text as it is; `None` if it is not JSON.
fn json(text: &Template) -> Option<JsonText> {
    // Braces of the text itself must not become expressions: in strings they are escaped.
    let mut source = String::new();
    for (index, part) in text.parts.iter().enumerate() {
        match part {
            TemplatePart::Text(fixed) => {
                let is_open = fixed.ends_with('{') && index + 1 < text.parts.len();
                if is_open {
                    return None;
                }
                source.push_str(fixed);
            }
            TemplatePart::Expression(expression) => source.push_str(&expression.to_string()),
        }
    }
    if text.parts.iter().any(|part| matches!(part, TemplatePart::Text(fixed) if fixed.contains("{{"))) {
        return None;
    }
    // Spaces around it would be lost; a service may compare a signature of all bytes.
    if source.trim() != source { None } else { JsonText::parse(&source).ok() }
}
