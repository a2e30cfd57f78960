//! Progress of a run: rates, queue and hosts, as log lines or as lines of a live view.

use std::sync::{Arc, Mutex};

use super::StoreHandle;
use super::counters::{KeySendStats, SendStats};
use weir_decide::Nanos;
use weir_live::single_line;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;
use weir_measure::percentiles::NOT_MEASURED;
use weir_send::state::State;
use weir_send::store::JobCounts;
use weir_send::{PauseRecord, SenderProgress, wall_ms};

/// Sampler of the counters and the queue, once per second.
pub(super) struct SendMonitor {
    pub(super) stats: Arc<Mutex<SendStats>>,
    store: StoreHandle,
    clock: Clock,
    pub(super) counts: JobCounts,
    progress: SenderProgress,
    /// Jobs that expire within [`EXPIRING_WINDOW_MS`], up to [`MAX_EXPIRING_JOBS`].
    expiring: usize,
    polled_at: Nanos,
    /// Sum and number of the sampled queue sizes.
    queue_sizes: (f64, u64),
    /// Time of the previous sample, jobs done until then, and the same by key.
    previous_sample: (Nanos, u64, Vec<u64>),
    rate_per_s: f64,
    key_rates_per_s: Vec<f64>,
}

const SECOND: Nanos = Nanos::SECOND;
/// Jobs that expire within this time are counted as expiring.
const EXPIRING_WINDOW_MS: u64 = 10_000;
/// Count at which counting of expiring jobs stops, since it is done each second.
const MAX_EXPIRING_JOBS: usize = 10_000;
/// Rows of the view without keys, plus the terminal's last row.
const RESERVED_ROWS: usize = 7;
/// Pauses named in a line.
const MAX_PAUSES_SHOWN: usize = 3;
/// Down hosts named in a line.
const MAX_HOSTS_SHOWN: usize = 3;

impl SendMonitor {
    pub(super) fn new(stats: Arc<Mutex<SendStats>>, store: StoreHandle, clock: Clock) -> Self {
        let counts = store.counts().unwrap_or_default();
        let keys = lock(&stats).keys().len();
        Self {
            stats,
            store,
            clock,
            counts,
            progress: SenderProgress::default(),
            expiring: 0,
            polled_at: Nanos::ZERO,
            queue_sizes: (0.0, 0),
            previous_sample: (Nanos::ZERO, 0, vec![0; keys]),
            rate_per_s: 0.0,
            key_rates_per_s: vec![0.0; keys],
        }
    }

    pub(super) fn poll(&mut self, progress: SenderProgress) {
        let now = self.clock.now();
        self.progress = progress;
        if now - self.polled_at < SECOND {
            return;
        }
        self.polled_at = now;
        self.refresh_counts();
        self.expiring =
            self.store.expiring(wall_ms().plus_ms(EXPIRING_WINDOW_MS), MAX_EXPIRING_JOBS).unwrap_or(self.expiring);
        self.queue_sizes.0 += self.open_jobs() as f64;
        self.queue_sizes.1 += 1;
        let tally = lock(&self.stats);
        let (at, done, of_keys) = &mut self.previous_sample;
        let since_s = (now - *at).as_secs_f64().max(1e-9);
        self.rate_per_s = (tally.done - *done) as f64 / since_s;
        for ((rate, before), of_key) in self.key_rates_per_s.iter_mut().zip(of_keys).zip(&tally.per_key) {
            *rate = (of_key.done - std::mem::replace(before, of_key.done)) as f64 / since_s;
        }
        (*at, *done) = (now, tally.done);
    }

    pub(super) fn refresh_counts(&mut self) {
        self.counts = self.store.counts().unwrap_or(self.counts);
    }

    /// Jobs that are not delivered yet: queued, leased, retrying.
    pub(super) fn open_jobs(&self) -> u64 {
        self.counts.open_jobs()
    }

    pub(super) fn mean_open_jobs(&self) -> f64 {
        if self.queue_sizes.1 == 0 { self.open_jobs() as f64 } else { self.queue_sizes.0 / self.queue_sizes.1 as f64 }
    }

    pub(super) fn elapsed(&self) -> Nanos {
        self.clock.now()
    }

    /// Jobs at their end: done, dead-lettered, expired.
    pub(super) fn ended_jobs(&self) -> u64 {
        State::ALL.into_iter().filter(|state| !state.is_open()).map(|state| self.counts.jobs_in(state)).sum()
    }

    /// All jobs of the store.
    pub(super) fn total_jobs(&self) -> u64 {
        self.ended_jobs() + self.open_jobs()
    }

    /// Rate that the limits of all keys allow together; empty without a limit.
    fn allowed_text(&self) -> String {
        let allowed: f64 = self.progress.allowed_per_s.iter().sum();
        if allowed.is_finite() { format!(" of {allowed:.1}/s allowed") } else { String::new() }
    }

    /// Down hosts with duration and last failure; empty if there are none.
    fn hosts_down_text(&self) -> String {
        let down = self.progress.hosts_down.iter().filter_map(|host| Some((host, host.status.down_for?)));
        let mut down: Vec<_> = down.collect();
        down.sort_unstable_by_key(|(_, length)| std::cmp::Reverse(*length));
        let mut texts: Vec<String> = down
            .iter()
            .take(MAX_HOSTS_SHOWN)
            .map(|(host, length)| {
                let (name, failure) = (single_line(&host.name), single_line(&host.last_failure));
                format!("{name} down for {} s ({failure})", length.0 / Nanos::SECOND.0)
            })
            .collect();
        if down.len() > MAX_HOSTS_SHOWN {
            texts.push(format!("and {} more", down.len() - MAX_HOSTS_SHOWN));
        }
        texts.join(", ")
    }

