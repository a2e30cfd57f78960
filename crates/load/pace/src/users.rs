//! Users of a closed loop: when each starts, and how many requests it makes.

use weir_base::nanos::Nanos;

/// Number of users, each of which waits for a response before its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Users {
    /// Number of users, >= 1.
    pub count: u64,
    /// Ramp-up time: the first user starts at 0, the i-th at i/count of it, as in JMeter's thread group.
    pub ramp_up: Nanos,
    /// Requests per user; `None` without limit.
    pub loops: Option<u64>,
}

impl Users {
    /// Start time of user `index`, from 0.
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
