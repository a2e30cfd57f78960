//! Predicates, compiled.

use std::borrow::Cow;
use std::cmp::Ordering;

use weir_hurl::{
    BlockContent, JsonPiece, JsonText, ParseError, Predicate, PredicateKind, PredicateOperator, PredicateValue,
    RegexPattern, ScalarValue, TextPosition, ValueTest,
};

use super::regexes::CompiledRegex;
use super::template::{CompiledExpression, CompiledTemplate};
use super::value_tests::holds;
use super::variables::VariableNames;
use super::{Scope, unsupported};
use crate::value::Value;

/// Predicate with its regular expressions and fixed values compiled.
#[derive(Clone, Debug)]
pub(super) struct CompiledPredicate {
    is_negated: bool,
    kind: CompiledKind,
}

#[derive(Clone, Debug)]
enum CompiledKind {
    Test(ValueTest),
    Compare(PredicateOperator, Compared),
    Matches(CompiledRegex),
}

/// Value that is compared with.
#[derive(Clone, Debug)]
enum Compared {
    Fixed(Value),
    Text(CompiledTemplate),
    Expression(CompiledExpression),
    /// Query of GraphQL: the JSON that a request with it has, with the JSON of its variables.
    GraphQl(CompiledTemplate, Option<String>),
}

/// Value that does not satisfy a predicate.
pub(super) struct PredicateFailure {
    pub(super) expected: String,
}

impl CompiledPredicate {
    pub(super) fn compile(predicate: &Predicate, names: &mut VariableNames) -> Result<Self, ParseError> {
        let kind = match &predicate.kind {
            PredicateKind::Test(test) => CompiledKind::Test(*test),
            PredicateKind::Compare(PredicateOperator::Matches, value) => {
                CompiledKind::Matches(pattern(value, predicate.position, names)?)
            }
            PredicateKind::Compare(operator, value) => {
                CompiledKind::Compare(*operator, Compared::compile(value, predicate.position, names)?)
            }
        };
        Ok(Self { is_negated: predicate.is_negated, kind })
    }

    /// Tests a value, or that there is none.
    pub(super) fn evaluate(
        &self,
        actual: Option<&Value>,
        scope: &mut Scope<'_, '_>,
    ) -> Result<Result<(), PredicateFailure>, String> {
        let is_true = match (&self.kind, actual) {
            (CompiledKind::Test(ValueTest::Exists), actual) => {
                actual.is_some_and(|value| !matches!(value, Value::Nodes(texts) if texts.is_empty()))
            }
            // What is not there is not equal to anything either.
            (_, None) if self.is_negated => return Ok(Ok(())),
            (_, None) => return Ok(Err(PredicateFailure { expected: self.expected(scope)? })),
            (CompiledKind::Test(test), Some(actual)) => holds(*test, actual).ok_or_else(|| {
                format!("{} cannot be tested on a value of type {}", test.as_str(), actual.type_name())
            })?,
            (CompiledKind::Compare(operator, value), Some(actual)) => {
                let value = value.evaluate(scope)?;
                let is_true = compare(*operator, actual, &value)?;
                if is_true == self.is_negated {
                    return Ok(Err(PredicateFailure { expected: self.comparison(*operator, &value) }));
                }
                is_true
            }
            (CompiledKind::Matches(regex), Some(actual)) => {
                let Value::Text(text) = actual else {
                    return Err(format!("only text matches a pattern, not a value of type {}", actual.type_name()));
                };
                regex.with(scope, |regex| regex.is_match(text))?
            }
        };
        Ok(if is_true == self.is_negated { Err(PredicateFailure { expected: self.expected(scope)? }) } else { Ok(()) })
    }

    /// Expectation for a person, written only where it fails.
    fn expected(&self, scope: &mut Scope<'_, '_>) -> Result<String, String> {
        let not = if self.is_negated { "not " } else { "" };
        Ok(match &self.kind {
            CompiledKind::Test(test) => format!("{not}{}", test.as_str()),
            CompiledKind::Compare(operator, value) => self.comparison(*operator, &*value.evaluate(scope)?),
            CompiledKind::Matches(_) => format!("{not}a match"),
        })
    }

    fn comparison(&self, operator: PredicateOperator, value: &Value) -> String {
        let not = if self.is_negated { "not " } else { "" };
        format!("{not}{} {}", operator.as_str(), value.json())
    }
}

