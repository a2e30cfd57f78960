//! Credentials as variables: never text of a scenario.

use std::collections::HashMap;

use weir_hurl::{Template, TemplatePart};
use weir_request::secret_names::is_secret_name;

use crate::builder::percent_decoded;
use crate::collection::Import;
use crate::names::{VariableNameTable, snake_case};
use crate::request::{ImportedBody, ImportedRequest, field};
use crate::text;

/// Shortest text that is taken for a secret.
const MIN_SECRET_CHARS: usize = 3;

/// Schemes before the secret of an Authorization header.
const SCHEMES: [&str; 8] = ["Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token ", "ApiKey ", "Digest "];

/// Replaces credentials in headers, cookies, parameters and bodies by variables, which have the values.
pub(super) fn hide(import: &mut Import, names: &mut VariableNameTable) {
    // Values with their names, in the order of the steps; a recording may have a great many.
    let mut known: Vec<(String, String)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for scenario in &mut import.scenarios {
        for step in &mut scenario.steps {
            hide_in(&mut step.request, &mut |value, proposed| {
                if let Some((_, name)) = places.get(value).and_then(|place| known.get(*place)) {
                    return name.clone();
                }
                let name = names.unique(proposed);
                places.insert(value.to_owned(), known.len());
                known.push((value.to_owned(), name.clone()));
                name
            });
        }
    }
    for (value, name) in known {
        import.define(&name, &value, true);
    }
    for variable in &mut import.variables {
        variable.is_secret |= is_secret_name(&variable.name);
    }
}

fn hide_in(request: &mut ImportedRequest, name: &mut dyn FnMut(&str, &str) -> String) {
    for header in &mut request.headers {
        let title = text::source(&header.name);
        if !is_secret_name(&title) {
            continue;
        }
        // The scheme stays, so that the scenario shows what kind of credential it needs.
        let scheme = SCHEMES.iter().find(|scheme| text::start(&header.value).starts_with(**scheme)).copied();
        let rest = without_prefix(&header.value, scheme.unwrap_or_default());
        if let Some(secret) = rest.as_text().filter(|secret| is_secret_text(secret)) {
            let proposed = match scheme {
                Some(scheme) if title.eq_ignore_ascii_case("authorization") => {
                    format!("{}_token", scheme.trim().to_ascii_lowercase())
                }
                _ => snake_case(&title),
            };
            let variable = text::variable(&name(secret, &proposed));
            header.value = text::concat([&Template::text(scheme.unwrap_or_default()), &variable]);
        }
    }
    for cookie in &mut request.cookies {
        hide_value(&mut cookie.value, &format!("cookie_{}", snake_case(&text::source(&cookie.name))), name);
    }
    if let Some(user) = &mut request.basic_auth {
        // However short it is.
        if let Some(password) = user.value.as_text().filter(|password| !password.is_empty()) {
            user.value = text::variable(&name(password, "password"));
        }
    }
    take_userinfo(request, name);
    for parameter in request.query.iter_mut().filter(|field| is_secret_name(&text::source(&field.name))) {
        hide_value(&mut parameter.value, &snake_case(&text::source(&parameter.name)), name);
    }
    request.url = in_query(&request.url, name);
    match &mut request.body {
        ImportedBody::Form(fields) => {
            for field in fields.iter_mut().filter(|field| is_secret_name(&text::source(&field.name))) {
                hide_value(&mut field.value, &snake_case(&text::source(&field.name)), name);
            }
        }
        ImportedBody::Multipart(fields) => {
            for field in fields.iter_mut().filter(|field| is_secret_name(&text::source(&field.name))) {
                if let weir_hurl::MultipartValue::Text(value) = &mut field.value {
                    hide_value(value, &snake_case(&text::source(&field.name)), name);
                }
            }
        }
        ImportedBody::Text { text, media_type } if media_type.to_ascii_lowercase().contains("json") => {
            *text = in_json(text, name);
        }
        ImportedBody::Text { text, media_type } if media_type.contains("x-www-form-urlencoded") => {
            *text = super::form_secrets::hide(text, name);
        }
        _ => {}
    }
}

