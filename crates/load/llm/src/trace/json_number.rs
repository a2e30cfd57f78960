//! Times, sessions and identifiers as they stand in lines of JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Number of a time, whose unit the format has; exact if it is whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TimeNumber {
    Whole(i64),
    Fraction(f64),
}

impl TimeNumber {
    /// Time in nanoseconds, of units of `unit_ns`; `None` beyond some 290 years.
    pub(super) fn nanos(self, unit_ns: i64) -> Option<i64> {
        match self {
            Self::Whole(number) => number.checked_mul(unit_ns),
            Self::Fraction(number) => {
                let nanos = (number * unit_ns as f64).round();
                // A conversion of a float saturates.
                (nanos.abs() < i64::MAX as f64).then_some(nanos as i64)
            }
        }
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = TimeNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of a time")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<TimeNumber, E> {
        Ok(TimeNumber::Whole(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<TimeNumber, E> {
        i64::try_from(number).map(TimeNumber::Whole).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<TimeNumber, E> {
        if number.is_finite() { Ok(TimeNumber::Fraction(number)) } else { Err(E::custom("not a finite number")) }
    }

    /// OTLP writes numbers of 64 bits as strings.
    fn visit_str<E: Error>(self, text: &str) -> Result<TimeNumber, E> {
        text.parse()
            .map(TimeNumber::Whole)
            .map_err(|_| E::custom(format_args!("not a number of a time: '{}'", text.escape_debug())))
    }
}

impl<'de> Deserialize<'de> for TimeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

/// Name of a session or a block: a number as it is, a text by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameHash(pub(super) u64);

impl NameHash {
    /// Name that is a text.
    pub(super) fn of(text: &str) -> Self {
        // FNV-1a: the same in each version, as prompts have to be.
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        Self(text.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)))
    }
}

/// Hash of a name.
pub(crate) fn name_hash(name: &str) -> u64 {
    NameHash::of(name).0
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = NameHash;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number or a text")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<NameHash, E> {
        Ok(NameHash(number.cast_unsigned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<NameHash, E> {
        Ok(NameHash(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<NameHash, E> {
        Ok(NameHash::of(text))
    }
}

impl<'de> Deserialize<'de> for NameHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor)
    }
}
