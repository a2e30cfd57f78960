//! Extractors as captures.

use weir_hurl::{
    Assertion, Capture, ExpectedResponse, FilterKind, PlainFilter, QueryKind, ResponseQuery, Template, Templated,
    TextPosition, TextQuery, ValueFilter,
};

use super::element::PlanElement;
use super::function::template;
use crate::builder;
use crate::omission::OmissionKind;
use crate::request::ImportedStep;
use crate::session::ImportSession;
use crate::text::regex_escaped;

/// Largest number of a match that a pattern is made for.
const MAX_MATCH_NUMBER: u32 = 50;

pub(super) fn is_extractor(class: &str) -> bool {
    class.ends_with("Extractor") || class == "JSONPostProcessor" || class == "JMESPathExtractor"
}

/// Choice among several matches of an extractor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchNumber {
    /// That of a number, from 1.
    Nth(u32),
    /// A random one.
    Random,
    /// All, as variables with numbers.
    All,
}

impl MatchNumber {
    /// Number of a property; of several between semicolons the one at an index.
    fn read(text: &str, index: usize, default: Self) -> Self {
        match text.split(';').nth(index).unwrap_or_default().trim().parse::<i64>() {
            Ok(0) => Self::Random,
            Ok(number) if number > 0 => Self::Nth(u32::try_from(number).unwrap_or(u32::MAX)),
            Ok(_) => Self::All,
            Err(_) => default,
        }
    }

    /// Number of the match that is taken instead; what differs is listed.
    fn taken(self, name: &str, line: u32, step: &mut ImportedStep, session: &mut ImportSession) -> u32 {
        let what = match self {
            Self::Nth(number) => return number,
            Self::Random => format!("a random match for {name}, the first one instead"),
            Self::All => format!("all matches for {name}, the first one instead"),
        };
        builder::omit_at(step, line, OmissionKind::Capture, &what, session);
        1
    }
}

/// Lists a default value: JMeter goes on with it where nothing is found, and weir fails the step.
fn omit_default(name: &str, value: &str, line: u32, step: &mut ImportedStep, session: &mut ImportSession) {
    if !value.is_empty() {
        let what = format!("the default {value} of {name}: a step fails where nothing is found");
        builder::omit_at(step, line, OmissionKind::Capture, &what, session);
    }
}

/// Adds the captures of an extractor; whether it is one that weir has.
pub(super) fn apply(element: PlanElement<'_>, step: &mut ImportedStep, session: &mut ImportSession) -> bool {
    let line = element.line();
    let scope = element.text("Sample.scope");
    if !matches!(scope, "" | "parent") {
        let what = format!("the scope {scope} of the {} {}", element.class(), element.name());
        builder::omit_at(step, line, OmissionKind::Capture, &what, session);
    }
    match element.class() {
        "JSONPostProcessor" => {
            json(element, step, session);
            true
        }
        "XPathExtractor" | "XPath2Extractor" => {
            let class = if element.class() == "XPathExtractor" { "XPathExtractor" } else { "XPathExtractor2" };
            let text = |property: &str| element.text(&format!("{class}.{property}"));
            let (name, path) = (text("refname"), text("xpathQuery").trim());
            omit_default(name, text("default"), line, step, session);
            // An empty number is that of all, whose first one has the name itself.
            let number = match MatchNumber::read(text("matchNumber"), 0, MatchNumber::Nth(1)) {
                MatchNumber::All if text("matchNumber").trim() == "-1" => 1,
                number => number.taken(name, line, step, session),
            };
            // A scenario takes the text of a node, not the node.
            let path = match number {
                1 if path.contains('(') => path.to_owned(),
                1 => format!("string({path})"),
                number => format!("string(({path})[{number}])"),
            };
            let query = QueryKind::Text(TextQuery::XPath, template(&path, line, session));
            push(name, query, None, step, session);
            true
        }
        "RegexExtractor" => {
            let is_header = matches!(
                element.text("RegexExtractor.useHeaders"),
                "true" | "request_headers" | "URL" | "code" | "message" | "unescaped" | "as_document"
            );
            let template_text = element.text("RegexExtractor.template");
            if is_header || !matches!(template_text, "$1$" | "") {
                return false;
            }
            let name = element.text("RegexExtractor.refname");
            omit_default(name, element.text("RegexExtractor.default"), line, step, session);
            let number = MatchNumber::read(element.text("RegexExtractor.match_number"), 0, MatchNumber::Random);
            regex(name, element.text("RegexExtractor.regex"), number, line, step, session);
            true
        }
        "BoundaryExtractor" => {
            if !matches!(element.text("BoundaryExtractor.useHeaders"), "false" | "") {
                return false;
            }
            let left = regex_escaped(element.text("BoundaryExtractor.lboundary"));
            let right = regex_escaped(element.text("BoundaryExtractor.rboundary"));
            let right = if right.is_empty() { "$".to_owned() } else { right };
            // A value may have several lines.
            let pattern = format!("{left}((?s:.*?)){right}");
            let name = element.text("BoundaryExtractor.refname");
            omit_default(name, element.text("BoundaryExtractor.default"), line, step, session);
            let number = MatchNumber::read(element.text("BoundaryExtractor.match_number"), 0, MatchNumber::Random);
            regex(name, &pattern, number, line, step, session);
            true
        }
        _ => false,
    }
}