/// Makes user and password of the URL those of basic authentication, as every client sends them.
fn take_userinfo(request: &mut ImportedRequest, name: &mut dyn FnMut(&str, &str) -> String) {
    let Some(TemplatePart::Text(first)) = request.url.parts.first_mut() else { return };
    let Some(start) = first.find("://").map(|at| at + "://".len()) else { return };
    let end = first[start..].find(['/', '?', '#']).map_or(first.len(), |length| start + length);
    let Some(at) = first[start..end].rfind('@').map(|at| start + at) else { return };
    let (user, password) = first[start..at].split_once(':').unwrap_or((&first[start..at], ""));
    let decoded = |text: &str| percent_decoded(text).unwrap_or_else(|| text.to_owned());
    let (user, password) = (decoded(user), decoded(password));
    first.replace_range(start..=at, "");
    // What a request says itself goes before its URL.
    if user.is_empty() && password.is_empty()
        || request.basic_auth.is_some()
        || request.header("authorization").is_some()
    {
        return;
    }
    // A user alone is a token.
    let hidden = |text: &str, proposed: &str, name: &mut dyn FnMut(&str, &str) -> String| match text {
        "" => Template::default(),
        text => text::variable(&name(text, proposed)),
    };
    let name_field = if password.is_empty() { hidden(&user, "user_token", name) } else { Template::text(user) };
    request.basic_auth = Some(field(name_field, hidden(&password, "password", name)));
}

fn hide_value(value: &mut Template, proposed: &str, name: &mut dyn FnMut(&str, &str) -> String) {
    if let Some(secret) = value.as_text().filter(|secret| is_secret_text(secret)) {
        *value = text::variable(&name(secret, proposed));
    }
}

fn without_prefix(value: &Template, prefix: &str) -> Template {
    let mut rest = value.clone();
    if let Some(TemplatePart::Text(first)) = rest.parts.first_mut() {
        *first = first.get(prefix.len()..).unwrap_or_default().to_owned();
    }
    text::from_parts(rest.parts)
}

/// Replaces secrets in the query of a URL.
fn in_query(url: &Template, name: &mut dyn FnMut(&str, &str) -> String) -> Template {
    let mut is_query = false;
    text::map_fixed(url, |fixed| {
        let mut parts = Vec::new();
        let mut rest = fixed;
        while let Some(at) = rest.find(if is_query { ['?', '&'] } else { ['?', '?'] }) {
            is_query = true;
            let (before, after) = rest.split_at(at + 1);
            parts.push(Template::text(before));
            rest = after;
            let end = rest.find(['&', '#']).unwrap_or(rest.len());
            if let Some((key, value)) = rest[..end].split_once('=')
                && is_secret_name(key)
                && is_secret_text(value)
                && !value.contains('%')
            {
                parts.push(Template::text(format!("{key}=")));
                parts.push(text::variable(&name(value, &snake_case(key))));
                rest = &rest[end..];
            }
        }
        parts.push(Template::text(rest));
        text::concat(&parts)
    })
}

/// Replaces strings of members with the name of a secret.
fn in_json(body: &Template, name: &mut dyn FnMut(&str, &str) -> String) -> Template {
    text::map_fixed(body, |fixed| {
        let mut parts = Vec::new();
        let mut rest = fixed;
        while let Some((start, length, key)) = next_member(rest) {
            let (before, after) = rest.split_at(start);
            parts.push(Template::text(before));
            let value = &after[..length];
            if is_secret_name(&key) && is_secret_text(value) && !value.contains('\\') {
                parts.push(text::variable(&name(value, &snake_case(&key))));
            } else {
                parts.push(Template::text(value));
            }
            // With the closing quote, which begins no member.
            let (quote, after) = after[length..].split_at(1);
            parts.push(Template::text(quote));
            rest = after;
        }
        parts.push(Template::text(rest));
        text::concat(&parts)
    })
}

