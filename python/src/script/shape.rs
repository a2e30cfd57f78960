//! Number of users over time.

use weir::decide::Nanos;

/// Number of users over time, as steps in the order of their times; without steps all users are there.
#[derive(Clone, Debug, Default)]
pub(super) struct UserShape(pub(super) Vec<(Nanos, u64)>);

impl UserShape {
    /// First time from `at` on at which the user of this number, from 0, is there; never if it does not come again.
    pub(super) fn active_from(&self, user: u64, at: Nanos) -> Nanos {
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
