//! Statuses that checks of calls of gRPC compare with.

use weir_base::grpc_status::{GRPC_STATUS_NAMES, is_grpc_status};
use weir_hurl::{Assertion, ParseError, PredicateKind, PredicateOperator, PredicateValue, ScalarValue};

use super::problem;

/// Lowest status of a failure of HTTP, which a call has if a proxy responds.
const FIRST_ERROR_STATUS: i64 = 400;

/// Mistake of an assert on the status of a call that no status is equal to: a name that gRPC does not have, or a status
/// of HTTP below those of failures.
pub fn call_status_mistake(assertion: &Assertion) -> Option<ParseError> {
    let PredicateKind::Compare(PredicateOperator::Equal | PredicateOperator::NotEqual, value) =
        &assertion.predicate.kind
    else {
        return None;
    };
    let found = match value {
        _ if !assertion.is_about_status() => None,
        PredicateValue::Scalar(ScalarValue::Text(text)) => {
            let name = text.as_text().filter(|name| !GRPC_STATUS_NAMES.contains(name));
            name.map(|name| format!("'{}'", name.escape_debug()))
        }
        PredicateValue::Scalar(ScalarValue::Number(number)) => {
            let is_code = |code: i64| u16::try_from(code).is_ok_and(is_grpc_status);
            let is_status = |code: i64| is_code(code) || code >= FIRST_ERROR_STATUS;
            let text = number.to_string();
            (!text.parse().is_ok_and(is_status)).then_some(text)
        }
        _ => None,
    };
    let hint = format!("gRPC has {}", GRPC_STATUS_NAMES.join(", "));
    let expected = "a status of gRPC: a code from 0 to 16, or a name such as \"OK\"";
    found.map(|found| problem(assertion.query.position, expected, found, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_that_a_call_can_have_is_compared_with() {
        for (text, is_possible) in [
            ("status == \"OK\"", true),
            ("status != \"UNAVAILABLE\"", true),
            ("status == 16", true),
            ("status == 503", true),
            ("status < 200", true),
            ("status toString == \"Ok\"", true),
            ("header \"a\" == \"Ok\"", true),
            ("status == \"{{code}}\"", true),
            ("status == \"Ok\"", false),
            ("status == \"0\"", false),
            ("status == 200", false),
            ("status != 17", false),
            ("status == -1", false),
            ("status == 1.5", false),
        ] {
            let mistake = call_status_mistake(&Assertion::parse(text).expect("an assert"));
            assert_eq!(mistake.is_none(), is_possible, "{text}: {mistake:?}");
        }
    }
}
