//! Failure of a delivery, as data.

use std::io;

use weir_base::Nanos;

/// Reason why a receiver did not accept data, and whether they may be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFailure {
    /// Reason, on one line.
    pub reason: String,
    /// Whether the same may be sent again.
    pub is_retryable: bool,
    /// Time that the receiver has named until then, or zero.
    pub retry_after: Nanos,
}

impl DeliveryFailure {
    /// Failure that passes.
    pub fn passing(reason: String) -> Self {
        Self { reason, is_retryable: true, retry_after: Nanos::ZERO }
    }

    /// Failure that another attempt would meet again.
    pub fn final_one(reason: String) -> Self {
        Self { reason, is_retryable: false, retry_after: Nanos::ZERO }
    }
}

/// Message of the system without its number.
pub fn system_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}
