//! Number of users of a closed loop over time, and when each of them is active.
//!
//! User i, from 0, is active while the number of users is above i. So users are added and taken away in the order of
//! their numbers, and the users of one part of a load ([`super::shard`]) are the same whatever the number of parts.

use crate::schedule::LoadStage;
use weir_base::nanos::Nanos;

/// Time in which a user is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivePeriod {
    /// Begin.
    pub start: Nanos,
    /// End, from which on the user is not active.
    pub end: Nanos,
}

/// Number of users over time: stages whose levels are numbers of users in place of rates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserStages(Vec<LoadStage>);

impl UserStages {
    /// Users in these stages.
    pub fn new(stages: Vec<LoadStage>) -> Self {
        Self(stages)
    }

    /// Highest number of users at a time.
    pub fn peak(&self) -> u64 {
        // Levels are finite; a float as an integer saturates.
        self.0.iter().map(|stage| stage.from_per_s.max(stage.to_per_s).ceil() as u64).max().unwrap_or(0)
    }

    /// Duration of all stages.
    pub fn length(&self) -> Nanos {
        self.0.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.length)
    }

    /// First time from `from` on in which user `user` is active, up to its end.
    pub fn active(&self, user: u64, from: Nanos) -> Option<ActivePeriod> {
        let mut found: Option<ActivePeriod> = None;
        let mut begun = Nanos::ZERO;
        for stage in &self.0 {
            let part = active_within(stage, user as f64);
            let part = part.map(|part| ActivePeriod { start: begun + part.start, end: begun + part.end });
            found = match (found, part) {
                (Some(found), Some(next)) if next.start <= found.end => Some(ActivePeriod { end: next.end, ..found }),
                (None, Some(part)) if part.end > from => Some(ActivePeriod { start: part.start.max(from), ..part }),
                (Some(_), _) => return found,
                (None, _) => None,
            };
            begun += stage.length;
        }
        found
    }
}

/// Part of a stage in which the number of users is above `user`, from the start of the stage. Where it rises, the user
/// starts as the number reaches it.
fn active_within(stage: &LoadStage, user: f64) -> Option<ActivePeriod> {
    let LoadStage { from_per_s: from, to_per_s: to, length } = *stage;
    // Rounded up on both sides, so that the end of one part is the start of the other.
    let crossing = || Nanos((length.0 as f64 * ((user - from) / (to - from))).ceil() as u64).min(length);
    let (start, end) = match (from > user, to > user) {
        (true, true) => (Nanos::ZERO, length),
        (false, true) => (crossing(), length),
        (true, false) => (Nanos::ZERO, crossing()),
        (false, false) => return None,
    };
    (start < end).then_some(ActivePeriod { start, end })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stage(from: f64, to: f64, seconds: u64) -> LoadStage {
        LoadStage { from_per_s: from, to_per_s: to, length: Nanos::from_secs(seconds) }
    }

    #[test]
    fn users_come_and_go_in_the_order_of_their_numbers() {
        let users =
            UserStages::new(vec![stage(0.0, 4.0, 8), stage(4.0, 4.0, 10), stage(1.0, 1.0, 5), stage(3.0, 0.0, 3)]);
        let seconds = |of: ActivePeriod| (of.start.as_secs_f64(), of.end.as_secs_f64());
        let at = |user, from| users.active(user, Nanos::from_secs(from)).map(seconds);
        assert_eq!((users.peak(), users.length()), (4, Nanos::from_secs(26)));
        assert_eq!(at(0, 0), Some((0.0, 26.0)));
        assert_eq!([at(1, 0), at(1, 20)], [Some((2.0, 18.0)), Some((23.0, 25.0))]);
        assert_eq!(at(2, 10), Some((10.0, 18.0)));
        assert_eq!([at(3, 0), at(3, 18), at(4, 0)], [Some((6.0, 18.0)), None, None]);
    }

    proptest! {
        /// Oracle: the number of users at each millisecond.
        #[test]
        fn a_user_is_active_while_the_number_is_above_its_own(
            levels in prop::collection::vec((0..9_u32, 0..9_u32, 1..40_u64), 1..6), user in 0..9_u64, from_ms in 0..120_u64
        ) {
            let stages: Vec<LoadStage> = levels.iter().map(|(from, to, ms)| LoadStage {
                from_per_s: f64::from(*from), to_per_s: f64::from(*to), length: Nanos::from_millis(*ms),
            }).collect();
            let users = UserStages::new(stages.clone());
            // Half a millisecond off the grid, so that no crossing is at a look.
            let is_active = |at: Nanos| {
                let mut begun = Nanos::ZERO;
                for stage in &stages {
                    if at < begun + stage.length {
                        return stage.level_at(at - begun) > user as f64;
                    }
                    begun += stage.length;
                }
                false
            };
            let from = Nanos::from_millis(from_ms);
            let mut first = users.active(user, from);
            for ms in from_ms..260 {
                let at = Nanos(ms * 1_000_000 + 123_457);
                while let Some(over) = first.filter(|of| of.end <= at) {
                    first = users.active(user, over.end);
                }
                let found = first.is_some_and(|of| of.start <= at && at < of.end);
                prop_assert_eq!(found, is_active(at), "user {} at {}", user, at);
            }
        }
    }
}
