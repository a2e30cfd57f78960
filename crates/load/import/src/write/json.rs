//! Imports as JSON.

use base64::Engine;
use serde_json::{Map, Value, json};
use weir_hurl::{FieldTemplate, MultipartValue};

use crate::collection::{Import, ImportedScenario};
use crate::request::{ImportedBody, ImportedStep, StatusRule};
use crate::text;

/// JSON of an import, indented: scenarios with their steps, variables without the values of secrets, omissions.
pub fn to_json(import: &Import) -> String {
    let variables: Vec<Value> = import
        .variables
        .iter()
        .map(|variable| {
            let value = if variable.is_secret { None } else { variable.value.as_deref() };
            json!({ "name": variable.name, "value": value, "secret": variable.is_secret })
        })
        .collect();
    let omissions: Vec<Value> = import
        .omissions
        .iter()
        .map(|omission| json!({ "file": omission.file, "line": omission.line, "what": omission.what }))
        .collect();
    let whole = json!({
        "schema": 1,
        "scenarios": import.scenarios.iter().map(scenario).collect::<Vec<_>>(),
        "variables": variables,
        "omissions": omissions,
    });
    format!("{whole:#}\n")
}

fn scenario(scenario: &ImportedScenario) -> Value {
    let load = &scenario.load;
    json!({
        "name": scenario.name,
        "users": load.users,
        "ramp_up_s": load.ramp_up_s,
        "loops": load.loops,
        "duration_s": load.duration_s,
        "think": load.think,
        "data": load.data.as_ref().map(|data| json!({ "file": data.file, "order": data.order })),
        "steps": scenario.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

fn step(step: &ImportedStep) -> Value {
    let request = &step.request;
    let mut made = Map::new();
    made.insert("name".into(), step.name.as_str().into());
    made.insert("file".into(), step.file.as_str().into());
    made.insert("line".into(), step.line.into());
    made.insert("disabled".into(), step.is_disabled.into());
    made.insert("method".into(), request.method.as_str().into());
    made.insert("url".into(), text::source(&request.url).into());
    made.insert("query".into(), fields(&request.query));
    made.insert("headers".into(), fields(&request.headers));
    made.insert("cookies".into(), fields(&request.cookies));
    if let Some(user) = &request.basic_auth {
        made.insert("user".into(), format!("{}:{}", text::source(&user.name), text::source(&user.value)).into());
    }
    made.insert("body".into(), body(&request.body));
    made.insert("response".into(), step.response.as_ref().map(ToString::to_string).into());
    made.insert("success".into(), step.success.map(StatusRule::predicate).into());
    made.insert("notes".into(), step.notes.clone().into());
    Value::Object(made)
}

fn fields(fields: &[FieldTemplate]) -> Value {
    let pairs = fields.iter().map(|field| json!([text::source(&field.name), text::source(&field.value)]));
    pairs.collect::<Vec<_>>().into()
}

fn body(body: &ImportedBody) -> Value {
    match body {
        ImportedBody::None => Value::Null,
        ImportedBody::Text { text, media_type } => json!({ "text": text::source(text), "media_type": media_type }),
        ImportedBody::Form(own) => json!({ "form": fields(own) }),
        ImportedBody::Multipart(own) => {
            let parts = own.iter().map(|field| match &field.value {
                MultipartValue::Text(value) => json!([text::source(&field.name), text::source(value)]),
                MultipartValue::File { name, .. } => json!([text::source(&field.name), { "file": text::source(name) }]),
            });
            json!({ "multipart": parts.collect::<Vec<_>>() })
        }
        ImportedBody::Bytes(bytes) => json!({ "base64": base64::engine::general_purpose::STANDARD.encode(bytes) }),
        ImportedBody::File(name) => json!({ "file": name }),
    }
}
