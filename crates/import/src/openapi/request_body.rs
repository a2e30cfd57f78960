//! Bodies of operations.

use weir_hurl::{MultipartField, MultipartValue, Template};

use super::description::ApiDescription;
use super::example::ExampleMaker;
use crate::builder;
use crate::json_indent::readable;
use crate::omission::OmissionKind;
use crate::request::{ImportedBody, ImportedStep, field};
use crate::session::ImportSession;
use crate::tree::{SourceNode, SourceValue};

/// Adds the body of an operation of OpenAPI 3.
pub(super) fn apply<'a>(
    description: &'a ApiDescription<'a>,
    operation: &'a SourceNode<'a>,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let Some(body) = operation.get("requestBody") else { return };
    let body = description.resolve(body);
    let contents: Vec<_> = body.get("content").into_iter().flat_map(SourceNode::members).collect();
    let rank = |media_type: &str| {
        let media_type = media_type.to_ascii_lowercase();
        ["json", "x-www-form-urlencoded", "multipart/form-data", "xml", "text/"]
            .iter()
            .position(|kind| media_type.contains(kind))
            .unwrap_or(usize::MAX)
    };
    let Some((media_type, content)) = contents.into_iter().min_by_key(|(media_type, _)| rank(media_type)) else {
        return;
    };
    // A range of types, such as */*, means any of them.
    let media_type = if media_type.contains('*') { "application/json".to_owned() } else { media_type.into_owned() };
    let given = example(description, content);
    let schema = content.get("schema");
    set(description, &media_type, given, schema, step, session);
    if matches!(step.request.body, ImportedBody::None) {
        let what = format!("a body of {media_type} without an example");
        builder::omit_at(step, content.line, OmissionKind::Body, &what, session);
    }
}

/// Adds the body of an operation of Swagger 2, from its parameter.
pub(super) fn apply_swagger<'a>(
    description: &'a ApiDescription<'a>,
    parameter: &'a SourceNode<'a>,
    media_type: &str,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let media_type = if media_type.contains('*') || media_type.is_empty() { "application/json" } else { media_type };
    let given = parameter.get("x-example").or_else(|| parameter.get("example"));
    set(description, media_type, given, parameter.get("schema"), step, session);
}

/// Example of a media type.
fn example<'a>(description: &'a ApiDescription<'a>, content: &'a SourceNode<'a>) -> Option<&'a SourceNode<'a>> {
    let first = || {
        let (_, first) = content.get("examples")?.members().next()?;
        description.resolve(first).get("value")
    };
    content.get("example").or_else(first)
}

fn set<'a>(
    description: &'a ApiDescription<'a>,
    media_type: &str,
    given: Option<&'a SourceNode<'a>>,
    schema: Option<&'a SourceNode<'a>>,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let mut maker = ExampleMaker::new(description);
    let lower = media_type.to_ascii_lowercase();
    let is_form = lower.contains("x-www-form-urlencoded");
    if is_form || lower.contains("multipart/form-data") {
        let members: Vec<(String, String, bool)> = match (given.filter(|given| given.is_map()), schema) {
            (Some(given), _) => given
                .members()
                .map(|(name, value)| (name.into_owned(), value.scalar().unwrap_or_else(|| value.to_json()), false))
                .collect(),
            (None, Some(schema)) => maker
                .members(schema)
                .into_iter()
                .map(|(name, member)| {
                    let is_file = is_file(description.resolve(member));
                    let value = maker.text(member, &name);
                    (name, value, is_file)
                })
                .collect(),
            (None, None) => Vec::new(),
        };
        form(members, is_form, step, session);
        return;
    }
    let text = match (given, schema) {
        (Some(given), _) if matches!(given.value, SourceValue::Text(_)) && !lower.contains("json") => given.scalar(),
        // An example of JSON may be written as a text.
        (Some(given), _) => match given.text() {
            Some(text) if text.trim_start().starts_with(['{', '[']) => Some(text.into_owned()),
            _ => Some(readable(given.to_json())),
        },
        (None, Some(schema)) if lower.contains("json") => Some(readable(maker.json(schema))),
        (None, Some(schema)) if lower.starts_with("text/") => Some(maker.text(schema, "")),
        _ => None,
    };
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        step.request.add_header("Content-Type", Template::text(media_type));
        step.request.body = ImportedBody::Text { text: Template::text(text), media_type: media_type.to_owned() };
    }
}

fn form(members: Vec<(String, String, bool)>, is_form: bool, step: &mut ImportedStep, session: &mut ImportSession) {
    if members.is_empty() {
        return;
    }
    if is_form {
        let fields = members
            .into_iter()
            .map(|(name, value, _)| field(builder::encoded_name(&Template::text(name)), Template::text(value)));
        step.request.body = ImportedBody::Form(fields.collect());
        return;
    }
    let mut fields = Vec::new();
    for (name, value, is_file) in members {
        if is_file {
            // A file of one's own has to be named; until then the part has a text.
            let what = format!("the file of the part {name}, a text instead");
            builder::omit(step, OmissionKind::File, &what, session);
        }
        fields.push(MultipartField { name: Template::text(name), value: MultipartValue::Text(Template::text(value)) });
    }
    step.request.body = ImportedBody::Multipart(fields);
}

fn is_file(schema: &SourceNode<'_>) -> bool {
    schema.text_of("format").as_deref() == Some("binary") || schema.text_of("type").as_deref() == Some("file")
}
