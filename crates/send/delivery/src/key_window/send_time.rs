//! Earliest time of a key's next send, and what it follows from.

use super::{AdaptivePace, KeyLimit, KeyWindows, LimitUnit, Nanos, RejectionProbe};
use crate::pace::LearnedLimit;

/// Event that a key's next send waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendTimeCause {
    /// A pause after a rejection, or the response to the single request after it.
    Pause,
    /// The learnt pace.
    Pace(LearnedLimit),
    /// The arrival of the request before it, since nonces must arrive in order.
    Order,
    /// A quota that the service reports.
    Quota,
    /// A declared limit.
    Limit(KeyLimit),
}

impl KeyWindows {
    /// Earliest send time of a request of this weight if nothing else happens; may be in the past. [`Nanos::NEVER`]:
    /// not before a request in flight ends.
    pub fn earliest(&self, weight: u64) -> Nanos {
        let mut earliest = Nanos::ZERO;
        self.for_each_bound(weight, |at, _| earliest = earliest.max(at));
        earliest
    }

    /// Latest bound of a request's send time; `None` if nothing ever bounded it.
    pub fn cause(&self, weight: u64) -> Option<SendTimeCause> {
        let mut latest = (Nanos::ZERO, None);
        self.for_each_bound(weight, |at, cause| {
            if at > latest.0 {
                latest = (at, Some(cause));
            }
        });
        latest.1
    }

    /// Calls `act` with each lower bound of the send time.
    fn for_each_bound(&self, weight: u64, mut act: impl FnMut(Nanos, SendTimeCause)) {
        act(self.held_until, SendTimeCause::Pause);
        if let Some(RejectionProbe { in_flight: Some((_, until)), .. }) = self.probe {
            act(until, SendTimeCause::Pause);
        }
        if let Some(pace) = &self.pace {
            act(pace.next_send_at(), SendTimeCause::Pace(pace.learned_limit()));
        }
        if self.ordered {
            let all = self.in_flight.all_arrived_by(self.delay_bound).or(self.last_arrival);
            // Strictly later: two requests of the same instant have no order.
            act(all.map_or(Nanos::ZERO, |all| all + Nanos(1)), SendTimeCause::Order);
        }
        let paced = self.pace.as_ref().is_some_and(AdaptivePace::is_limited);
        let is_idle = self.in_flight.in_flight(LimitUnit::Requests) == 0;
        for quota in &self.server_quotas {
            act(quota.earliest(weight, paced, is_idle), SendTimeCause::Quota);
        }
        for count in &self.counts {
            let ahead = self.in_flight.in_transit(count.limit.unit, self.delay_bound);
            act(count.earliest(count.limit.unit.amount(weight), &ahead), SendTimeCause::Limit(count.limit));
        }
    }
}
