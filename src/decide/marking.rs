//! How many jobs are marked as sent before they are, where a mark takes a journey to the store.
//!
//! A job whose mark is not there when its turn comes waits for the journey; one that is marked and not sent when the process
//! dies counts as one that may have been sent. So as many are marked ahead as have their turn during a journey: what it was
//! the last time that one had to wait and one more, and less again while fewer are needed. Stores that mark a job at
//! once never have one wait, and nothing is marked ahead there.

/// The most jobs of one line that are marked ahead.
const MOST: usize = 2048;
/// Round trips in a row without a job that waited, after which fewer are marked ahead.
const CALM: u32 = 8;

/// How far ahead of the sends marks are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Of each line; 0 as long as no job has waited for its mark.
    most: usize,
    /// Jobs that had their turn since the last journey began, and whether one of them waited.
    turns: usize,
    has_waited: bool,
    /// Journeys in a row in which none waited.
    calm: u32,
}

impl Ahead {
    /// How many jobs of each line are marked before they are sent; `None` if marks take no time.
    pub fn most(&self) -> Option<usize> {
        (self.most > 0).then_some(self.most)
    }

    /// A job has its turn; it waits if its mark is not there.
    pub fn turn(&mut self, waits: bool) {
        self.turns += 1;
        self.has_waited |= waits;
    }

    /// The next journey begins.
    pub fn begin(&mut self) {
        let turns = std::mem::take(&mut self.turns);
        if std::mem::take(&mut self.has_waited) {
            // One whose mark is on its way waits, too: for the next journey there have to be more than for this one.
            self.most = (self.most + 1).max(turns).min(MOST);
            self.calm = 0;
            return;
        }
        self.calm += 1;
        if self.calm == CALM {
            self.calm = 0;
            self.most -= self.most.saturating_sub(turns.max(1)).div_ceil(4);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use proptest::prelude::*;

    use super::*;
    use crate::decide::Nanos;
    use crate::decide::dice::Dice;

    /// A line of jobs in virtual time: turns come, journeys carry marks, and the process may die after any of it.
    #[derive(Default)]
    struct World {
        ahead: Ahead,
        /// Jobs from this one on have not had their turn.
        next: u64,
        /// On their way to the store, and durable there.
        asked: BTreeSet<u64>,
        marked: BTreeSet<u64>,
        waiting: VecDeque<u64>,
        sent: BTreeSet<u64>,
        waits: usize,
    }

    impl World {
        fn turn(&mut self) {
            let job = self.next;
            self.next += 1;
            let waits = !self.marked.contains(&job);
            self.ahead.turn(waits);
            if !waits {
                self.sent.insert(job);
                return;
            }
            self.waits += 1;
            self.waiting.push_back(job);
        }

        /// What the next journey takes along.
        fn begin(&mut self) {
            self.ahead.begin();
            let next = (self.next..).take(self.ahead.most().unwrap_or(0));
            self.asked.extend(next.chain(self.waiting.iter().copied()).filter(|job| !self.marked.contains(job)));
        }

        fn end(&mut self) {
            self.marked.append(&mut self.asked);
            while self.waiting.front().is_some_and(|job| self.marked.contains(job)) {
                self.sent.extend(self.waiting.pop_front());
            }
        }

        /// What a death now leaves in doubt though it was not sent.
        fn idle(&self) -> usize {
            self.marked.len() - self.sent.len()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        /// Turns and journeys in any order and of any length.
        #[test]
        fn no_job_goes_before_its_mark_and_few_are_marked_in_vain(seed: u64, pace in 1..40_u64, steps in 50..150_u64) {
            let (mut world, mut dice) = (World::default(), Dice::new(seed, 0));
            // In virtual microseconds: turns at a pace, journeys of 1 to 3 ms, one after the other.
            let (mut turn, mut ends) = (Nanos::ZERO, None::<Nanos>);
            let mut most_in_a_journey = 0;
            let mut in_this = 0;
            for step in 0..steps * pace {
                let now = turn.min(ends.unwrap_or(Nanos::NEVER));
                match ends {
                    Some(at) if at <= turn => {
                        world.end();
                        most_in_a_journey = most_in_a_journey.max(in_this);
                        (ends, in_this) = (None, 0);
                    }
                    _ => {
                        world.turn();
                        in_this += 1;
                        turn = now + Nanos(2_000_000 / pace + dice.bits() % 100_000);
                    }
                }
                if ends.is_none() {
                    world.begin();
                    ends = Some(now + Nanos(1_000_000 + dice.bits() % 2_000_000));
                }
                prop_assert!(world.idle() <= 2 * most_in_a_journey.max(in_this) + 4, "{} after {step}", world.idle());
            }
            prop_assert!(world.sent.is_subset(&world.marked));
            prop_assert!(world.waits <= world.next as usize / 4 + 20, "{} of {}", world.waits, world.next);
        }
    }

    #[test]
    fn where_marks_take_no_time_nothing_is_marked_ahead() {
        let mut ahead = Ahead::default();
        assert_eq!(ahead.most(), None);
        ahead.turn(false);
        ahead.begin();
        assert_eq!(ahead.most(), None);
        ahead.turn(true);
        ahead.begin();
        assert_eq!(ahead.most(), Some(1), "one waited");
    }
}
