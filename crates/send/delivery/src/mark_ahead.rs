//! Number of jobs that are marked as sent ahead of time, where a mark takes a round trip to the store.
//!
//! A job without its mark waits for a round trip when its turn comes; a job that is marked and not sent when the
//! process crashes counts as possibly sent. So as many jobs are marked ahead as are due during a round trip: after a
//! wait as many as were due in the last one, at least one more than before, and fewer again while fewer are needed.
//! With stores that mark a job at once none waits, and none is marked ahead.

/// Maximum number of jobs of one lane that are marked ahead.
const MAX_MARKED_JOBS: usize = 2048;
/// Round trips in a row without a job that waited, after which fewer are marked ahead.
const CALM_ROUND_TRIPS: u32 = 8;

/// Number of jobs to mark ahead of their sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkAhead {
    /// Jobs per lane; 0 until a job has waited for its mark.
    max_marked: usize,
    /// Jobs due since the last round trip began, and whether one of them waited.
    jobs_due: usize,
    has_waited: bool,
    /// Round trips in a row without a wait.
    calm_round_trips: u32,
}

impl MarkAhead {
    /// Jobs of each lane to mark ahead; `None` if marks take no time.
    pub fn max_marked(&self) -> Option<usize> {
        (self.max_marked > 0).then_some(self.max_marked)
    }

    /// Records that a job is due, and whether it waits for its mark.
    pub fn job_due(&mut self, waits: bool) {
        self.jobs_due += 1;
        self.has_waited |= waits;
    }

    /// Records the begin of a round trip.
    pub fn begin_round_trip(&mut self) {
        let due = std::mem::take(&mut self.jobs_due);
        if std::mem::take(&mut self.has_waited) {
            // A job also waits if its mark is under way, so the next round trip needs more marks than this one: up to
            // twice as many as jobs are due in one, which is soon reached and then approached one by one.
            let step = if self.max_marked < due + due / 2 { 1 + due / 8 } else { 1 };
            self.max_marked = (self.max_marked + step).max(due).min(MAX_MARKED_JOBS);
            self.calm_round_trips = 0;
            return;
        }
        self.calm_round_trips += 1;
        if self.calm_round_trips == CALM_ROUND_TRIPS {
            self.calm_round_trips = 0;
            self.max_marked -= self.max_marked.saturating_sub(due.max(1)).div_ceil(4);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use proptest::prelude::*;

    use super::*;
    use weir_base::Nanos;
    use weir_base::rng::SeededRng;

    /// A lane of jobs in virtual time: jobs become due, round trips carry marks, and the process may crash at any time.
    #[derive(Default)]
    struct MarkSimulation {
        mark_ahead: MarkAhead,
        /// First job that has not been due.
        next: u64,
        /// Marks under way to the store, and durable marks.
        requested: BTreeSet<u64>,
        marked: BTreeSet<u64>,
        waiting: VecDeque<u64>,
        sent: BTreeSet<u64>,
        waits: usize,
    }

    impl MarkSimulation {
        fn job_due(&mut self) {
            let job = self.next;
            self.next += 1;
            let waits = !self.marked.contains(&job);
            self.mark_ahead.job_due(waits);
            if !waits {
                self.sent.insert(job);
                return;
            }
            self.waits += 1;
            self.waiting.push_back(job);
        }

        /// Jobs that the next round trip marks.
        fn begin_round_trip(&mut self) {
            self.mark_ahead.begin_round_trip();
            let next = (self.next..).take(self.mark_ahead.max_marked().unwrap_or(0));
            self.requested.extend(next.chain(self.waiting.iter().copied()).filter(|job| !self.marked.contains(job)));
        }

        fn end_round_trip(&mut self) {
            self.marked.append(&mut self.requested);
            while self.waiting.front().is_some_and(|job| self.marked.contains(job)) {
                self.sent.extend(self.waiting.pop_front());
            }
        }

        /// Jobs that a crash now leaves in doubt without cause.
        fn marked_unsent(&self) -> usize {
            self.marked.len() - self.sent.len()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        /// Due jobs and round trips in any order and of any length.
        #[test]
        fn no_job_goes_before_its_mark_and_few_are_marked_in_vain(seed: u64, pace in 1..40_u64, steps in 50..150_u64) {
            let (mut world, mut rng) = (MarkSimulation::default(), SeededRng::new(seed, 0));
            // In virtual us: jobs due at a pace, round trips of 1 to 3 ms, one after the other.
            let (mut turn, mut ends) = (Nanos::ZERO, None::<Nanos>);
            let mut most_in_a_journey = 0;
            let mut in_this = 0;
            for step in 0..steps * pace {
                let now = turn.min(ends.unwrap_or(Nanos::NEVER));
                match ends {
                    Some(at) if at <= turn => {
                        world.end_round_trip();
                        most_in_a_journey = most_in_a_journey.max(in_this);
                        (ends, in_this) = (None, 0);
                    }
                    _ => {
                        world.job_due();
                        in_this += 1;
                        turn = now + Nanos(2_000_000 / pace + rng.bits() % 100_000);
                    }
                }
                if ends.is_none() {
                    world.begin_round_trip();
                    ends = Some(now + Nanos(1_000_000 + rng.bits() % 2_000_000));
                }
                prop_assert!(world.marked_unsent() <= 2 * most_in_a_journey.max(in_this) + 4, "{} after {step}", world.marked_unsent());
            }
            prop_assert!(world.sent.is_subset(&world.marked));
            prop_assert!(world.waits <= world.next as usize / 4 + 20, "{} of {}", world.waits, world.next);
        }
    }

    #[test]
    fn nothing_is_marked_ahead_where_marks_take_no_time() {
        let mut ahead = MarkAhead::default();
        assert_eq!(ahead.max_marked(), None);
        ahead.job_due(false);
        ahead.begin_round_trip();
        assert_eq!(ahead.max_marked(), None);
        ahead.job_due(true);
        ahead.begin_round_trip();
        assert_eq!(ahead.max_marked(), Some(1), "one waited");
    }
}
