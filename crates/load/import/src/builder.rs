//! Parts of steps that several formats have: request lines, headers, credentials, bodies of forms.

use base64::Engine;
use weir_base::connection_fields::CONNECTION_FIELDS;
use weir_base::percent;
use weir_base::percent::AsciiSet;
use weir_hurl::{FieldTemplate, Template, TemplatePart};

use crate::address;
use crate::omission::OmissionKind;
use crate::request::{ImportedBody, ImportedStep, field};
use crate::session::ImportSession;
use crate::text;

/// Sets method and URL; a request that weir does not send is disabled.
pub(crate) fn set_line(step: &mut ImportedStep, method: &str, url: &Template, session: &mut ImportSession) {
    let upper = method.trim().to_ascii_uppercase();
    let is_method = !upper.is_empty() && upper.len() <= 32 && upper.chars().all(|c| c.is_ascii_uppercase());
    step.request.method = if is_method { upper } else { "GET".to_owned() };
    let problem = match address::absolute(url) {
        Ok(url) => {
            step.request.url = url;
            (!is_method).then(|| format!("the method {}", text::one_line(method, 40)))
        }
        Err(problem) => {
            step.request.url = if text::is_empty(url) { text::variable(address::BASE_URL) } else { url.clone() };
            Some(problem)
        }
    };
    if let Some(problem) = problem {
        step.is_disabled = true;
        let shown = format!("{} {}: {problem}", step.request.method, text::source(&step.request.url));
        omit(step, OmissionKind::Request, &shown, session);
    }
}

/// Records an omission of a step with its comment.
pub(crate) fn omit(step: &mut ImportedStep, kind: OmissionKind, what: &str, session: &mut ImportSession) {
    omit_at(step, step.line, kind, what, session);
}

/// Records an omission of a step at another line.
pub(crate) fn omit_at(step: &mut ImportedStep, line: u32, kind: OmissionKind, what: &str, session: &mut ImportSession) {
    if session.is_full() {
        return;
    }
    session.omit(line, kind, what);
    step.notes.extend(session.take_last_note());
}

/// Adds a header, unless it is one of the connection; a name that is not one is an omission.
pub(crate) fn add_header(step: &mut ImportedStep, name: &str, value: &Template, session: &mut ImportSession) {
    let name = name.trim();
    let lower = name.to_ascii_lowercase();
    if lower == "upgrade" && text::source(value).eq_ignore_ascii_case("websocket") && !step.is_disabled {
        step.is_disabled = true;
        let what = format!("{}: a connection of WebSocket", step.request.line());
        omit(step, OmissionKind::Request, &what, session);
    }
    // weir sets these itself.
    let is_of_connection = CONNECTION_FIELDS.contains(&lower.as_str()) || lower == "http2-settings";
    if name.starts_with(':') || is_of_connection {
        return;
    }
    if lower == "host" && is_host_of(&step.request.url, value) {
        return;
    }
    let is_token =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    if !is_token {
        omit(step, OmissionKind::Header, &format!("the header {name}"), session);
        return;
    }
    let value = text::map_fixed(value, |fixed| {
        Template::text(fixed.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect::<String>())
    });
    step.request.headers.push(field(Template::text(name), trimmed(&value)));
}

/// Whether a Host header is the one that the URL has anyway.
fn is_host_of(url: &Template, value: &Template) -> bool {
    let origin = address::origin(url).and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, host)| value.as_text().is_some_and(|value| value.trim().eq_ignore_ascii_case(host)))
}

/// Text without spaces around it.
pub(crate) fn trimmed(value: &Template) -> Template {
    let last = value.parts.len().saturating_sub(1);
    text::from_parts(value.parts.iter().enumerate().map(|(index, part)| match part {
        TemplatePart::Text(fixed) => {
            let fixed = if index == 0 { fixed.trim_start() } else { fixed };
            TemplatePart::Text(if index == last { fixed.trim_end() } else { fixed }.to_owned())
        }
        expression @ TemplatePart::Expression(_) => expression.clone(),
    }))
}

/// Takes user and password out of an `Authorization: Basic`, so that they can be read and changed.
pub(crate) fn take_basic_auth(step: &mut ImportedStep) {
    let decoded = step.request.header("Authorization").and_then(Template::as_text).and_then(|value| {
        let encoded = value.strip_prefix("Basic ").or_else(|| value.strip_prefix("basic "))?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (user, password) = text.split_once(':')?;
        let is_name = !user.is_empty() && !user.chars().chain(password.chars()).any(char::is_control);
        is_name.then(|| field(Template::text(user), Template::text(password)))
    });
    if let Some(decoded) = decoded {
        step.request.remove_header("Authorization");
        step.request.basic_auth = Some(decoded);
    }
}

