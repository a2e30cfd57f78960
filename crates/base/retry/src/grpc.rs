//! gRPC status codes, and the HTTP statuses that correspond to them.
//!
//! A gRPC call ends with a code in its trailers; its HTTP status is 200. Four codes are failures of the service, and
//! treated as the corresponding status: UNAVAILABLE as 503, RESOURCE_EXHAUSTED as 429, DEADLINE_EXCEEDED as 504,
//! INTERNAL as 500. The others are results of the call.

use std::fmt;

/// gRPC status code, 0 to 16 (grpc/grpc, doc/statuscodes.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u8);

/// Names in logs, metrics and configurations.
const NAMES: [&str; 17] = [
    "grpc-0", "grpc-1", "grpc-2", "grpc-3", "grpc-4", "grpc-5", "grpc-6", "grpc-7", "grpc-8", "grpc-9", "grpc-10",
    "grpc-11", "grpc-12", "grpc-13", "grpc-14", "grpc-15", "grpc-16",
];

impl Code {
    /// Success.
    pub const OK: Self = Self(0);
    /// Unknown error; also an unreadable code (grpc/grpc, doc/PROTOCOL-HTTP2.md).
    pub const UNKNOWN: Self = Self(2);
    /// Invalid request.
    pub const INVALID_ARGUMENT: Self = Self(3);
    /// The deadline passed.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// A limit or quota is exhausted.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// Unknown method.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// Internal error of the service.
    pub const INTERNAL: Self = Self(13);
    /// The service is unavailable.
    pub const UNAVAILABLE: Self = Self(14);

    /// Codes that are failures of the service, not results of the call.
    pub const FAILURES: [Self; 4] =
        [Self::DEADLINE_EXCEEDED, Self::RESOURCE_EXHAUSTED, Self::INTERNAL, Self::UNAVAILABLE];

    /// All codes.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..NAMES.len() as u8).map(Self)
    }

    /// Code by its number; `None` above 16.
    pub fn new(number: u64) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| usize::from(*number) < NAMES.len()).map(Self)
    }

    /// Parses the value of `grpc-status`; UNKNOWN if it is invalid.
    pub fn read(value: &[u8]) -> Self {
        let digits = (1..=3).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
        let number = |digits: &[u8]| digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        digits.then(|| number(value)).and_then(Self::new).unwrap_or(Self::UNKNOWN)
    }

    /// Number of the code.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Name, such as `grpc-14`.
    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or("grpc-2")
    }

    /// Code that corresponds to a gateway's HTTP status.
    pub const fn of_http(status: u16) -> Self {
        match status {
            200..300 => Self::OK,
            401 => Self(16),
            403 => Self(7),
            404 | 405 | 501 => Self::UNIMPLEMENTED,
            408 | 504 => Self::DEADLINE_EXCEEDED,
            409 => Self(10),
            413 | 429 | 431 => Self::RESOURCE_EXHAUSTED,
            400..500 => Self::INVALID_ARGUMENT,
            502 | 503 => Self::UNAVAILABLE,
            500..600 => Self::INTERNAL,
            _ => Self::UNKNOWN,
        }
    }

    /// HTTP status that corresponds to a failure; `None` for the other codes.
    pub const fn as_http(self) -> Option<u16> {
        match self {
            Self::DEADLINE_EXCEEDED => Some(504),
            Self::RESOURCE_EXHAUSTED => Some(429),
            Self::INTERNAL => Some(500),
            Self::UNAVAILABLE => Some(503),
            _ => None,
        }
    }
}

/// Set of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes(u32);

impl Codes {
    /// Empty set.
    pub const NONE: Self = Self(0);

    /// Set of [`Code::FAILURES`].
    pub fn failures() -> Self {
        Code::FAILURES.into_iter().collect()
    }

    /// Whether the set contains this code.
    pub const fn contains(self, code: Code) -> bool {
        self.0 >> code.0 & 1 == 1
    }

    /// Set with this code in addition.
    #[must_use]
    pub const fn with(self, code: Code) -> Self {
        Self(self.0 | 1 << code.0)
    }
}

impl FromIterator<Code> for Codes {
    fn from_iter<I: IntoIterator<Item = Code>>(codes: I) -> Self {
        codes.into_iter().fold(Self::NONE, Self::with)
    }
}

/// Whether a Content-Type is gRPC: `application/grpc`, `application/grpc+proto`. gRPC-Web is another protocol.
pub fn is_grpc(content_type: &[u8]) -> bool {
    const TYPE: &[u8] = b"application/grpc";
    let begins = content_type.get(..TYPE.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(TYPE));
    begins && matches!(content_type.get(TYPE.len()), None | Some(b'+' | b';' | b' ' | b'\t'))
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_gateways_statuses_have_their_codes() {
        for (status, code) in
            [(504, 4), (503, 14), (502, 14), (429, 8), (413, 8), (400, 3), (404, 12), (405, 12), (200, 0)]
        {
            assert_eq!(Code::of_http(status).number(), code, "{status}");
        }
    }

    #[test]
    fn the_status_of_a_failure_maps_back_to_its_code() {
        for code in Code::all() {
            assert_eq!(code.as_http().is_some(), Code::FAILURES.contains(&code), "{code}");
            assert!(code.as_http().is_none_or(|status| Code::of_http(status) == code), "{code}");
            assert_eq!(code.name(), format!("grpc-{}", code.number()));
        }
    }

    #[test]
    fn grpc_is_distinguished_from_similar_types() {
        for (text, is) in [
            ("application/grpc", true),
            ("application/grpc+json", true),
            ("Application/gRPC;charset=utf-8", true),
            ("application/grpc-web", false),
            ("application/grpcx", false),
            ("application/grp", false),
            ("", false),
        ] {
            assert_eq!(is_grpc(text.as_bytes()), is, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_set_holds_what_was_put_into_it(numbers in proptest::collection::vec(0_u64..17, 0..9)) {
            let set: Codes = numbers.iter().filter_map(|number| Code::new(*number)).collect();
            for code in Code::all() {
                prop_assert_eq!(set.contains(code), numbers.contains(&code.number().into()));
            }
        }

        #[test]
        fn any_bytes_are_a_code(bytes: Vec<u8>, number in 0_u64..2000, digits in "[0-9]{0,4}") {
            Code::read(&bytes);
            let plain = |text: &str| text.parse().ok().filter(|number| text.len() <= 3 && *number <= 16);
            let (text, expected) = (number.to_string(), plain(&number.to_string()).unwrap_or(2_u8));
            prop_assert_eq!(Code::read(text.as_bytes()).number(), expected);
            prop_assert_eq!(Code::read(digits.as_bytes()).number(), plain(&digits).unwrap_or(2));
        }
    }
}