impl Compared {
    fn compile(value: &PredicateValue, position: TextPosition, names: &mut VariableNames) -> Result<Self, ParseError> {
        let template = |template: &weir_hurl::Template, names: &mut VariableNames| {
            Ok(match template.as_text() {
                Some(text) => Self::Fixed(Value::text(text)),
                None => Self::Text(CompiledTemplate::compile(template, names)?),
            })
        };
        match value {
            PredicateValue::Scalar(ScalarValue::Null) => Ok(Self::Fixed(Value::Null)),
            PredicateValue::Scalar(ScalarValue::Bool(value)) => Ok(Self::Fixed(Value::Bool(*value))),
            PredicateValue::Scalar(ScalarValue::Number(number)) => Ok(Self::Fixed(Value::from(number))),
            PredicateValue::Scalar(ScalarValue::Text(text)) => template(text, names),
            PredicateValue::Block(block) => match &block.content {
                BlockContent::Text(text) | BlockContent::Json(text) | BlockContent::Xml(text) => template(text, names),
                BlockContent::Raw(text) => Ok(Self::Fixed(Value::text(text.as_str()))),
                BlockContent::GraphQl { query, variables } => {
                    let fixed = variables.as_ref().map(|json| fixed_json(json, position)).transpose()?;
                    Ok(Self::GraphQl(CompiledTemplate::compile(query, names)?, fixed))
                }
            },
            PredicateValue::Bytes(bytes) => Ok(Self::Fixed(Value::Bytes(bytes.as_bytes().to_vec()))),
            PredicateValue::Expression(expression) => {
                CompiledExpression::compile(expression, names).map(Self::Expression)
            }
            PredicateValue::Regex(regex) => Ok(Self::Fixed(Value::text(regex.pattern.as_str()))),
            PredicateValue::File(_) => Err(unsupported(position, "file", "compare with sha256 instead")),
        }
    }

    fn evaluate(&self, scope: &mut Scope<'_, '_>) -> Result<Cow<'_, Value>, String> {
        let owned = match self {
            Self::Fixed(value) => return Ok(Cow::Borrowed(value)),
            Self::Text(template) => template.evaluate(scope).map(Value::Text),
            Self::Expression(expression) => expression.evaluate(scope),
            Self::GraphQl(query, variables) => {
                query.evaluate(scope).map(|query| Value::Text(graph_ql_body(&query, variables.as_deref())))
            }
        };
        owned.map(Cow::Owned).map_err(|error| error.to_string())
    }
}

/// Text of a JSON without expressions.
fn fixed_json(json: &JsonText, position: TextPosition) -> Result<String, ParseError> {
    let texts = json.pieces.iter().map(|piece| match piece {
        JsonPiece::Verbatim(text) => Ok(text.as_str()),
        JsonPiece::Value(_) | JsonPiece::InString(_) => {
            Err(unsupported(position, "an expression in the variables of a compared query", "compare with jsonpath"))
        }
    });
    texts.collect()
}

/// Body of a request with a query of GraphQL.
fn graph_ql_body(query: &str, variables: Option<&str>) -> String {
    let query = serde_json::Value::from(query.trim());
    let variables = variables.map(|json| format!(",\"variables\":{json}")).unwrap_or_default();
    format!("{{\"query\":{query}{variables}}}")
}

fn pattern(
    value: &PredicateValue,
    position: TextPosition,
    names: &mut VariableNames,
) -> Result<CompiledRegex, ParseError> {
    match value {
        PredicateValue::Regex(literal) => {
            CompiledRegex::compile(&RegexPattern::Literal(literal.clone()), position, names)
        }
        PredicateValue::Scalar(ScalarValue::Text(template)) => CompiledRegex::compile_template(template, names),
        other => CompiledRegex::fixed(&other.to_string(), position),
    }
}

fn compare(operator: PredicateOperator, actual: &Value, value: &Value) -> Result<bool, String> {
    use PredicateOperator as O;
    let wrong =
        || format!("{} cannot compare a {} with a {}", operator.as_str(), actual.type_name(), value.type_name());
    let order = || match (actual, value) {
        (Value::Text(a), Value::Text(b)) => Ok(a.cmp(b)),
        (a, b) if a.as_i64().zip(b.as_i64()).is_some() => Ok(a.as_i64().cmp(&b.as_i64())),
        (Value::Date(a), Value::Date(b)) => Ok(a.cmp(b)),
        _ => {
            let numbers = actual.as_f64().zip(value.as_f64());
            numbers.and_then(|(a, b)| a.partial_cmp(&b)).ok_or_else(wrong)
        }
    };
    Ok(match operator {
        O::Equal => actual.is_equal(value),
        O::NotEqual => !actual.is_equal(value),
        O::Less => order()? == Ordering::Less,
        O::LessOrEqual => order()? != Ordering::Greater,
        O::Greater => order()? == Ordering::Greater,
        O::GreaterOrEqual => order()? != Ordering::Less,
        O::StartsWith => pair(actual, value).ok_or_else(wrong).map(|(a, b)| a.starts_with(b))?,
        O::EndsWith => pair(actual, value).ok_or_else(wrong).map(|(a, b)| a.ends_with(b))?,
        O::Contains => match actual {
            Value::List(list) => list.iter().any(|item| item.is_equal(value)),
            _ => pair(actual, value).ok_or_else(wrong).map(|(a, b)| contains(a, b))?,
        },
        O::Includes => match actual {
            Value::List(list) => list.iter().any(|item| item.is_equal(value)),
            _ => return Err(wrong()),
        },
        O::Matches => false,
    })
}

/// Bytes of two texts, or of two byte strings.
fn pair<'v>(actual: &'v Value, value: &'v Value) -> Option<(&'v [u8], &'v [u8])> {
    match (actual, value) {
        (Value::Text(a), Value::Text(b)) => Some((a.as_bytes(), b.as_bytes())),
        (Value::Bytes(a), Value::Bytes(b)) => Some((a, b)),
        _ => None,
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}
