//! Templates, compiled.

use std::fmt;

use weir_base::rng::SeededRng;
use weir_hurl::{ExpressionSource, ParseError, Template, TemplateFunction, TemplatePart};

use super::filter::FilterChain;
use super::variables::{VariableNames, VariableSlot, VariableTable};
use super::{Scope, functions};
use crate::value::Value;

/// Sources of values that are not variables.
#[derive(Debug)]
pub struct RenderContext<'a> {
    /// Random numbers.
    pub rng: &'a mut SeededRng,
    /// Date, in seconds since 1970.
    pub unix_s: i64,
    /// Number of the iteration among all of the load.
    pub sequence: u64,
}

/// Reason why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateError {
    /// Variable without a value.
    Unset(String),
    /// Value without a text.
    NoText(&'static str),
    /// Filter that cannot be applied.
    Filter(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(name) => write!(f, "variable {name} has no value"),
            Self::NoText(kind) => write!(f, "a value of type {kind} has no text"),
            Self::Filter(reason) => f.write_str(reason),
        }
    }
}

/// Template with its variables as slots.
#[derive(Clone, Debug)]
pub struct CompiledTemplate {
    parts: Vec<CompiledPart>,
}

#[derive(Clone, Debug)]
enum CompiledPart {
    Text(String),
    Expression(CompiledExpression),
}

/// Variable or function, with filters.
#[derive(Clone, Debug)]
pub(super) struct CompiledExpression {
    source: CompiledSource,
    filters: FilterChain,
}

#[derive(Clone, Debug)]
enum CompiledSource {
    Variable(VariableSlot, String),
    Function(TemplateFunction),
}

impl CompiledTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// The first filter that scenarios do not have, or that is invalid.
    pub fn compile(template: &Template, names: &mut VariableNames) -> Result<Self, ParseError> {
        let parts = template.parts.iter().map(|part| {
            Ok(match part {
                TemplatePart::Text(text) => CompiledPart::Text(text.clone()),
                TemplatePart::Expression(expression) => {
                    CompiledPart::Expression(CompiledExpression::compile(expression, names)?)
                }
            })
        });
        Ok(Self { parts: parts.collect::<Result<_, ParseError>>()? })
    }

    /// Appends the text.
    ///
    /// # Errors
    /// The first expression without a value.
    pub fn render(
        &self,
        variables: &VariableTable,
        context: &mut RenderContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), TemplateError> {
        self.parts.iter().try_for_each(|part| match part {
            CompiledPart::Text(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            CompiledPart::Expression(expression) => expression.render(variables, context, out),
        })
    }

    /// Text, if the template has no expressions.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [CompiledPart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Text by itself.
    pub(super) fn evaluate(&self, scope: &mut Scope<'_, '_>) -> Result<String, TemplateError> {
        if let Some(text) = self.as_text() {
            return Ok(text.to_owned());
        }
        let mut text = Vec::new();
        self.render(scope.variables, scope.context, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl CompiledExpression {
    pub(super) fn compile(expression: &weir_hurl::Expression, names: &mut VariableNames) -> Result<Self, ParseError> {
        let source = match &expression.source {
            ExpressionSource::Variable(name) => CompiledSource::Variable(names.slot(name), name.clone()),
            ExpressionSource::Function(function) => CompiledSource::Function(function.clone()),
        };
        Ok(Self { source, filters: FilterChain::compile(&expression.filters, names)? })
    }

    fn render(
        &self,
        variables: &VariableTable,
        context: &mut RenderContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), TemplateError> {
        if let (CompiledSource::Variable(slot, name), true) = (&self.source, self.filters.is_empty()) {
            let value = variables.get(*slot).ok_or_else(|| TemplateError::Unset(name.clone()))?;
            return if value.push_text(out) { Ok(()) } else { Err(TemplateError::NoText(value.type_name())) };
        }
        let value = self.evaluate(&mut Scope { variables, context })?;
        if value.push_text(out) { Ok(()) } else { Err(TemplateError::NoText(value.type_name())) }
    }

    /// Value after the filters.
    pub(super) fn evaluate(&self, scope: &mut Scope<'_, '_>) -> Result<Value, TemplateError> {
        let value = match &self.source {
            CompiledSource::Variable(slot, name) => {
                scope.variables.get(*slot).cloned().ok_or_else(|| TemplateError::Unset(name.clone()))?
            }
            CompiledSource::Function(function) => functions::evaluate(function, scope.context),
        };
        let filtered = self.filters.apply(value, scope).map_err(TemplateError::Filter)?;
        filtered.ok_or_else(|| TemplateError::Filter("the filters found nothing".to_owned()))
    }
}
