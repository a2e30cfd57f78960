//! When the iterations of one of several scenarios begin, and when they are cut off.

use crate::schedule::Schedule;
use crate::shard::Shard;
use crate::user_stages::UserStages;
use weir_base::nanos::Nanos;

/// When the iterations of a scenario begin, and when they are cut off.
#[derive(Clone, Debug)]
pub struct ScenarioPace {
    start: Nanos,
    /// Time that iterations have to finish after the end.
    graceful_stop: Nanos,
    beginnings: IterationPace,
    /// Number of iterations that were given so far, of this part of the load.
    given: u64,
    /// Arrivals that no user was free for in time.
    dropped: u64,
    part: Shard,
}

/// When iterations begin, from the start of their scenario on.
#[derive(Clone, Debug)]
pub enum IterationPace {
    /// As many users as the stages say, each of which begins the next iteration when one has ended. A user that the
    /// stages take away has `graceful_ramp_down` to finish.
    Users {
        /// Number of users over time.
        stages: UserStages,
        /// Time that a user which is taken away has to finish.
        graceful_ramp_down: Nanos,
    },
    /// Users that share a number of iterations.
    Shared {
        /// Number of users.
        users: u64,
        /// Number of iterations of all users.
        iterations: u64,
        /// Time in which they begin.
        within: Nanos,
    },
    /// Users with a number of iterations each.
    PerUser {
        /// Number of users.
        users: u64,
        /// Number of iterations of each.
        iterations: u64,
        /// Time in which they begin.
        within: Nanos,
    },
    /// Iterations that arrive by a schedule, each for a free user. Those that wait longer than `max_wait` are dropped.
    Arrivals {
        /// Maximum number of users.
        users: u64,
        /// Arrivals of the whole load.
        schedule: Schedule,
        /// Longest wait for a user.
        max_wait: Nanos,
    },
}

/// An iteration that a user is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenIteration {
    /// Number in its scenario, over the whole load, from 0.
    pub number: u64,
    /// Intended start.
    pub at: Nanos,
    /// Time at which it is cut off.
    pub cut: Nanos,
}

impl ScenarioPace {
    /// Scenario that begins at `start`, whose iterations have `graceful_stop` to finish after its end.
    pub fn new(beginnings: IterationPace, start: Nanos, graceful_stop: Nanos) -> Self {
        Self { start, graceful_stop, beginnings, given: 0, dropped: 0, part: Shard::WHOLE }
    }

    /// Part of the scenario; to be called before the first iteration. Users keep their numbers in the whole.
    pub fn sharded(mut self, part: Shard) -> Self {
        self.part = part;
        if let IterationPace::Arrivals { schedule, .. } = &mut self.beginnings {
            *schedule = schedule.clone().sharded(part);
        }
        self
    }

    /// Number of users of the whole scenario.
    pub fn users(&self) -> u64 {
        match &self.beginnings {
            IterationPace::Users { stages, .. } => stages.peak(),
            IterationPace::Shared { users, .. }
            | IterationPace::PerUser { users, .. }
            | IterationPace::Arrivals { users, .. } => *users,
        }
    }

    /// Whether iterations arrive, whatever the users do.
    pub fn is_open(&self) -> bool {
        matches!(self.beginnings, IterationPace::Arrivals { .. })
    }

    /// Start of the scenario.
    pub fn start(&self) -> Nanos {
        self.start
    }

    /// End of the scenario: no iteration begins later.
    pub fn end(&self) -> Nanos {
        self.start
            + match &self.beginnings {
                IterationPace::Users { stages, .. } => stages.length(),
                IterationPace::Shared { within, .. } | IterationPace::PerUser { within, .. } => *within,
                IterationPace::Arrivals { schedule, .. } => schedule.length(),
            }
    }

    /// Time at which its last iterations are cut off.
    pub fn until(&self) -> Nanos {
        self.end() + self.graceful_stop
    }

    /// Number of iterations of all users, if the end of the scenario does not come first.
    pub fn iterations(&self) -> Option<u64> {
        match &self.beginnings {
            IterationPace::Users { .. } => None,
            IterationPace::Shared { iterations, .. } => Some(*iterations),
            IterationPace::PerUser { users, iterations, .. } => Some(users.saturating_mul(*iterations)),
            IterationPace::Arrivals { schedule, .. } => Some(schedule.expected().ceil() as u64),
        }
    }

