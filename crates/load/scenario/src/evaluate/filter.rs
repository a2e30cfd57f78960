//! Filters, compiled.

use weir_hurl::{FilterKind, ParseError, PlainFilter, Templated, TextFilter, ValueFilter};

use super::Scope;
use super::charset;
use super::dates;
use super::filter_values::{plain, query_param};
use super::query::CompiledPath;
use super::regexes::{CompiledRegex, first_group};
use super::template::{CompiledExpression, CompiledTemplate};
use super::variables::VariableNames;
use super::xpath::CompiledXPath;
use crate::markup::MarkupTree;
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
    XPath(CompiledXPath),
    CharsetDecode(CompiledTemplate),
    CharsetEncode(CompiledTemplate),
    ToDate(CompiledTemplate),
    DateFormat(CompiledTemplate),
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
            FilterKind::Text(TextFilter::XPath, path) => Self::XPath(CompiledXPath::compile(path, names)?),
            FilterKind::Text(TextFilter::CharsetDecode, name) => {
                Self::CharsetDecode(CompiledTemplate::compile(name, names)?)
            }
            FilterKind::Text(TextFilter::CharsetEncode, name) => {
                Self::CharsetEncode(CompiledTemplate::compile(name, names)?)
            }
            FilterKind::Text(TextFilter::ToDate, format) => Self::ToDate(CompiledTemplate::compile(format, names)?),
            FilterKind::Text(TextFilter::DateFormat, format) => {
                Self::DateFormat(CompiledTemplate::compile(format, names)?)
            }
        })
    }

    fn apply(&self, value: Value, scope: &mut Scope<'_, '_>) -> Result<Option<Value>, String> {
        let rendered = |template: &CompiledTemplate, scope: &mut Scope<'_, '_>| {
            template.evaluate(scope).map_err(|error| error.to_string())
        };
        Ok(match self {
            Self::Plain(filter @ (PlainFilter::DaysAfterNow | PlainFilter::DaysBeforeNow)) => {
                let Value::Date(date) = value else { return Err(wrong_type(filter.as_str(), &value)) };
                let days = dates::days_after(&date, scope.context.unix_s);
                Some(Value::Integer(if *filter == PlainFilter::DaysAfterNow { days } else { -days }))
            }
            Self::Plain(filter) => return plain(*filter, value),
            Self::Nth(index) => {
                let index = match index {
                    NthIndex::Fixed(index) => *index,
                    NthIndex::Dynamic(expression) => {
                        let value = expression.evaluate(scope).map_err(|error| error.to_string())?;
                        let wrong = || format!("nth needs an integer, not a {}", value.type_name());
                        value.as_i64().ok_or_else(wrong)?
                    }
                };
                let Value::List(list) = value else { return Err(wrong_type("nth", &value)) };
                let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
                let at = if index < 0 { length.saturating_add(index) } else { index };
                let found = usize::try_from(at).ok().and_then(|at| list.into_iter().nth(at));
                Some(found.ok_or_else(|| format!("the list of {length} has no item {index}"))?)
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
                let Value::Text(text) = value else { return Err(wrong_type("jsonpath", &value)) };
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
            Self::XPath(path) => {
                let Value::Text(text) = value else { return Err(wrong_type("xpath", &value)) };
                return path.find(&MarkupTree::of_html(&text), scope);
            }
            Self::CharsetDecode(name) => {
                let Value::Bytes(bytes) = value else { return Err(wrong_type("charsetDecode", &value)) };
                Some(Value::Text(charset::decoded(&bytes, &rendered(name, scope)?)?))
            }
            Self::CharsetEncode(name) => {
                let Value::Text(text) = value else { return Err(wrong_type("charsetEncode", &value)) };
                Some(Value::Bytes(charset::encoded(&text, &rendered(name, scope)?)?))
            }
            Self::ToDate(format) => {
                let Value::Text(text) = value else { return Err(wrong_type("toDate", &value)) };
                Some(Value::Date(dates::parsed(&text, &rendered(format, scope)?)?))
            }
            Self::DateFormat(format) => {
                let Value::Date(date) = value else { return Err(wrong_type("dateFormat", &value)) };
                Some(Value::Text(dates::formatted(&date, &rendered(format, scope)?)?))
            }
        })
    }
}

pub(super) fn wrong_type(filter: &str, value: &Value) -> String {
    format!("{filter} cannot be applied to a value of type {}", value.type_name())
}
