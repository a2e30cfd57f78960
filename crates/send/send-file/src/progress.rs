//! Progress of a run: rates, queue and hosts, as log lines or as lines of a live view.

use std::sync::{Arc, Mutex};

use super::StoreHandle;
use super::counters::{KeySendStats, SendStats};
use super::limit_text::LimitFacts;
use super::remaining_time::RecentRate;
use weir_base::Nanos;
use weir_base::duration_text::duration_text;
use weir_base::number_text::{count, short_rate as rate};
use weir_base::terminal_text::single_line;
use weir_delivery::dispatch::{LimitTimes, SendLimit};
use weir_histogram::percentiles::NOT_MEASURED;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;
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
    /// Ended jobs over the last interval.
    recent: RecentRate,
    facts: LimitFacts,
    /// Jobs done and times of the limits at the last progress line.
    previous_line: (Nanos, u64, LimitTimes),
}

/// Longest progress line, in columns, with the program's name before it.
const MAX_LINE_COLUMNS: usize = 99;
const NAME_COLUMNS: usize = "weir: ".len();

const SECOND: Nanos = Nanos::SECOND;
/// Jobs that expire within this time are counted as expiring.
const EXPIRING_WINDOW_MS: u64 = 10_000;
/// Count at which counting of expiring jobs stops, since it is done each second.
const MAX_EXPIRING_JOBS: usize = 10_000;
/// Rows of the view without keys, plus the terminal's last row.
const RESERVED_ROWS: usize = 8;
/// Pauses named in a line.
const MAX_PAUSES_SHOWN: usize = 3;
/// Down hosts named in a line.
const MAX_HOSTS_SHOWN: usize = 3;

