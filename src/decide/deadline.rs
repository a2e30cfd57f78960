//! How the time that is left for a call is written in headers.
//!
//! Times are rounded down: nobody upstream should think that there is more time than there is. They are never rounded
//! down to nothing, since 0 means "no limit" to some.

use std::fmt;

use super::Nanos;

/// A way to write how much time is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `grpc-timeout`: one to eight digits and a unit, H, M, S, m, u or n (gRPC over HTTP/2, Requests).
    Grpc,
    /// Whole milliseconds, as in `x-envoy-expected-rq-timeout-ms`.
    Millis,
    /// Seconds, with a fraction if need be.
    Seconds,
}

/// The units of gRPC, from the finest, and their lengths in nanoseconds.
const UNITS: [(u8, u64); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];
const GRPC_DIGITS: usize = 8;
const GRPC_MOST: u64 = 99_999_999;

impl Form {
    /// The time that a header's value tells; None if it is not of this form. More than fits is [`Nanos::NEVER`].
    pub fn read(self, value: &[u8]) -> Option<Nanos> {
        match self {
            Self::Grpc => {
                let (unit, digits) = value.split_last()?;
                let (_, length) = UNITS.into_iter().find(|(name, _)| name == unit)?;
                (digits.len() <= GRPC_DIGITS).then_some(())?;
                Some(Nanos(whole(digits)?.saturating_mul(length)))
            }
            Self::Millis => Some(Nanos(whole(value)?.saturating_mul(1_000_000))),
            Self::Seconds => {
                let point = value.iter().position(|byte| *byte == b'.');
                let (seconds, fraction) = point.map_or((value, &b"0"[..]), |at| (&value[..at], &value[at + 1..]));
                whole(fraction)?;
                // Nine digits are nanoseconds; what is finer is cut off.
                let ns = (0..9).fold(0, |ns, place| ns * 10 + fraction.get(place).map_or(0, |b| u64::from(b - b'0')));
                Some(Nanos(whole(seconds)?.saturating_mul(1_000_000_000)) + Nanos(ns))
            }
        }
    }

    /// Writes how much time is left; at least the form's finest.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(self, left: Nanos, out: &mut impl fmt::Write) -> fmt::Result {
        match self {
            Self::Grpc => {
                let left = left.0.max(1);
                let fits = |(name, length): (u8, u64)| Some((name, left / length)).filter(|(_, n)| *n <= GRPC_MOST);
                // 2^64 ns are five million hours, so the coarsest always fits.
                let (name, number) = UNITS.into_iter().find_map(fits).unwrap_or((b'H', GRPC_MOST));
                write!(out, "{number}{}", char::from(name))
            }
            Self::Millis => write!(out, "{}", (left.0 / 1_000_000).max(1)),
            Self::Seconds => {
                let left = left.0.max(1);
                let (seconds, mut fraction) = (left / 1_000_000_000, left % 1_000_000_000);
                write!(out, "{seconds}")?;
                let mut digits = 9;
                while fraction != 0 && fraction % 10 == 0 {
                    (fraction, digits) = (fraction / 10, digits - 1);
                }
                if fraction == 0 { Ok(()) } else { write!(out, ".{fraction:0digits$}") }
            }
        }
    }
}

/// A whole number, of digits alone; the greatest if it is greater than that.
fn whole(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}
