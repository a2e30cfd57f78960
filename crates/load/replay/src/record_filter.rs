//! Conditions on records: `status<500`, `path~^/api/`, `duration>100ms`.

use std::str::FromStr;

use regex::Regex;

use super::access_record::AccessRecord;
use weir_base::Nanos;
use weir_base::units;

/// Condition on records.
#[derive(Clone, Debug)]
pub struct RecordFilter {
    field: FilterField,
    test: FilterTest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterField {
    Status,
    Duration,
    Method,
    Path,
    Target,
    Host,
    Agent,
}

#[derive(Clone, Debug)]
enum FilterTest {
    /// Number in the unit of the field: status, or nanoseconds.
    Number(FilterOrder, u64),
    /// Equality of texts; `false`: inequality.
    Text(String, bool),
    /// Match of an expression anywhere; `false`: no match.
    Match(Regex, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterOrder {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Unequal,
}

/// Operators; those of two characters first.
const OPERATORS: [&str; 9] = ["<=", ">=", "==", "!=", "!~", "<", ">", "=", "~"];
const FIELDS: [(&str, FilterField); 7] = [
    ("status", FilterField::Status),
    ("duration", FilterField::Duration),
    ("method", FilterField::Method),
    ("path", FilterField::Path),
    ("target", FilterField::Target),
    ("host", FilterField::Host),
    ("agent", FilterField::Agent),
];
/// Maximum memory of a compiled expression, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;

impl RecordFilter {
    /// Whether a record fulfils the condition. A value that the log does not have fulfils `!=` and `!~` alone.
    pub fn accepts(&self, record: &AccessRecord) -> bool {
        let number = match self.field {
            FilterField::Status => record.status.map(u64::from),
            FilterField::Duration => record.took.map(|took| took.0),
            _ => None,
        };
        let text = || match self.field {
            FilterField::Method => Some(&*record.method),
            FilterField::Path => Some(record.path()),
            FilterField::Target => Some(&*record.target),
            FilterField::Host => record.host.as_deref(),
            FilterField::Agent => record.user_agent.as_deref(),
            FilterField::Status | FilterField::Duration => None,
        };
        match &self.test {
            FilterTest::Number(order, bound) => match (order, number) {
                (FilterOrder::Unequal, number) => number != Some(*bound),
                (_, None) => false,
                (FilterOrder::Less, Some(number)) => number < *bound,
                (FilterOrder::AtMost, Some(number)) => number <= *bound,
                (FilterOrder::Greater, Some(number)) => number > *bound,
                (FilterOrder::AtLeast, Some(number)) => number >= *bound,
                (FilterOrder::Equal, Some(number)) => number == *bound,
            },
            FilterTest::Text(expected, is_equal) => (text() == Some(expected)) == *is_equal,
            FilterTest::Match(regex, is_match) => text().is_some_and(|text| regex.is_match(text)) == *is_match,
        }
    }
}

impl FromStr for RecordFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let at = text.find(['<', '>', '=', '!', '~']);
        let at = at.ok_or_else(|| "no comparison; write e.g. status<500 or path~^/api/".to_owned())?;
        let (name, rest) = text.split_at(at);
        let operator = OPERATORS.into_iter().find(|operator| rest.starts_with(operator));
        let operator =
            operator.ok_or_else(|| format!("unknown comparison '{rest}'; choose {}", OPERATORS.join(" ")))?;
        let value = rest[operator.len()..].trim();
        let name = name.trim();
        let names = || FIELDS.map(|(name, _)| name).join(", ");
        let field = FIELDS.into_iter().find(|(known, _)| *known == name);
        let (_, field) = field.ok_or_else(|| format!("unknown field '{name}'; choose {}", names()))?;
        let order = match operator {
            "<" => Some(FilterOrder::Less),
            "<=" => Some(FilterOrder::AtMost),
            ">" => Some(FilterOrder::Greater),
            ">=" => Some(FilterOrder::AtLeast),
            "=" | "==" => Some(FilterOrder::Equal),
            "!=" => Some(FilterOrder::Unequal),
            _ => None,
        };
        let test = match (field, order) {
            (FilterField::Status, Some(order)) => {
                let status: u16 = value.parse().map_err(|_| format!("'{value}' is not a status; write e.g. 500"))?;
                FilterTest::Number(order, status.into())
            }
            (FilterField::Duration, Some(order)) => FilterTest::Number(order, Nanos::from(units::time(value)?).0),
            (FilterField::Status | FilterField::Duration, None) => {
                return Err(format!("{name} is a number; compare it with < <= > >= == !="));
            }
            (_, Some(order @ (FilterOrder::Equal | FilterOrder::Unequal))) => {
                FilterTest::Text(value.to_owned(), order == FilterOrder::Equal)
            }
            (_, Some(_)) => return Err(format!("{name} is a text; compare it with == != ~ !~")),
            (_, None) => {
                let regex = regex::RegexBuilder::new(value).size_limit(MAX_REGEX_BYTES).build();
                let regex = regex.map_err(|error| format!("invalid expression '{value}': {}", last_line(&error)))?;
                FilterTest::Match(regex, operator == "~")
            }
        };
        Ok(Self { field, test })
    }
}

/// Reason of an error that has several lines.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_time::{AccessTime, StampMoment};

    fn record() -> AccessRecord {
        AccessRecord {
            time: AccessTime { unix_ns: 0, resolution: Nanos::SECOND, moment: StampMoment::End },
            took: Some(Nanos::from_millis(120)),
            method: "GET".into(),
            target: "/api/a?b=c".into(),
            host: None,
            status: Some(404),
            user_agent: Some("curl/8".into()),
            referer: None,
            body: None,
        }
    }

    #[test]
    fn conditions_accept_what_they_describe() {
        for (text, expected) in [
            ("status<500", true),
            ("status < 404", false),
            ("status>=404", true),
            ("status!=404", false),
            ("status=404", true),
            ("duration>100ms", true),
            ("duration<=0.1s", false),
            ("method==GET", true),
            ("method!=GET", false),
            ("path~^/api/[a-z]$", true),
            ("path!~b=c", true),
            ("target~b=c", true),
            ("host==h", false),
            ("host!=h", true),
            ("host!~h", true),
            ("agent~curl", true),
        ] {
            let filter: RecordFilter = text.parse().expect(text);
            assert_eq!(filter.accepts(&record()), expected, "{text}");
        }
        let none = AccessRecord { status: None, ..record() };
        assert!(!"status<500".parse::<RecordFilter>().expect("a filter").accepts(&none));
        assert!("status!=500".parse::<RecordFilter>().expect("a filter").accepts(&none));
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, part) in [
            ("status", "no comparison"),
            ("code<5", "unknown field 'code'; choose status, duration"),
            ("status<5xx", "'5xx' is not a status"),
            ("status~5", "is a number"),
            ("path<5", "is a text"),
            ("path~(", "invalid expression '('"),
            ("path!x", "unknown comparison"),
            ("duration>x", "x"),
        ] {
            let error = text.parse::<RecordFilter>().expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
