//! Success of steps whose source says nothing about the status.
//!
//! Tools count a status of 400 or more as a failure, or their users do; the first line of a response with captures is
//! `HTTP *`, after which a user would go on with what an error page has. So a status below 400 is asserted, before
//! anything is captured. A step with nothing but a request needs no assertion: weir has the same rule for it.

use weir_hurl::{Assertion, ExpectedResponse, ExpectedStatus, PlainQuery, PredicateKind, PredicateOperator, QueryKind};

use crate::collection::Import;
use crate::request::StatusRule;

/// Asserts success of the steps that expect a response of any status.
pub(super) fn assert(import: &mut Import) {
    for step in import.scenarios.iter_mut().flat_map(|scenario| &mut scenario.steps) {
        let is_open = step.response.as_ref().is_some_and(|response| !names_status(response));
        step.success = match (step.success, is_open) {
            (Some(rule), _) if step.response.as_ref().is_none_or(|response| response.status == ExpectedStatus::Any) => {
                Some(rule)
            }
            (None, true) => Some(StatusRule::BelowError),
            _ => None,
        };
    }
}

/// Whether a response says which statuses it may have. That it must not have one leaves the others open.
fn names_status(response: &ExpectedResponse) -> bool {
    response.status != ExpectedStatus::Any || response.asserts.iter().any(is_about_status)
}

fn is_about_status(assertion: &Assertion) -> bool {
    let is_status = matches!(assertion.query.kind, QueryKind::Plain(PlainQuery::Status));
    let is_unequal = matches!(assertion.predicate.kind, PredicateKind::Compare(PredicateOperator::NotEqual, _));
    is_status && !assertion.predicate.is_negated && !is_unequal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::ImportedScenario;
    use crate::request::ImportedStep;

    fn rule(response: Option<ExpectedResponse>, own: Option<StatusRule>) -> Option<StatusRule> {
        let step = ImportedStep { response, success: own, ..ImportedStep::default() };
        let mut import = Import::default();
        import.scenarios.push(ImportedScenario { steps: vec![step], ..ImportedScenario::default() });
        assert(&mut import);
        import.scenarios[0].steps[0].success
    }

    fn asserts(text: &str) -> Option<ExpectedResponse> {
        Some(ExpectedResponse { asserts: vec![Assertion::parse(text).unwrap()], ..ExpectedResponse::default() })
    }

    #[test]
    fn a_response_of_any_status_must_be_below_400_unless_the_source_says_which_it_is() {
        assert_eq!(rule(None, None), None);
        assert_eq!(rule(Some(ExpectedResponse::default()), None), Some(StatusRule::BelowError));
        let coded = ExpectedResponse { status: ExpectedStatus::Code(404), ..ExpectedResponse::default() };
        assert_eq!(rule(Some(coded.clone()), None), None);
        assert_eq!(rule(Some(coded), Some(StatusRule::Any)), None);
        for about in ["status == 404", "status < 500", "status toString matches /^4/"] {
            assert_eq!(rule(asserts(about), None), None, "{about}");
        }
        for open in ["body contains \"x\"", "status != 500", "status not == 500", "jsonpath \"$.status\" == 1"] {
            assert_eq!(rule(asserts(open), None), Some(StatusRule::BelowError), "{open}");
        }
        assert_eq!(rule(asserts("body contains \"x\""), Some(StatusRule::Any)), Some(StatusRule::Any));
        assert_eq!(rule(None, Some(StatusRule::Any)), Some(StatusRule::Any));
    }
}
