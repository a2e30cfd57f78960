//! Looks at the tally and the queue while jobs are sent, and says where it all is.

use std::sync::{Arc, Mutex};

use super::Queue;
use super::queue::plain;
use super::tally::{OfKey, Tally, lock};
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::send::state::State;
use crate::send::store::Counts;
use crate::send::{Progress, wall_ms};

/// Looks at the tally and the queue now and then.
pub(super) struct Watch {
    pub(super) tally: Arc<Mutex<Tally>>,
    store: Queue,
    clock: Clock,
    pub(super) counts: Counts,
    progress: Progress,
    /// Jobs whose time is over soon, up to [`MOST_COUNTED`].
    expiring: usize,
    looked: Nanos,
    /// The sum of queue sizes, and how many.
    sizes: (f64, u64),
    /// When, and how many jobs were done, a second ago or more; and by each key.
    before: (Nanos, u64, Vec<u64>),
    rate_per_s: f64,
    key_rates_per_s: Vec<f64>,
}

const SECOND: Nanos = Nanos::SECOND;
/// Soon, for a job that expires.
const SOON_MS: u64 = 10_000;
/// More that expire soon are not counted: it is looked for once a second.
const MOST_COUNTED: usize = 10_000;
/// Rows of the view that are no keys, and the terminal's last one.
const OTHER_ROWS: usize = 6;
/// So many hosts that are down are named.
const MOST_DOWN: usize = 3;

impl Watch {
    pub(super) fn new(tally: Arc<Mutex<Tally>>, store: Queue, clock: Clock) -> Self {
        let counts = store.counts().unwrap_or_default();
        let keys = lock(&tally).keys().len();
        Self {
            tally,
            store,
            clock,
            counts,
            progress: Progress::default(),
            expiring: 0,
            looked: Nanos::ZERO,
            sizes: (0.0, 0),
            before: (Nanos::ZERO, 0, vec![0; keys]),
            rate_per_s: 0.0,
            key_rates_per_s: vec![0.0; keys],
        }
    }

    pub(super) fn look(&mut self, progress: Progress) {
        let now = self.clock.now();
        self.progress = progress;
        if now - self.looked < SECOND {
            return;
        }
        self.looked = now;
        self.look_at_store();
        self.expiring = self.store.expiring(wall_ms().plus_ms(SOON_MS), MOST_COUNTED).unwrap_or(self.expiring);
        self.sizes.0 += self.waiting() as f64;
        self.sizes.1 += 1;
        let tally = lock(&self.tally);
        let (at, done, of_keys) = &mut self.before;
        let since_s = (now - *at).as_secs_f64().max(1e-9);
        self.rate_per_s = (tally.done - *done) as f64 / since_s;
        for ((rate, before), of_key) in self.key_rates_per_s.iter_mut().zip(of_keys).zip(&tally.per_key) {
            *rate = (of_key.done - std::mem::replace(before, of_key.done)) as f64 / since_s;
        }
        (*at, *done) = (now, tally.done);
    }

    pub(super) fn look_at_store(&mut self) {
        self.counts = self.store.counts().unwrap_or(self.counts);
    }

    /// Jobs that are still to be delivered.
    pub(super) fn waiting(&self) -> u64 {
        self.counts.open()
    }

    pub(super) fn mean_waiting(&self) -> f64 {
        if self.sizes.1 == 0 { self.waiting() as f64 } else { self.sizes.0 / self.sizes.1 as f64 }
    }

    pub(super) fn elapsed(&self) -> Nanos {
        self.clock.now()
    }

    /// Jobs that have come to their end.
    pub(super) fn ended(&self) -> u64 {
        State::ALL.into_iter().filter(|state| !state.open()).map(|state| self.counts.of(state)).sum()
    }

    /// All jobs that are known of.
    pub(super) fn known(&self) -> u64 {
        self.ended() + self.waiting()
    }

    /// How many jobs per second all keys together may send; empty without a limit.
    fn allowed(&self) -> String {
        let allowed: f64 = self.progress.allowed_per_s.iter().sum();
        if allowed.is_finite() { format!(" of {allowed:.1}/s allowed") } else { String::new() }
    }

