//! `/status/{code}`: one status, or a choice by weight.

use http::StatusCode;

use super::query::number;

/// Statuses and their weights, as `200`, `200,500` or `200:9,500:1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusChoice(Vec<(StatusCode, u64)>);

/// More make no sense, and their sum fits.
const MAX_WEIGHT: u64 = 1_000_000;

impl StatusChoice {
    /// Reads it.
    ///
    /// # Errors
    /// What is expected, in words.
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

    /// The only one, if there is no choice.
    pub(super) fn single(&self) -> Option<StatusCode> {
        match self.0.as_slice() {
            [(status, _)] => Some(*status),
            _ => None,
        }
    }

    /// The one that a draw in (0, 1] falls on.
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

/// Reads a status that can end a request. Those below 200 only announce another.
///
/// # Errors
/// What is expected of `name`, in words.
pub(super) fn status(name: &str, text: &str) -> Result<StatusCode, String> {
    let code = number(name, text, 200..=599)?;
    StatusCode::from_u16(code as u16).map_err(|error| format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_choice_is_told_what_is_expected() {
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
        /// The naive way: as many tickets as a status has weight, and the draw says which ticket.
        #[test]
        fn a_choice_is_by_weight(weights in proptest::collection::vec(0_u64..20, 1..10), ticket in 0.0..1.0) {
            let tickets: Vec<usize> =
                weights.iter().enumerate().flat_map(|(k, weight)| vec![k; *weight as usize]).collect();
            prop_assume!(!tickets.is_empty());
            // The middle of a ticket: no rounding decides.
            let ticket = (ticket * tickets.len() as f64) as usize;
            let draw = (ticket as f64 + 0.5) / tickets.len() as f64;
            let parts: Vec<String> = weights.iter().enumerate().map(|(k, w)| format!("{}:{w}", 200 + k)).collect();
            let choice = StatusChoice::read(&parts.join(",")).unwrap();
            prop_assert_eq!(usize::from(choice.pick(draw).as_u16()), 200 + tickets[ticket]);
        }
    }
}
