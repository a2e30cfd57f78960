//! Bodies of operations.

use weir_hurl::Template;

use super::description::ApiDescription;
use super::example::ExampleMaker;
use super::form::{self, FORM, FormMember};
use super::style::ParameterValue;
use crate::builder;
use crate::json_indent::readable;
use crate::omission::OmissionKind;
use crate::request::{ImportedBody, ImportedStep};
use crate::session::ImportSession;
use crate::tree::{SourceNode, SourceValue, parse_json};

/// Ends a form of Swagger 2, which is a text so far: fields where weir encodes them the same way.
pub(super) fn end_form(step: &mut ImportedStep) {
    if let ImportedBody::Text { text, media_type } = &step.request.body
        && media_type == FORM
    {
        let text = text.clone();
        step.request.add_header("Content-Type", Template::text(FORM));
        builder::text_body(step, text);
    }
}

/// Adds the body of an operation of OpenAPI 3.
pub(super) fn apply<'a>(
    description: &'a ApiDescription<'a>,
    operation: &'a SourceNode<'a>,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let Some(body) = operation.get("requestBody") else { return };
    if let Some(reference) = description.missing(body) {
        let what = format!("the body {reference}, which is not in the file");
        return builder::omit_at(step, body.line, OmissionKind::Body, &what, session);
    }
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
    if let Some(reference) = schema.filter(|_| given.is_none()).and_then(|schema| description.missing(schema)) {
        let what = format!("a body of the schema {reference}, which is not in the file");
        return builder::omit_at(step, content.line, OmissionKind::Body, &what, session);
    }
    set(description, &media_type, given, schema, content.get("encoding"), step, session);
    omit_absent(&media_type, content.line, step, session);
}

/// Lists a body that could not be made.
fn omit_absent(media_type: &str, line: u32, step: &mut ImportedStep, session: &mut ImportSession) {
    if matches!(step.request.body, ImportedBody::None) {
        let what = format!("a body of {media_type} without an example");
        builder::omit_at(step, line, OmissionKind::Body, &what, session);
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
    set(description, media_type, given, parameter.get("schema"), None, step, session);
    omit_absent(media_type, parameter.line, step, session);
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
    encoding: Option<&'a SourceNode<'a>>,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let mut maker = ExampleMaker::new(description);
    let lower = media_type.to_ascii_lowercase();
    let is_form = lower.contains("x-www-form-urlencoded");
    if is_form || lower.contains("multipart/form-data") {
        let members: Vec<FormMember> = match (given.filter(|given| given.is_map()), schema) {
            (Some(given), _) => given
                .members()
                .map(|(name, value)| FormMember::new(&name, ParameterValue::of_node(value), value.to_json()))
                .collect(),
            (None, Some(schema)) => maker
                .members(schema)
                .into_iter()
                .filter(|(_, member)| !description.resolve(member).is_true("readOnly"))
                .map(|(name, member)| {
                    let json = maker.json_of(member, &name);
                    let value = parse_json(&json).map(|node| ParameterValue::of_node(&node));
                    let value = value.unwrap_or_else(|_| ParameterValue::Scalar(json.clone()));
                    let of_items = description.resolve(member).get("items").map(|items| description.resolve(items));
                    let is_file = is_file(description.resolve(member)) || of_items.is_some_and(is_file);
                    FormMember::new(&name, value, json).with_file(is_file)
                })
                .collect(),
            (None, None) => Vec::new(),
        };
        maker.omit_problems(step.line, step, session);
        match is_form {
            true => form::fields(&members, encoding, step, session),
            false => form::parts(&members, encoding, step, session),
        }
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
    maker.omit_problems(step.line, step, session);
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        step.request.add_header("Content-Type", Template::text(media_type));
        step.request.body = ImportedBody::Text { text: Template::text(text), media_type: media_type.to_owned() };
    }
}

fn is_file(schema: &SourceNode<'_>) -> bool {
    schema.text_of("format").as_deref() == Some("binary") || schema.text_of("type").as_deref() == Some("file")
}
