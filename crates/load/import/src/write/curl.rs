//! Steps as command lines of cURL.

use weir_hurl::{
    Expression, ExpressionSource, FieldTemplate, MultipartValue, OptionName, RequestOption, Template, TemplatePart,
};
use weir_request::url::EncodedPart;

use super::entry;
use crate::builder::percent_encoded;
use crate::collection::Import;
use crate::request::{ImportedBody, ImportedRequest};
use crate::text;

/// Command lines of cURL for a shell, a step each: variables are those of the environment, and captures and checks are
/// comments.
pub fn to_curl(import: &Import) -> String {
    let mut blocks = Vec::new();
    for step in import.scenarios.iter().flat_map(|scenario| &scenario.steps) {
        let mut lines = Vec::new();
        if !step.name.is_empty() {
            lines.push(format!("# {}", text::one_line(&step.name, 80)));
        }
        lines.extend(step.notes.iter().map(|note| format!("# {}", text::one_line(note, 200))));
        if let Some(response) = &step.response {
            lines.extend(response.to_string().lines().map(|line| format!("# {line}")));
        }
        let mut command = CurlCommand::default();
        command.add(&step.request);
        lines.extend(command.left_out.iter().map(|what| format!("# left out: {}", text::one_line(what, 200))));
        let command = command.text();
        match step.is_disabled {
            true => lines.extend(command.lines().map(|line| format!("# {line}"))),
            false => lines.push(command),
        }
        blocks.push(lines.join("\n") + "\n");
    }
    blocks.join("\n")
}

/// Arguments of a command, as words of a shell.
#[derive(Debug, Default)]
struct CurlCommand {
    arguments: Vec<String>,
    left_out: Vec<String>,
}

impl CurlCommand {
    fn text(&self) -> String {
        format!("curl {}", self.arguments.join(" \\\n  "))
    }

    fn push(&mut self, argument: impl Into<String>) {
        self.arguments.push(argument.into());
    }

    fn add(&mut self, request: &ImportedRequest) {
        match (request.method.as_str(), &request.body) {
            ("GET", ImportedBody::None) => {}
            ("HEAD", ImportedBody::None) => self.push("--head"),
            ("POST", body) if *body != ImportedBody::None => {}
            (method, _) => self.push(format!("-X {method}")),
        }
        self.add_url(request);
        for header in &request.headers {
            let name_only = pair(&header.name, ";", &Template::default());
            let whole = pair(&header.name, ": ", &header.value);
            let header = if text::is_empty(&header.value) { name_only } else { whole };
            self.push(format!("-H {}", shell(&header)));
        }
        self.add_content_type(request);
        self.add_cookies(&request.cookies);
        if let Some(user) = &request.basic_auth {
            self.push(format!("-u {}", shell(&pair(&user.name, ":", &user.value))));
        }
        for option in &request.options {
            self.add_option(option);
        }
        self.add_body(&request.body);
    }

    /// URL with its parameters. Brackets and braces would be globs.
    fn add_url(&mut self, request: &ImportedRequest) {
        let mut part = EncodedPart::Path;
        let mut url = text::map_fixed(&request.url, |fixed| Template::text(encoded_url(fixed, &mut part)));
        let is_fixed =
            request.query.iter().all(|field| field.value.as_text().is_some() && field.name.as_text().is_some());
        if is_fixed && !request.query.is_empty() {
            let separator = if text::source(&url).contains('?') { "&" } else { "?" };
            let pairs: Vec<String> = request.query.iter().map(encoded_pair).collect();
            url = text::concat([&url, &Template::text(format!("{separator}{}", pairs.join("&")))]);
        }
        let is_glob =
            |part: &TemplatePart| matches!(part, TemplatePart::Text(text) if text.contains(['[', ']', '{', '}']));
        let flag = if url.parts.iter().any(is_glob) { "-g " } else { "" };
        self.push(format!("{flag}{}", shell(&url)));
        if !is_fixed {
            for field in &request.query {
                // What begins with a plus is sent as it is.
                let parameter = match field.value.as_text() {
                    Some(_) => Template::text(format!("+{}", encoded_pair(field))),
                    None => pair(&field.name, "=", &field.value),
                };
                self.push(format!("--url-query {}", shell(&parameter)));
            }
        }
    }

    /// The Content-Type that the request has by its body, and curl by itself another one or none.
    fn add_content_type(&mut self, request: &ImportedRequest) {
        if request.header("Content-Type").is_some() {
            return;
        }
        match (&request.body, entry::default_type(&request.body)) {
            (ImportedBody::None | ImportedBody::Form(_) | ImportedBody::Multipart(_), _) => {}
            (_, Some(default)) => self.push(format!("-H 'Content-Type: {default}'")),
            (_, None) => self.push("-H 'Content-Type:'"),
        }
    }

    fn add_cookies(&mut self, cookies: &[FieldTemplate]) {
        if cookies.is_empty() {
            return;
        }
        let pairs: Vec<Template> = cookies.iter().map(|cookie| pair(&cookie.name, "=", &cookie.value)).collect();
        let separator = Template::text("; ");
        let joined = pairs
            .iter()
            .enumerate()
            .flat_map(|(index, pair)| if index == 0 { vec![pair] } else { vec![&separator, pair] });
        self.push(format!("-b {}", shell(&text::concat(joined))));
    }

