//! Statuses that checks of calls of gRPC compare with.

use weir_base::grpc_status::{GRPC_STATUS_NAMES, is_grpc_status};
use weir_hurl::{Assertion, PredicateKind, PredicateOperator, PredicateValue};

use super::piece::PieceCompiler;
use super::problem;

/// Lowest status of a failure of HTTP, which a call has if a proxy responds.
const FIRST_ERROR_STATUS: i64 = 400;

impl PieceCompiler<'_> {
    /// Rejects what no status of a call is equal to: names that gRPC does not have, and statuses of HTTP that are no
    /// failures.
    pub(super) fn check_call_statuses<'a>(&mut self, assertions: impl Iterator<Item = &'a Assertion>) {
        for assertion in assertions.filter(|assertion| assertion.is_about_status()) {
            let PredicateKind::Compare(PredicateOperator::Equal | PredicateOperator::NotEqual, value) =
                &assertion.predicate.kind
            else {
                continue;
            };
            let found = match value {
                PredicateValue::Text(text) => match text.as_text() {
                    Some(name) if !GRPC_STATUS_NAMES.contains(&name) => format!("'{}'", name.escape_debug()),
                    _ => continue,
                },
                PredicateValue::Number(number) => match number.to_string().parse::<i64>() {
                    Ok(code) if code >= FIRST_ERROR_STATUS => continue,
                    Ok(code) if u16::try_from(code).is_ok_and(is_grpc_status) => continue,
                    _ => number.to_string(),
                },
                _ => continue,
            };
            let hint = format!("gRPC has {}", GRPC_STATUS_NAMES.join(", "));
            let expected = "a status of gRPC: a code from 0 to 16, or a name such as \"OK\"";
            self.errors.push(problem(assertion.query.position, expected, found, hint));
        }
    }
}
