//! Numbers.

use std::fmt;

use crate::error::Parsed;
use crate::reader::{Cursor, Reader};

/// Number in a predicate or variable.
#[derive(Clone, Debug, PartialEq)]
pub enum NumberLiteral {
    /// Integer of 64 bits.
    Integer(i64),
    /// Integer that is too large for 64 bits: its sign and digits.
    BigInteger(String),
    /// Number with a decimal point, finite.
    Float(f64),
}

impl NumberLiteral {
    /// Whether a number begins with this character.
    pub(crate) fn is_start(c: char) -> bool {
        c == '-' || c.is_ascii_digit()
    }

    /// Reads an optional sign, digits, and an optional fraction.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        reader.eat("-");
        read_digits(reader, start, "a number")?;
        if !reader.starts_with(".") {
            let text = reader.text_since(start);
            return Ok(text.parse().map_or_else(|_| Self::BigInteger(text.to_owned()), Self::Integer));
        }
        reader.bump();
        if reader.take_while(|c| c.is_ascii_digit()).is_empty() {
            return Err(reader.expected("digits after the decimal point"));
        }
        match reader.text_since(start).parse() {
            Ok(value) if f64::is_finite(value) => Ok(Self::Float(value)),
            _ => Err(reader.expected_at(start, "a number of at most 1.8e308")),
        }
    }
}

impl fmt::Display for NumberLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::BigInteger(digits) => f.write_str(digits),
            // Without a point the value is read as an integer; the format has no exponents.
            Self::Float(value) if value.fract() == 0.0 => write!(f, "{value}.0"),
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// Reads an integer.
pub(crate) fn read_integer(reader: &mut Reader<'_>) -> Parsed<i64> {
    let start = reader.cursor();
    reader.eat("-");
    read_digits(reader, start, "an integer")?;
    reader.text_since(start).parse().map_err(|_| reader.expected_at(start, "an integer of 64 bits"))
}

/// Reads an integer of at least 0.
pub(crate) fn read_natural(reader: &mut Reader<'_>) -> Parsed<u64> {
    let start = reader.cursor();
    read_digits(reader, start, "an integer of at least 0")?;
    reader.text_since(start).parse().map_err(|_| reader.expected_at(start, "an integer of 64 bits"))
}

/// Reads digits without leading zeros.
fn read_digits(reader: &mut Reader<'_>, start: Cursor, expected: &str) -> Parsed<()> {
    let digits = reader.take_while(|c| c.is_ascii_digit());
    match digits.strip_prefix('0') {
        Some("") => Ok(()),
        Some(_) => Err(reader.expected_at(start, format!("{expected} without leading zeros"))),
        None if digits.is_empty() => Err(reader.expected_at(start, expected)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_integers_large_integers_or_floats() {
        for text in ["0", "-1", "9223372036854775807", "-9223372036854775808", "1.5", "1.0", "-0.0", "0.001"] {
            let mut reader = Reader::new(text);
            let number = NumberLiteral::read(&mut reader).unwrap();
            assert_eq!(number.to_string(), text);
            assert!(reader.is_end() && !matches!(number, NumberLiteral::BigInteger(_)), "{number:?}");
        }
        let large = NumberLiteral::read(&mut Reader::new("-9223372036854775809"));
        assert_eq!(large, Ok(NumberLiteral::BigInteger("-9223372036854775809".into())));
    }

    #[test]
    fn invalid_numbers_have_an_error() {
        for text in ["", "-", "01", "-01.5", "1.", "1.x", &format!("{}.0", "9".repeat(400))] {
            assert!(NumberLiteral::read(&mut Reader::new(text)).is_err(), "{text}");
        }
        for text in ["", "x", "00", "9223372036854775808"] {
            assert!(read_integer(&mut Reader::new(text)).is_err(), "{text}");
        }
        assert_eq!(read_natural(&mut Reader::new("18446744073709551615")), Ok(u64::MAX));
        assert!(read_natural(&mut Reader::new("-1")).is_err());
    }
}
