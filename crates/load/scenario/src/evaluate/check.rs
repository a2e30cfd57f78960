//! Checks, compiled.

use std::fmt;

use weir_hurl::{Assertion, ParseError, PredicateKind, PredicateValue, ScalarValue};

use super::Scope;
use super::filter::FilterChain;
use super::predicate::CompiledPredicate;
use super::query::CompiledQuery;
use super::response_needs::ResponseNeeds;
use super::template::RenderContext;
use super::variables::{VariableNames, VariableTable};
use super::view::ResponseView;
use crate::value::Value;

/// Most characters of a value in a failure.
const MAX_SHOWN_CHARS: usize = 200;

/// Assertion with its query, filters and predicate compiled.
#[derive(Clone, Debug)]
pub struct CompiledCheck {
    query: CompiledQuery,
    filters: FilterChain,
    predicate: CompiledPredicate,
    /// Whether a status is compared with a text: of a call of gRPC its name is meant.
    is_by_name: bool,
}

/// Check that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    /// Value that was found, or why none was.
    pub actual: String,
    /// Expected value, in words.
    pub expected: String,
}

impl fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {}", self.expected, self.actual)
    }
}

impl CompiledCheck {
    /// Compiles a check.
    ///
    /// # Errors
    /// A query, filter or value that is invalid, or that scenarios do not have.
    pub fn compile(assertion: &Assertion, names: &mut VariableNames) -> Result<Self, ParseError> {
        let is_by_name = matches!(
            assertion.predicate.kind,
            PredicateKind::Compare(_, PredicateValue::Scalar(ScalarValue::Text(_)) | PredicateValue::Regex(_))
        );
        Ok(Self {
            is_by_name: is_by_name && assertion.is_about_status(),
            query: CompiledQuery::compile(&assertion.query, names)?,
            filters: FilterChain::compile(&assertion.filters, names)?,
            predicate: CompiledPredicate::compile(&assertion.predicate, names)?,
        })
    }

    /// Parts of the response that the value is in.
    pub fn needs(&self) -> ResponseNeeds {
        self.query.needs()
    }

    /// Whether the check is about the status of the response.
    pub fn is_about_status(&self) -> bool {
        self.query.is_about_status()
    }

    /// Checks a response.
    ///
    /// # Errors
    /// Actual and expected value, in words.
    pub fn evaluate(
        &self,
        view: &ResponseView<'_>,
        variables: &VariableTable,
        context: &mut RenderContext<'_>,
    ) -> Result<(), CheckFailure> {
        let failure = |actual: String| CheckFailure { actual, expected: "a value".to_owned() };
        let mut scope = Scope { variables, context };
        let found = match view.call_status {
            Some(name) if self.is_by_name => Some(Value::text(name)),
            _ => self.query.evaluate(view, &mut scope).map_err(failure)?,
        };
        let actual = match found {
            Some(value) => self.filters.apply(value, &mut scope).map_err(failure)?,
            None if !self.filters.is_empty() => return Err(failure("nothing to filter".to_owned())),
            None => None,
        };
        match self.predicate.evaluate(actual.as_ref(), &mut scope).map_err(failure)? {
            Ok(()) => Ok(()),
            Err(failed) => {
                let actual = actual.as_ref().map_or_else(|| "nothing".to_owned(), shown);
                Err(CheckFailure { actual, expected: failed.expected })
            }
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.json();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
