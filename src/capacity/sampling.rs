//! What the service's processes use while a load is looked at.

use std::fs;

use super::CapacityError;
use crate::decide::Nanos;
use crate::machine::process_tree::ProcessTree;

/// A service on this machine.
#[derive(Debug)]
pub(super) struct Sampling {
    tree: ProcessTree,
    /// When the look began, and the CPU time by then; ...
    begun: Option<(Nanos, f64)>,
    /// ... and how long all cores had been busy and idle.
    machine: Option<(f64, f64)>,
}

/// What was used while a load was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    /// Cores that the service used on average.
    pub(super) service_cores: f64,
    /// The share of all cores that somebody used, whoever it was.
    pub(super) machine_share: Option<f64>,
}

impl Sampling {
    /// The process and all its descendants.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn of(pid: u32) -> Result<Self, CapacityError> {
        let mut tree = ProcessTree::of(pid);
        tree.sample(Nanos::ZERO).ok_or(CapacityError::Process(pid))?;
        Ok(Self { tree, begun: None, machine: None })
    }

    /// From now on it counts.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.machine = busy_and_idle();
        self.begun = self.tree.sample(now).map(|sample| (now, sample.cpu_s));
    }

    /// What was used on average since the beginning.
    pub(super) fn end(&mut self, now: Nanos) -> Option<Used> {
        let (begun, before) = self.begun.take()?;
        let used = self.tree.sample(now)?.cpu_s - before;
        let machine = self.machine.take().zip(busy_and_idle());
        let machine_share = machine.map(|(before, now)| (now.0 - before.0, now.1 - before.1));
        (now > begun).then(|| Used {
            service_cores: used / (now - begun).as_secs_f64(),
            machine_share: machine_share
                .filter(|(busy, idle)| busy + idle > 0.0)
                .map(|(busy, idle)| busy / (busy + idle)),
        })
    }
}

/// How long all cores have been busy and idle since the machine started, in ticks.
fn busy_and_idle() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    // cpu user nice system idle iowait irq softirq steal ...
    let ticks: Vec<f64> =
        text.lines().next()?.split_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((ticks.iter().sum::<f64>() - idle, idle))
}
