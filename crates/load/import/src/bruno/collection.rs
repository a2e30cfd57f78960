//! Bruno's export: a collection as JSON.

use std::collections::BTreeMap;

use weir_hurl::{MultipartField, MultipartValue, OptionName, Template};

use super::checks;
use crate::api_auth::ApiAuth;
use crate::builder;
use crate::collection::ImportedScenario;
use crate::graphql;
use crate::omission::OmissionKind;
use crate::placeholder::{braces, define};
use crate::request::{ImportedBody, ImportedStep, field};
use crate::script;
use crate::session::ImportSession;
use crate::text;
use crate::tree::SourceNode;

pub(super) fn read(
    root: &SourceNode<'_>,
    items: &SourceNode<'_>,
    session: &mut ImportSession,
    scenario: &mut ImportedScenario,
) {
    scenario.name = root.text_of("name").unwrap_or_default();
    for environment in root.items_of("environments") {
        for variable in environment.items_of("variables").iter().filter(|variable| is_on(variable)) {
            let (Some(name), value) = (variable.text_of("name"), variable.text_of("value")) else { continue };
            define(&name, &value.unwrap_or_default(), variable.is_true("secret"), variable.line, session);
        }
    }
    walk(items.items(), &[], session, scenario);
}

fn is_on(node: &SourceNode<'_>) -> bool {
    node.get("enabled").is_none() || node.is_true("enabled")
}

fn walk(nodes: &[SourceNode<'_>], tags: &[String], session: &mut ImportSession, scenario: &mut ImportedScenario) {
    for node in nodes {
        let name = node.text_of("name").unwrap_or_default();
        match (node.text_of("type").unwrap_or_default().as_str(), node.get("request")) {
            ("folder", _) => {
                let tags: Vec<String> = tags.iter().cloned().chain([name]).collect();
                walk(node.items_of("items"), &tags, session, scenario);
            }
            ("http" | "http-request" | "graphql" | "graphql-request", Some(own)) => {
                let step = step(name, own, tags, session);
                session.push(scenario, step);
            }
            (kind, _) => session.omit(node.line, OmissionKind::Request, format!("the {kind} {name}")),
        }
    }
}

fn step(name: String, own: &SourceNode<'_>, tags: &[String], session: &mut ImportSession) -> ImportedStep {
    let mut step = ImportedStep { name, line: own.line, tags: tags.to_vec(), ..ImportedStep::default() };
    let mut url = braces(&own.text_of("url").unwrap_or_default(), own.line, session);
    let has_query = text::source(&url).contains('?');
    for parameter in own.items_of("params").iter().filter(|parameter| is_on(parameter)) {
        let name = parameter.text_of("name").unwrap_or_default();
        let value = braces(&parameter.text_of("value").unwrap_or_default(), parameter.line, session);
        if parameter.text_of("type").as_deref() == Some("path") {
            url = builder::with_path_variable(&url, &name, &value);
        } else if !has_query {
            step.request.query.push(field(builder::encoded_name(&Template::text(name)), value));
        }
    }
    builder::set_line(&mut step, &own.text_of("method").unwrap_or_else(|| "GET".to_owned()), &url, session);
    for header in own.items_of("headers").iter().filter(|header| is_on(header)) {
        let value = braces(&header.text_of("value").unwrap_or_default(), header.line, session);
        builder::add_header(&mut step, &header.text_of("name").unwrap_or_default(), &value, session);
    }
    if let Some(body) = own.get("body") {
        self::body(body, &mut step, session);
    }
    if let Some(auth) = own.get("auth") {
        let kind = auth.text_of("mode").unwrap_or_default();
        let own = auth.get(&kind);
        let pairs = own.into_iter().flat_map(SourceNode::members);
        let mut attributes: BTreeMap<String, String> =
            pairs.filter_map(|(name, value)| Some((name.into_owned(), value.scalar()?))).collect();
        if let Some(placement) = attributes.remove("placement") {
            attributes.insert("in".to_owned(), placement);
        }
        ApiAuth { kind, attributes, line: auth.line }.apply(&mut step, session);
    }
    builder::take_basic_auth(&mut step);
    step.request.set_flag(OptionName::Location);
    for check in own.items_of("assertions").iter().filter(|check| is_on(check)) {
        let (name, value) = (check.text_of("name").unwrap_or_default(), check.text_of("value").unwrap_or_default());
        checks::assert(&name, &value, check.line, &mut step, session);
    }
    let variables = own.get("vars").map(|vars| vars.items_of("res")).unwrap_or_default();
    for variable in variables.iter().filter(|variable| is_on(variable)) {
        let (name, value) =
            (variable.text_of("name").unwrap_or_default(), variable.text_of("value").unwrap_or_default());
        checks::capture(&name, &value, variable.line, &mut step, session);
    }
    let scripts = own.get("script");
    let before = scripts.and_then(|script| script.get("req"));
    let after = scripts.and_then(|script| script.get("res"));
    for (node, is_after) in [(before, false), (after, true), (own.get("tests"), true)] {
        if let Some(code) = node.and_then(SourceNode::text) {
            let line = node.map_or(step.line, |node| node.line);
            let lines: Vec<(u32, String)> = code.lines().map(|code| (line, code.to_owned())).collect();
            script::take(&lines, is_after, &mut step, session);
        }
    }
    step
}

fn body(body: &SourceNode<'_>, step: &mut ImportedStep, session: &mut ImportSession) {
    let mode = body.text_of("mode").unwrap_or_default();
    let media_type = match mode.as_str() {
        "none" | "" => return,
        "json" => "application/json",
        "xml" => "application/xml",
        "text" => "text/plain",
        "formUrlEncoded" => {
            let nodes = body.items_of("formUrlEncoded").iter().filter(|node| is_on(node));
            let fields = nodes.map(|node| {
                let value = braces(&node.text_of("value").unwrap_or_default(), node.line, session);
                field(builder::encoded_name(&Template::text(node.text_of("name").unwrap_or_default())), value)
            });
            step.request.body = ImportedBody::Form(fields.collect());
            return;
        }
        "multipartForm" => {
            let mut parts = Vec::new();
            for node in body.items_of("multipartForm").iter().filter(|node| is_on(node)) {
                let name = Template::text(node.text_of("name").unwrap_or_default());
                if node.text_of("type").as_deref() == Some("file") {
                    let files = node.items_of("value").iter().filter_map(SourceNode::scalar);
                    parts.extend(files.map(|file| MultipartField {
                        name: name.clone(),
                        value: MultipartValue::File { name: Template::text(file), content_type: None },
                    }));
                } else {
                    let value = braces(&node.text_of("value").unwrap_or_default(), node.line, session);
                    parts.push(MultipartField { name, value: MultipartValue::Text(value) });
                }
            }
            step.request.body = ImportedBody::Multipart(parts);
            return;
        }
        "graphql" => {
            let own = body.get("graphql");
            let text = |key: &str| own.and_then(|own| own.text_of(key)).unwrap_or_default();
            step.request.add_header("Content-Type", Template::text("application/json"));
            step.request.body = graphql::body(&text("query"), &text("variables"), body.line, session);
            return;
        }
        other => {
            builder::omit_at(step, body.line, OmissionKind::Body, &format!("a body of the mode {other}"), session);
            return;
        }
    };
    let text = braces(&body.text_of(&mode).unwrap_or_default(), body.line, session);
    step.request.add_header("Content-Type", Template::text(media_type));
    builder::text_body(step, text);
}
