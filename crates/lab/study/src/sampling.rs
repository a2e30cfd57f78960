//! Sampling of a variant's use of resources during a measurement.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Scope, ScopedJoinHandle};

use super::measurement::ResourceUsage;
use weir_base::Nanos;
use weir_machine::clock::{Clock, thread_cpu};
use weir_machine::lock::lock;
use weir_machine::process_tree::{ProcessTree, ProcessTreeSample};

/// Interval between samples.
pub(super) const SAMPLE_INTERVAL: Nanos = Nanos::from_millis(100);

/// Sampler of a variant's processes.
#[derive(Debug)]
pub(super) struct VariantSampler {
    clock: Clock,
    stopped: AtomicBool,
    /// Memory above which the variant is ended, in bytes.
    max_memory_bytes: Option<u64>,
    /// Memory used when it was above the limit.
    excess_memory_bytes: Mutex<Option<u64>>,
}

/// Samples of a measurement, and the cost of taking them.
#[derive(Clone, Debug, Default)]
pub(super) struct UsageSamples {
    /// Samples in order of time, from the start of the measurement.
    pub(super) samples: Vec<ProcessTreeSample>,
    sampling_cpu: Nanos,
}

impl VariantSampler {
    /// Sampler without samples; `clock` gives their times.
    pub(super) fn new(clock: Clock, max_memory_bytes: Option<u64>) -> Self {
        Self { clock, stopped: AtomicBool::new(false), max_memory_bytes, excess_memory_bytes: Mutex::new(None) }
    }

    /// Starts a thread that calls `prepare`, then samples all descendants of `guard`.
    pub(super) fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        guard: u32,
        prepare: impl FnOnce() + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, UsageSamples> {
        scope.spawn(move || {
            prepare();
            let mut tree = ProcessTree::below(guard);
            let mut taken = UsageSamples::default();
            let before = thread_cpu();
            let mut next = self.clock.now();
            loop {
                let over = self.stopped.load(Relaxed);
                let now = self.clock.now();
                taken.samples.extend(tree.sample(now).inspect(|sample| self.check_memory(sample)));
                if over {
                    taken.sampling_cpu = thread_cpu() - before;
                    return taken;
                }
                // Missed samples are skipped.
                next = (next + SAMPLE_INTERVAL).max(self.clock.now());
                self.clock.sleep_until(next);
            }
        })
    }

    fn check_memory(&self, sample: &ProcessTreeSample) {
        let Some(most) = self.max_memory_bytes else { return };
        // Shared memory counts once. Samples without that information count only if they are far above the limit.
        let used = match sample.pss_bytes {
            Some(pss) => pss,
            None if sample.processes > 1 => sample.rss_bytes / 2,
            None => sample.rss_bytes,
        };
        if used > most {
            *lock(&self.excess_memory_bytes) = Some(used);
        }
    }

    /// Memory used, in bytes, once it is above the limit.
    pub(super) fn excess_memory_bytes(&self) -> Option<u64> {
        *lock(&self.excess_memory_bytes)
    }

    /// Time of the sampler's clock.
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Ends the sampling after one more sample.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }
}

impl UsageSamples {
    /// File name of the samples.
    pub(super) const FILE_NAME: &str = "samples.csv";

    /// Samples from a time on, with times relative to it.
    #[must_use]
    pub(super) fn since(mut self, from: Nanos) -> Self {
        let from = from.as_secs_f64();
        let before = self.samples.len();
        self.samples.retain(|sample| sample.t_s >= from);
        self.samples.iter_mut().for_each(|sample| sample.t_s -= from);
        // All samples cost about the same.
        self.sampling_cpu = Nanos(self.sampling_cpu.0 / before.max(1) as u64 * self.samples.len() as u64);
        self
    }