/// Captures of a JSON extractor, which may have several between semicolons.
fn json(element: PlanElement<'_>, step: &mut ImportedStep, session: &mut ImportSession) {
    let line = element.line();
    let names = element.text("JSONPostProcessor.referenceNames").split(';');
    let paths = element.text("JSONPostProcessor.jsonPathExprs").split(';');
    let numbers = element.text("JSONPostProcessor.match_numbers");
    let mut defaults = element.text("JSONPostProcessor.defaultValues").split(';');
    for (index, (name, path)) in names.zip(paths).enumerate() {
        let (name, path) = (name.trim(), path.trim());
        omit_default(name, defaults.next().unwrap_or_default().trim(), line, step, session);
        let finds_many = path.contains("..") || path.contains("[*]") || path.contains('?') || path.contains(".*");
        let number = match MatchNumber::read(numbers, index, MatchNumber::Random) {
            // Of one match any is the first.
            MatchNumber::Random if !finds_many => 1,
            number => number.taken(name, line, step, session),
        };
        let filter = match number {
            1 if !finds_many => None,
            1 => Some(FilterKind::Plain(PlainFilter::First)),
            number => Some(FilterKind::Nth(Templated::Literal(i64::from(number) - 1))),
        };
        let query = QueryKind::Text(TextQuery::JsonPath, template(path, line, session));
        push(name, query, filter, step, session);
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

fn regex(
    name: &str,
    pattern: &str,
    number: MatchNumber,
    line: u32,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let number = match number {
        // Nothing tells how many matches there are.
        MatchNumber::Random | MatchNumber::All => number.taken(name, line, step, session),
        MatchNumber::Nth(number) => number,
    };
    match nth_pattern(pattern, number).as_deref().and_then(regex_query) {
        Some(query) => push(name, query, None, step, session),
        None => {
            let what = format!("the capture {name}, since weir's regular expressions have no {pattern}");
            builder::omit_at(step, line, OmissionKind::Capture, &what, session);
        }
    }
}

/// Pattern whose first group is that of a later match: the matches before it come first.
fn nth_pattern(pattern: &str, number: u32) -> Option<String> {
    match number {
        1 => Some(pattern.to_owned()),
        2..=MAX_MATCH_NUMBER => Some(format!("(?:{}(?s:.*?)){{{}}}{pattern}", without_groups(pattern), number - 1)),
        _ => None,
    }
}

/// Pattern whose groups capture nothing.
fn without_groups(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut is_class = false;
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '\\' => out.extend(chars.next()),
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class && chars.peek() != Some(&'?') => out.push_str("?:"),
            _ => {}
        }
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_match_is_behind_those_before_it() {
        let expected = "(?:id=(?:\\(|[(])?(?s:.*?)){2}id=(\\(|[(])?";
        assert_eq!(nth_pattern("id=(\\(|[(])?", 3).as_deref(), Some(expected));
        assert_eq!((nth_pattern("a", 1).as_deref(), nth_pattern("a", 1000)), (Some("a"), None));
    }
}
