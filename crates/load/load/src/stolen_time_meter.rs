//! Measurement of the CPU time that the machine takes from a run.

use weir_base::Nanos;
use weir_machine::doctor::{CpuQuota, CpuTicks};
use weir_measure::stolen_time::StolenTime;

/// Counters of the system at the start of a run.
#[derive(Debug)]
pub(super) struct StolenTimeMeter {
    ticks: Option<CpuTicks>,
    quota: CpuQuota,
}

impl StolenTimeMeter {
    pub(super) fn start() -> Self {
        Self { ticks: CpuTicks::read(), quota: CpuQuota::read() }
    }

    /// Time taken since the start.
    pub(super) fn read(&self) -> StolenTime {
        let used = self.ticks.zip(CpuTicks::read()).map(|(start, now)| now.since(start));
        let throttled_us = CpuQuota::read().throttled_us.saturating_sub(self.quota.throttled_us);
        StolenTime {
            steal_fraction: used.map_or(0.0, |used| used.steal_fraction),
            throttled: Nanos(throttled_us.saturating_mul(1000)),
        }
    }
}
