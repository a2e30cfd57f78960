//! Assertions as checks.

use weir_hurl::{
    Assertion, ExpectedResponse, ExpectedStatus, PlainQuery, Predicate, PredicateKind, PredicateOperator,
    PredicateValue, QueryKind, ResponseQuery, ScalarValue, TextPosition,
};

use super::element::PlanElement;
use super::extractor::slashed;
use super::function::{number, template};
use crate::builder;
use crate::omission::OmissionKind;
use crate::request::{ImportedStep, StatusRule};
use crate::session::ImportSession;
use crate::text;

/// Bits of `Assertion.test_type`.
const NOT: u64 = 4;
const OR: u64 = 32;
const EQUALS: u64 = 8;
const SUBSTRING: u64 = 16;
const CONTAINS: u64 = 2;
const MATCH: u64 = 1;

pub(super) fn is_assertion(class: &str) -> bool {
    class.ends_with("Assertion")
}

/// Adds the checks of an assertion; whether it is one that weir has.
pub(super) fn apply(element: PlanElement<'_>, step: &mut ImportedStep, session: &mut ImportSession) -> bool {
    match element.class() {
        "ResponseAssertion" => response(element, step, session),
        "JSONPathAssertion" => {
            let path = serde_json::Value::from(element.text("JSON_PATH")).to_string();
            let negation = if element.flag("INVERT") { "not " } else { "" };
            let value = element.text("EXPECTED_VALUE");
            if value.contains("${") || path.contains("${") {
                return false;
            }
            let predicate = match (element.flag("JSONVALIDATION"), element.flag("EXPECT_NULL")) {
                (false, _) => "exists".to_owned(),
                (true, true) => "== null".to_owned(),
                (true, false) if element.flag("ISREGEX") => format!("matches /{}/", slashed(value)),
                (true, false) => {
                    let is_typed =
                        serde_json::from_str::<serde_json::Value>(value).is_ok_and(|value| !value.is_string());
                    if is_typed { format!("== {value}") } else { format!("== {}", serde_json::Value::from(value)) }
                }
            };
            add(&format!("jsonpath {path} {negation}{predicate}"), step)
        }
        "DurationAssertion" => match number(element.text("DurationAssertion.duration")) {
            Some(limit) => add(&format!("duration <= {limit}"), step),
            None => false,
        },
        "SizeAssertion" => {
            let operator = match element.text("SizeAssertion.operator") {
                "1" => "==",
                "2" => "!=",
                "3" => ">",
                "4" => "<",
                "5" => ">=",
                "6" => "<=",
                _ => return false,
            };
            let is_body = element.text("Assertion.test_field").contains("response_data");
            match number(element.text("SizeAssertion.size")).filter(|_| is_body) {
                Some(size) => add(&format!("bytes count {operator} {size}"), step),
                None => false,
            }
        }
        "XPathAssertion" | "XPath2Assertion" => {
            let path = element.text("XPath.xpath");
            let negation = if element.flag("XPath.negate") { "not " } else { "" };
            !path.contains("${") && add(&format!("xpath {} {negation}exists", serde_json::Value::from(path)), step)
        }
        _ => false,
    }
}

fn add(text: &str, step: &mut ImportedStep) -> bool {
    let Ok(assertion) = Assertion::parse(text) else { return false };
    step.response.get_or_insert_with(ExpectedResponse::default).asserts.push(assertion);
    true
}

fn response(element: PlanElement<'_>, step: &mut ImportedStep, session: &mut ImportSession) -> bool {
    let list = ["Asserion.test_strings", "Assertion.test_strings"].map(|name| element.list(name));
    let strings: Vec<&str> = list.iter().flatten().map(PlanElement::own_text).collect();
    let kind = number(element.text("Assertion.test_type")).unwrap_or(CONTAINS);
    if kind & OR != 0 && strings.len() > 1 {
        return false;
    }
    let is_negated = kind & NOT != 0;
    let field = element.text("Assertion.test_field");
    if element.flag("Assertion.assume_success") {
        step.success = Some(StatusRule::Any);
    }
    for tested in strings {
        let is_known = match field {
            "Assertion.response_code" => status(tested, kind, step),
            "Assertion.response_data" | "Assertion.response_data_as_document" => {
                body(tested, kind, is_negated, element.line(), step, session)
            }
            "Assertion.response_message" if matches!(tested, "OK" | "Created" | "Accepted" | "No Content") => {
                let code = match tested {
                    "OK" => "200",
                    "Created" => "201",
                    "Accepted" => "202",
                    _ => "204",
                };
                status(code, kind, step)
            }
            _ => false,
        };
        if !is_known {
            let what = format!("the check of {} for {tested}", field.trim_start_matches("Assertion."));
            builder::omit_at(step, element.line(), OmissionKind::Check, &text::one_line(&what, 120), session);
        }
    }
    true
}

fn status(tested: &str, kind: u64, step: &mut ImportedStep) -> bool {
    let tested = tested.trim();
    let is_negated = kind & NOT != 0;
    if let Ok(code) = tested.parse::<u16>() {
        if !(100..=599).contains(&code) {
            return false;
        }
        if is_negated {
            return add(&format!("status != {code}"), step);
        }
        step.response.get_or_insert_with(ExpectedResponse::default).status = ExpectedStatus::Code(code);
        return true;
    }
    let is_pattern = kind & (CONTAINS | MATCH) != 0;
    let negation = if is_negated { "not " } else { "" };
    is_pattern
        && !tested.contains("${")
        && add(&format!("status toString {negation}matches /^{}$/", slashed(tested)), step)
}

fn body(
    tested: &str,
    kind: u64,
    is_negated: bool,
    line: u32,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) -> bool {
    if kind & (SUBSTRING | EQUALS) == 0 {
        if tested.contains("${") || tested.contains(['\n', '\r']) {
            return false;
        }
        let negation = if is_negated { "not " } else { "" };
        let is_whole = kind & MATCH != 0 && kind & CONTAINS == 0;
        let pattern = if is_whole { format!("^(?:{tested})$") } else { tested.to_owned() };
        return add(&format!("body {negation}matches /{}/", slashed(&pattern)), step);
    }
    let operator = if kind & EQUALS != 0 { PredicateOperator::Equal } else { PredicateOperator::Contains };
    let value = PredicateValue::Scalar(ScalarValue::Text(template(tested, line, session)));
    let position = TextPosition::default();
    let predicate = Predicate { is_negated, kind: PredicateKind::Compare(operator, value), position };
    let query = ResponseQuery { kind: QueryKind::Plain(PlainQuery::Body), position };
    let assertion = Assertion { query, filters: Vec::new(), predicate };
    step.response.get_or_insert_with(ExpectedResponse::default).asserts.push(assertion);
    true
}
