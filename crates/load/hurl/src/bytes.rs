//! Bytes in Base64 or hexadecimal digits.

use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::error::Parsed;
use crate::reader::Reader;

/// Bytes of a body or predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BytesLiteral {
    /// `base64,...;`.
    Base64(Vec<u8>),
    /// `hex,...;`.
    Hex(Vec<u8>),
}

const BASE64_PREFIX: &str = "base64,";
const HEX_PREFIX: &str = "hex,";

/// Base64 without padding, which hurl does not check.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

impl BytesLiteral {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Base64(bytes) | Self::Hex(bytes) => bytes,
        }
    }

    pub(crate) fn is_start(reader: &Reader<'_>) -> bool {
        reader.starts_with(BASE64_PREFIX) || reader.starts_with(HEX_PREFIX)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let bytes = if reader.eat(BASE64_PREFIX) { read_base64(reader)? } else { read_hex(reader)? };
        reader.skip_spaces();
        reader.need(";")?;
        Ok(bytes)
    }
}

fn read_base64(reader: &mut Reader<'_>) -> Parsed<BytesLiteral> {
    reader.skip_spaces();
    let start = reader.cursor();
    let text =
        reader.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | ' ' | '\t' | '\r' | '\n'));
    let digits: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = LENIENT_BASE64.decode(digits.trim_end_matches('='));
    bytes.map(BytesLiteral::Base64).map_err(|_| reader.expected_at(start, "Base64"))
}

fn read_hex(reader: &mut Reader<'_>) -> Parsed<BytesLiteral> {
    reader.need(HEX_PREFIX)?;
    reader.skip_spaces();
    let mut bytes = Vec::new();
    while let Some(high) = read_digit(reader) {
        let low = read_digit(reader).ok_or_else(|| reader.expected("an even number of hexadecimal digits"))?;
        bytes.push(high * 16 + low);
    }
    Ok(BytesLiteral::Hex(bytes))
}

fn read_digit(reader: &mut Reader<'_>) -> Option<u8> {
    let digit = reader.peek()?.to_digit(16)?;
    reader.bump();
    u8::try_from(digit).ok()
}

impl fmt::Display for BytesLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base64(bytes) => {
                write!(f, "{BASE64_PREFIX}{};", base64::engine::general_purpose::STANDARD.encode(bytes))
            }
            Self::Hex(bytes) => {
                f.write_str(HEX_PREFIX)?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(";")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Parsed<BytesLiteral> {
        BytesLiteral::read(&mut Reader::new(text))
    }

    #[test]
    fn base64_has_optional_padding_and_spaces() {
        for text in ["base64,c2hvcA==;", "base64, c2\n hvcA ;", "base64,c2hvcA;", "base64,c2hvcA===;"] {
            assert_eq!(read(text), Ok(BytesLiteral::Base64(b"shop".to_vec())), "{text}");
        }
        assert_eq!(BytesLiteral::Base64(b"shop".to_vec()).to_string(), "base64,c2hvcA==;");
        assert_eq!(read("base64,c2hvc;").unwrap_err().to_string(), "1:8: expected Base64, found 'c2hvc'");
        assert_eq!(read("base64,c2?;").unwrap_err().to_string(), "1:10: expected ';', found '?'");
    }

    #[test]
    fn hexadecimal_digits_are_pairs() {
        assert_eq!(read("hex, 00fFa1 ;"), Ok(BytesLiteral::Hex(vec![0, 255, 161])));
        assert_eq!(read("hex,;").unwrap().to_string(), "hex,;");
        let error = read("hex,0;").unwrap_err().to_string();
        assert_eq!(error, "1:6: expected an even number of hexadecimal digits, found ';'");
        assert_eq!(read("hex,00").unwrap_err().to_string(), "1:7: expected ';', found the end of the file");
    }
}
