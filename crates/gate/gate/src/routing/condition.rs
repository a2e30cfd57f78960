//! Conditions of routes on a request, and which of them imply others.

use http::{HeaderMap, HeaderValue, header};

use crate::config::{Condition, ConditionSource, ValueCondition};
use weir_retry::grpc::is_grpc;

impl Condition {
    /// Whether a request meets the condition.
    pub(super) fn holds(&self, headers: &HeaderMap, query: Option<&str>) -> bool {
        match &self.source {
            ConditionSource::Header(name) => self.test.passes(headers.get_all(name).iter().map(HeaderValue::as_bytes)),
            ConditionSource::Cookie(name) => self.test.passes(cookies(headers, name)),
            ConditionSource::Query(name) => {
                let all = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
                let values: Vec<_> = all.filter(|(key, _)| key == name.as_str()).map(|(_, value)| value).collect();
                self.test.passes(values.iter().map(|value| value.as_bytes()))
            }
            ConditionSource::Grpc => {
                headers.get(header::CONTENT_TYPE).is_some_and(|content_type| is_grpc(content_type.as_bytes()))
            }
        }
    }

    /// Whether every request that meets this condition meets the other one, as far as that is certain.
    pub(super) fn implies(&self, other: &Self) -> bool {
        self.source == other.source && self.test.implies(&other.test)
    }
}

/// Values of the cookies of one name, in order.
pub(crate) fn cookies<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h [u8]> {
    let pairs = headers.get_all(header::COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let pair = pair.trim_ascii();
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        (pair[..equals].trim_ascii_end() == name.as_bytes()).then(|| pair[equals + 1..].trim_ascii_start())
    })
}

impl ValueCondition {
    fn passes<'v>(&self, mut values: impl Iterator<Item = &'v [u8]>) -> bool {
        match self {
            Self::Present => values.next().is_some(),
            Self::Absent => values.next().is_none(),
            Self::OneOf(wanted) => values.any(|value| wanted.iter().any(|wanted| wanted.as_bytes() == value)),
            Self::Matches(expression) => {
                values.any(|value| std::str::from_utf8(value).is_ok_and(|value| expression.matches(value)))
            }
        }
    }

    fn implies(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, other) => *other == Self::Absent,
            (_, Self::Present) => true,
            (Self::OneOf(all), Self::OneOf(allowed)) => all.iter().all(|value| allowed.contains(value)),
            (Self::OneOf(all), Self::Matches(expression)) => all.iter().all(|value| expression.matches(value)),
            (Self::Matches(one), Self::Matches(other)) => one == other,
            _ => false,
        }
    }
}