    fn add_option(&mut self, option: &RequestOption) {
        let value = option.value.to_string();
        match option.name {
            OptionName::Location => self.push("-L"),
            OptionName::LocationTrusted => self.push("--location-trusted"),
            OptionName::Compressed => self.push("--compressed"),
            OptionName::PathAsIs => self.push("--path-as-is"),
            OptionName::Digest => self.push("--digest"),
            OptionName::NoHeader => self.push(format!("-H {}", shell(&Template::text(format!("{value}:"))))),
            OptionName::Header => self.push(format!("-H {}", shell(&Template::text(value)))),
            OptionName::MaxRedirs => self.push(format!("--max-redirs {}", shell(&Template::text(value)))),
            _ => self.left_out.push(option.to_string().trim().to_owned()),
        }
    }

    fn add_body(&mut self, body: &ImportedBody) {
        match body {
            ImportedBody::None => {}
            ImportedBody::Text { text, .. } => self.push(format!("--data-raw {}", shell(text))),
            ImportedBody::Form(fields) => self.add_form(fields),
            ImportedBody::Multipart(fields) => {
                for field in fields {
                    if text::source(&field.name).contains('=') {
                        self.left_out.push(format!("the part {}, whose name has a '='", text::source(&field.name)));
                        continue;
                    }
                    match &field.value {
                        // A text is never a name of a file, whatever it begins with.
                        MultipartValue::Text(value) => {
                            self.push(format!("--form-string {}", shell(&pair(&field.name, "=", value))));
                        }
                        MultipartValue::File { name, content_type } => {
                            let quoted = text::source(name).replace('\\', "\\\\").replace('"', "\\\"");
                            let kind = content_type.as_ref().map(|kind| format!(";type={}", text::source(kind)));
                            let value = Template::text(format!("@\"{quoted}\"{}", kind.unwrap_or_default()));
                            self.push(format!("-F {}", shell(&pair(&field.name, "=", &value))));
                        }
                    }
                }
            }
            ImportedBody::Bytes(bytes) => {
                use base64::Engine;
                let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
                self.push(format!("--data-binary @<(echo {encoded} | base64 -d)"));
            }
            ImportedBody::File(name) => {
                let path = if name == "-" { "./-" } else { name };
                self.push(format!("--data-binary {}", shell(&Template::text(format!("@{path}")))));
            }
        }
    }

    /// Fields of a form: those that are fixed as they are encoded, others encoded by curl.
    fn add_form(&mut self, fields: &[FieldTemplate]) {
        let mut fixed: Vec<String> = Vec::new();
        for field in fields {
            if field.value.as_text().is_some() || text::is_empty(&field.value) {
                fixed.push(encoded_pair(field));
                continue;
            }
            if !fixed.is_empty() {
                self.push(format!("--data-raw {}", shell(&Template::text(std::mem::take(&mut fixed).join("&")))));
            }
            self.push(format!("--data-urlencode {}", shell(&pair(&field.name, "=", &field.value))));
        }
        if !fixed.is_empty() {
            self.push(format!("--data-raw {}", shell(&Template::text(fixed.join("&")))));
        }
    }
}

fn pair(name: &Template, between: &str, value: &Template) -> Template {
    text::concat([name, &Template::text(between), value])
}

/// `name=value` as it is sent: of names only what a URL does not have is encoded.
fn encoded_pair(field: &FieldTemplate) -> String {
    let value = field.value.as_text().map(percent_encoded).unwrap_or_default();
    let mut name = String::new();
    EncodedPart::Query.push_encoded(text::source(&field.name).as_bytes(), &mut name);
    format!("{name}={value}")
}

/// Part of a URL as it is sent: curl encodes nothing by itself. `part` is the one that it begins in, then the one that it
/// ends in.
fn encoded_url(fixed: &str, part: &mut EncodedPart) -> String {
    let mut out = String::new();
    for c in fixed.chars() {
        match c {
            '?' => *part = EncodedPart::Query,
            // What follows is not sent.
            '#' => return out + "#",
            _ => {}
        }
        part.push_encoded(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut out);
    }
    out
}

/// Word of a shell: fixed text in single quotes, variables and functions in double quotes.
fn shell(text: &Template) -> String {
    let parts = text.parts.iter().map(|part| match part {
        TemplatePart::Text(text) => format!("'{}'", text.replace('\'', "'\\''")),
        TemplatePart::Expression(expression) => format!("\"{}\"", shell_value(expression)),
    });
    let word: String = parts.collect();
    if word.is_empty() { "''".to_owned() } else { word }
}

fn shell_value(expression: &Expression) -> String {
    match &expression.source {
        ExpressionSource::Variable(name) => {
            let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            format!("${{{name}}}")
        }
        ExpressionSource::Function(function) => match function.to_string().as_str() {
            "newUuid" => "$(uuidgen)".to_owned(),
            "newDate" => "$(date -u +%FT%TZ)".to_owned(),
            _ => "$RANDOM".to_owned(),
        },
    }
}
