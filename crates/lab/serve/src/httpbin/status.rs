//! `/status/{code}`: one status, or a choice by weight.

use http::StatusCode;

use super::query::number;

/// Statuses and their weights, as `200`, `200,500` or `200:9,500:1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusChoice(Vec<(StatusCode, u64)>);

/// Maximum weight; sums cannot overflow.
const MAX_WEIGHT: u64 = 1_000_000;

impl StatusChoice {
    /// Parses the last segment of the path.
    ///
    /// # Errors
    /// Expected syntax, in one line.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let read = |part: &str| {
            let (code, weight) = part.split_once(':').unwrap_or((part, "1"));
            Ok((status("status", code)?, number("weight", weight, 0..=MAX_WEIGHT)?))
        };
        let choice = Self(text.split(',').map(read).collect::<Result<_, String>>()?);
        match choice.total() {
            0 => Err("weight: expected one that is not 0".to_owned()),
            _ => Ok(choice),
        }
    }

    /// Status without a choice, if there is only one.
    pub(super) fn single(&self) -> Option<StatusCode> {
        match self.0.as_slice() {
            [(status, _)] => Some(*status),
            _ => None,
        }
    }

    /// Status that a draw in (0, 1] selects.
    pub(super) fn pick(&self, draw: f64) -> StatusCode {
        let mut left = draw * self.total() as f64;
        let mut picked = StatusCode::OK;
        for (status, weight) in &self.0 {
            if *weight > 0 {
                picked = *status;
                left -= *weight as f64;
                if left <= 0.0 {
                    break;
                }
            }
        }
        picked
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }
}

/// Parses the status of a final response; those below 200 are interim.
///
/// # Errors
/// Expected value of `name`, in one line.
pub(super) fn status(name: &str, text: &str) -> Result<StatusCode, String> {
    let code = number(name, text, 200..=599)?;
    StatusCode::from_u16(code as u16).map_err(|error| format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_invalid_choice_is_reported_with_the_expected_range() {
        for (wrong, expected) in [
            ("", "status: expected a whole number from 200 to 599"),
            ("100", "status: expected a whole number from 200 to 599"),
            ("600", "status: expected a whole number from 200 to 599"),
            ("200,", "status: expected a whole number from 200 to 599"),
            ("200:x", "weight: expected a whole number from 0 to 1000000"),
            ("200:", "weight: expected a whole number from 0 to 1000000"),
            ("200:0,500:0", "weight: expected one that is not 0"),
        ] {
            assert_eq!(StatusChoice::read(wrong), Err(expected.to_owned()), "{wrong}");
        }
        assert_eq!(StatusChoice::read("204").unwrap().single(), Some(StatusCode::NO_CONTENT));
        assert_eq!(StatusChoice::read("200,500").unwrap().single(), None);
    }

    proptest! {
        /// Naive model: one ticket per unit of weight; the draw selects a ticket.
        #[test]
        fn a_choice_is_by_weight(weights in proptest::collection::vec(0_u64..20, 1..10), ticket in 0.0..1.0) {
            let tickets: Vec<usize> =
                weights.iter().enumerate().flat_map(|(k, weight)| vec![k; *weight as usize]).collect();
            prop_assume!(!tickets.is_empty());
            // Middle of a ticket, so that rounding has no effect.
            let ticket = (ticket * tickets.len() as f64) as usize;
            let draw = (ticket as f64 + 0.5) / tickets.len() as f64;
            let parts: Vec<String> = weights.iter().enumerate().map(|(k, w)| format!("{}:{w}", 200 + k)).collect();
            let choice = StatusChoice::read(&parts.join(",")).unwrap();
            prop_assert_eq!(usize::from(choice.pick(draw).as_u16()), 200 + tickets[ticket]);
        }
    }
}
