//! Values of other responses in a request: `{{login.response.body.$.token}}` of the REST Client. They become captures.

use std::collections::HashMap;

use weir_hurl::{Capture, ExpectedResponse, PlainQuery, QueryKind, ResponseQuery, Template, TextPosition, TextQuery};

use crate::collection::ImportedScenario;
use crate::omission::OmissionKind;
use crate::session::ImportSession;
use crate::text;

/// References to responses by the names of their requests.
#[derive(Debug, Default)]
pub(super) struct ResponseReferences {
    found: Vec<ResponseReference>,
    /// Variables by the texts of their references.
    variables: HashMap<String, String>,
}

#[derive(Debug)]
struct ResponseReference {
    line: u32,
    /// Name of the request.
    request: String,
    variable: String,
    query: QueryKind,
}

impl ResponseReferences {
    /// Variable of a reference; `None` if a text is none.
    pub(super) fn take(&mut self, inner: &str, line: u32, session: &mut ImportSession) -> Option<Template> {
        let (request, rest) = inner.split_once(".response.")?;
        let request = request.trim();
        let reference = format!("{request}.response.{rest}");
        if let Some(variable) = self.variables.get(&reference) {
            return Some(text::variable(variable));
        }
        let query = if let Some(path) = rest.strip_prefix("body.") {
            match path.trim() {
                "*" => QueryKind::Plain(PlainQuery::Body),
                path if path.starts_with('/') => QueryKind::Text(TextQuery::XPath, Template::text(path)),
                path if path.starts_with('$') => QueryKind::Text(TextQuery::JsonPath, Template::text(path)),
                path => QueryKind::Text(TextQuery::JsonPath, Template::text(format!("$.{path}"))),
            }
        } else {
            let name = rest.strip_prefix("headers.")?.trim();
            QueryKind::Text(TextQuery::Header, Template::text(name))
        };
        let last = rest.rsplit(['.', '/', '$', '[', ']', '@', '*']).find(|part| !part.is_empty()).unwrap_or("value");
        let variable = session.names.unique(&format!("{request}_{last}"));
        self.found.push(ResponseReference { line, request: request.to_owned(), variable: variable.clone(), query });
        self.variables.insert(reference, variable.clone());
        Some(text::variable(&variable))
    }

    /// Adds the captures to the requests that are referred to.
    pub(super) fn add_captures(self, scenario: &mut ImportedScenario, session: &mut ImportSession) {
        let mut places: HashMap<String, usize> = HashMap::new();
        for (place, step) in scenario.steps.iter().enumerate() {
            places.entry(step.name.clone()).or_insert(place);
        }
        for reference in self.found {
            let place = places.get(&reference.request);
            let Some(step) = place.and_then(|place| scenario.steps.get_mut(*place)) else {
                let what = format!("a value of the response to {}, which is not in the file", reference.request);
                session.omit(reference.line, OmissionKind::Capture, what);
                continue;
            };
            let query = ResponseQuery { kind: reference.query, position: TextPosition::default() };
            let name = Template::text(reference.variable);
            let capture = Capture { name, query, filters: Vec::new(), is_redacted: false };
            step.response.get_or_insert_with(ExpectedResponse::default).captures.push(capture);
        }
    }
}