    /// Pauses of keys, and whether results have no space; empty without.
    fn pauses_text(&self) -> String {
        let pauses: Vec<_> = self.pauses().collect();
        let mut texts: Vec<String> =
            pauses.iter().take(MAX_PAUSES_SHOWN).map(|pause| single_line(&pause.phrase())).collect();
        if pauses.len() > MAX_PAUSES_SHOWN {
            texts.push(format!("and {} more", pauses.len() - MAX_PAUSES_SHOWN));
        }
        if self.progress.has_no_space {
            texts.push("no space for the results".into());
        }
        texts.join(", ")
    }

    /// Pauses that have not ended.
    pub(super) fn pauses(&self) -> impl Iterator<Item = &PauseRecord> {
        let now = wall_ms();
        self.progress.pauses.iter().filter(move |pause| pause.until() > now)
    }

    /// Progress as one log line.
    pub(super) fn progress_line(&self) -> String {
        let tally = lock(&self.stats);
        let held = [self.hosts_down_text(), self.pauses_text()];
        let held: String = held.iter().filter(|text| !text.is_empty()).map(|text| format!("; {text}")).collect();
        format!(
            "{:.0}s: {} done, {} failed, {} expired, {} dead-lettered; {:.1}/s{}, mean response {}; \
             queue {} (mean {:.0}), retrying {}, expiring {}, in flight {}{held}",
            self.elapsed().as_secs_f64(),
            tally.done,
            tally.failed,
            tally.expired,
            tally.dead_lettered,
            self.rate_per_s,
            self.allowed_text(),
            whole_ms(tally.response_time.mean_ms()),
            self.open_jobs(),
            self.mean_open_jobs(),
            self.counts.jobs_in(State::Retrying),
            self.expiring_text(),
            self.progress.in_flight
        )
    }

    /// First line of the live view, beside the progress bar.
    pub(super) fn headline(&self) -> String {
        let mean = whole_ms(lock(&self.stats).response_time.mean_ms());
        let (ended, total) = (self.ended_jobs(), self.total_jobs());
        let s = self.elapsed().0 / Nanos::SECOND.0;
        format!(
            "{ended}/{total}  {}:{:02}  {:.1}/s{}  mean response {mean}",
            s / 60,
            s % 60,
            self.rate_per_s,
            self.allowed_text()
        )
    }

    /// Further lines of the live view, for a terminal of `rows` rows.
    pub(super) fn lines(&self, rows: usize) -> Vec<String> {
        let tally = lock(&self.stats);
        let mut lines = vec![
            format!(
                "queue {} (mean {:.0})  retrying {}  in flight {}  expiring within {} s {}",
                self.open_jobs(),
                self.mean_open_jobs(),
                self.counts.jobs_in(State::Retrying),
                self.progress.in_flight,
                EXPIRING_WINDOW_MS / 1000,
                self.expiring_text()
            ),
            format!(
                "this run: done {}  failed {}  rejected {}  expired {}  dead-lettered {}",
                tally.done,
                tally.failed,
                tally.rejected_by_status.iter().sum::<u64>(),
                tally.expired,
                tally.dead_lettered
            ),
        ];
        lines.extend([self.hosts_down_text(), self.pauses_text()].into_iter().filter(|text| !text.is_empty()));
        let keys = tally.keys();
        if keys.len() + RESERVED_ROWS > rows {
            lines.push(format!("keys {}, {} usable", keys.len(), self.progress.usable_keys));
            return lines;
        }
        if keys.len() < 2 {
            return lines;
        }
        let width = keys.iter().map(String::len).max().unwrap_or_default().max(3);
        lines.push(format!("{:<width$}  {:>8}  {:>8}  {:>8}  {:>8}", "key", "done", "per s", "allowed", "rejected"));
        let rates = self.key_rates_per_s.iter().zip(&self.progress.allowed_per_s);
        lines.extend(keys.iter().zip(&tally.per_key).zip(rates).map(|((name, of_key), (rate, allowed))| {
            let KeySendStats { done, rejected, disabled_reason, .. } = of_key;
            let allowed = if allowed.is_finite() { format!("{allowed:.1}") } else { "-".into() };
            let disabled = disabled_reason.as_ref();
            let disabled = disabled.map_or_else(String::new, |reason| format!("  {}", single_line(reason)));
            format!("{name:<width$}  {done:>8}  {rate:>8.1}  {allowed:>8}  {rejected:>8}{disabled}")
        }));
        lines
    }

    fn expiring_text(&self) -> String {
        let more = if self.expiring == MAX_EXPIRING_JOBS { " or more" } else { "" };
        format!("{}{more}", self.expiring)
    }
}

/// Time in whole milliseconds, if it was measured.
fn whole_ms(ms: Option<f64>) -> String {
    ms.map_or_else(|| NOT_MEASURED.to_owned(), |ms| format!("{ms:.0} ms"))
}
