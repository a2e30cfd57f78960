//! Extractors as captures.

use weir_hurl::{
    Assertion, Capture, ExpectedResponse, FilterKind, PlainFilter, QueryKind, ResponseQuery, Template, TextPosition,
    TextQuery, ValueFilter,
};

use super::element::PlanElement;
use super::function::template;
use crate::builder;
use crate::omission::OmissionKind;
use crate::request::ImportedStep;
use crate::session::ImportSession;

pub(super) fn is_extractor(class: &str) -> bool {
    class.ends_with("Extractor") || class == "JSONPostProcessor" || class == "JMESPathExtractor"
}

/// Adds the captures of an extractor; whether it is one that weir has.
pub(super) fn apply(element: PlanElement<'_>, step: &mut ImportedStep, session: &mut ImportSession) -> bool {
    let line = element.line();
    match element.class() {
        "JSONPostProcessor" => {
            let names = element.text("JSONPostProcessor.referenceNames").split(';');
            let paths = element.text("JSONPostProcessor.jsonPathExprs").split(';');
            let matches = element.text("JSONPostProcessor.match_numbers");
            for (name, path) in names.zip(paths) {
                let path = path.trim();
                let finds_many =
                    path.contains("..") || path.contains("[*]") || path.contains('?') || path.contains(".*");
                let filter = match matches.split(';').next().unwrap_or_default().trim() {
                    "-1" => None,
                    _ if !finds_many => None,
                    _ => Some(FilterKind::Plain(PlainFilter::First)),
                };
                let query = QueryKind::Text(TextQuery::JsonPath, template(path, line, session));
                push(name, query, filter, step, session);
            }
            true
        }
        "XPathExtractor" | "XPath2Extractor" => {
            let (name, query) = match element.class() {
                "XPathExtractor" => ("XPathExtractor.refname", "XPathExtractor.xpathQuery"),
                _ => ("XPathExtractor2.refname", "XPathExtractor2.xpathQuery"),
            };
            let path = element.text(query).trim();
            // A scenario takes the text of a node, not the node.
            let path = if path.contains('(') { path.to_owned() } else { format!("string({path})") };
            let query = QueryKind::Text(TextQuery::XPath, template(&path, line, session));
            push(element.text(name), query, None, step, session);
            true
        }
        "RegexExtractor" => {
            let is_header = matches!(
                element.text("RegexExtractor.useHeaders"),
                "true" | "request_headers" | "URL" | "code" | "message"
            );
            let template_text = element.text("RegexExtractor.template");
            if is_header || !matches!(template_text, "$1$" | "") {
                return false;
            }
            regex(element.text("RegexExtractor.refname"), element.text("RegexExtractor.regex"), line, step, session);
            true
        }
        "BoundaryExtractor" => {
            if !matches!(element.text("BoundaryExtractor.useHeaders"), "false" | "") {
                return false;
            }
            let left = escaped(element.text("BoundaryExtractor.lboundary"));
            let right = escaped(element.text("BoundaryExtractor.rboundary"));
            let pattern = format!("{left}(.*?){right}");
            regex(element.text("BoundaryExtractor.refname"), &pattern, line, step, session);
            true
        }
        _ => false,
    }
}

fn push(
    name: &str,
    query: QueryKind,
    filter: Option<FilterKind>,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let name = name.trim();
    if name.is_empty() {
        return;
    }
    let position = TextPosition::default();
    let capture = Capture {
        name: Template::text(session.names.name(name)),
        query: ResponseQuery { kind: query, position },
        filters: filter.into_iter().map(|kind| ValueFilter { kind, position }).collect(),
        is_redacted: false,
    };
    step.response.get_or_insert_with(ExpectedResponse::default).captures.push(capture);
}

fn regex(name: &str, pattern: &str, line: u32, step: &mut ImportedStep, session: &mut ImportSession) {
    match regex_query(pattern) {
        Some(query) => push(name, query, None, step, session),
        None => {
            let what = format!("the capture {name}, since weir's regular expressions have no {pattern}");
            builder::omit_at(step, line, OmissionKind::Capture, &what, session);
        }
    }
}

/// Query of a regular expression; `None` if its syntax is not weir's.
fn regex_query(pattern: &str) -> Option<QueryKind> {
    if pattern.is_empty() || pattern.contains(['\n', '\r']) || pattern.contains("${") {
        return None;
    }
    let group = if pattern.contains('(') { pattern.to_owned() } else { format!("({pattern})") };
    let assertion = Assertion::parse(&format!("regex /{}/ exists", slashed(&group))).ok()?;
    Some(assertion.query.kind)
}

/// Pattern between slashes: those in it are escaped.
pub(super) fn slashed(pattern: &str) -> String {
    let mut out = String::new();
    let mut is_escaped = false;
    for c in pattern.chars() {
        if c == '/' && !is_escaped {
            out.push('\\');
        }
        is_escaped = c == '\\' && !is_escaped;
        out.push(c);
    }
    out
}

/// Text as a regular expression that matches it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