/// Body of a text, by the Content-Type of the headers: a form where the text is one.
pub(crate) fn text_body(step: &mut ImportedStep, text: Template) {
    let media_type = step.request.header("Content-Type").map(text::source).unwrap_or_default();
    step.request.body = typed_body(text, &media_type);
    if matches!(step.request.body, ImportedBody::Form(_)) {
        step.request.remove_header("Content-Type");
    }
}

/// Body of a text of a media type.
pub(crate) fn typed_body(text: Template, media_type: &str) -> ImportedBody {
    if text::is_empty(&text) {
        return ImportedBody::None;
    }
    let is_form = media_type.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded");
    match if is_form { form_fields(&text) } else { None } {
        Some(fields) => ImportedBody::Form(fields),
        None => ImportedBody::Text { text, media_type: media_type.to_owned() },
    }
}

/// Fields of an encoded form, with decoded values; `None` if it is another text.
fn form_fields(text: &Template) -> Option<Vec<FieldTemplate>> {
    let mut fields: Vec<(Vec<TemplatePart>, Option<Vec<TemplatePart>>)> = vec![(Vec::new(), None)];
    for part in &text.parts {
        let TemplatePart::Text(fixed) = part else {
            let (name, value) = fields.last_mut()?;
            value.as_mut().unwrap_or(name).push(part.clone());
            continue;
        };
        for (index, pair) in fixed.split('&').enumerate() {
            if index > 0 {
                fields.push((Vec::new(), None));
            }
            let (name, value) = fields.last_mut()?;
            match (pair.split_once('='), value) {
                (Some((before, after)), open @ None) => {
                    name.push(TemplatePart::Text(before.to_owned()));
                    *open = Some(vec![TemplatePart::Text(percent_decoded(after)?)]);
                }
                (_, Some(value)) => value.push(TemplatePart::Text(percent_decoded(pair)?)),
                (None, None) => name.push(TemplatePart::Text(pair.to_owned())),
            }
        }
    }
    let made = fields.into_iter().map(|(name, value)| Some(field(text::from_parts(name), text::from_parts(value?))));
    let made: Vec<FieldTemplate> = made.collect::<Option<_>>()?;
    // Encoded again, it has to be the same text.
    let mut again = Vec::new();
    for (index, field) in made.iter().enumerate() {
        if index > 0 {
            again.push(Template::text("&"));
        }
        again.extend([
            field.name.clone(),
            Template::text("="),
            text::map_fixed(&field.value, |fixed| Template::text(percent_encoded(fixed))),
        ]);
    }
    if text::concat(&again) != text::from_parts(text.parts.iter().cloned()) {
        return None;
    }
    // A name stays as it is encoded, since names are sent as they are.
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.~%[]@$!*+".contains(c);
    let are_names =
        made.iter().all(|field| !text::is_empty(&field.name) && text::start(&field.name).chars().all(is_name));
    are_names.then_some(made)
}

/// Text of a form without percent-encoding; `None` if it is not UTF-8.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    String::from_utf8(percent::form_decoded(text.as_bytes()).into_owned()).ok()
}

/// Value of a field as weir encodes it.
pub(crate) fn percent_encoded(text: &str) -> String {
    percent::encoded(text.as_bytes(), percent::RESERVED)
}

/// Characters that are escaped in names of fields.
const NAME_RESERVED: &AsciiSet = &percent::RESERVED.remove(b'[').remove(b']').remove(b'@').remove(b'$');

/// Percent-encoded name of a field; hurl encodes values only.
pub(crate) fn encoded_name(name: &Template) -> Template {
    text::map_fixed(name, |fixed| Template::text(percent::encoded(fixed.as_bytes(), NAME_RESERVED)))
}

/// URL with a value in place of `/:key`.
pub(crate) fn with_path_variable(url: &Template, key: &str, value: &Template) -> Template {
    let marker = format!("/:{key}");
    let (made, _) = text::replaced(url, &marker, &text::concat([&Template::text("/"), value]), &|_, after| {
        !after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
    });
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_fields_with_decoded_values() {
        let fields = form_fields(&Template::parse("a=1%202&b%5B%5D=%C3%A4{{x}}&c=").unwrap()).unwrap();
        let shown: Vec<String> = fields.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a: 1 2", "b\\u{25}5B\\u{25}5D: ä{{x}}", "c:"]);
        assert_eq!(form_fields(&Template::text("{\"a\": 1}")), None);
        assert_eq!(form_fields(&Template::text("a=%ff")), None);
        assert_eq!(percent_decoded("%+f%2"), Some("% f%2".to_owned()));
        for other in ["a=1+2", "a=b c", "a=%c3%a4", "a={\"b\":1}", "a=1&"] {
            assert_eq!(form_fields(&Template::text(other)), None, "{other}");
        }
    }
}
