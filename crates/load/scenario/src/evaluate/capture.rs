//! Captures, compiled.

use std::fmt;

use weir_hurl::{Capture, ParseError};

use super::Scope;
use super::filter::FilterChain;
use super::query::CompiledQuery;
use super::response_needs::ResponseNeeds;
use super::template::RenderContext;
use super::variables::{VariableNames, VariableSlot, VariableTable};
use super::view::ResponseView;
use crate::value::Value;

/// Capture with its variable's slot, and its query and filters compiled.
#[derive(Clone, Debug)]
pub struct CompiledCapture {
    slot: VariableSlot,
    name: String,
    query: CompiledQuery,
    filters: FilterChain,
    is_redacted: bool,
}

/// Capture that found nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureFailure {
    /// Name of the variable.
    pub name: String,
    /// Reason.
    pub reason: String,
}

impl fmt::Display for CaptureFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "capture {}: {}", self.name, self.reason)
    }
}

impl CompiledCapture {
    /// Compiles a capture, whose name has no expressions.
    ///
    /// # Errors
    /// A query or filter that is invalid, or that scenarios do not have.
    pub fn compile(capture: &Capture, names: &mut VariableNames) -> Result<Self, ParseError> {
        let name = capture.name.as_text().unwrap_or_default().to_owned();
        Ok(Self {
            slot: names.slot(&name),
            name,
            query: CompiledQuery::compile(&capture.query, names)?,
            filters: FilterChain::compile(&capture.filters, names)?,
            is_redacted: capture.is_redacted,
        })
    }

    /// Name of the variable.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether logs hide the value.
    pub fn is_redacted(&self) -> bool {
        self.is_redacted
    }

    /// Value of the variable.
    pub fn value<'v>(&self, variables: &'v VariableTable) -> Option<&'v Value> {
        variables.get(self.slot)
    }

    /// Parts of the response that the value is in.
    pub fn needs(&self) -> ResponseNeeds {
        self.query.needs()
    }

    /// Sets the variable.
    ///
    /// # Errors
    /// If there is no value.
    pub fn evaluate(
        &self,
        view: &ResponseView<'_>,
        variables: &mut VariableTable,
        context: &mut RenderContext<'_>,
    ) -> Result<(), CaptureFailure> {
        let failure = |reason: String| CaptureFailure { name: self.name.clone(), reason };
        let mut scope = Scope { variables, context };
        let found = self.query.evaluate(view, &mut scope).map_err(failure)?;
        let value = found.ok_or_else(|| failure("found nothing".to_owned()))?;
        let filtered = self.filters.apply(value, &mut scope).map_err(failure)?;
        let value = filtered.ok_or_else(|| failure("the filters found nothing".to_owned()))?;
        if self.is_redacted && !matches!(value, Value::Text(_)) {
            let kind = value.type_name();
            return Err(failure(format!("only a string can be redacted, not a value of type {kind}; use toString")));
        }
        variables.set(self.slot, value);
        Ok(())
    }
}
