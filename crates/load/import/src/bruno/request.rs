//! Requests of `.bru` files.

use std::collections::BTreeMap;

use weir_hurl::{OptionName, Template};

use super::blocks::BruFile;
use super::checks;
use crate::api_auth::ApiAuth;
use crate::builder;
use crate::collection::ImportedScenario;
use crate::graphql;
use crate::multipart::{self, ImportedPart};
use crate::omission::OmissionKind;
use crate::placeholder::braces;
use crate::request::{ImportedBody, ImportedStep, field};
use crate::script;
use crate::session::ImportSession;
use crate::text;

const METHODS: [&str; 10] = ["get", "post", "put", "patch", "delete", "head", "options", "trace", "connect", "http"];

/// Blocks that say nothing about a request.
const SILENT_BLOCKS: [&str; 9] =
    ["meta", "docs", "vars", "vars:pre-request", "vars:secret", "settings", "auth", "color", "example"];

/// Adds the request of a file, if it has one.
pub(super) fn add(file: &BruFile<'_>, session: &mut ImportSession, scenario: &mut ImportedScenario) {
    let Some(own) = file.blocks.iter().find(|block| METHODS.contains(&block.name)) else {
        for block in file.blocks.iter().filter(|block| !SILENT_BLOCKS.contains(&block.name)) {
            let what = format!("the block {} of a folder", block.name);
            session.omit(block.line, OmissionKind::Setting, what);
        }
        return;
    };
    let mut step = ImportedStep {
        name: file.value("meta", "name").unwrap_or_default().to_owned(),
        line: own.line,
        ..ImportedStep::default()
    };
    let mut url = braces(file.value(own.name, "url").unwrap_or_default(), own.line, session);
    for (line, name, value) in file.pairs("params:path") {
        let value = braces(value, line, session);
        url = builder::with_path_variable(&url, name, &value);
    }
    let method = if own.name == "http" { file.value("http", "method").unwrap_or("GET") } else { own.name };
    builder::set_line(&mut step, method, &url, session);
    // The URL has its query already.
    if !text::source(&url).contains('?') {
        for (line, name, value) in file.pairs("params:query").into_iter().chain(file.pairs("query")) {
            let value = braces(value, line, session);
            step.request.query.push(field(builder::encoded_name(&Template::text(name)), value));
        }
    }
    for (line, name, value) in file.pairs("headers") {
        let value = braces(value, line, session);
        builder::add_header(&mut step, name, &value, session);
    }
    body(file, own.name, &mut step, session);
    authenticate(file, own.name, &mut step, session);
    builder::take_basic_auth(&mut step);
    if file.value("settings", "followRedirects") != Some("false") {
        step.request.set_flag(OptionName::Location);
    }
    for (line, name, value) in file.pairs("assert") {
        checks::assert(name, value, line, &mut step, session);
    }
    for (line, name, value) in file.pairs("vars:post-response") {
        checks::capture(name, value, line, &mut step, session);
    }
    for (name, is_after) in [("script:pre-request", false), ("script:post-response", true), ("tests", true)] {
        if let Some(block) = file.block(name) {
            let lines: Vec<(u32, String)> =
                block.lines.iter().map(|(line, code)| (*line, (*code).to_owned())).collect();
            script::take(&lines, is_after, &mut step, session);
        }
    }
    session.push(scenario, step);
}

fn body(file: &BruFile<'_>, method: &str, step: &mut ImportedStep, session: &mut ImportSession) {
    let mode = file.value(method, "body").unwrap_or_default();
    let line = step.line;
    let media_type = match mode {
        "none" | "" => return,
        "json" => "application/json",
        "xml" => "application/xml",
        "text" => "text/plain",
        "sparql" => "application/sparql-query",
        "formUrlEncoded" | "form-urlencoded" => {
            let fields = file.pairs("body:form-urlencoded").into_iter().map(|(line, name, value)| {
                let value = braces(value, line, session);
                field(builder::encoded_name(&Template::text(name)), value)
            });
            let fields = fields.collect();
            step.request.remove_header("Content-Type");
            step.request.body = ImportedBody::Form(fields);
            return;
        }
        "multipartForm" | "multipart-form" => {
            let mut parts = Vec::new();
            for (line, name, value) in file.pairs("body:multipart-form") {
                // The type stands behind the value.
                let (value, content_type) = match value.rsplit_once("@contentType(") {
                    Some((value, kind)) if kind.trim_end().ends_with(')') => {
                        (value.trim_end(), Some(Template::text(kind.trim_end().trim_end_matches(')'))))
                    }
                    _ => (value, None),
                };
                let name = Template::text(name);
                let files = value.strip_prefix("@file(").map(|rest| rest.trim_end().trim_end_matches(')'));
                match files {
                    Some(files) => {
                        let made =
                            files.split('|').map(|file| ImportedPart::file(name.clone(), file, content_type.clone()));
                        parts.extend(made);
                    }
                    None => {
                        let text = ImportedPart::text(name, braces(value, line, session));
                        parts.push(ImportedPart { content_type, ..text });
                    }
                }
            }
            multipart::set_body(step, &parts, session);
            return;
        }
        "graphql" => {
            let query = file.text("body:graphql").unwrap_or_default();
            let variables = file.text("body:graphql:vars").unwrap_or_default();
            step.request.add_header("Content-Type", Template::text("application/json"));
            step.request.body = graphql::body(&query, &variables, line, session);
            return;
        }
        other => {
            let what = format!("a body of the mode {other}");
            builder::omit(step, OmissionKind::Body, &what, session);
            return;
        }
    };
    // An older file has one block for all modes.
    let source = file.text(&format!("body:{mode}")).or_else(|| file.text("body")).unwrap_or_default();
    let text = braces(&source, line, session);
    step.request.add_header("Content-Type", Template::text(media_type));
    builder::text_body(step, text);
}

fn authenticate(file: &BruFile<'_>, method: &str, step: &mut ImportedStep, session: &mut ImportSession) {
    let mode = file.value(method, "auth").unwrap_or_default();
    let block = format!("auth:{mode}");
    let pairs = file.pairs(&block);
    let mut attributes: BTreeMap<String, String> =
        pairs.into_iter().map(|(_, name, value)| (name.to_owned(), value.to_owned())).collect();
    if let Some(placement) = attributes.remove("placement") {
        attributes.insert("in".to_owned(), placement);
    }
    let line = file.block(&block).map_or(step.line, |block| block.line);
    ApiAuth { kind: mode.to_owned(), attributes, line }.apply(step, session);
}
