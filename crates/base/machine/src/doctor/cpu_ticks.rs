//! CPU time of all cores, from `/proc/stat`.

use std::fs;

use serde::Serialize;

/// CPU time of all cores since boot, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Time of processes, of the kernel and of interrupts.
    pub busy: u64,
    /// Time without work, also while waiting for disks.
    pub idle: u64,
    /// Time in which a process could have run, and the hypervisor ran another guest.
    pub steal: u64,
}

/// Fractions of the CPU time of a period, each in [0, 1].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuUse {
    /// Fraction in which processes, the kernel or interrupts ran.
    pub busy_fraction: f64,
    /// Fraction that the hypervisor gave to other guests.
    pub steal_fraction: f64,
}

/// Number of the fields of a line that are used: user, nice, system, idle, iowait, irq, softirq, steal. Those after them
/// are part of the first two.
const FIELDS: usize = 8;

impl CpuTicks {
    /// Time so far; None where the system has no `/proc/stat`.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Time of the first line, `cpu  user nice system idle ...`.
    pub fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> =
            line.split_ascii_whitespace().take(FIELDS).map_while(|field| field.parse().ok()).collect();
        let [user, nice, system, idle, wait, irq, soft, steal] = fields.try_into().ok()?;
        let sum = |parts: &[u64]| parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
        Some(Self { busy: sum(&[user, nice, system, irq, soft]), idle: sum(&[idle, wait]), steal })
    }

    /// Use of the CPU since `earlier`; zero if no tick has passed.
    pub fn since(self, earlier: Self) -> CpuUse {
        // Counters of a core that is taken away may go backwards.
        let part = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let (busy, idle) = (part(self.busy, earlier.busy), part(self.idle, earlier.idle));
        let steal = part(self.steal, earlier.steal);
        let whole = busy + idle + steal;
        if whole == 0.0 {
            return CpuUse::default();
        }
        CpuUse { busy_fraction: busy / whole, steal_fraction: steal / whole }
    }
}
