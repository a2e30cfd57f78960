//! Bodies of requests of a collection.

use weir_hurl::Template;

use super::fields::fields;
use crate::builder;
use crate::graphql;
use crate::json_comments::without_comments;
use crate::multipart::{self, ImportedPart};
use crate::omission::OmissionKind;
use crate::placeholder::braces;
use crate::request::{ImportedBody, ImportedStep};
use crate::session::ImportSession;
use crate::tree::SourceNode;

/// Methods with which Postman sends no body.
const METHODS_WITHOUT_BODY: [&str; 5] = ["COPY", "GET", "HEAD", "PURGE", "UNLOCK"];

/// Sets the body. Postman sends none with some methods, unless the request says `disableBodyPruning`.
pub(super) fn read(request: &SourceNode<'_>, keeps_body: bool, step: &mut ImportedStep, session: &mut ImportSession) {
    let Some(body) = request.get("body").filter(|body| body.is_map() && !body.is_true("disabled")) else { return };
    if !keeps_body && METHODS_WITHOUT_BODY.contains(&step.request.method.as_str()) {
        return;
    }
    let mode = body.text_of("mode").unwrap_or_default();
    match mode.as_str() {
        "raw" => raw(body, step, session),
        "urlencoded" => {
            let made = fields(body.items_of("urlencoded"), session);
            step.request.remove_header("Content-Type");
            if !made.is_empty() {
                step.request.body = ImportedBody::Form(made);
            }
        }
        "formdata" => {
            let made = parts(body.items_of("formdata"), step, session);
            multipart::set_body(step, &made, session);
        }
        "file" => match body.get("file").and_then(|file| file.text_of("src")) {
            Some(name) => step.request.body = ImportedBody::File(name),
            None => builder::omit_at(step, body.line, OmissionKind::Body, "a body of a file without its name", session),
        },
        "graphql" => {
            let query = body.get("graphql").and_then(|graphql| graphql.text_of("query")).unwrap_or_default();
            let variables = body.get("graphql").and_then(|graphql| graphql.text_of("variables")).unwrap_or_default();
            step.request.add_header("Content-Type", Template::text("application/json"));
            step.request.body = graphql::body(&query, &variables, body.line, session);
        }
        "" => {}
        other => {
            let what = format!("a body of the mode {other}");
            builder::omit_at(step, body.line, OmissionKind::Body, &what, session);
        }
    }
}

fn raw(body: &SourceNode<'_>, step: &mut ImportedStep, session: &mut ImportSession) {
    let text = body.text_of("raw").unwrap_or_default();
    if text.trim().is_empty() {
        return;
    }
    let language = body
        .get("options")
        .and_then(|options| options.get("raw"))
        .and_then(|raw| raw.text_of("language"))
        .unwrap_or_default();
    let given = step.request.header("Content-Type").map(crate::text::source).unwrap_or_default();
    let is_json =
        language == "json" || (language.is_empty() && given.starts_with("application/") && given.contains("json"));
    let text = if is_json { without_comments(&text) } else { text };
    let media_type = match language.as_str() {
        "json" => "application/json",
        "xml" => "application/xml",
        "html" => "text/html",
        "javascript" => "application/javascript",
        _ => "text/plain",
    };
    step.request.add_header("Content-Type", Template::text(media_type));
    let text = braces(&text, body.line, session);
    builder::text_body(step, text);
}

fn parts(nodes: &[SourceNode<'_>], step: &mut ImportedStep, session: &mut ImportSession) -> Vec<ImportedPart> {
    let mut made = Vec::new();
    for node in nodes.iter().filter(|node| !node.is_true("disabled")) {
        let name = braces(&node.text_of("key").unwrap_or_default(), node.line, session);
        let content_type = node.text_of("contentType").filter(|kind| !kind.is_empty());
        let content_type = content_type.map(|kind| braces(&kind, node.line, session));
        let file_name = node.text_of("fileName").filter(|name| !name.is_empty());
        if node.text_of("type").as_deref() != Some("file") {
            let value = braces(&node.text_of("value").unwrap_or_default(), node.line, session);
            made.push(ImportedPart { content_type, file_name, ..ImportedPart::text(name, value) });
            continue;
        }
        let source = node.get("src");
        let files: Vec<String> = match source.and_then(SourceNode::scalar) {
            Some(file) => vec![file],
            None => source.map(SourceNode::items).unwrap_or_default().iter().filter_map(SourceNode::scalar).collect(),
        };
        if files.is_empty() {
            let what = format!("the file of the part {}", crate::text::source(&name));
            builder::omit_at(step, node.line, OmissionKind::File, &what, session);
        }
        made.extend(files.iter().map(|file| ImportedPart {
            file_name: file_name.clone(),
            ..ImportedPart::file(name.clone(), file, content_type.clone())
        }));
    }
    made
}