    /// Use of resources over all samples, with CPU per success; None with fewer than two samples.
    pub(super) fn usage(&self, successes: Option<f64>) -> Option<ResourceUsage> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let duration_s = last.t_s - first.t_s;
        if duration_s <= 0.0 {
            return None;
        }
        let cpu_s = last.cpu_s - first.cpu_s;
        let count = self.samples.len() as f64;
        let most = |of: fn(&ProcessTreeSample) -> u64| self.samples.iter().map(of).max().unwrap_or(0);
        let known = |of: fn(&ProcessTreeSample) -> Option<u64>| self.samples.iter().filter_map(of).collect::<Vec<_>>();
        let (pss, files) = (known(|s| s.pss_bytes), known(|s| s.open_files));
        let per_s = |of: fn(&ProcessTreeSample) -> Option<u64>| {
            let mut seen = self.samples.iter().filter_map(|s| Some((s.t_s, of(s)?)));
            let (from, to) = (seen.next()?, seen.next_back()?);
            Some(to.1.saturating_sub(from.1) as f64 / (to.0 - from.0))
        };
        Some(ResourceUsage {
            duration_s,
            samples: self.samples.len() as u64,
            cores: cpu_s / duration_s,
            cpu_us_per_response: successes.filter(|count| *count > 0.0).map(|count| cpu_s * 1e6 / count),
            rss_peak_bytes: most(|s| s.rss_bytes),
            rss_mean_bytes: self.samples.iter().map(|s| s.rss_bytes as f64).sum::<f64>() / count,
            pss_peak_bytes: pss.iter().copied().max(),
            pss_mean_bytes: (!pss.is_empty()).then(|| pss.iter().map(|b| *b as f64).sum::<f64>() / pss.len() as f64),
            processes_peak: most(|s| s.processes),
            threads_peak: most(|s| s.threads),
            open_files_peak: files.iter().copied().max(),
            voluntary_switches_per_s: per_s(|s| s.voluntary_switches),
            involuntary_switches_per_s: per_s(|s| s.involuntary_switches),
            sampling_cores: self.sampling_cpu.as_secs_f64() / duration_s,
        })
    }

    /// Samples of a table that [`UsageSamples::csv`] wrote; invalid lines are skipped.
    pub(super) fn from_csv(text: &str) -> Self {
        let samples = csv::Reader::from_reader(text.as_bytes()).into_deserialize().filter_map(Result::ok).collect();
        Self { samples, sampling_cpu: Nanos::ZERO }
    }

    /// Table in CSV; values that were not sampled are empty.
    pub(super) fn csv(&self) -> String {
        let mut text = String::from(
            "t_s,processes,threads,cpu_s,rss_bytes,pss_bytes,open_files,voluntary_switches,involuntary_switches\n",
        );
        let shown = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        for sample in &self.samples {
            text.push_str(&format!(
                "{:.3},{},{},{:.2},{},{},{},{},{}\n",
                sample.t_s,
                sample.processes,
                sample.threads,
                sample.cpu_s,
                sample.rss_bytes,
                shown(sample.pss_bytes),
                shown(sample.open_files),
                shown(sample.voluntary_switches),
                shown(sample.involuntary_switches),
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_that_between_the_first_and_the_last_sample() {
        let sample = |t_s, cpu_s, rss_bytes, pss_bytes, switches| ProcessTreeSample {
            t_s,
            cpu_s,
            rss_bytes,
            pss_bytes,
            voluntary_switches: switches,
            processes: 1,
            threads: 2,
            ..ProcessTreeSample::default()
        };
        let samples = UsageSamples {
            samples: vec![
                sample(0.0, 1.0, 100, Some(80), Some(10)),
                sample(1.0, 1.5, 300, None, None),
                sample(2.0, 2.0, 200, Some(120), Some(50)),
            ],
            sampling_cpu: Nanos::from_millis(10),
        };
        let usage = samples.usage(Some(1000.0)).expect("three samples");
        assert_eq!((usage.cores, usage.cpu_us_per_response), (0.5, Some(1000.0)));
        assert_eq!((usage.rss_peak_bytes, usage.rss_mean_bytes), (300, 200.0));
        assert_eq!((usage.pss_peak_bytes, usage.pss_mean_bytes), (Some(120), Some(100.0)));
        assert_eq!((usage.voluntary_switches_per_s, usage.involuntary_switches_per_s), (Some(20.0), None));
        assert!((usage.sampling_cores - 0.005).abs() < 1e-9);
        assert_eq!(samples.csv().lines().nth(2), Some("1.000,1,2,1.50,300,,,,"));
        assert_eq!(UsageSamples::from_csv(&samples.csv()).samples, samples.samples);
        assert_eq!(UsageSamples::from_csv("not,a\ntable").samples, []);
        assert_eq!(UsageSamples::default().usage(None), None);
    }
}
