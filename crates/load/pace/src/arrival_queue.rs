//! Arrivals that are not computed but come from somewhere else while the load goes on, such as those of a log.
//!
//! The queue is filled from ahead: [`ArrivalQueue::wants_more`] says when, and the edge pushes what it has. While it is
//! empty and not closed nothing is due, but the edge has to look again soon, and says when it did:
//! [`ArrivalQueue::looked`].

use std::collections::VecDeque;

use crate::schedule::ScheduledArrival;
use weir_base::nanos::Nanos;

/// Arrivals in the order of their intended starts, pushed from outside.
#[derive(Clone, Debug, Default)]
pub struct ArrivalQueue {
    arrivals: VecDeque<ScheduledArrival>,
    is_closed: bool,
    /// Time of the next look, while it is empty.
    look_again: Nanos,
}

/// Number of arrivals below which more are wanted.
const LOW_MARK: usize = 256;
/// Time between two checks of an empty queue.
const LOOK_INTERVAL: Nanos = Nanos::from_millis(1);

impl ArrivalQueue {
    /// Appends an arrival; one that is before the last one gets its time.
    pub fn push(&mut self, arrival: ScheduledArrival) {
        let last = self.arrivals.back().map_or(Nanos::ZERO, |last| last.intended);
        self.arrivals.push_back(ScheduledArrival { intended: arrival.intended.max(last), ..arrival });
    }

    /// Ends it: nothing more is pushed.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether more arrivals should be pushed now.
    pub fn wants_more(&self) -> bool {
        !self.is_closed && self.arrivals.len() < LOW_MARK
    }

    /// Records a check at `now`, after which the queue may still be empty.
    pub fn looked(&mut self, now: Nanos) {
        self.look_again = now + LOOK_INTERVAL;
    }

    /// Next arrival, due or not.
    pub fn peek(&self) -> Option<&ScheduledArrival> {
        self.arrivals.front()
    }

    /// Takes the next arrival if it is due.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<ScheduledArrival> {
        self.arrivals.front().filter(|arrival| arrival.intended <= now)?;
        self.arrivals.pop_front()
    }

    /// Time of the next arrival, or of the next look for one; `None` if nothing more comes.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        let look_again = (!self.is_closed).then_some(self.look_again);
        self.arrivals.front().map(|arrival| arrival.intended).or(look_again)
    }

    /// Number of arrivals that are due.
    pub(super) fn backlog(&self, now: Nanos) -> u64 {
        self.arrivals.partition_point(|arrival| arrival.intended <= now) as u64
    }

    /// Ends it without what is not taken.
    pub(super) fn clear(&mut self) {
        self.arrivals.clear();
        self.is_closed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrival(number: u64, ms: u64) -> ScheduledArrival {
        ScheduledArrival { intended: Nanos::from_millis(ms), number }
    }

    #[test]
    fn an_empty_queue_is_looked_at_again_until_it_is_closed() {
        let mut queue = ArrivalQueue::default();
        queue.looked(Nanos::from_millis(5));
        assert_eq!((queue.next_due(), queue.wants_more()), (Some(Nanos::from_millis(6)), true));
        queue.push(arrival(0, 9));
        assert_eq!(queue.next_due(), Some(Nanos::from_millis(9)));
        queue.close();
        assert_eq!((queue.take_due(Nanos::from_millis(9)), queue.next_due()), (Some(arrival(0, 9)), None));
        assert!(!queue.wants_more());
    }

    proptest! {
        /// Oracle: all arrivals in a list.
        #[test]
        fn what_is_pushed_is_taken_in_order_and_never_early(
            times in prop::collection::vec(0..50_u64, 0..40), looks in prop::collection::vec(0..60_u64, 0..20)
        ) {
            let mut queue = ArrivalQueue::default();
            let (mut last, mut expected) = (0, Vec::new());
            for (number, ms) in (0..).zip(&times) {
                queue.push(arrival(number, *ms));
                last = last.max(*ms);
                expected.push(arrival(number, last));
            }
            let mut taken = Vec::new();
            for now in looks.into_iter().chain([100]).map(Nanos::from_millis) {
                let due = expected.iter().skip(taken.len()).filter(|arrival| arrival.intended <= now).count();
                prop_assert_eq!(queue.backlog(now), due as u64);
                while let Some(arrival) = queue.take_due(now) {
                    prop_assert!(arrival.intended <= now);
                    taken.push(arrival);
                }
            }
            prop_assert_eq!(taken, expected);
        }
    }
}
