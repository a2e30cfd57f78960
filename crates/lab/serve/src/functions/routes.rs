//! Built-in functions, those of the reference function server. Nothing is cached: computing is the load.

use bytes::Bytes;
use http::StatusCode;

use super::query;

/// Function of the service itself, without a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuiltInFunction {
    Root,
    Square,
    Cube,
    HelloWorld,
    PingPong,
    Prime,
    Fibonacci,
}

type BuiltInResponse = (StatusCode, Bytes);

const NO_QUERY_EXPECTED: &str = "Hello, Query parameter was not expected for this function!!";
const NO_NUM: &str = "Hello, num was not found in the query!!";
const NO_STR: &str = "Hello, str was not found in the query!!";
const INVALID_NUM: &str = "Hello, value of num is not valid!!";

/// Maximum lengths of values, in bytes.
const MAX_NUM_BYTES: usize = 24;
const MAX_STR_BYTES: usize = 99;

impl BuiltInFunction {
    /// Function at this decoded path.
    pub(super) fn at(path: &[u8]) -> Option<Self> {
        Some(match path {
            b"/" => Self::Root,
            b"/square" => Self::Square,
            b"/cube" => Self::Cube,
            b"/helloworld" => Self::HelloWorld,
            b"/pingpong" => Self::PingPong,
            b"/arithmetic/prime" => Self::Prime,
            b"/arithmetic/fibonacci" => Self::Fibonacci,
            _ => return None,
        })
    }

    /// Whether a call takes a few microseconds at most.
    pub(super) fn is_brief(self, query: Option<&str>) -> bool {
        let length = query.map_or(0, str::len);
        match self {
            // "num=" and six digits, for 500 divisions.
            Self::Prime => length <= 10,
            _ => length <= 256,
        }
    }

    /// Response to a query; an empty one counts as none.
    pub(super) fn call(self, query: Option<&str>) -> BuiltInResponse {
        let Some(query) = query.filter(|query| !query.is_empty()) else { return ok_response(self.no_query_message()) };
        match self {
            Self::Root => ok_response(NO_QUERY_EXPECTED),
            Self::Square => number(query, |n| Some(n.checked_mul(n)?.to_string())),
            Self::Cube => number(query, |n| Some(n.checked_mul(n)?.checked_mul(n)?.to_string())),
            Self::HelloWorld => text(query, b"Hello, "),
            Self::PingPong => text(query, b""),
            Self::Prime => number(query, |n| Some(if is_prime(n) { "True" } else { "False" })),
            Self::Fibonacci => number(query, |n| Some(fibonacci(n)?.to_string())),
        }
    }

    fn no_query_message(self) -> &'static str {
        match self {
            Self::Root => "Hello World!!",
            Self::Square | Self::Cube | Self::Fibonacci => "1",
            Self::HelloWorld => "Hello",
            Self::PingPong => "PingPong",
            Self::Prime => "False",
        }
    }
}

fn ok_response(body: impl Into<Bytes>) -> BuiltInResponse {
    (StatusCode::OK, body.into())
}

fn bad_request(why: &'static str) -> BuiltInResponse {
    (StatusCode::BAD_REQUEST, Bytes::from_static(why.as_bytes()))
}

/// Response to a number; `result` is none if it exceeds 64 bits.
fn number<T: Into<Bytes>>(query: &str, result: impl Fn(i64) -> Option<T>) -> BuiltInResponse {
    match query::value(query, b"num") {
        Some(num) if (1..=MAX_NUM_BYTES).contains(&num.len()) => {
            whole(&num).and_then(result).map_or(bad_request(INVALID_NUM), ok_response)
        }
        _ => bad_request(NO_NUM),
    }
}

/// Response of a greeting and the text, which is neither escaped nor checked.
fn text(query: &str, greeting: &[u8]) -> BuiltInResponse {
    match query::value(query, b"str") {
        Some(text) if (1..=MAX_STR_BYTES).contains(&text.len()) => ok_response([greeting, &text].concat()),
        _ => bad_request(NO_STR),
    }
}

/// Whole number in the syntax of C: spaces, a sign, digits, and nothing after them.
fn whole(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text.trim_ascii_start()).ok()?.parse().ok()
}

/// Primality by trial division.
fn is_prime(n: i64) -> bool {
    if n < 4 || n % 2 == 0 {
        return n == 2 || n == 3;
    }
    let n = n as u64;
    let mut divisor = 3;
    while divisor <= n / divisor {
        if n.is_multiple_of(divisor) {
            return false;
        }
        divisor += 2;
    }
    true
}