    /// Number of arrivals that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Next iteration of user number `user`, from 0, that has had `done` and is free from `now` on; `None` if it has no
    /// further one.
    pub fn next(&mut self, user: u64, done: u64, now: Nanos) -> Option<GivenIteration> {
        let (from, end, until) = (now.max(self.start), self.end(), self.until());
        if from >= end && !matches!(self.beginnings, IterationPace::Arrivals { .. }) {
            return None;
        }
        let mut number = self.part.nth(self.given);
        let (at, cut) = match &mut self.beginnings {
            IterationPace::Users { stages, graceful_ramp_down } => {
                let active = stages.active(user, from - self.start)?;
                let leave = self.start + active.end;
                // At the end of the stages the scenario ends, and takes no user away.
                (self.start + active.start, if leave >= end { until } else { (leave + *graceful_ramp_down).min(until) })
            }
            IterationPace::Shared { iterations, .. } => {
                (self.given < self.part.count(*iterations)).then_some((from, until))?
            }
            IterationPace::PerUser { iterations, .. } => (done < *iterations).then_some((from, until))?,
            IterationPace::Arrivals { schedule, max_wait, .. } => loop {
                let arrival = schedule.peek()?;
                schedule.advance();
                let at = self.start + arrival.intended;
                if now <= at + *max_wait && now < until {
                    number = arrival.number;
                    break (at, until);
                }
                self.dropped += 1;
            },
        };
        self.given += 1;
        Some(GivenIteration { number, at, cut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Arrivals, LoadStage};
    use proptest::prelude::*;

    const S: Nanos = Nanos::SECOND;

    fn stage(from: f64, to: f64, seconds: u64) -> LoadStage {
        LoadStage { from_per_s: from, to_per_s: to, length: Nanos(S.0 * seconds) }
    }

    #[test]
    fn users_that_ramp_down_have_time_to_finish() {
        let stages = UserStages::new(vec![stage(2.0, 2.0, 10), stage(2.0, 0.0, 10)]);
        let pace = IterationPace::Users { stages, graceful_ramp_down: Nanos(3 * S.0) };
        let mut pace = ScenarioPace::new(pace, Nanos(5 * S.0), Nanos(30 * S.0));
        assert_eq!((pace.users(), pace.end(), pace.until()), (2, Nanos(25 * S.0), Nanos(55 * S.0)));
        let first = pace.next(1, 0, Nanos::ZERO).expect("a user");
        assert_eq!((first.number, first.at, first.cut), (0, Nanos(5 * S.0), Nanos(23 * S.0)));
        assert_eq!(pace.next(1, 1, Nanos(21 * S.0)), None, "it was taken away at 20 s");
        let last = pace.next(0, 0, Nanos(21 * S.0)).expect("a user");
        assert_eq!((last.number, last.at, last.cut), (1, Nanos(21 * S.0), Nanos(55 * S.0)));
        assert_eq!(pace.next(0, 1, Nanos(25 * S.0)), None);
    }

    #[test]
    fn arrivals_without_a_user_in_time_are_dropped() {
        let schedule = Schedule::new(vec![stage(1.0, 1.0, 10)], Arrivals::Constant, 0);
        let pace = IterationPace::Arrivals { users: 1, schedule, max_wait: Nanos(2 * S.0) };
        let mut pace = ScenarioPace::new(pace, Nanos::ZERO, Nanos(30 * S.0));
        assert_eq!(pace.next(0, 0, Nanos::ZERO).map(|given| given.at), Some(Nanos::ZERO));
        // The user was away for 6.5 s: arrivals of 1 to 4 s have waited too long.
        assert_eq!(pace.next(0, 1, Nanos(6_500_000_000)).map(|given| given.at), Some(Nanos(5 * S.0)));
        assert_eq!(pace.dropped(), 4);
        assert_eq!(
            pace.next(0, 2, Nanos(6_500_000_000)).map(|given| (given.number, given.at)),
            Some((6, Nanos(6 * S.0)))
        );
    }

    proptest! {
        /// Threads that take iterations in any order have each once.
        #[test]
        fn parts_have_each_shared_iteration_once(iterations in 0..50_u64, parts in 1..4_u64, order in prop::collection::vec(0..4_u64, 300)) {
            let whole = IterationPace::Shared { users: 5, iterations, within: S };
            let mut paces: Vec<ScenarioPace> = (0..parts)
                .map(|part| ScenarioPace::new(whole.clone(), Nanos::ZERO, S).sharded(Shard::WHOLE.split(part, parts)))
                .collect();
            let mut given: Vec<u64> = Vec::new();
            for turn in order.into_iter().chain((0..parts).cycle().take(400)) {
                let pace = &mut paces[(turn % parts) as usize];
                given.extend(pace.next(0, 0, Nanos::ZERO).map(|given| given.number));
            }
            given.sort_unstable();
            prop_assert_eq!(given, (0..iterations).collect::<Vec<_>>());
        }

        #[test]
        fn no_iteration_begins_before_the_start_or_after_the_end(
            start in 0..5_u64, users in 1..6_u64, user in 0..6_u64, now in 0..30_u64, kind in 0..4_u8
        ) {
            let within = Nanos(10 * S.0);
            let beginnings = match kind {
                0 => IterationPace::Users { stages: UserStages::new(vec![stage(0.0, users as f64, 10)]), graceful_ramp_down: S },
                1 => IterationPace::Shared { users, iterations: 9, within },
                2 => IterationPace::PerUser { users, iterations: 9, within },
                _ => IterationPace::Arrivals {
                    users, schedule: Schedule::new(vec![stage(3.0, 3.0, 10)], Arrivals::Constant, 0), max_wait: S
                },
            };
            let mut pace = ScenarioPace::new(beginnings, Nanos(start * S.0), S);
            if let Some(given) = pace.next(user, 0, Nanos(now * S.0)) {
                prop_assert!(given.at >= pace.start() && given.at < pace.end());
                prop_assert!(given.cut > given.at && given.cut <= pace.until());
                let is_open = kind == 3;
                prop_assert!(given.at >= Nanos(now * S.0) || is_open);
            }
        }
    }
}
