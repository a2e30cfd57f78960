//! Asserts and variables after a response.

use weir_hurl::{
    Assertion, Capture, ExpectedResponse, ExpectedStatus, QueryKind, ResponseQuery, Template, TextPosition, TextQuery,
};

use crate::builder;
use crate::omission::OmissionKind;
use crate::request::ImportedStep;
use crate::session::ImportSession;

/// Adds `res.status: eq 200`.
pub(super) fn assert(expression: &str, test: &str, line: u32, step: &mut ImportedStep, session: &mut ImportSession) {
    if !try_assert(expression, test, step) {
        builder::omit_at(step, line, OmissionKind::Check, &format!("the check {expression}: {test}"), session);
    }
}

fn try_assert(expression: &str, test: &str, step: &mut ImportedStep) -> bool {
    let Some(query) = query(expression) else { return false };
    let (operator, value) = test.trim().split_once(' ').unwrap_or((test.trim(), ""));
    let value = value.trim();
    if value.contains("{{") {
        return false;
    }
    let inner = ['\'', '"'].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let literal = || {
        if let Some(text) = inner {
            return serde_json::Value::from(text).to_string();
        }
        let is_typed =
            serde_json::from_str::<serde_json::Value>(value).is_ok_and(|value| !value.is_array() && !value.is_object());
        if is_typed { value.to_owned() } else { serde_json::Value::from(value).to_string() }
    };
    let quoted = || serde_json::Value::from(inner.unwrap_or(value)).to_string();
    let predicate = match operator {
        "eq" => format!("== {}", literal()),
        "neq" => format!("!= {}", literal()),
        "gt" => format!("> {}", literal()),
        "gte" => format!(">= {}", literal()),
        "lt" => format!("< {}", literal()),
        "lte" => format!("<= {}", literal()),
        "contains" => format!("contains {}", quoted()),
        "notContains" => format!("not contains {}", quoted()),
        "startsWith" => format!("startsWith {}", quoted()),
        "endsWith" => format!("endsWith {}", quoted()),
        "length" => format!("count == {}", literal()),
        "isDefined" | "isTruthy" => "exists".to_owned(),
        "isUndefined" => "not exists".to_owned(),
        "isNull" => "== null".to_owned(),
        "isEmpty" => "isEmpty".to_owned(),
        "isNotEmpty" => "not isEmpty".to_owned(),
        "isTrue" => "== true".to_owned(),
        "isFalse" => "== false".to_owned(),
        "isNumber" => "isNumber".to_owned(),
        "isString" => "isString".to_owned(),
        "isBoolean" => "isBoolean".to_owned(),
        "isArray" => "isList".to_owned(),
        "isJson" => "exists".to_owned(),
        _ => return false,
    };
    let response = step.response.get_or_insert_with(ExpectedResponse::default);
    if query == "status"
        && operator == "eq"
        && let Ok(code) = value.parse::<u16>()
        && (100..=599).contains(&code)
    {
        response.status = ExpectedStatus::Code(code);
        return true;
    }
    match Assertion::parse(&format!("{query} {predicate}")) {
        Ok(assertion) => {
            response.asserts.push(assertion);
            true
        }
        Err(_) => false,
    }
}

/// Query of an expression such as `res.body.items[0].id`.
fn query(expression: &str) -> Option<String> {
    let expression = expression.trim();
    match expression {
        "res.status" => return Some("status".to_owned()),
        "res.responseTime" => return Some("duration".to_owned()),
        _ => {}
    }
    if let Some(header) = expression.strip_prefix("res.headers.").or_else(|| expression.strip_prefix("res.headers['")) {
        let header = header.trim_end_matches(['\'', ']']);
        return Some(format!("header {}", serde_json::Value::from(header)));
    }
    let path = expression.strip_prefix("res.body")?;
    let is_path = path.is_empty() || path.starts_with(['.', '[']);
    let is_plain = !path.contains(['(', '"', '\\', '{']);
    (is_path && is_plain).then(|| format!("jsonpath \"${path}\""))
}

/// Adds `token: res.body.token`.
pub(super) fn capture(name: &str, expression: &str, line: u32, step: &mut ImportedStep, session: &mut ImportSession) {
    let kind = query(expression).and_then(|query| {
        let assertion = Assertion::parse(&format!("{query} exists")).ok()?;
        match assertion.query.kind {
            kind @ QueryKind::Text(TextQuery::JsonPath | TextQuery::Header, _) => Some(kind),
            _ => None,
        }
    });
    let Some(kind) = kind else {
        builder::omit_at(step, line, OmissionKind::Capture, &format!("the variable {name}: {expression}"), session);
        return;
    };
    let query = ResponseQuery { kind, position: TextPosition::default() };
    let name = Template::text(session.names.name(name));
    let capture = Capture { name, query, filters: Vec::new(), is_redacted: false };
    step.response.get_or_insert_with(ExpectedResponse::default).captures.push(capture);
}
