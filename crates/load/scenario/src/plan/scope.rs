//! Variables: where they are defined and where they are used.

use std::collections::{BTreeMap, BTreeSet};

use super::missing_values::{DEFINED, NEARLY};
use weir_base::nearest::nearest;
use weir_hurl::{
    BlockContent, BodyContent, Capture, Expression, ExpressionSource, FilterKind, HurlBody, HurlEntry, HurlFile,
    JsonPiece, JsonText, MultipartValue, OptionValue, ParseError, PredicateKind, PredicateValue, QueryKind,
    RegexPattern, ResponseQuery, ScalarValue, Template, TemplateFunction, Templated, TextBlock, TextPosition,
    TextQuery, ValueFilter,
};

/// Variables that are defined before a place in a file, and all that are used.
#[derive(Debug)]
pub(super) struct VariableScope {
    defined: BTreeSet<String>,
    used: BTreeSet<String>,
    /// Captured variables, with the place of the first capture.
    captured: BTreeMap<String, TextPosition>,
    errors: Vec<ParseError>,
}

/// Result of checking all variables of a file.
#[derive(Debug)]
pub(super) struct ScopeFindings {
    /// Uses of variables that are not defined.
    pub(super) errors: Vec<ParseError>,
    /// Captured variables that nothing uses, by the place of their first capture.
    pub(super) unused: Vec<(TextPosition, String)>,
    /// Names of all variables that are used.
    pub(super) used: BTreeSet<String>,
}

/// Variable that scenarios have unless they set it: the number of the iteration among all of the load, from 0.
pub(super) const SEQUENCE: &str = "seq";

/// Names of all variables that steps of the file set.
pub fn assigned(file: &HurlFile) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in &file.entries {
        for option in &entry.request.options {
            if let OptionValue::Variable(variable) = &option.value {
                names.insert(variable.name.clone());
            }
        }
        let captures = entry.response.iter().flat_map(|response| &response.captures);
        names.extend(captures.filter_map(|capture| capture.name.as_text()).map(str::to_owned));
    }
    names
}