/// Start and length of the next string that is a member's value, and the member's name.
fn next_member(text: &str) -> Option<(usize, usize, String)> {
    let mut at = 0;
    loop {
        let key_start = at + text.get(at..)?.find('"')? + 1;
        let key_length = string_length(&text[key_start..])?;
        let key = &text[key_start..key_start + key_length];
        at = key_start + key_length + 1;
        let rest = text.get(at..)?;
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        if let Some(value) = value.and_then(|value| value.strip_prefix('"')) {
            let start = text.len() - value.len();
            let length = string_length(value)?;
            return Some((start, length, key.to_owned()));
        }
    }
}

/// Length of the string at the beginning of a text, up to its closing quote.
fn string_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !is_escaped => return Some(at),
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    None
}

fn is_secret_text(text: &str) -> bool {
    let text = text.trim();
    text.chars().count() >= MIN_SECRET_CHARS && !matches!(text, "true" | "false" | "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(request: ImportedRequest) -> (ImportedRequest, Vec<(String, String)>) {
        let mut request = request;
        let mut values = Vec::new();
        hide_in(&mut request, &mut |value, proposed| {
            values.push((proposed.to_owned(), value.to_owned()));
            proposed.to_owned()
        });
        (request, values)
    }

    #[test]
    fn credentials_become_variables_and_keep_their_scheme() {
        let mut request =
            ImportedRequest { url: Template::text("http://h/a?x=1&api_key=k-123&y=2"), ..Default::default() };
        request.add_header("Authorization", Template::text("Bearer abc.def"));
        request.add_header("X-Api-Key", Template::text("k-123"));
        request.add_header("Accept", Template::text("*/*"));
        request.body = ImportedBody::Text {
            text: Template::text(r#"{"user": "ada", "password": "pw-ada", "n": [1, {"token": "t-1"}]}"#),
            media_type: "application/json".into(),
        };
        let (made, values) = hidden(request);
        assert_eq!(text::source(&made.url), "http://h/a?x=1&api_key={{api_key}}&y=2");
        assert_eq!(text::source(made.header("authorization").unwrap()), "Bearer {{bearer_token}}");
        assert_eq!(text::source(made.header("x-api-key").unwrap()), "{{x_api_key}}");
        let ImportedBody::Text { text, .. } = &made.body else { panic!("a text") };
        assert_eq!(
            text::source(text),
            r#"{"user": "ada", "password": "{{password}}", "n": [1, {"token": "{{token}}"}]}"#
        );
        assert_eq!(values.len(), 5);
    }

    #[test]
    fn user_and_password_of_a_url_are_those_of_the_request() {
        for (url, rest, user, password, count) in [
            ("http://me:s%40cret@h/a@b", "http://h/a@b", "me", "{{password}}", 1),
            ("https://ghp_123@h", "https://h", "{{user_token}}", "", 1),
            ("http://h/a:b@c", "http://h/a:b@c", "", "", 0),
        ] {
            let request = ImportedRequest { url: Template::text(url), ..Default::default() };
            let (made, values) = hidden(request);
            assert_eq!((text::source(&made.url).as_str(), values.len()), (rest, count), "{url}");
            let auth = made.basic_auth.unwrap_or_else(|| field(Template::default(), Template::default()));
            assert_eq!((text::source(&auth.name).as_str(), text::source(&auth.value).as_str()), (user, password));
        }
        let mut own = ImportedRequest { url: Template::text("http://me:secret@h/"), ..Default::default() };
        own.add_header("Authorization", Template::text("Bearer abc.def"));
        let (made, _) = hidden(own);
        assert!(made.basic_auth.is_none() && text::source(&made.url) == "http://h/");
    }
}
