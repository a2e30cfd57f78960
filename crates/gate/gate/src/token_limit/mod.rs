//! Rate limits in tokens of language models: estimated from a request, corrected by what its response says.
//!
//! - `estimate`: tokens that a request asks for
//! - `usage_reader`: tokens that a response has used
//!
//! A call takes its estimate before it is made, and gives back the difference, or takes it, with the last byte of its
//! response. A response that says nothing keeps the estimate; one without success takes one token.

mod estimate;
mod usage_reader;

use std::cell::Cell;
use std::sync::Arc;

use http::StatusCode;

pub(super) use self::estimate::{estimated_tokens, tokens_of_length};
pub(super) use self::usage_reader::UsageReader;
use super::caller::CallerPolicy;
use weir_machine::clock::Clock;
use weir_resilience::ratelimit::per_caller::BucketState;

/// Tokens that a call has taken, until they are corrected.
#[derive(Default)]
pub(super) struct RequestTokens {
    pub(super) charge: Cell<Option<TokenCharge>>,
}

/// An estimate that was taken; corrected when it is dropped.
pub(super) struct TokenCharge {
    pub(super) policy: Arc<CallerPolicy>,
    pub(super) clock: Clock,
    pub(super) key: u64,
    pub(super) estimate: u64,
    pub(super) reader: UsageReader,
    pub(super) status: Option<StatusCode>,
    pub(super) is_rejected: bool,
}

impl TokenCharge {
    /// Tokens of the call, as far as they are known.
    fn used(&self) -> u64 {
        match (self.reader.total(), self.status) {
            (Some(total), _) => total,
            _ if self.is_rejected => 0,
            (None, Some(status)) if !status.is_success() => 1,
            // A caller that disconnects does not end the work.
            (None, _) => self.estimate,
        }
    }

    pub(super) fn correct(&mut self) -> Option<BucketState> {
        let used = self.used();
        let taken = std::mem::replace(&mut self.estimate, used);
        self.policy.correct(self.clock.now(), self.key, taken, used)
    }
}

impl Drop for TokenCharge {
    fn drop(&mut self) {
        if self.used() != self.estimate {
            self.correct();
        }
    }
}
