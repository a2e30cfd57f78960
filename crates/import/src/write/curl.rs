//! Steps as command lines of cURL.

use weir_hurl::{Expression, ExpressionSource, MultipartValue, Template, TemplatePart};

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
        let command = command(&step.request);
        match step.is_disabled {
            true => lines.extend(command.lines().map(|line| format!("# {line}"))),
            false => lines.push(command),
        }
        blocks.push(lines.join("\n") + "\n");
    }
    blocks.join("\n")
}

fn command(request: &ImportedRequest) -> String {
    let mut parts = vec!["curl".to_owned()];
    let has_body = request.body != ImportedBody::None;
    match (request.method.as_str(), has_body) {
        ("GET", false) | ("POST", true) => {}
        ("HEAD", false) => parts.push("--head".to_owned()),
        (method, _) => parts.push(format!("-X {method}")),
    }
    parts.push(shell(&request.url));
    for header in &request.headers {
        parts.push(format!("-H {}", shell(&pair(&header.name, ": ", &header.value))));
    }
    for parameter in &request.query {
        parts.push(format!("--url-query {}", shell(&pair(&parameter.name, "=", &parameter.value))));
    }
    if !request.cookies.is_empty() {
        let pairs: Vec<Template> =
            request.cookies.iter().map(|cookie| pair(&cookie.name, "=", &cookie.value)).collect();
        let separator = Template::text("; ");
        let joined = pairs
            .iter()
            .enumerate()
            .flat_map(|(index, pair)| if index == 0 { vec![pair] } else { vec![&separator, pair] });
        parts.push(format!("-b {}", shell(&text::concat(joined))));
    }
    if let Some(user) = &request.basic_auth {
        parts.push(format!("-u {}", shell(&pair(&user.name, ":", &user.value))));
    }
    if request.options.iter().any(|option| option.name == weir_hurl::OptionName::Location) {
        parts.push("-L".to_owned());
    }
    push_body(&request.body, &mut parts);
    parts.join(" \\\n  ").replacen(" \\\n  ", " ", 1)
}

fn push_body(body: &ImportedBody, parts: &mut Vec<String>) {
    match body {
        ImportedBody::None => {}
        ImportedBody::Text { text, .. } => parts.push(format!("--data-raw {}", shell(text))),
        ImportedBody::Form(fields) => {
            for field in fields {
                parts.push(format!("--data-urlencode {}", shell(&pair(&field.name, "=", &field.value))));
            }
        }
        ImportedBody::Multipart(fields) => {
            for field in fields {
                let value = match &field.value {
                    MultipartValue::Text(value) => value.clone(),
                    MultipartValue::File { name, content_type } => {
                        let kind = content_type.as_ref().map(|kind| format!(";type={}", text::source(kind)));
                        Template::text(format!("@{}{}", text::source(name), kind.unwrap_or_default()))
                    }
                };
                parts.push(format!("-F {}", shell(&pair(&field.name, "=", &value))));
            }
        }
        ImportedBody::Bytes(bytes) => {
            use base64::Engine;
            let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
            parts.push(format!("--data-binary @<(echo {encoded} | base64 -d)"));
        }
        ImportedBody::File(name) => parts.push(format!("--data-binary {}", shell(&Template::text(format!("@{name}"))))),
    }
}

fn pair(name: &Template, between: &str, value: &Template) -> Template {
    text::concat([name, &Template::text(between), value])
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
