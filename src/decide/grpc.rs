//! gRPC statuses, and how they and the statuses of HTTP stand for one another.
//!
//! A gRPC call ends with a code in its trailers, whatever the HTTP status, which is 200. Four codes say of a service what
//! a status does, and are judged as that status is: UNAVAILABLE as 503, RESOURCE_EXHAUSTED as 429, DEADLINE_EXCEEDED as
//! 504, INTERNAL as 500. The others answer the question that was asked.

use std::fmt;

/// A gRPC status code, 0 to 16 (grpc/grpc, doc/statuscodes.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u8);

/// How a code is written in logs, metrics and configurations.
const NAMES: [&str; 17] = [
    "grpc-0", "grpc-1", "grpc-2", "grpc-3", "grpc-4", "grpc-5", "grpc-6", "grpc-7", "grpc-8", "grpc-9", "grpc-10",
    "grpc-11", "grpc-12", "grpc-13", "grpc-14", "grpc-15", "grpc-16",
];

impl Code {
    /// Success.
    pub const OK: Self = Self(0);
    /// What a code that cannot be read stands for (grpc/grpc, doc/PROTOCOL-HTTP2.md).
    pub const UNKNOWN: Self = Self(2);
    /// The request makes no sense.
    pub const INVALID_ARGUMENT: Self = Self(3);
    /// The deadline has come first.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// A limit is reached.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// There is no such method.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// The service is broken.
    pub const INTERNAL: Self = Self(13);
    /// The service cannot take the call now.
    pub const UNAVAILABLE: Self = Self(14);

    /// The codes that are failures of a service, and not its answer.
    pub const FAILURES: [Self; 4] =
        [Self::DEADLINE_EXCEEDED, Self::RESOURCE_EXHAUSTED, Self::INTERNAL, Self::UNAVAILABLE];

    /// All codes.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..NAMES.len() as u8).map(Self)
    }

    /// A code by its number; none above 16.
    pub fn new(number: u64) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| usize::from(*number) < NAMES.len()).map(Self)
    }

    /// The code that the value of a `grpc-status` says; UNKNOWN if it is no code.
    pub fn read(value: &[u8]) -> Self {
        let digits = (1..=3).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
        let number = |digits: &[u8]| digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        digits.then(|| number(value)).and_then(Self::new).unwrap_or(Self::UNKNOWN)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// `grpc-14`.
    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or("grpc-2")
    }

    /// The code by which a gateway says what it says to others with this status.
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

    /// The status that says the same of a service; none if the code is an answer.
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

/// A set of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes(u32);

impl Codes {
    /// None of them.
    pub const NONE: Self = Self(0);

    /// The codes of [`Code::FAILURES`].
    pub fn failures() -> Self {
        Code::FAILURES.into_iter().collect()
    }

    /// Whether this code is one of them.
    pub const fn contains(self, code: Code) -> bool {
        self.0 >> code.0 & 1 == 1
    }

    /// These, and this one.
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

/// Whether a Content-Type is that of a gRPC call: `application/grpc`, `application/grpc+proto`. gRPC-Web is another
/// protocol.
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
    fn a_gateways_statuses_have_the_codes_that_callers_know() {
        for (status, code) in
            [(504, 4), (503, 14), (502, 14), (429, 8), (413, 8), (400, 3), (404, 12), (405, 12), (200, 0)]
        {
            assert_eq!(Code::of_http(status).number(), code, "{status}");
        }
    }

    #[test]
    fn a_failures_status_has_the_failures_code() {
        for code in Code::all() {
            assert_eq!(code.as_http().is_some(), Code::FAILURES.contains(&code), "{code}");
            assert!(code.as_http().is_none_or(|status| Code::of_http(status) == code), "{code}");
            assert_eq!(code.name(), format!("grpc-{}", code.number()));
        }
    }

    #[test]
    fn grpc_is_told_from_what_looks_like_it() {
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
