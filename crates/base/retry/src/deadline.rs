//! Deadlines in request headers: the remaining time of a call.
//!
//! Times are rounded down, so that no upstream works past the deadline, but never to 0, which some proxies take for "no
//! limit".

use std::fmt;

use weir_base::Nanos;
use weir_base::decimal_seconds;
use weir_base::decimal_seconds::parse_digits;

/// Notation of a remaining time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineFormat {
    /// `grpc-timeout`: one to eight digits and a unit, H, M, S, m, u or n (gRPC over HTTP/2, Requests).
    Grpc,
    /// Whole milliseconds, as in `x-envoy-expected-rq-timeout-ms`.
    Millis,
    /// Seconds, with a fraction if need be.
    Seconds,
}

/// Units of gRPC, the finest first, in nanoseconds.
const GRPC_UNITS: [(u8, u64); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];
const MAX_GRPC_DIGITS: usize = 8;
const MAX_GRPC_VALUE: u64 = 99_999_999;

impl DeadlineFormat {
    /// Parses a header's value; `None` if it is invalid. An overflow is [`Nanos::NEVER`].
    pub fn read(self, value: &[u8]) -> Option<Nanos> {
        match self {
            Self::Grpc => {
                let (unit, digits) = value.split_last()?;
                let (_, length) = GRPC_UNITS.into_iter().find(|(name, _)| name == unit)?;
                (digits.len() <= MAX_GRPC_DIGITS).then_some(())?;
                Some(Nanos(parse_digits(digits)?.saturating_mul(length)))
            }
            // To proxies 0 means no limit.
            Self::Millis => Some(Nanos(parse_digits(value).filter(|ms| *ms > 0)?.saturating_mul(1_000_000))),
            Self::Seconds => decimal_seconds::read(value),
        }
    }

    /// Writes a remaining time; at least the smallest unit of the format.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn write(self, left: Nanos, out: &mut impl fmt::Write) -> fmt::Result {
        match self {
            Self::Grpc => {
                let left = left.0.max(1);
                let fits =
                    |(name, length): (u8, u64)| Some((name, left / length)).filter(|(_, n)| *n <= MAX_GRPC_VALUE);
                // 2^64 ns are five million hours, so hours always fit.
                let (name, number) = GRPC_UNITS.into_iter().find_map(fits).unwrap_or((b'H', MAX_GRPC_VALUE));
                write!(out, "{number}{}", char::from(name))
            }
            Self::Millis => write!(out, "{}", left.as_millis().max(1)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMATS: [DeadlineFormat; 3] = [DeadlineFormat::Grpc, DeadlineFormat::Millis, DeadlineFormat::Seconds];

    fn written(format: DeadlineFormat, left: Nanos) -> String {
        let mut out = String::new();
        format.write(left, &mut out).unwrap();
        out
    }

    #[test]
    fn times_are_read_as_the_protocols_say() {
        let read = |format: DeadlineFormat, text: &str| format.read(text.as_bytes()).map(|time| time.0);
        for (text, ns) in [
            ("1n", 1),
            ("250m", 250_000_000),
            ("00000001S", 1_000_000_000),
            ("2M", 120_000_000_000),
            ("1H", 3_600_000_000_000),
            ("7u", 7_000),
            ("0m", 0),
            ("99999999H", u64::MAX),
        ] {
            assert_eq!(read(DeadlineFormat::Grpc, text), Some(ns), "{text}");
        }
        for text in ["", "m", "1", "1s", "-1m", "+1m", "123456789m", "1.5S", " 1m", "1m ", "1mm", "1\u{b5}"] {
            assert_eq!(read(DeadlineFormat::Grpc, text), None, "{text}");
        }
        assert_eq!(read(DeadlineFormat::Millis, "1500"), Some(1_500_000_000));
        assert_eq!(read(DeadlineFormat::Millis, "99999999999999999999999999"), Some(u64::MAX));
        for text in ["", "1.5", "-1", "+1", "1ms", " 1", "0x1"] {
            assert_eq!(read(DeadlineFormat::Millis, text), None, "{text}");
        }
        for (text, ns) in
            [("2", 2_000_000_000), ("0.25", 250_000_000), ("1.0000000019", 1_000_000_001), ("0.5000", 500_000_000)]
        {
            assert_eq!(read(DeadlineFormat::Seconds, text), Some(ns), "{text}");
        }
        for text in ["", ".", ".5", "5.", "1.2.3", "1e3", "-1", "inf", "NaN", "1.x", "1.00000000000x"] {
            assert_eq!(read(DeadlineFormat::Seconds, text), None, "{text}");
        }
    }

    #[test]
    fn times_are_written_in_the_finest_unit_that_fits_and_never_as_zero() {
        for (ns, grpc, millis, seconds) in [
            (0, "1n", "1", "0.000000001"),
            (99_999_999, "99999999n", "99", "0.099999999"),
            (100_000_000, "100000u", "100", "0.1"),
            (1_500_000_999, "1500000u", "1500", "1.500000999"),
            (100_000_000_000, "100000m", "100000", "100"),
            (u64::MAX, "5124095H", "18446744073709", "18446744073.709551615"),
        ] {
            let all = FORMATS.map(|format| written(format, Nanos(ns)));
            assert_eq!(all, [grpc, millis, seconds]);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_a_little_shorter_at_most(ns: u64, shift in 0_u32..64) {
            let left = Nanos((ns >> shift).max(1));
            for format in FORMATS {
                let text = written(format, left);
                let read = format.read(text.as_bytes());
                prop_assert!(text.len() <= 24 && (format != DeadlineFormat::Grpc || text.len() <= 9), "{}", text);
                let finest = match format {
                    // A shortened number keeps at least five digits.
                    DeadlineFormat::Grpc => Nanos(left.0 / 99_000 + 1),
                    DeadlineFormat::Millis => Nanos::MILLI,
                    DeadlineFormat::Seconds => Nanos(1),
                };
                let Some(read) = read else { return Err(TestCaseError::fail(text)) };
                prop_assert!(read <= left || left < finest, "{} for {}", text, left);
                prop_assert!(left - read < finest, "{} for {}", text, left);
            }
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..30), text in "[0-9.]{0,25}[numSMH]?") {
            for format in FORMATS {
                format.read(&bytes);
                format.read(text.as_bytes());
            }
        }
    }
}
