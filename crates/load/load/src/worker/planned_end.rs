//! End of a worker's part of the load, independent of its connections.

use super::Worker;
use weir_base::Nanos;
use weir_pace::feed::Feed;

impl Worker<'_> {
    /// Whether nothing is in flight or to come.
    pub(super) fn is_done(&mut self) -> bool {
        if self.counters.in_flight() > 0 {
            return false;
        }
        if let Some(users) = &self.users {
            if self.clock.now() >= self.until {
                // Users whose iterations are cut off take no arrival that waits.
                let is_open = matches!(self.feed, Feed::Open(_));
                return !(is_open && users.has_free() && self.feed.next_due().is_some_and(|due| due < self.until));
            }
            if !users.is_quiet() {
                return false;
            }
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
