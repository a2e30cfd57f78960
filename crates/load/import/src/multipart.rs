//! Multipart bodies of imported requests. The notation has texts without a type and files under their own names; what it
//! cannot express becomes the text of the body with a boundary of its own, so that the request stays the same.

use weir_hurl::{MultipartField, MultipartValue, Template};
use weir_request::secret_names::is_secret_name;

use crate::builder;
use crate::names::snake_case;
use crate::omission::OmissionKind;
use crate::request::{ImportedBody, ImportedStep, field};
use crate::session::ImportSession;
use crate::text;

/// Part of a multipart body.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ImportedPart {
    pub(crate) name: Template,
    pub(crate) content: PartContent,
    /// Media type, if the file has one.
    pub(crate) content_type: Option<Template>,
    /// Name of the file in the head of the part, if the imported file has one.
    pub(crate) file_name: Option<String>,
    /// Further lines of its head.
    pub(crate) headers: Vec<Template>,
}

/// Content of an [`ImportedPart`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PartContent {
    Text(Template),
    /// Content of a file, by its path.
    File(String),
}

impl Default for PartContent {
    fn default() -> Self {
        Self::Text(Template::default())
    }
}

impl ImportedPart {
    /// Text without a type.
    pub(crate) fn text(name: Template, value: Template) -> Self {
        Self { name, content: PartContent::Text(value), ..Self::default() }
    }

    /// File under its own name.
    pub(crate) fn file(name: Template, path: &str, content_type: Option<Template>) -> Self {
        Self { name, content: PartContent::File(path.to_owned()), content_type, ..Self::default() }
    }

    /// Whether the notation has all of it.
    fn is_plain(&self) -> bool {
        match &self.content {
            PartContent::Text(_) => self.content_type.is_none() && self.file_name.is_none() && self.headers.is_empty(),
            PartContent::File(path) => {
                self.headers.is_empty() && self.file_name.as_ref().is_none_or(|name| name == base_name(path))
            }
        }
    }

    /// The part as the notation has it.
    fn plain(&self) -> MultipartField {
        let value = match &self.content {
            PartContent::Text(text) => MultipartValue::Text(text.clone()),
            PartContent::File(path) => {
                MultipartValue::File { name: Template::text(path), content_type: self.content_type.clone() }
            }
        };
        MultipartField { name: self.name.clone(), value }
    }

    /// Parts of the field that the notation of scenarios cannot express, in words.
    fn lost(&self) -> Vec<String> {
        let name = text::source(&self.name);
        let is_text = matches!(self.content, PartContent::Text(_));
        let kind = self.content_type.as_ref().filter(|_| is_text);
        let kind = kind.map(|kind| format!("the type {} of the part {name}", text::source(kind)));
        let file = self.file_name.as_ref().map(|file| format!("the file name {file} of the part {name}"));
        let headers = self.headers.iter().map(|line| format!("{} of the part {name}", text::source(line)));
        kind.into_iter().chain(file).chain(headers).collect()
    }
}

/// Name of a file without its folders.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Sets a multipart body, and the header that it needs.
pub(crate) fn set_body(step: &mut ImportedStep, parts: &[ImportedPart], session: &mut ImportSession) {
    step.request.remove_header("Content-Type");
    let texts = if parts.iter().all(ImportedPart::is_plain) { None } else { texts(parts, session) };
    let Some(texts) = texts else {
        for part in parts.iter().filter(|part| !part.is_plain()) {
            for what in part.lost() {
                builder::omit(step, OmissionKind::Body, &what, session);
            }
        }
        step.request.body = ImportedBody::Multipart(parts.iter().map(ImportedPart::plain).collect());
        return;
    };
    let boundary = boundary(&texts);
    let fixed = |text: String| Template::text(text);
    let mut pieces = Vec::new();
    for (part, content) in parts.iter().zip(&texts) {
        pieces.push(fixed(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"")));
        pieces.push(quoted(&part.name));
        pieces.push(fixed("\"".to_owned()));
        if let Some(name) = part.sent_name() {
            pieces.push(fixed("; filename=\"".to_owned()));
            pieces.push(quoted(&Template::text(name)));
            pieces.push(fixed("\"".to_owned()));
        }
        if let Some(kind) = part.sent_type() {
            pieces.extend([fixed("\r\nContent-Type: ".to_owned()), kind]);
        }
        for line in &part.headers {
            pieces.extend([fixed("\r\n".to_owned()), line.clone()]);
        }
        pieces.extend([fixed("\r\n\r\n".to_owned()), content.clone(), fixed("\r\n".to_owned())]);
    }
    pieces.push(fixed(format!("--{boundary}--\r\n")));
    let media_type = format!("multipart/form-data; boundary={boundary}");
    step.request.headers.push(field(Template::text("Content-Type"), Template::text(&media_type)));
    step.request.body = ImportedBody::Text { text: text::concat(&pieces), media_type };
}

impl ImportedPart {
    fn sent_name(&self) -> Option<&str> {
        let own = self.file_name.as_deref();
        own.or(match &self.content {
            PartContent::Text(_) => None,
            PartContent::File(path) => Some(base_name(path)),
        })
    }

    /// Media type; that of a file is guessed by its names, as curl and weir do it.
    fn sent_type(&self) -> Option<Template> {
        let path = match &self.content {
            PartContent::Text(_) => None,
            PartContent::File(path) => Some(path.as_str()),
        };
        let guessed = self.file_name.as_deref().and_then(guessed_type).or_else(|| path.and_then(guessed_type));
        let guessed = guessed.or(path.map(|_| "application/octet-stream"));
        self.content_type.clone().or_else(|| guessed.map(Template::text))
    }
}

/// Media type of a file by its name.
fn guessed_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase().as_str() {
        "gif" => "image/gif",
        "htm" | "html" => "text/html",
        "jpeg" | "jpg" => "image/jpeg",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "xml" => "application/xml",
        _ => return None,
    })
}

/// Contents of all parts as texts, with secrets as variables; `None` if a file is not there, or no text.
fn texts(parts: &[ImportedPart], session: &mut ImportSession) -> Option<Vec<Template>> {
    let mut texts = Vec::new();
    for part in parts {
        texts.push(match &part.content {
            PartContent::Text(text) => hidden(&part.name, text, session),
            PartContent::File(path) => Template::text(String::from_utf8(session.read_file(path)?).ok()?),
        });
    }
    Some(texts)
}

/// Value of a part; a secret becomes a variable here, since later it is within a text.
fn hidden(name: &Template, value: &Template, session: &mut ImportSession) -> Template {
    let name = text::source(name);
    match value.as_text().filter(|value| is_secret_name(&name) && !value.is_empty()) {
        Some(secret) => {
            let variable = session.names.unique(&snake_case(&name));
            session.import.define(&variable, secret, true);
            text::variable(&variable)
        }
        None => value.clone(),
    }
}

/// Text within quotes of a part's head.
fn quoted(text: &Template) -> Template {
    text::map_fixed(text, |fixed| Template::text(fixed.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")))
}

/// Boundary that is in none of the texts.
fn boundary(texts: &[Template]) -> String {
    let named = |number: usize| format!("------------------------weir{number:020}");
    let is_free = |boundary: &String| !texts.iter().any(|text| text::source(text).contains(boundary.as_str()));
    (0..100).map(named).find(is_free).unwrap_or_else(|| named(100))
}
