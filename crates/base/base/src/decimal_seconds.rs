//! Seconds as digits, with a fraction or without.

use crate::nanos::Nanos;

/// Time of seconds as digits alone, with a fraction if there is one: `2`, `0.25`. An overflow is [`Nanos::NEVER`].
pub fn read(value: &[u8]) -> Option<Nanos> {
    let point = value.iter().position(|byte| *byte == b'.');
    let (seconds, fraction) = point.map_or((value, &b"0"[..]), |at| (&value[..at], &value[at + 1..]));
    parse_digits(fraction)?;
    // Nine digits are nanoseconds; further ones are cut off.
    let ns = (0..9).fold(0, |ns, place| ns * 10 + fraction.get(place).map_or(0, |b| u64::from(b - b'0')));
    Some(Nanos(parse_digits(seconds)?.saturating_mul(1_000_000_000)) + Nanos(ns))
}

/// Number of digits alone; `u64::MAX` on overflow.
pub fn parse_digits(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}