/// Fibonacci number by a loop.
fn fibonacci(n: i64) -> Option<i64> {
    let (mut last, mut this) = (1_i64, 1_i64);
    for _ in 2..n {
        (last, this) = (this, last.checked_add(this)?);
    }
    Some(this)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ask(target: &str) -> (u16, String) {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let (status, body) = BuiltInFunction::at(path.as_bytes()).unwrap().call(query);
        (status.as_u16(), String::from_utf8_lossy(&body).into_owned())
    }

    #[test]
    fn all_routes_respond_as_documented() {
        for (target, answer) in [
            ("/", "Hello World!!"),
            ("/?", "Hello World!!"),
            ("/?a=b", NO_QUERY_EXPECTED),
            ("/square", "1"),
            ("/square?", "1"),
            ("/square?num=5", "25"),
            ("/square?num=-5", "25"),
            ("/square?num=3037000499", "9223372030926249001"),
            ("/cube", "1"),
            ("/cube?num=-3", "-27"),
            ("/cube?num=2097151", "9223358842721533951"),
            ("/cube?num=-2097152", "-9223372036854775808"),
            ("/helloworld", "Hello"),
            ("/helloworld?str=Raja", "Hello, Raja"),
            ("/helloworld?STR=%3Cb%3E+%26", "Hello, <b> &"),
            ("/pingpong", "PingPong"),
            ("/pingpong?str=a%2Bb", "a+b"),
            ("/arithmetic/prime", "False"),
            ("/arithmetic/prime?num=523", "True"),
            ("/arithmetic/prime?num=2", "True"),
            ("/arithmetic/prime?num=1", "False"),
            ("/arithmetic/prime?num=-7", "False"),
            ("/arithmetic/prime?num=9223372036854775807", "False"),
            ("/arithmetic/fibonacci", "1"),
            ("/arithmetic/fibonacci?num=-9223372036854775808", "1"),
            ("/arithmetic/fibonacci?num=1", "1"),
            ("/arithmetic/fibonacci?num=2", "1"),
            ("/arithmetic/fibonacci?num=5", "5"),
            ("/arithmetic/fibonacci?num=20", "6765"),
            ("/arithmetic/fibonacci?num=92", "7540113804746346429"),
        ] {
            assert_eq!(ask(target), (200, answer.to_owned()), "{target}");
        }
    }

    #[test]
    fn invalid_arguments_get_their_own_messages() {
        for route in ["/square", "/cube", "/arithmetic/prime", "/arithmetic/fibonacci"] {
            for query in ["x=1", "num=", "num", "num=&num=5", "num=1234567890123456789012345"] {
                assert_eq!(ask(&format!("{route}?{query}")), (400, NO_NUM.to_owned()), "{route} {query}");
            }
            for query in [
                "num=a",
                "num=5a",
                "num=5+",
                "num=+",
                "num=-",
                "num=--5",
                "num=5.0",
                "num=%00",
                "num=%ff",
                "num=0x10",
                "num=9223372036854775808",
                "num=-9223372036854775809",
                "num=123456789012345678901234",
            ] {
                assert_eq!(ask(&format!("{route}?{query}")), (400, INVALID_NUM.to_owned()), "{route} {query}");
            }
        }
        for target in ["/square?num=3037000500", "/cube?num=2097152", "/cube?num=-2097153"] {
            assert_eq!(ask(target), (400, INVALID_NUM.to_owned()), "{target}");
        }
        for n in ["93", "1000000000000000000", "9223372036854775807"] {
            assert_eq!(ask(&format!("/arithmetic/fibonacci?num={n}")), (400, INVALID_NUM.to_owned()), "{n}");
        }
        for route in ["/helloworld", "/pingpong"] {
            for query in ["x=1".to_owned(), "str=".to_owned(), format!("str={}", "a".repeat(100))] {
                assert_eq!(ask(&format!("{route}?{query}")), (400, NO_STR.to_owned()), "{route} {query}");
            }
        }
    }

    #[test]
    fn numbers_can_have_leading_spaces_and_a_plus_sign() {
        for num in ["5", "+5", "%2B5", "++5", "%20%2B5", "%095", "0000000000000000000005"] {
            assert_eq!(ask(&format!("/square?num={num}")), (200, "25".to_owned()), "{num}");
        }
    }

    #[test]
    fn lengths_count_bytes_after_decoding() {
        let most = "a".repeat(98);
        assert_eq!(ask(&format!("/pingpong?str=%41{most}")), (200, format!("A{most}")));
        assert_eq!(ask(&format!("/pingpong?str=%C3%A4{most}")).0, 400);
        assert_eq!(ask("/square?num=00000000000000000000000%35"), (200, "25".to_owned()));
    }

    #[test]
    fn paths_have_to_match_exactly() {
        for path in ["", "/square/", "//square", "/Square", "/arithmetic", "/arithmetic/primes"] {
            assert_eq!(BuiltInFunction::at(path.as_bytes()), None, "{path}");
        }
    }

    #[test]
    fn primes_match_a_sieve() {
        let mut sieve = vec![true; 20_000];
        sieve[..2].fill(false);
        for n in 2..sieve.len() {
            for multiple in (2 * n..sieve.len()).step_by(n) {
                sieve[multiple] = false;
            }
        }
        for (n, prime) in sieve.into_iter().enumerate() {
            assert_eq!(is_prime(n as i64), prime, "{n}");
        }
    }

    #[test]
    fn large_numbers_are_divided_up_to_their_root() {
        // The largest square of a prime below 10^12, its neighbours, and two primes of that size.
        assert!(!is_prime(999_983 * 999_983));
        assert!(!is_prime(999_983 * 999_979));
        assert!(is_prime(999_999_999_989) && is_prime(1_000_000_000_039));
    }

    proptest! {
        #[test]
        fn powers_are_exact_or_rejected(n: i64) {
            let response = |exact: i128| {
                i64::try_from(exact).map_or((400, INVALID_NUM.to_owned()), |exact| (200, exact.to_string()))
            };
            let n = n >> (n as u64 % 60);
            let wide = i128::from(n);
            prop_assert_eq!(ask(&format!("/square?num={n}")), response(wide * wide));
            if n.unsigned_abs() < 1 << 40 {
                prop_assert_eq!(ask(&format!("/cube?num={n}")), response(wide * wide * wide));
            }
        }

        #[test]
        fn each_fibonacci_number_is_the_sum_of_the_two_before(n in 3_i64..=92) {
            let at = |n| fibonacci(n).unwrap();
            prop_assert_eq!(at(n), at(n - 1) + at(n - 2));
        }
    }
}
