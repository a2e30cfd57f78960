//! Rate limits in tokens of language models: estimated from a request, corrected by what its response says.
//!
//! - `estimate`: tokens that a request asks for
//! - `usage_reader`: tokens that a response has used
//! - `event_count`: events of a stream, for those that do not say it
//!
//! A call takes its estimate before it is made, and gives back the difference, or takes it, with the last byte of its
//! response. A response that says nothing keeps the estimate; one without success takes one token. A stream that is
//! left before its end has not said all that it used, so it costs no less than the estimate.

mod estimate;
mod event_count;
mod usage_reader;

use std::cell::Cell;
use std::sync::Arc;

use http::StatusCode;

pub(super) use self::estimate::TokenEstimate;
use self::event_count::EventCount;
use self::usage_reader::UsageReader;
use super::caller::CallerPolicy;
use weir_machine::clock::Clock;
use weir_resilience::ratelimit::per_caller::BucketState;

/// Tokens that a call has taken, until they are corrected.
#[derive(Default)]
pub(super) struct RequestTokens {
    pub(super) charge: Cell<Option<TokenCharge>>,
    /// Tokens that the call asks for, if that is more than a bucket of its caller holds.
    pub(super) too_many: Cell<Option<u64>>,
}

/// An estimate that was taken; corrected when it is dropped.
pub(super) struct TokenCharge {
    policy: Arc<CallerPolicy>,
    clock: Clock,
    key: u64,
    estimate: TokenEstimate,
    /// Tokens that are taken now.
    taken: u64,
    reader: UsageReader,
    events: EventCount,
    pub(super) status: Option<StatusCode>,
    /// Whether the last byte of the response has come.
    pub(super) is_complete: bool,
    pub(super) is_rejected: bool,
}

impl TokenCharge {
    /// An estimate that was taken from the bucket with this key.
    pub(super) fn new(policy: Arc<CallerPolicy>, clock: Clock, key: u64, estimate: TokenEstimate) -> Self {
        Self {
            policy,
            clock,
            key,
            estimate,
            taken: estimate.total,
            reader: UsageReader::default(),
            events: EventCount::default(),
            status: None,
            is_complete: false,
            is_rejected: false,
        }
    }

    /// Reads a part of the response.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        self.reader.read(bytes);
        self.events.read(bytes);
    }

    /// Tokens of the call, as far as they are known.
    fn used(&self) -> u64 {
        let reported = self.reader.total();
        let is_success = self.status.is_none_or(|status| status.is_success());
        match reported {
            _ if self.is_rejected => 0,
            Some(total) if self.is_complete => total,
            _ if !is_success => reported.unwrap_or(1),
            // A caller that disconnects does not end the work, and may do so just before the end.
            _ => {
                let seen = self.estimate.text.saturating_add(self.events.total());
                self.estimate.total.max(seen).max(reported.unwrap_or_default())
            }
        }
    }

    pub(super) fn correct(&mut self) -> Option<BucketState> {
        let used = self.used();
        let taken = std::mem::replace(&mut self.taken, used);
        self.policy.correct(self.clock.now(), self.key, taken, used)
    }
}

impl Drop for TokenCharge {
    fn drop(&mut self) {
        if self.used() != self.taken {
            self.correct();
        }
    }
}
