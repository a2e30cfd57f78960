//! When the users of a closed loop start, and how often each goes round.

use super::nanos::Nanos;

/// A crowd of users, each of whom waits for an answer before asking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Users {
    /// How many; >= 1.
    pub count: u64,
    /// Over how long they start, evenly: the first at 0, the i-th at i/count of it, as JMeter's thread group does.
    pub ramp_up: Nanos,
    /// How many requests each makes; `None` for no end.
    pub loops: Option<u64>,
}

impl Users {
    /// When user `index` (from 0) starts.
    pub fn start(&self, index: u64) -> Nanos {
        let ns = u128::from(self.ramp_up.0) * u128::from(index) / u128::from(self.count.max(1));
        Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_start_evenly_over_the_ramp_up() {
        let users = Users { count: 100, ramp_up: Nanos::from_secs(25), loops: Some(100) };
        assert_eq!(users.start(0), Nanos::ZERO);
        assert_eq!(users.start(1), Nanos::from_millis(250));
        assert_eq!(users.start(99), Nanos::from_millis(24_750));
    }
}