    /// Hosts that answer nobody: since when, and why; empty if there are none.
    fn down(&self) -> String {
        let down = self.progress.hosts_down.iter().filter_map(|host| Some((host, host.standing.down_for?)));
        let mut down: Vec<_> = down.collect();
        down.sort_unstable_by_key(|(_, length)| std::cmp::Reverse(*length));
        let mut texts: Vec<String> = down
            .iter()
            .take(MOST_DOWN)
            .map(|(host, length)| {
                let (name, why) = (plain(&host.name), plain(&host.why));
                format!("{name} down for {} s ({why})", length.0 / Nanos::SECOND.0)
            })
            .collect();
        if down.len() > MOST_DOWN {
            texts.push(format!("and {} more", down.len() - MOST_DOWN));
        }
        texts.join(", ")
    }

    /// Where it is, in one line.
    pub(super) fn line(&self) -> String {
        let tally = lock(&self.tally);
        let down = self.down();
        let down = if down.is_empty() { down } else { format!("; {down}") };
        format!(
            "{:.0}s: {} done, {} failed, {} expired, {} in the graveyard; {:.1}/s{}, mean response {:.0} ms; queue {} (mean {:.0}), dead letters {}, expiring {}, out {}{down}",
            self.elapsed().as_secs_f64(),
            tally.done,
            tally.failed,
            tally.expired,
            tally.graveyard,
            self.rate_per_s,
            self.allowed(),
            tally.response.mean_ns() / 1e6,
            self.waiting(),
            self.mean_waiting(),
            self.counts.of(State::Dead),
            self.expiring_soon(),
            self.progress.out
        )
    }

    /// Where it is, beside a bar.
    pub(super) fn headline(&self) -> String {
        let mean_ms = lock(&self.tally).response.mean_ns() / 1e6;
        let (ended, known) = (self.ended(), self.known());
        let s = self.elapsed().0 / Nanos::SECOND.0;
        format!(
            "{ended}/{known}  {}:{:02}  {:.1}/s{}  mean response {mean_ms:.0} ms",
            s / 60,
            s % 60,
            self.rate_per_s,
            self.allowed()
        )
    }

    /// Where it is, below that, for a terminal of so many rows.
    pub(super) fn lines(&self, rows: usize) -> Vec<String> {
        let tally = lock(&self.tally);
        let mut lines = vec![
            format!(
                "queue {} (mean {:.0})  dead letters {}  out {}  expiring within {} s {}",
                self.waiting(),
                self.mean_waiting(),
                self.counts.of(State::Dead),
                self.progress.out,
                SOON_MS / 1000,
                self.expiring_soon()
            ),
            format!(
                "this run: done {}  failed {}  refused {}  expired {}  graveyard {}",
                tally.done,
                tally.failed,
                tally.refused.iter().sum::<u64>(),
                tally.expired,
                tally.graveyard
            ),
        ];
        let down = self.down();
        if !down.is_empty() {
            lines.push(down);
        }
        let keys = tally.keys();
        if keys.len() + OTHER_ROWS > rows {
            lines.push(format!("keys {}, {} of use", keys.len(), self.progress.usable_keys));
            return lines;
        }
        if keys.len() < 2 {
            return lines;
        }
        let width = keys.iter().map(String::len).max().unwrap_or_default().max(3);
        lines.push(format!("{:<width$}  {:>8}  {:>8}  {:>8}  {:>8}", "key", "done", "per s", "allowed", "refused"));
        let rates = self.key_rates_per_s.iter().zip(&self.progress.allowed_per_s);
        lines.extend(keys.iter().zip(&tally.per_key).zip(rates).map(|((name, of_key), (rate, allowed))| {
            let OfKey { done, refused, lost, .. } = of_key;
            let allowed = if allowed.is_finite() { format!("{allowed:.1}") } else { "-".into() };
            let lost = lost.as_ref().map_or_else(String::new, |why| format!("  {}", plain(why)));
            format!("{name:<width$}  {done:>8}  {rate:>8.1}  {allowed:>8}  {refused:>8}{lost}")
        }));
        lines
    }

    fn expiring_soon(&self) -> String {
        let more = if self.expiring == MOST_COUNTED { " or more" } else { "" };
        format!("{}{more}", self.expiring)
    }
}
