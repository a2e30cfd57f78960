//! Operations as steps.

use std::collections::{HashMap, HashSet};

use weir_hurl::{ExpectedResponse, ExpectedStatus, MultipartField, MultipartValue, Template};

use super::description::ApiDescription;
use super::{form, request_body, security};
use crate::builder;
use crate::omission::OmissionKind;
use crate::request::{ImportedBody, ImportedStep};
use crate::session::ImportSession;
use crate::settings::ImportSettings;
use crate::text;
use crate::tree::SourceNode;

/// Operation of a path.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    pub(super) description: &'a ApiDescription<'a>,
    pub(super) path: &'a str,
    pub(super) method: &'a str,
    /// Path with what its operations share.
    pub(super) item: &'a SourceNode<'a>,
    pub(super) operation: &'a SourceNode<'a>,
}

impl Operation<'_> {
    pub(super) fn step(&self, base: &Template, settings: &ImportSettings, session: &mut ImportSession) -> ImportedStep {
        let operation = self.operation;
        let id = operation.text_of("operationId").or_else(|| operation.text_of("summary"));
        let mut step = ImportedStep {
            name: id.unwrap_or_default(),
            line: operation.line,
            tags: operation.items_of("tags").iter().filter_map(SourceNode::scalar).collect(),
            ..ImportedStep::default()
        };
        let method = self.method.to_ascii_uppercase();
        let parameters = self.parameters();
        let path = self.path_with_values(&parameters, &mut step, session);
        let path = if self.path.starts_with('/') { path } else { text::concat([&Template::text("/"), &path]) };
        builder::set_line(&mut step, &method, &text::concat([base, &path]), session);
        let mut optional = Vec::new();
        for parameter in &parameters {
            self.parameter(parameter, &mut optional, &mut step, session);
        }
        if !optional.is_empty() {
            step.notes.push(text::one_line(&format!("optional parameters: {}", optional.join(", ")), 160));
        }
        request_body::end_form(&mut step);
        request_body::apply(self.description, operation, &mut step, session);
        security::apply(self.description, operation, &mut step, session);
        step.response = self.expected();
        for (name, callback) in operation.get("callbacks").into_iter().flat_map(SourceNode::members) {
            let what = format!("the callback {name}, which the service sends");
            builder::omit_at(&mut step, callback.line, OmissionKind::Request, &what, session);
        }
        let is_safe = matches!(self.method, "get" | "head" | "options" | "trace");
        if !is_safe && !settings.all && !step.is_disabled {
            step.is_disabled = true;
            let what = format!("{method} {} changes data; --all imports it", self.path);
            builder::omit(&mut step, OmissionKind::UnsafeOperation, &what, session);
        }
        step
    }

    /// Parameters of the operation and of the path, each once.
    fn parameters(&self) -> Vec<&SourceNode<'_>> {
        let (mut found, mut keys): (Vec<&SourceNode<'_>>, HashSet<_>) = Default::default();
        let own = self.operation.items_of("parameters");
        for parameter in own.iter().chain(self.item.items_of("parameters")) {
            let parameter = self.description.resolve(parameter);
            // What is not in the file is told apart by its reference.
            if keys.insert((parameter.text_of("name"), parameter.text_of("in"), parameter.text_of("$ref"))) {
                found.push(parameter);
            }
        }
        found
    }

    /// Path with a variable for each parameter in it.
    fn path_with_values(
        &self,
        parameters: &[&SourceNode<'_>],
        step: &mut ImportedStep,
        session: &mut ImportSession,
    ) -> Template {
        let (mut parts, mut rest) = (Vec::new(), self.path);
        let in_path = parameters.iter().filter(|node| node.text_of("in").as_deref() == Some("path"));
        let by_name: HashMap<_, _> = in_path.rev().map(|node| (node.text_of("name"), *node)).collect();
        while let Some((before, name, after)) = rest
            .split_once('{')
            .and_then(|(before, rest)| rest.split_once('}').map(|(name, after)| (before, name, after)))
        {
            parts.push(Template::text(before));
            let value = by_name.get(&Some(name.to_owned())).map(|parameter| {
                let value = self.value(parameter, name, step, session);
                let form = self.form(parameter, "path", step, session);
                (form.text(name, &value), self.example(parameter).is_some())
            });
            parts.push(path_variable(name, value, session));
            rest = after;
        }
        parts.push(Template::text(rest));
        text::concat(&parts)
    }

    fn parameter(
        &self,
        parameter: &SourceNode<'_>,
        optional: &mut Vec<String>,
        step: &mut ImportedStep,
        session: &mut ImportSession,
    ) {
        let name = parameter.text_of("name").unwrap_or_default();
        let place = parameter.text_of("in").unwrap_or_default();
        if name.is_empty() {
            if let Some(reference) = parameter.text_of("$ref") {
                let what = format!("the parameter {reference}, which is not in the file");
                builder::omit_at(step, parameter.line, OmissionKind::Setting, &what, session);
            }
            return;
        }
        let content = parameter.get("content").and_then(|content| content.members().next()).map(|(_, content)| content);
        let has_example = [Some(parameter), content].into_iter().flatten().any(|node| self.example(node).is_some());
        let is_sent =
            parameter.is_true("required") || has_example || matches!(place.as_str(), "path" | "body" | "formData");
        if !is_sent {
            optional.push(name);
            return;
        }
        match place.as_str() {
            "path" => {}
            "header" if ["accept", "content-type", "authorization"].contains(&name.to_ascii_lowercase().as_str()) => {}
            "query" | "header" | "cookie" => self.add_value(parameter, &name, &place, step, session),
            "body" => {
                let media_type = self.consumes();
                request_body::apply_swagger(self.description, parameter, &media_type, step, session);
            }
            "formData" => self.form_field(parameter, &name, step, session),
            other => {
                let what = format!("the parameter {name} in {other}");
                builder::omit_at(step, parameter.line, OmissionKind::Setting, &what, session);
            }
        }
    }

    /// Adds a field of a form of Swagger 2.
    fn form_field(&self, parameter: &SourceNode<'_>, name: &str, step: &mut ImportedStep, session: &mut ImportSession) {
        let is_file = parameter.text_of("type").as_deref() == Some("file");
        let value = self.value(parameter, name, step, session);
        if is_file {
            let what = format!("the file of the part {name}, a text instead");
            builder::omit_at(step, parameter.line, OmissionKind::File, &what, session);
        }
        let style = self.form(parameter, "query", step, session);
        let consumes_parts = is_file || self.consumes().contains("multipart");
        let pairs = style.pairs(name, &value);
        let body = std::mem::take(&mut step.request.body);
        step.request.body = match body {
            ImportedBody::Multipart(mut parts) => {
                parts.extend(pairs.into_iter().map(plain_part));
                ImportedBody::Multipart(parts)
            }
            body if consumes_parts => {
                let before = match body {
                    ImportedBody::Text { text, .. } => vec![text::source(&text)],
                    _ => Vec::new(),
                };
                let before = before.iter().flat_map(|text| text.split('&')).filter_map(|pair| pair.split_once('='));
                let before = before.map(|(name, value)| plain_part((name.to_owned(), value.to_owned())));
                ImportedBody::Multipart(before.chain(pairs.into_iter().map(plain_part)).collect())
            }
            ImportedBody::Text { text, media_type } => {
                let more = pairs.iter().map(|(name, value)| format!("&{name}={value}")).collect::<String>();
                ImportedBody::Text { text: text::concat([&text, &Template::text(more)]), media_type }
            }
            _ => {
                let text = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
                ImportedBody::Text { text: Template::text(text), media_type: form::FORM.to_owned() }
            }
        };
    }

    /// Media type of the bodies of Swagger 2.
    fn consumes(&self) -> String {
        let own = self.operation.get("consumes").or_else(|| self.description.get("consumes"));
        let types: Vec<String> =
            own.map(SourceNode::items).unwrap_or_default().iter().filter_map(SourceNode::scalar).collect();
        let json = types.iter().find(|media_type| media_type.contains("json"));
        json.or(types.first()).cloned().unwrap_or_default()
    }

    /// The status of success, if the operation has one.
    fn expected(&self) -> Option<ExpectedResponse> {
        let responses = self.operation.get("responses")?;
        let codes = responses.members().filter_map(|(code, _)| code.parse::<u16>().ok());
        let codes: Vec<u16> = codes.filter(|code| (200..300).contains(code)).collect();
        match codes.as_slice() {
            [code] => Some(ExpectedResponse { status: ExpectedStatus::Code(*code), ..ExpectedResponse::default() }),
            _ => None,
        }
    }
}

/// Part of a form with a text, from an encoded pair.
fn plain_part((name, value): (String, String)) -> MultipartField {
    let decoded = |text: String| builder::percent_decoded(&text).unwrap_or(text);
    let value = MultipartValue::Text(Template::text(decoded(value)));
    MultipartField { name: Template::text(decoded(name)), value }
}

/// Variable of a parameter in a path; two of the same name with different examples are two variables.
fn path_variable(name: &str, value: Option<(String, bool)>, session: &mut ImportSession) -> Template {
    let Some((value, is_given)) = value else { return text::variable(&session.names.name(name)) };
    let own = session.names.name(name);
    let known = session.import.variable(&own);
    let is_other = is_given && known.is_some_and(|variable| variable.value.as_deref() != Some(&value));
    let variable = if is_other { session.names.name(&format!("{name} {value}")) } else { own };
    session.import.define(&variable, &value, false);
    text::variable(&variable)
}
