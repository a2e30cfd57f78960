//! The limits of a key, and what else its windows are configured with.

use serde::{Deserialize, Serialize};

use super::{Nanos, models};
use weir_limits::limit_unit::LimitUnit;

/// A limit of a key, and its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLimit {
    /// Limit, window length and model, as the service states them.
    pub window: models::LimitWindow,
    /// Unit of the limit.
    pub unit: LimitUnit,
}

impl KeyLimit {
    /// Limit on the weight of requests.
    pub const fn new(window: models::LimitWindow) -> Self {
        Self { window, unit: LimitUnit::Weight }
    }
}

/// Configuration of a key's windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRules {
    /// Limits that all hold at once; those after the first [`MAX_WINDOWS`](super::MAX_WINDOWS) are ignored.
    pub limits: Vec<KeyLimit>,
    /// Whether requests must arrive in the order of their sends (nonces).
    pub ordered: bool,
    /// One-way delay bound: the longest time from send to arrival; None: unknown.
    /// [`set_delay_bound`](super::KeyWindows::set_delay_bound) changes it.
    pub delay_bound: Option<Nanos>,
    /// Tick of the server's clock, by which its windows may be longer than stated: 1 ms for a server that counts whole
    /// milliseconds and requires *more* than `per` in between; 1 ns for an exact one.
    pub clock_tick: Nanos,
    /// Whether a sustainable pace is learnt if no limit is stated; false: unlimited.
    pub learns_pace: bool,
    /// Maximum number of entries in a log, about; more are counted up to a thousandth of a window later. None: exact.
    pub max_log_entries: Option<u64>,
}

impl Default for KeyRules {
    fn default() -> Self {
        Self {
            limits: Vec::new(),
            ordered: false,
            delay_bound: None,
            clock_tick: Nanos::MILLI,
            learns_pace: true,
            max_log_entries: None,
        }
    }
}