impl SendMonitor {
    pub(super) fn new(stats: Arc<Mutex<SendStats>>, store: StoreHandle, clock: Clock, facts: LimitFacts) -> Self {
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
            recent: RecentRate::default(),
            facts,
            previous_line: Default::default(),
        }
    }

    pub(super) fn poll(&mut self, progress: SenderProgress, is_input_complete: bool) {
        let now = self.clock.now();
        self.progress = progress;
        self.facts.is_input_complete = is_input_complete;
        if now - self.polled_at < SECOND {
            return;
        }
        self.polled_at = now;
        self.refresh_counts();
        self.expiring =
            self.store.expiring(wall_ms().plus_ms(EXPIRING_WINDOW_MS), MAX_EXPIRING_JOBS).unwrap_or(self.expiring);
        self.queue_sizes.0 += self.open_jobs() as f64;
        self.queue_sizes.1 += 1;
        let stats = lock(&self.stats);
        let (at, done, of_keys) = &mut self.previous_sample;
        let since_s = (now - *at).as_secs_f64().max(1e-9);
        self.rate_per_s = (stats.done - *done) as f64 / since_s;
        for ((rate, before), of_key) in self.key_rates_per_s.iter_mut().zip(of_keys).zip(&stats.per_key) {
            *rate = (of_key.done - std::mem::replace(before, of_key.done)) as f64 / since_s;
        }
        (*at, *done) = (now, stats.done);
        drop(stats);
        self.recent.add(now, self.ended_jobs());
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

    /// Current facts that the words about a limit depend on.
    fn facts(&self) -> LimitFacts {
        let held = [self.pauses_text(), self.hosts_down_text()];
        LimitFacts {
            delay_bound: self.progress.delay_bound,
            allowed_per_s: self.progress.allowed_per_s.iter().sum(),
            usable_keys: self.progress.usable_keys,
            service_time: Nanos::from_secs_f64(lock(&self.stats).service_time.mean_ns().unwrap_or_default() / 1e9),
            queued: self.counts.jobs_in(State::Queued),
            held: held.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
            ..self.facts.clone()
        }
    }

    /// Limit in the light of the store's jobs.
    fn with_store(&self, limit: SendLimit) -> SendLimit {
        limit.with_store(self.counts.jobs_in(State::Queued), self.counts.jobs_in(State::Retrying))
    }

    /// Limit of the delivery, in words; empty if nothing limits it.
    fn limit_text(&self, limit: Option<SendLimit>) -> String {
        if self.progress.has_no_space {
            return "no space for the results".into();
        }
        limit.map(|limit| self.facts().text(self.with_store(limit))).unwrap_or_default()
    }

    /// Limit that held the jobs for most of the run, and the fraction of its time; without jobs to send nothing did.
    pub(super) fn main_limit(&self) -> Option<(SendLimit, f64)> {
        let times = &self.progress.limit_times;
        let total: u64 = times.all().map(|(_, time)| time.0).sum();
        let limit = times.binding()?;
        Some((limit, times.of(&limit).0 as f64 / total.max(1) as f64))
    }

    /// Time of each limit over the run, by name, in seconds.
    pub(super) fn limit_seconds(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.progress.limit_times.all().map(|(limit, time)| (limit.name(), time.as_secs_f64()))
    }

    /// The limit of most of the run in words, for the report at its end.
    pub(super) fn main_limit_text(&self) -> Option<String> {
        let (limit, fraction) = self.main_limit()?;
        let limit = match limit {
            SendLimit::Jobs => "no job was left to send".to_owned(),
            SendLimit::Pause => "pauses after rejections".to_owned(),
            SendLimit::HostDown => "hosts that were down".to_owned(),
            limit => self.facts().text(limit),
        };
        Some(format!("{limit} ({:.0}% of the time)", fraction * 100.0))
    }

    /// Time that is left, in words; empty if it is unknown.
    fn time_left_text(&self, limit: Option<SendLimit>) -> String {
        let allowed: f64 = self.progress.allowed_per_s.iter().sum();
        let limit = limit.map(|limit| self.with_store(limit));
        let left = self.recent.time_left(self.open_jobs(), limit, allowed);
        left.filter(|_| self.facts.is_input_complete && !self.progress.has_no_space)
            .map(|left| format!("{} left", duration_text(Nanos::from_secs(left.0.div_ceil(SECOND.0)))))
            .unwrap_or_default()
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

    /// Progress since the line before it, as one line.
    pub(super) fn next_progress_line(&mut self) -> String {
        let (now, limits) = (self.clock.now(), self.progress.limit_times.clone());
        let stats = lock(&self.stats);
        let (done, failed, ended_badly) = (stats.done, stats.failed, stats.dead_lettered + stats.expired);
        drop(stats);
        let (at, before, earlier) = std::mem::replace(&mut self.previous_line, (now, done, limits.clone()));
        let rate_per_s = done.saturating_sub(before) as f64 / (now - at).as_secs_f64().max(1e-9);
        let limit = limits.since(&earlier).binding();
        let total = if self.facts.is_input_complete { format!("/{}", count(self.total_jobs())) } else { String::new() };
        let some = |number: u64, what: &str| match number {
            0 => String::new(),
            number => format!("{} {what}", count(number)),
        };
        let first = format!("{}{total} done", count(self.done_jobs()));
        let counts = [first, some(failed, "failed"), some(ended_badly, "given up")];
        let rest = [format!("{}/s", rate(rate_per_s)), self.time_left_text(limit), self.limit_text(limit)];
        joined_within(&counts, &rest, MAX_LINE_COLUMNS - NAME_COLUMNS)
    }

    /// Delivered jobs of the store.
    fn done_jobs(&self) -> u64 {
        self.counts.jobs_in(State::Done)
    }

    /// First line of the live view, beside the progress bar.
    pub(super) fn headline(&self) -> String {
        let (ended, total) = (count(self.ended_jobs()), count(self.total_jobs()));
        let s = self.elapsed().0 / Nanos::SECOND.0;
        let left = self.time_left_text(self.progress.limited_by);
        let left = if left.is_empty() { left } else { format!("  {left}") };
        format!("{ended}/{total}  {}:{:02}  {}/s{left}", s / 60, s % 60, rate(self.rate_per_s))
    }

    /// Further lines of the live view, for a terminal of `rows` rows.
    pub(super) fn lines(&self, rows: usize) -> Vec<String> {
        let limit = self.limit_text(self.progress.limited_by);
        let stats = lock(&self.stats);
        let mean = stats.response_time.mean_ns().map(|mean_ns| duration_text(Nanos::from_secs_f64(mean_ns / 1e9)));
        let mut lines = vec![
            format!("limited by {}", if limit.is_empty() { "nothing" } else { &limit }),
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
                "this run: done {}  mean response {}  failed {}  rejected {}  expired {}  dead-lettered {}",
                stats.done,
                mean.as_deref().unwrap_or(NOT_MEASURED),
                stats.failed,
                stats.rejected_by_status.iter().sum::<u64>(),
                stats.expired,
                stats.dead_lettered
            ),
        ];
        lines.extend([self.hosts_down_text(), self.pauses_text()].into_iter().filter(|text| !text.is_empty()));
        let keys = stats.keys();
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
        lines.extend(keys.iter().zip(&stats.per_key).zip(rates).map(|((name, of_key), (rate, allowed))| {
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

/// Counts and other parts as one line of at most this many columns: the least important counts are left out first, then
/// the last part is cut.
fn joined_within(counts: &[String], rest: &[String], columns: usize) -> String {
    let joined = |counts: &[String]| {
        let counts = [counts.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(", ")];
        counts.iter().chain(rest).filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join("; ")
    };
    let fits = |text: &String| text.chars().count() <= columns;
    // A colon says it as well.
    let shorter = |text: String| text.replace(" allows ", ": ");
    let lengths = (1..=counts.len()).rev();
    let fitting =
        lengths.map(|length| joined(&counts[..length])).flat_map(|text| [text.clone(), shorter(text)]).find(fits);
    fitting.unwrap_or_else(|| {
        let mut text: String = shorter(joined(&counts[..1])).chars().take(columns.saturating_sub(3)).collect();
        text.push_str("...");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_has_at_most_its_columns() {
        let texts = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
        let counts = texts(&["4,680/10,000 done", "27,236 failed", ""]);
        let rest = texts(&["46.8/s", "1m54s left", "--ordered with a delay bound of 50ms allows 19.2/s per key"]);
        let line = joined_within(&counts, &rest, 93);
        assert_eq!(line, "4,680/10,000 done; 46.8/s; 1m54s left; --ordered with a delay bound of 50ms: 19.2/s per key");
        let long = joined_within(&counts, &texts(&["46.8/s", &"x".repeat(200)]), 93);
        assert!(long.chars().count() == 93 && long.ends_with("x..."), "{long}");
        let short = joined_within(&counts, &texts(&["46.8/s", "", "--limit 20/1s allows 38.1/s"]), 93);
        assert_eq!(short, "4,680/10,000 done, 27,236 failed; 46.8/s; --limit 20/1s allows 38.1/s");
    }
}
