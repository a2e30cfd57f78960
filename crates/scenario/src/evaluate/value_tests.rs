//! Tests of a value alone.

use core::net::{Ipv4Addr, Ipv6Addr};

use weir_hurl::ValueTest;

use crate::value::Value;

/// Whether a test holds.
pub(super) fn holds(test: ValueTest, value: &Value) -> bool {
    let of_text = |test: fn(&str) -> bool| matches!(value, Value::Text(text) if test(text));
    match test {
        ValueTest::Exists => true,
        ValueTest::IsBoolean => matches!(value, Value::Bool(_)),
        ValueTest::IsCollection => matches!(value, Value::List(_) | Value::Object(_)),
        // Values are texts; without filters of dates there is none.
        ValueTest::IsDate => false,
        ValueTest::IsEmpty => match value {
            Value::Text(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::List(list) => list.is_empty(),
            Value::Object(json) => json.trim_start_matches('{').trim_start().starts_with('}'),
            _ => false,
        },
        ValueTest::IsFloat => matches!(value, Value::Float(_)),
        ValueTest::IsInteger => matches!(value, Value::Integer(_)),
        ValueTest::IsIpv4 => of_text(|text| text.parse::<Ipv4Addr>().is_ok()),
        ValueTest::IsIpv6 => of_text(|text| text.parse::<Ipv6Addr>().is_ok()),
        ValueTest::IsIsoDate => of_text(is_rfc3339),
        ValueTest::IsList => matches!(value, Value::List(_)),
        ValueTest::IsNumber => value.as_f64().is_some(),
        ValueTest::IsObject => matches!(value, Value::Object(_)),
        ValueTest::IsString => matches!(value, Value::Text(_)),
        ValueTest::IsUuid => of_text(is_uuid),
    }
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let mut groups = text.split('-');
    let is_group = |length: usize, group: &str| group.len() == length && group.bytes().all(|b| b.is_ascii_hexdigit());
    lengths.into_iter().all(|length| groups.next().is_some_and(|group| is_group(length, group)))
        && groups.next().is_none()
}

/// `2026-01-31T12:00:00.5+01:00`.
fn is_rfc3339(text: &str) -> bool {
    let form = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(b, f)| if f == b'0' { b.is_ascii_digit() } else { b == f })
    };
    let Some((moment, rest)) = text.split_at_checked(19) else { return false };
    if !form(moment, "0000-00-00T00:00:00") {
        return false;
    }
    let number = |range: std::ops::Range<usize>| moment.get(range).and_then(|digits| digits.parse().ok()).unwrap_or(99);
    let is_date = (1..=12).contains(&number(5..7)) && (1..=31).contains(&number(8..10));
    let is_time = number(11..13) < 24 && number(14..16) < 60 && number(17..19) <= 60;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    is_date && is_time && (zone == "Z" || form(zone, "+00:00") || form(zone, "-00:00"))
}
