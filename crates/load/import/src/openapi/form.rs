//! Forms of request bodies: fields and parts, by the `encoding` of their properties.

use weir_hurl::Template;

use super::style::{ParameterForm, ParameterValue};
use crate::builder;
use crate::multipart::{self, ImportedPart};
use crate::omission::OmissionKind;
use crate::request::ImportedStep;
use crate::session::ImportSession;
use crate::tree::SourceNode;

/// Content-Type of a form.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// Property of a form with its value.
#[derive(Debug)]
pub(super) struct FormMember {
    name: String,
    value: ParameterValue,
    json: String,
    is_file: bool,
}

impl FormMember {
    pub(super) fn new(name: &str, value: ParameterValue, json: String) -> Self {
        Self { name: name.to_owned(), value, json, is_file: false }
    }

    /// The member as a file, if it is one.
    pub(super) fn with_file(self, is_file: bool) -> Self {
        Self { is_file, ..self }
    }

    fn encoding<'a>(&self, encoding: Option<&'a SourceNode<'a>>) -> Option<&'a SourceNode<'a>> {
        encoding.and_then(|encoding| encoding.get(&self.name))
    }
}

/// Sets a form of fields. Arrays are repeated and objects are JSON, unless a style says otherwise.
pub(super) fn fields(
    members: &[FormMember],
    encoding: Option<&SourceNode<'_>>,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let mut pairs = Vec::new();
    for member in members {
        let own = member.encoding(encoding);
        let has_style =
            own.is_some_and(|own| ["style", "explode", "allowReserved"].iter().any(|key| own.get(key).is_some()));
        let is_json = own.and_then(|own| own.text_of("contentType")).is_some_and(|kind| kind.contains("json"));
        let whole = ParameterValue::Scalar(member.json.clone());
        let value = match &member.value {
            ParameterValue::Members(_) if !has_style => &whole,
            ParameterValue::Items(_) if is_json && !has_style => &whole,
            value => value,
        };
        let form = match own.map(|own| (own, ParameterForm::read(own, "query"))) {
            Some((own, Err(what))) => {
                let what = format!("{what} of the field {}", member.name);
                builder::omit_at(step, own.line, OmissionKind::Setting, &what, session);
                ParameterForm::exploded()
            }
            Some((_, Ok(form))) => form,
            None => ParameterForm::exploded(),
        };
        pairs.extend(form.pairs(&member.name, value));
    }
    if pairs.is_empty() {
        return;
    }
    let text: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    step.request.add_header("Content-Type", Template::text(FORM));
    builder::text_body(step, Template::text(text.join("&")));
}

/// Sets a form of parts. Items of arrays are parts of the same name, objects are parts of JSON.
pub(super) fn parts(
    members: &[FormMember],
    encoding: Option<&SourceNode<'_>>,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let mut parts = Vec::new();
    for member in members {
        let own = member.encoding(encoding);
        let kind = own.and_then(|own| own.text_of("contentType"));
        // Of several types, as in image/png, image/jpeg, the first one.
        let kind = kind.map(|kind| kind.split(',').next().unwrap_or_default().trim().to_owned());
        if let Some(headers) = own.and_then(|own| own.get("headers")) {
            let what = format!("the headers of the part {}", member.name);
            builder::omit_at(step, headers.line, OmissionKind::Header, &what, session);
        }
        if member.is_file {
            // A file of one's own has to be named; until then the part has a text.
            let what = format!("the file of the part {}, a text instead", member.name);
            builder::omit(step, OmissionKind::File, &what, session);
        }
        let part = |text: &str, kind: Option<&str>| ImportedPart {
            content_type: kind.filter(|kind| !kind.contains('*')).map(Template::text),
            ..ImportedPart::text(Template::text(&member.name), Template::text(text))
        };
        let is_json = kind.as_deref().is_some_and(|kind| kind.contains("json"));
        match &member.value {
            ParameterValue::Members(_) => parts.push(part(&member.json, kind.as_deref().or(Some("application/json")))),
            ParameterValue::Items(_) if is_json => parts.push(part(&member.json, kind.as_deref())),
            ParameterValue::Items(items) => parts.extend(items.iter().map(|item| part(item, kind.as_deref()))),
            ParameterValue::Scalar(text) => parts.push(part(text, kind.as_deref())),
        }
    }
    if !parts.is_empty() {
        multipart::set_body(step, &parts, session);
    }
}
