//! Fields of requests and trailers.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode;
use weir_base::Nanos;

/// Content type of requests.
pub const CONTENT_TYPE: &str = "application/grpc";

/// Largest number of a `grpc-timeout`, which has eight digits.
const MAX_TIMEOUT_NUMBER: u64 = 99_999_999;

/// Base64 with padding or without, as gRPC has it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Fields that gRPC itself sends.
const OWN_NAMES: [&str; 3] = ["content-type", "te", "content-length"];

/// Value of `grpc-timeout`, rounded up where it is too long for its unit.
pub fn timeout_text(timeout: Nanos) -> String {
    const UNITS: [(u64, char); 6] = [
        (1, 'n'),
        (1_000, 'u'),
        (1_000_000, 'm'),
        (1_000_000_000, 'S'),
        (60_000_000_000, 'M'),
        (3_600_000_000_000, 'H'),
    ];
    // Milliseconds are what people write, and what they read in the log of a service.
    let exact = UNITS[2..].iter().chain(&UNITS[1..2]).chain(&UNITS[..1]);
    let exact = exact
        .filter(|(unit, _)| timeout.0.is_multiple_of(*unit))
        .find(|(unit, _)| timeout.0 / unit <= MAX_TIMEOUT_NUMBER);
    let rounded = || UNITS.iter().find(|(unit, _)| timeout.0.div_ceil(*unit) <= MAX_TIMEOUT_NUMBER);
    let (unit, letter) = exact.or_else(rounded).copied().unwrap_or((3_600_000_000_000, 'H'));
    format!("{}{letter}", timeout.0.div_ceil(unit).min(MAX_TIMEOUT_NUMBER))
}

/// Text of a `grpc-message`, which is percent-encoded.
pub fn message_text(value: &[u8]) -> Cow<'_, str> {
    percent_decode(value).decode_utf8_lossy()
}

/// Checks a field of metadata that a user gives.
///
/// # Errors
/// One line: its name is one of gRPC itself, or a value of a name with `-bin` is not Base64.
pub fn check_field(name: &str, value: &str) -> Result<(), String> {
    let name = name.to_ascii_lowercase();
    if name.starts_with("grpc-") || OWN_NAMES.contains(&name.as_str()) {
        return Err(format!("'{name}' is set by gRPC itself; leave it out"));
    }
    if name.ends_with("-bin") && decode_binary(value.as_bytes()).is_none() {
        return Err(format!("'{name}' has binary values; write the bytes as Base64"));
    }
    Ok(())
}

/// Bytes of a field whose name ends with `-bin`; `None` if they are not Base64.
pub fn decode_binary(value: &[u8]) -> Option<Vec<u8>> {
    BASE64.decode(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_at_most_eight_digits_and_is_never_shorter() {
        for (timeout, text) in [
            (Nanos::from_secs(30), "30000m"),
            (Nanos::from_millis(5), "5m"),
            (Nanos(1_500_000), "1500u"),
            (Nanos(1_500_001), "1500001n"),
            (Nanos::from_secs(200_000), "200000S"),
            (Nanos(1_000_000_000_001), "1000001m"),
            (Nanos(u64::MAX), "5124096H"),
        ] {
            assert_eq!(timeout_text(timeout), text, "{timeout:?}");
        }
    }

    #[test]
    fn a_message_is_percent_encoded_text() {
        let text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
        let sent = "%09%0Atest with whitespace%0D%0Aand Unicode BMP %E2%98%BA and non-BMP %F0%9F%98%88%09%0A";
        assert_eq!(message_text(sent.as_bytes()), text);
        assert_eq!(message_text(b"100% of %ff"), "100% of \u{fffd}");
    }

    #[test]
    fn metadata_of_a_user_leaves_the_fields_of_grpc_alone() {
        assert_eq!(check_field("x-trace", "any"), Ok(()));
        assert_eq!(check_field("x-trace-bin", "q6ur"), Ok(()));
        assert_eq!(check_field("x-trace-bin", "q6s"), Ok(()));
        assert!(check_field("X-Trace-Bin", "?").is_err_and(|why| why.contains("Base64")));
        assert!(check_field("grpc-timeout", "1S").is_err_and(|why| why.contains("leave it out")));
        assert!(check_field("TE", "trailers").is_err());
        assert_eq!(decode_binary(b"q6ur"), Some(vec![0xab, 0xab, 0xab]));
    }
}
