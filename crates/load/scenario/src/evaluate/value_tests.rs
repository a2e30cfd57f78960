//! Tests of a value alone.

use core::net::{Ipv4Addr, Ipv6Addr};

use chrono::DateTime;
use weir_hurl::ValueTest;

use crate::value::{self, Value};

/// Whether a test holds; `None` if values of this type cannot be tested so.
pub(super) fn holds(test: ValueTest, value: &Value) -> Option<bool> {
    let of_text = |test: fn(&str) -> bool| match value {
        Value::Text(text) => Some(test(text)),
        _ => None,
    };
    Some(match test {
        ValueTest::Exists => true,
        ValueTest::IsBoolean => matches!(value, Value::Bool(_)),
        ValueTest::IsCollection => {
            matches!(value, Value::List(_) | Value::Object(_) | Value::Bytes(_) | Value::Nodes(_))
        }
        ValueTest::IsDate => matches!(value, Value::Date(_)),
        ValueTest::IsEmpty => match value {
            Value::Text(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::List(list) => list.is_empty(),
            Value::Nodes(texts) => texts.is_empty(),
            Value::Object(json) => json.trim_start_matches('{').trim_start().starts_with('}'),
            _ => return None,
        },
        ValueTest::IsFloat => matches!(value, Value::Float(_)) || is_fraction(value),
        ValueTest::IsInteger => matches!(value, Value::Integer(_) | Value::Number(_)) && !is_fraction(value),
        ValueTest::IsIpv4 => return of_text(|text| text.parse::<Ipv4Addr>().is_ok()),
        ValueTest::IsIpv6 => return of_text(|text| text.parse::<Ipv6Addr>().is_ok()),
        ValueTest::IsIsoDate => return of_text(|text| DateTime::parse_from_rfc3339(text).is_ok()),
        ValueTest::IsList => matches!(value, Value::List(_) | Value::Bytes(_)),
        ValueTest::IsNumber => value.as_f64().is_some(),
        ValueTest::IsObject => matches!(value, Value::Object(_) | Value::Nodes(_)),
        ValueTest::IsString => matches!(value, Value::Text(_)),
        ValueTest::IsUuid => return of_text(is_uuid),
    })
}

fn is_fraction(value: &Value) -> bool {
    matches!(value, Value::Number(text) if value::is_fraction(text))
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let mut groups = text.split('-');
    let is_group = |length: usize, group: &str| group.len() == length && group.bytes().all(|b| b.is_ascii_hexdigit());
    lengths.into_iter().all(|length| groups.next().is_some_and(|group| is_group(length, group)))
        && groups.next().is_none()
}
