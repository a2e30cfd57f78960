//! CPU use of the service's processes during a step.

use std::fs;

use super::CapacityError;
use weir_base::Nanos;
use weir_machine::process_tree::ProcessTree;
use weir_machine::system::SAMPLES_PROCESSES;

/// Sampler of a service on this machine.
#[derive(Debug)]
pub(super) struct ServiceUsageSampler {
    tree: ProcessTree,
    /// Start of the step, and the CPU time by then, in seconds.
    start: Option<(Nanos, f64)>,
    /// Busy and idle ticks of all cores at the start of the step.
    machine_ticks: Option<(f64, f64)>,
}

/// CPU use during a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceUsage {
    /// Cores that the service used on average.
    pub(super) service_cores: f64,
    /// CPU utilization of the whole machine, in [0, 1].
    pub(super) machine_fraction: Option<f64>,
}

impl ServiceUsageSampler {
    /// Sampler of a process and all its descendants.
    ///
    /// # Errors
    /// When no process has this ID, or this build samples none.
    pub(super) fn for_process(pid: u32) -> Result<Self, CapacityError> {
        if !SAMPLES_PROCESSES {
            return Err(CapacityError::NoSampling);
        }
        let mut tree = ProcessTree::of(pid);
        tree.sample(Nanos::ZERO).ok_or(CapacityError::NoSuchProcess(pid))?;
        Ok(Self { tree, start: None, machine_ticks: None })
    }

    /// Starts the measurement.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.machine_ticks = busy_and_idle_ticks();
        self.start = self.tree.sample(now).map(|sample| (now, sample.cpu_s));
    }

    /// Mean use since [`Self::begin`].
    pub(super) fn end(&mut self, now: Nanos) -> Option<ServiceUsage> {
        let (begun, before) = self.start.take()?;
        let used = self.tree.sample(now)?.cpu_s - before;
        let machine = self.machine_ticks.take().zip(busy_and_idle_ticks());
        let machine_utilization = machine.map(|(before, now)| (now.0 - before.0, now.1 - before.1));
        (now > begun).then(|| ServiceUsage {
            service_cores: used / (now - begun).as_secs_f64(),
            machine_fraction: machine_utilization
                .filter(|(busy, idle)| busy + idle > 0.0)
                .map(|(busy, idle)| busy / (busy + idle)),
        })
    }
}

/// Busy and idle ticks of all cores since the machine started.
fn busy_and_idle_ticks() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    // cpu user nice system idle iowait irq softirq steal ...
    let ticks: Vec<f64> =
        text.lines().next()?.split_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((ticks.iter().sum::<f64>() - idle, idle))
}
