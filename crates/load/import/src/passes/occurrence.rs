//! Replacement of a value in a request by a variable.

use weir_hurl::{FieldTemplate, MultipartValue, Template};

use crate::request::{ImportedBody, ImportedRequest};
use crate::text;

/// Replaces a value wherever it stands by itself; returns where it stood.
pub(super) fn replace(request: &mut ImportedRequest, value: &str, name: &str) -> Vec<String> {
    let new = text::variable(name);
    let mut places = Vec::new();
    replace_in(&mut request.url, value, &new, "URL", &mut places);
    for parameter in &mut request.query {
        replace_in_field(parameter, value, &new, "parameter", &mut places);
    }
    for header in &mut request.headers {
        replace_in_field(header, value, &new, "header", &mut places);
    }
    for cookie in &mut request.cookies {
        replace_in_field(cookie, value, &new, "cookie", &mut places);
    }
    match &mut request.body {
        ImportedBody::Text { text, media_type } => {
            // A value of JSON is quoted there, and its quotes are escaped when it is sent.
            let is_json = media_type.to_ascii_lowercase().contains("json");
            let written = if is_json { json_content(value) } else { value.to_owned() };
            replace_in(text, &written, &new, "body", &mut places);
        }
        ImportedBody::Form(fields) => {
            fields.iter_mut().for_each(|field| replace_in_field(field, value, &new, "field", &mut places));
        }
        ImportedBody::Multipart(fields) => {
            for field in fields {
                if let MultipartValue::Text(text) = &mut field.value {
                    replace_in(text, value, &new, "part", &mut places);
                }
            }
        }
        ImportedBody::None | ImportedBody::Bytes(_) | ImportedBody::File(_) => {}
    }
    places
}

fn replace_in_field(field: &mut FieldTemplate, value: &str, new: &Template, noun: &str, places: &mut Vec<String>) {
    let place = format!("{noun} {}", text::source(&field.name));
    replace_in(&mut field.value, value, new, &place, places);
}

fn replace_in(template: &mut Template, value: &str, new: &Template, place: &str, places: &mut Vec<String>) {
    let (made, count) = text::replaced(template, value, new, &stands_alone);
    if count > 0 {
        *template = made;
        places.push(place.to_owned());
    }
}

/// Whether a value between two texts is a word of its own.
fn stands_alone(before: &str, after: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !before.ends_with(is_part) && !after.starts_with(is_part)
}

/// Text as it is within a string of JSON.
fn json_content(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
