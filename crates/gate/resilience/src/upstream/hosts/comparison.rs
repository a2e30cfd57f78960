//! Outlier detection by comparison: a host that fails more often, or takes longer, than the other hosts.
//!
//! A threshold alone would eject host after host while a shared dependency is down. So a host is an outlier only beside
//! others that are better at the same time; where all are equally bad none is. Samples are those of the current window
//! and the one before it.

use super::HostOutcome;
use weir_base::Nanos;

/// Comparison of a host with the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlierComparison {
    /// Length of a window; samples are at most two windows old.
    pub window: Nanos,
    /// Attempts in it below which a host is not judged; at least 1.
    pub min_samples: u32,
    /// Fraction of failed attempts from which a host is an outlier, if it is also twice that of all others together; in
    /// (0, 1]. None for no such comparison.
    pub failure_fraction: Option<f64>,
    /// Multiple of the others' median response time from which a host is an outlier; above 1. None for no such
    /// comparison.
    pub latency_factor: Option<f64>,
}

/// A host that fails has this many times the failures of the others.
const FAILURE_FACTOR: f64 = 2.0;

/// Attempts at a host in the last two windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostSamples {
    /// Number of the current window.
    window: u64,
    /// Of the current window and the one before.
    sums: [SampleSums; 2],
}

/// Sums of a host's attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SampleSums {
    pub(super) ok: u32,
    pub(super) failed: u32,
    /// Number and sum of response times, in nanoseconds.
    pub(super) timed: u32,
    pub(super) time_ns: u128,
}

impl SampleSums {
    fn mean_ns(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.time_ns as f64 / f64::from(self.timed))
    }

    fn judged(&self) -> u32 {
        self.ok + self.failed
    }

    fn plus(self, other: Self) -> Self {
        Self {
            ok: self.ok + other.ok,
            failed: self.failed + other.failed,
            timed: self.timed + other.timed,
            time_ns: self.time_ns + other.time_ns,
        }
    }
}

impl HostSamples {
    pub(super) fn record(&mut self, now: Nanos, window: Nanos, outcome: HostOutcome, latency: Option<Nanos>) {
        self.turn(now, window);
        let mean = self.sums[0].plus(self.sums[1]).mean_ns();
        let sums = &mut self.sums[0];
        match outcome {
            HostOutcome::Ok => sums.ok = sums.ok.saturating_add(1),
            HostOutcome::Failed => sums.failed = sums.failed.saturating_add(1),
            // A lower bound says something only above what is usual: most attempts are cancelled since another one won.
            HostOutcome::Cancelled if latency.zip(mean).is_none_or(|(latency, mean)| (latency.0 as f64) < mean) => {
                return;
            }
            HostOutcome::Cancelled => {}
        }
        if let Some(latency) = latency {
            sums.timed = sums.timed.saturating_add(1);
            sums.time_ns += u128::from(latency.0);
        }
    }

    pub(super) fn sums(&self, now: Nanos, window: Nanos) -> SampleSums {
        let mut current = *self;
        current.turn(now, window);
        current.sums[0].plus(current.sums[1])
    }

    fn turn(&mut self, now: Nanos, window: Nanos) {
        let number = now.0 / window.0.max(1);
        match number.saturating_sub(self.window) {
            0 => {}
            1 => self.sums = [SampleSums::default(), self.sums[0]],
            _ => self.sums = Default::default(),
        }
        self.window = self.window.max(number);
    }
}

impl OutlierComparison {
    /// Whether a host with these samples is worse than the others.
    pub(super) fn is_worse(&self, host: SampleSums, others: &[SampleSums]) -> bool {
        self.fails_more(host, others) || self.takes_longer(host, others)
    }

    fn fails_more(&self, host: SampleSums, others: &[SampleSums]) -> bool {
        let Some(threshold) = self.failure_fraction else { return false };
        let all = others.iter().fold(SampleSums::default(), |sum, other| sum.plus(*other));
        if host.judged() < self.min_samples || all.judged() < self.min_samples {
            return false;
        }
        let fraction = |sums: &SampleSums| f64::from(sums.failed) / f64::from(sums.judged());
        fraction(&host) >= threshold && fraction(&host) >= FAILURE_FACTOR * fraction(&all)
    }

    fn takes_longer(&self, host: SampleSums, others: &[SampleSums]) -> bool {
        let Some(factor) = self.latency_factor else { return false };
        let mut means: Vec<f64> =
            others.iter().filter(|sums| sums.timed >= self.min_samples).filter_map(SampleSums::mean_ns).collect();
        means.sort_by(f64::total_cmp);
        // The lower one of two, so that of three hosts one slow one does not excuse another.
        let Some(median) = means.get(means.len().saturating_sub(1) / 2) else { return false };
        host.timed >= self.min_samples && host.mean_ns().is_some_and(|mean| mean > factor * median)
    }
}
