//! Bodies of recorded requests.

use base64::Engine;
use weir_hurl::Template;

use crate::builder;
use crate::multipart::{self, ImportedPart};
use crate::omission::OmissionKind;
use crate::request::{ImportedBody, ImportedStep, field};
use crate::session::ImportSession;
use crate::tree::SourceNode;

/// Sets the body of a recorded request.
pub(crate) fn set(request: &SourceNode<'_>, step: &mut ImportedStep, session: &mut ImportSession) {
    let Some(data) = request.get("postData").filter(|data| data.is_map()) else { return };
    let media_type = data.text_of("mimeType").unwrap_or_default();
    let lower = media_type.to_ascii_lowercase();
    let text = data.text_of("text").unwrap_or_default();
    let params = data.items_of("params");
    let is_base64 = data.text_of("encoding").as_deref() == Some("base64");
    if lower.starts_with("multipart/form-data") && !is_base64 {
        step.request.remove_header("Content-Type");
        if params.is_empty() {
            multipart_text(&text, &media_type, step, session);
            return;
        }
        let parts: Vec<ImportedPart> = params.iter().map(part_of).collect();
        multipart::set_body(step, &parts, session);
        return;
    }
    if !media_type.is_empty() {
        step.request.add_header("Content-Type", Template::text(media_type));
    }
    if text.is_empty() && !params.is_empty() {
        let fields = params.iter().map(|param| {
            let name = Template::text(param.text_of("name").unwrap_or_default());
            field(name, Template::text(param.text_of("value").unwrap_or_default()))
        });
        step.request.remove_header("Content-Type");
        step.request.body = ImportedBody::Form(fields.collect());
    } else if is_base64 {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).unwrap_or_default();
        step.request.body = ImportedBody::Bytes(bytes);
    } else {
        builder::text_body(step, Template::text(text));
    }
}

/// Part of the parameters of a form.
fn part_of(param: &SourceNode<'_>) -> ImportedPart {
    let name = Template::text(param.text_of("name").unwrap_or_default());
    let content_type = param.text_of("contentType").filter(|kind| !kind.is_empty()).map(Template::text);
    let value = param.text_of("value").unwrap_or_default();
    match param.text_of("fileName") {
        Some(file) if value.is_empty() => ImportedPart::file(name, &file, content_type),
        file_name => {
            let text = ImportedPart::text(name, Template::text(value));
            ImportedPart { content_type, file_name, ..text }
        }
    }
}

/// Sets the parts of a multipart body that is recorded as text.
fn multipart_text(text: &str, media_type: &str, step: &mut ImportedStep, session: &mut ImportSession) {
    let boundary = media_type.split_once("boundary=").map(|(_, rest)| rest.split(';').next().unwrap_or_default());
    let boundary = boundary.map(|boundary| boundary.trim().trim_matches('"'));
    let Some(boundary) = boundary.filter(|boundary| !boundary.is_empty()) else {
        return builder::omit(step, OmissionKind::Body, "a multipart body without its parts", session);
    };
    let mut parts = Vec::new();
    for part in text.split(&format!("--{boundary}")).skip(1) {
        let Some((head, value)) = part.split_once("\r\n\r\n").or_else(|| part.split_once("\n\n")) else { continue };
        let attribute = |name: &str| {
            let start = head.find(&format!("{name}=\""))? + name.len() + 2;
            head[start..].split('"').next().map(str::to_owned)
        };
        let Some(name) = attribute(" name").map(Template::text) else { continue };
        let value = value.strip_suffix("\r\n").or_else(|| value.strip_suffix('\n')).unwrap_or(value);
        let lines = || head.lines().filter_map(|line| line.split_once(':'));
        let kind = lines().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let content_type = kind.map(|(_, kind)| Template::text(kind.trim()));
        let is_other =
            |name: &str| !["content-type", "content-disposition"].contains(&name.to_ascii_lowercase().as_str());
        let headers = lines().filter(|(name, _)| is_other(name));
        let headers = headers.map(|(name, value)| Template::text(format!("{name}:{value}"))).collect();
        // Browsers record no content of files.
        let made = match attribute("filename").filter(|_| value.is_empty()) {
            Some(file) => ImportedPart::file(name, &file, content_type),
            None => {
                let text = ImportedPart::text(name, Template::text(value));
                ImportedPart { content_type, file_name: attribute("filename"), ..text }
            }
        };
        parts.push(ImportedPart { headers, ..made });
    }
    multipart::set_body(step, &parts, session);
}
