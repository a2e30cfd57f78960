//! Predicates: tests of a value.

use std::fmt;

use crate::error::{ParseError, Parsed};
use crate::filter;
use crate::position::TextPosition;
use crate::reader::{Cursor, Reader};
use crate::scalar::ScalarValue;
use crate::value::PredicateValue;

/// Test of a value, such as `== 200` or `not exists`.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// Whether the test is to fail: `not`.
    pub is_negated: bool,
    /// Test.
    pub kind: PredicateKind,
    /// Place of the test, after `not`.
    pub position: TextPosition,
}

/// Test of a [`Predicate`].
#[derive(Clone, Debug, PartialEq)]
pub enum PredicateKind {
    /// Comparison with another value.
    Compare(PredicateOperator, PredicateValue),
    /// Test of the value alone.
    Test(ValueTest),
}

crate::words::words! {
    /// Comparison with another value.
    pub enum PredicateOperator {
        /// Text, bytes or a list that contains the other one.
        Contains = "contains",
        /// Text or bytes that end with the other one.
        EndsWith = "endsWith",
        /// Equality.
        Equal = "==",
        /// Greater than.
        Greater = ">",
        /// Greater than or equal.
        GreaterOrEqual = ">=",
        /// List with an item that equals the other value.
        Includes = "includes",
        /// Less than.
        Less = "<",
        /// Less than or equal.
        LessOrEqual = "<=",
        /// Text that matches a regular expression.
        Matches = "matches",
        /// Inequality.
        NotEqual = "!=",
        /// Text or bytes that begin with the other one.
        StartsWith = "startsWith",
    }
}

crate::words::words! {
    /// Test of a value alone.
    pub enum ValueTest {
        /// The query found a value.
        Exists = "exists",
        /// Boolean.
        IsBoolean = "isBoolean",
        /// List or object.
        IsCollection = "isCollection",
        /// Date.
        IsDate = "isDate",
        /// List, object, text or bytes of length 0.
        IsEmpty = "isEmpty",
        /// Floating-point number.
        IsFloat = "isFloat",
        /// Integer.
        IsInteger = "isInteger",
        /// Text that is an IPv4 address.
        IsIpv4 = "isIpv4",
        /// Text that is an IPv6 address.
        IsIpv6 = "isIpv6",
        /// Text that is a date in RFC 3339.
        IsIsoDate = "isIsoDate",
        /// List.
        IsList = "isList",
        /// Number.
        IsNumber = "isNumber",
        /// Object.
        IsObject = "isObject",
        /// Text.
        IsString = "isString",
        /// Text that is a UUID.
        IsUuid = "isUuid",
    }
}

/// Spellings that hurl has removed, with those that replace them.
const REMOVED_PREDICATES: [(&str, &str); 7] = [
    ("equals", "=="),
    ("notEquals", "!="),
    ("greaterThan", ">"),
    ("greaterThanOrEquals", ">="),
    ("lessThan", "<"),
    ("lessThanOrEquals", "<="),
    ("countEquals", "count =="),
];

const NOT: &str = "not";

impl Predicate {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let is_negated = reader.line().strip_prefix(NOT).is_some_and(|rest| rest.starts_with([' ', '\t']));
        if is_negated {
            reader.need(NOT)?;
            reader.skip_spaces();
        }
        let position = reader.position();
        Ok(Self { is_negated, kind: PredicateKind::read(reader)?, position })
    }
}

impl PredicateKind {
    fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let symbol = reader.take_while(|c| matches!(c, '=' | '!' | '<' | '>'));
        if let Some(operator) = PredicateOperator::from_word(symbol) {
            reader.skip_spaces();
            return operator.read_value(reader);
        }
        reader.seek(start);
        let word = reader.take_word();
        if let Some(test) = ValueTest::from_word(word) {
            return Ok(Self::Test(test));
        }
        let Some(operator) = PredicateOperator::from_word(word) else {
            return Err(unknown_predicate(reader, start, symbol, word));
        };
        reader.need_spaces()?;
        operator.read_value(reader)
    }
}

fn unknown_predicate(reader: &Reader<'_>, start: Cursor, symbol: &str, word: &str) -> ParseError {
    let error = reader.expected_at(start, "a filter or a predicate");
    if let Some((_, spelling)) = REMOVED_PREDICATES.iter().find(|(old, _)| *old == word) {
        return error.with_hint(format!("write '{spelling}'"));
    }
    if symbol == "=" {
        return error.with_hint("did you mean '=='?");
    }
    error.with_nearest(word, ValueTest::spellings().chain(PredicateOperator::spellings()).chain(filter::spellings()))
}

impl PredicateOperator {
    /// Reads the other value, which has a type that the operator allows.
    fn read_value(self, reader: &mut Reader<'_>) -> Parsed<PredicateKind> {
        let start = reader.cursor();
        let value = PredicateValue::read(reader)?;
        match self.type_error(&value) {
            Some(expected) => Err(reader.expected_at(start, expected)),
            None => Ok(PredicateKind::Compare(self, value)),
        }
    }

    /// Types that the operator allows, if the value's is not among them.
    fn type_error(self, value: &PredicateValue) -> Option<&'static str> {
        use PredicateValue::{Bytes, Expression, Regex, Scalar};
        use ScalarValue::{Number, Text};
        let (is_allowed, expected) = match self {
            Self::Greater | Self::GreaterOrEqual | Self::Less | Self::LessOrEqual => {
                (matches!(value, Scalar(Number(_) | Text(_)) | Expression(_)), "a number, a string or an expression")
            }
            Self::StartsWith | Self::EndsWith => {
                (matches!(value, Scalar(Text(_)) | Bytes(_)), "a string, hex,...; or base64,...;")
            }
            Self::Matches => (matches!(value, Scalar(Text(_)) | Regex(_)), "a regular expression: /.../ or \"...\""),
            Self::Equal | Self::NotEqual | Self::Contains | Self::Includes => (true, ""),
        };
        (!is_allowed).then_some(expected)
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negated {
            write!(f, "{NOT} ")?;
        }
        match &self.kind {
            PredicateKind::Compare(operator, value) => write!(f, "{operator} {value}"),
            PredicateKind::Test(test) => test.fmt(f),
        }
    }
}
