//! Options of the service.

use std::str::FromStr;

use super::path::WorkPath;
use crate::number_range::check_number;
use weir_base::Nanos;
use weir_workload::delay::{Delay, DelayRange};
use weir_workload::mix::Mix;
use weir_workload::phases::Phases;
use weir_workload::station::{Station, StationOverflow};

/// Options of the service.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random choices.
    pub seed: u64,
    /// Paths beside `/api/work`, for every method.
    pub path: Option<WorkPath>,
    /// Body of good responses; `{"time": N}` without it.
    pub body: Option<String>,
    /// Response delay.
    pub delay: Delay,
    /// Response delay of slow responses.
    pub slow_delay: Delay,
    /// Behaviours towards requests.
    pub mix: Mix,
    /// Schedule of behaviours.
    pub phases: Phases,
    /// Requests served concurrently; unlimited without it.
    pub slots: Option<usize>,
    /// Maximum queued requests, of slots.
    pub max_queue: Option<usize>,
    /// Behaviour of a full queue, of slots.
    pub overflow: Option<WorkOverflow>,
}

/// Behaviour of a service without a free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOverflow {
    /// Queue, and 429 if it is full.
    Reject,
    /// Slowdown, with an unlimited queue.
    Slow,
}

impl WorkOverflow {
    /// Names of all.
    pub const NAMES: [&str; 2] = ["reject", "slow"];
}

/// By its name; an error names what to write instead.
impl FromStr for WorkOverflow {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "reject" => Ok(Self::Reject),
            "slow" => Ok(Self::Slow),
            _ => Err(format!("choose {}", Self::NAMES.join(" or "))),
        }
    }
}

impl Options {
    /// Default maximum of queued requests.
    pub const DEFAULT_MAX_QUEUE: usize = 20;

    /// Checks the options, each and together.
    ///
    /// # Errors
    /// First invalid option, by its flag, in one line.
    pub fn check(&self) -> Result<(), String> {
        let Some(slots) = self.slots else {
            let needless = self.max_queue.map(|_| "max-queue").or(self.overflow.map(|_| "overflow"));
            return needless.map_or(Ok(()), |flag| Err(format!("--{flag} needs --slots, e.g. --slots 8")));
        };
        check_number("slots", slots, 1..=1_000_000)?;
        if self.overflow == Some(WorkOverflow::Slow) && self.max_queue.is_some() {
            return Err("--max-queue cannot be used with --overflow slow, whose queue is unlimited".to_owned());
        }
        Ok(())
    }

    /// Slots and their queue; none if they are unlimited.
    pub(super) fn station(&self) -> Option<Station> {
        let overflow = match self.overflow {
            Some(WorkOverflow::Slow) => StationOverflow::Slow,
            Some(WorkOverflow::Reject) | None => {
                StationOverflow::Reject { queue: self.max_queue.unwrap_or(Self::DEFAULT_MAX_QUEUE) }
            }
        };
        self.slots.map(|slots| Station::new(slots, overflow))
    }
}

impl Default for Options {
    fn default() -> Self {
        let delay = DelayRange { low: Nanos::from_millis(100), high: Nanos::from_millis(600) };
        Self {
            seed: 0,
            path: None,
            body: None,
            delay: Delay::Uniform(delay),
            slow_delay: Delay::Constant(Nanos::from_secs(10)),
            mix: Mix::default(),
            phases: Phases::default(),
            slots: None,
            max_queue: None,
            overflow: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_needs_slots_and_an_end() {
        let slots = Options { slots: Some(2), ..Options::default() };
        let queue = Options { max_queue: Some(5), ..Options::default() };
        assert_eq!((Options::default().check(), slots.check()), (Ok(()), Ok(())));
        assert_eq!(Options { max_queue: Some(0), ..slots.clone() }.check(), Ok(()));
        assert_eq!(queue.check(), Err("--max-queue needs --slots, e.g. --slots 8".to_owned()));
        let endless = Options { overflow: Some(WorkOverflow::Slow), slots: Some(2), ..queue };
        assert!(endless.check().is_err_and(|why| why.contains("whose queue is unlimited")));
        let none = Options { slots: Some(0), ..slots };
        assert_eq!(none.check(), Err("invalid value '0' for '--slots': 0 is not in 1..=1000000".to_owned()));
    }
}
