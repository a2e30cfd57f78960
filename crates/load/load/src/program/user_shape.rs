//! Number of users over time.

use weir_base::Nanos;

/// Number of users over time, as steps in the order of their times, which differ; without steps all users are there.
#[derive(Clone, Debug, Default)]
pub struct UserShape(pub Vec<(Nanos, u64)>);

impl UserShape {
    /// First time from `at` on at which the user of this number, from 0, is there; never if it does not come again.
    pub fn active_from(&self, user: u64, at: Nanos) -> Nanos {
        if self.0.is_empty() {
            return at;
        }
        let begun = self.0.partition_point(|(time, _)| *time <= at);
        if begun > 0 && self.0[begun - 1].1 > user {
            return at;
        }
        let later = self.0.get(begun..).unwrap_or_default().iter().find(|(_, count)| *count > user);
        later.map_or(Nanos::NEVER, |(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Oracle that evaluates each nanosecond.
        #[test]
        fn a_user_is_there_from_the_first_time_at_which_there_are_more_users_than_its_number(
            steps in prop::collection::vec((0..20_u64, 0..5_u64), 0..6),
            user in 0..5_u64,
            at in 0..25_u64,
        ) {
            let mut steps: Vec<(Nanos, u64)> = steps.into_iter().map(|(time, users)| (Nanos(time), users)).collect();
            steps.sort_by_key(|(time, _)| *time);
            steps.dedup_by_key(|(time, _)| *time);
            let shape = UserShape(steps.clone());
            let users_at = |time: u64| steps.iter().take_while(|(begin, _)| begin.0 <= time).last().map_or(0, |(_, n)| *n);
            let expected = match steps.is_empty() {
                true => Nanos(at),
                false => (at..100).find(|time| users_at(*time) > user).map_or(Nanos::NEVER, Nanos),
            };
            prop_assert_eq!(shape.active_from(user, Nanos(at)), expected);
        }
    }
}
