//! Filters, compiled.

use weir_hurl::{FilterKind, ParseError, PlainFilter, Templated, TextFilter, ValueFilter};

use super::filter_values::{plain, query_param};
use super::query::CompiledPath;
use super::regexes::{CompiledRegex, first_group};
use super::template::{CompiledExpression, CompiledTemplate};
use super::variables::VariableNames;
use super::{Scope, unsupported};
use crate::value::Value;

/// Filters in order.
#[derive(Clone, Debug, Default)]
pub(super) struct FilterChain(Vec<CompiledFilter>);

#[derive(Clone, Debug)]
enum CompiledFilter {
    Plain(PlainFilter),
    Nth(NthIndex),
    Regex(CompiledRegex),
    Replace { old: CompiledTemplate, new: CompiledTemplate },
    ReplaceRegex { pattern: CompiledRegex, new: CompiledTemplate },
    JsonPath(CompiledPath),
    Split(CompiledTemplate),
    UrlQueryParam(CompiledTemplate),
}

#[derive(Clone, Debug)]
enum NthIndex {
    Fixed(i64),
    Dynamic(CompiledExpression),
}

impl FilterChain {
    pub(super) fn compile(filters: &[ValueFilter], names: &mut VariableNames) -> Result<Self, ParseError> {
        filters.iter().map(|filter| CompiledFilter::compile(filter, names)).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Value after all filters; `None` if one of them finds nothing.
    pub(super) fn apply(&self, value: Value, scope: &mut Scope<'_, '_>) -> Result<Option<Value>, String> {
        let mut value = value;
        for filter in &self.0 {
            match filter.apply(value, scope)? {
                Some(filtered) => value = filtered,
                None => return Ok(None),
            }
        }
        Ok(Some(value))
    }
}

impl CompiledFilter {
    fn compile(filter: &ValueFilter, names: &mut VariableNames) -> Result<Self, ParseError> {
        Ok(match &filter.kind {
            FilterKind::Plain(kind @ (PlainFilter::DaysAfterNow | PlainFilter::DaysBeforeNow)) => {
                return Err(unsupported(filter.position, kind.as_str(), "weir does not compute with dates"));
            }
            FilterKind::Plain(kind) => Self::Plain(*kind),
            FilterKind::Nth(Templated::Literal(index)) => Self::Nth(NthIndex::Fixed(*index)),
            FilterKind::Nth(Templated::Expression(index)) => {
                Self::Nth(NthIndex::Dynamic(CompiledExpression::compile(index, names)?))
            }
            FilterKind::Regex(pattern) => Self::Regex(CompiledRegex::compile(pattern, filter.position, names)?),
            FilterKind::Replace { old, new } => Self::Replace {
                old: CompiledTemplate::compile(old, names)?,
                new: CompiledTemplate::compile(new, names)?,
            },
            FilterKind::ReplaceRegex { pattern, new } => Self::ReplaceRegex {
                pattern: CompiledRegex::compile(pattern, filter.position, names)?,
                new: CompiledTemplate::compile(new, names)?,
            },
            FilterKind::Text(TextFilter::JsonPath, path) => Self::JsonPath(CompiledPath::compile(path, names)?),
            FilterKind::Text(TextFilter::Split, by) => Self::Split(CompiledTemplate::compile(by, names)?),
            FilterKind::Text(TextFilter::UrlQueryParam, name) => {
                Self::UrlQueryParam(CompiledTemplate::compile(name, names)?)
            }
            FilterKind::Text(kind, _) => {
                return Err(unsupported(filter.position, kind.as_str(), "texts are UTF-8, without dates and XPath"));
            }
        })
    }

    fn apply(&self, value: Value, scope: &mut Scope<'_, '_>) -> Result<Option<Value>, String> {
        let rendered = |template: &CompiledTemplate, scope: &mut Scope<'_, '_>| {
            template.evaluate(scope).map_err(|error| error.to_string())
        };
        Ok(match self {
            Self::Plain(filter) => return plain(*filter, value),
            Self::Nth(index) => {
                let index = match index {
                    NthIndex::Fixed(index) => *index,
                    NthIndex::Dynamic(expression) => {
                        match expression.evaluate(scope).map_err(|error| error.to_string())? {
                            Value::Integer(index) => index,
                            other => return Err(format!("nth needs an integer, not a {}", other.type_name())),
                        }
                    }
                };
                let Value::List(list) = value else { return Err(wrong_type("nth", &value)) };
                let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
                let at = if index < 0 { length.saturating_add(index) } else { index };
                usize::try_from(at).ok().and_then(|at| list.into_iter().nth(at))
            }
            Self::Regex(pattern) => {
                let Value::Text(text) = value else { return Err(wrong_type("regex", &value)) };
                pattern.with(scope, |regex| first_group(regex, &text))?.map(Value::Text)
            }
            Self::Replace { old, new } => {
                let Value::Text(text) = value else { return Err(wrong_type("replace", &value)) };
                let (old, new) = (rendered(old, scope)?, rendered(new, scope)?);
                Some(Value::Text(text.replace(&old, &new)))
            }
            Self::ReplaceRegex { pattern, new } => {
                let Value::Text(text) = value else { return Err(wrong_type("replaceRegex", &value)) };
                let new = rendered(new, scope)?;
                pattern.with(scope, |regex| Some(Value::Text(regex.replace_all(&text, new.as_str()).into_owned())))?
            }
            Self::JsonPath(path) => {
                let text = match &value {
                    Value::Text(text) => text.clone(),
                    Value::Object(_) | Value::List(_) => value.json(),
                    _ => return Err(wrong_type("jsonpath", &value)),
                };
                return path.find(text.as_bytes(), scope);
            }
            Self::Split(by) => {
                let Value::Text(text) = value else { return Err(wrong_type("split", &value)) };
                let by = rendered(by, scope)?;
                Some(Value::List(text.split(by.as_str()).map(Value::text).collect()))
            }
            Self::UrlQueryParam(name) => {
                let Value::Text(url) = value else { return Err(wrong_type("urlQueryParam", &value)) };
                query_param(&url, &rendered(name, scope)?).map(Value::Text)
            }
        })
    }
}

pub(super) fn wrong_type(filter: &str, value: &Value) -> String {
    format!("{filter} cannot be applied to a value of type {}", value.type_name())
}