impl VariableScope {
    /// Looks at all variables of a file; `given` are defined before its first step.
    pub(super) fn check<'n>(file: &HurlFile, given: impl IntoIterator<Item = &'n str>) -> ScopeFindings {
        let mut scope = Self {
            defined: given.into_iter().chain([SEQUENCE]).map(str::to_owned).collect(),
            used: BTreeSet::new(),
            captured: BTreeMap::new(),
            errors: Vec::new(),
        };
        for entry in &file.entries {
            scope.entry(entry);
        }
        let Self { used, captured, errors, .. } = scope;
        let mut unused: Vec<_> =
            captured.into_iter().filter(|(name, _)| !used.contains(name)).map(|(name, at)| (at, name)).collect();
        unused.sort();
        ScopeFindings { errors, unused, used }
    }

    /// Visits an entry in the order of its execution.
    fn entry(&mut self, entry: &HurlEntry) {
        let request = &entry.request;
        for option in &request.options {
            self.option(&option.value);
        }
        self.template(&request.url);
        let fields = [&request.headers, &request.query, &request.form, &request.cookies].into_iter().flatten();
        for field in fields.chain(&request.basic_auth) {
            self.template(&field.name);
            self.template(&field.value);
        }
        for field in &request.multipart {
            self.template(&field.name);
            match &field.value {
                MultipartValue::Text(text) => self.template(text),
                MultipartValue::File { name, content_type } => {
                    self.template(name);
                    content_type.iter().for_each(|content_type| self.template(content_type));
                }
            }
        }
        request.body.iter().for_each(|body| self.body(body));
        let Some(response) = &entry.response else { return };
        for capture in &response.captures {
            self.capture(capture);
        }
        for header in &response.headers {
            self.template(&header.name);
            self.template(&header.value);
        }
        response.body.iter().for_each(|body| self.body(body));
        for assertion in &response.asserts {
            self.query(&assertion.query);
            self.filters(&assertion.filters);
            if let PredicateKind::Compare(_, value) = &assertion.predicate.kind {
                self.predicate_value(value);
            }
        }
    }

    fn capture(&mut self, capture: &Capture) {
        self.template(&capture.name);
        self.query(&capture.query);
        self.filters(&capture.filters);
        if let Some(name) = capture.name.as_text() {
            self.captured.entry(name.to_owned()).or_insert(capture.name.position);
            self.defined.insert(name.to_owned());
        }
    }

    fn option(&mut self, value: &OptionValue) {
        match value {
            OptionValue::Flag(Templated::Expression(expression))
            | OptionValue::Count(Templated::Expression(expression))
            | OptionValue::Natural(Templated::Expression(expression))
            | OptionValue::Duration(Templated::Expression(expression)) => self.expression(expression),
            OptionValue::Text(template) | OptionValue::File(template) => self.template(template),
            OptionValue::Certificate { file, password } => {
                self.template(file);
                password.iter().for_each(|password| self.template(password));
            }
            OptionValue::Variable(variable) => {
                if let ScalarValue::Text(template) = &variable.value {
                    self.template(template);
                }
                self.defined.insert(variable.name.clone());
            }
            OptionValue::Flag(Templated::Literal(_))
            | OptionValue::Count(Templated::Literal(_))
            | OptionValue::Natural(Templated::Literal(_))
            | OptionValue::Duration(Templated::Literal(_))
            | OptionValue::Verbosity(_) => {}
        }
    }

    fn template(&mut self, template: &Template) {
        template.expressions().for_each(|expression| self.expression(expression));
    }

    fn expression(&mut self, expression: &Expression) {
        if let ExpressionSource::Variable(name) = &expression.source {
            self.used.insert(name.clone());
            if !self.defined.contains(name) {
                self.errors.push(undefined(name, expression.position, &self.defined));
            }
        }
        self.filters(&expression.filters);
    }

    fn filters(&mut self, filters: &[ValueFilter]) {
        for filter in filters {
            match &filter.kind {
                FilterKind::Plain(_) | FilterKind::Nth(Templated::Literal(_)) => {}
                FilterKind::Text(_, text) => self.template(text),
                FilterKind::Nth(Templated::Expression(expression)) => self.expression(expression),
                FilterKind::Regex(pattern) => self.pattern(pattern),
                FilterKind::Replace { old, new } => {
                    self.template(old);
                    self.template(new);
                }
                FilterKind::ReplaceRegex { pattern, new } => {
                    self.pattern(pattern);
                    self.template(new);
                }
            }
        }
    }

    fn pattern(&mut self, pattern: &RegexPattern) {
        if let RegexPattern::Quoted(template) = pattern {
            self.template(template);
        }
    }

    fn query(&mut self, query: &ResponseQuery) {
        match &query.kind {
            QueryKind::Plain(_) | QueryKind::Certificate(_) => {}
            QueryKind::Text(kind, argument) => {
                // `variable "x" not exists` is a valid assert, so such a variable need not be defined.
                if let (TextQuery::Variable, Some(name)) = (kind, argument.as_text()) {
                    self.used.insert(name.to_owned());
                }
                self.template(argument);
            }
            QueryKind::Regex(pattern) => self.pattern(pattern),
            QueryKind::Cookie(path) => self.template(&path.name),
        }
    }

    fn predicate_value(&mut self, value: &PredicateValue) {
        match value {
            PredicateValue::Scalar(ScalarValue::Text(template)) | PredicateValue::File(template) => {
                self.template(template);
            }
            PredicateValue::Block(block) => self.block(block),
            PredicateValue::Expression(expression) => self.expression(expression),
            PredicateValue::Scalar(_) | PredicateValue::Bytes(_) | PredicateValue::Regex(_) => {}
        }
    }

    fn body(&mut self, body: &HurlBody) {
        match &body.content {
            BodyContent::Json(json) => self.json(json),
            BodyContent::OneLine(template) | BodyContent::File(template) => self.template(template),
            BodyContent::Block(block) => self.block(block),
            BodyContent::Xml(_) | BodyContent::Bytes(_) => {}
        }
    }

    fn block(&mut self, block: &TextBlock) {
        match &block.content {
            BlockContent::Text(template) | BlockContent::Json(template) | BlockContent::Xml(template) => {
                self.template(template);
            }
            BlockContent::Raw(_) => {}
            BlockContent::GraphQl { query, variables } => {
                self.template(query);
                variables.iter().for_each(|json| self.json(json));
            }
        }
    }

    fn json(&mut self, json: &JsonText) {
        for piece in &json.pieces {
            match piece {
                JsonPiece::Verbatim(_) => {}
                JsonPiece::Value(expression) | JsonPiece::InString(expression) => self.expression(expression),
            }
        }
    }
}

fn undefined(name: &str, position: TextPosition, defined: &BTreeSet<String>) -> ParseError {
    let known = defined.iter().map(String::as_str);
    let known = known.chain(TemplateFunction::names().map(|name: &'static str| -> &str { name }));
    let hint = match nearest(name, known) {
        Some(known) => format!("{NEARLY}'{known}'?"),
        None => format!("capture it in an earlier step, or give --variable {name}=... or --data FILE"),
    };
    ParseError { position, expected: DEFINED.into(), found: format!("'{name}'"), hint }
}
