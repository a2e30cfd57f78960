//! End of a worker's part of the load, independent of its connections.

use super::{Flow, Worker};
use weir_base::Nanos;
use weir_pace::feed::Feed;

impl<F: Flow> Worker<'_, F> {
    /// Whether nothing is in flight or to come.
    pub(super) fn is_done(&mut self) -> bool {
        if self.results.counters.in_flight() > 0 {
            return false;
        }
        if let Some(is_done) = F::is_done(self) {
            return is_done;
        }
        self.refill_permits();
        (self.feed.next_due().is_none() || self.has_ended()) && !self.may_change()
    }

    /// Whether nothing is sent any more, although something is due: no connection takes it.
    fn has_ended(&mut self) -> bool {
        let max_wait = match &mut self.feed {
            Feed::Closed(_) => Nanos::ZERO,
            Feed::Open(feed) => match feed.queue() {
                Some(_) => return false,
                None => self.shared.plan.timeout,
            },
        };
        self.clock.now() >= self.until + max_wait
    }
}
