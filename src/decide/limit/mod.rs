//! How a service limits the rate of its callers: several windows at once, judged all or nothing.
//!
//! Services count in different ways, and a client that assumes the wrong one is refused or wastes room:
//!
//! | model | a request of weight w is accepted if | what it lets through at worst |
//! |---|---|---|
//! | [`LimitModel::SlidingLog`] | what was accepted within the last `per`, plus w, is at most the limit | the limit, in any `per` |
//! | [`LimitModel::SlidingCounter`] | this window's count, plus the share of the last one's that still overlaps, plus w, is | about the limit |
//! | [`LimitModel::AlignedWindow`] | the count since the last multiple of `per`, plus w, is | twice the limit, around an edge |
//! | [`LimitModel::TokenBucket`] | w tokens are there; they come back evenly, a whole bucket in `per` | twice the limit, after a pause |
//! | [`LimitModel::Concurrency`] | what is being answered, plus w, is | whatever answers fast |
//!
//! Each model is told three things and no more: how much of it is used now, when there would be room for a weight if
//! nothing else came, and that a request was accepted. Room only grows while nothing is accepted; that is why the
//! windows can be asked one by one, and why the latest of their answers is exact for all of them together.

mod aligned_window;
mod concurrency;
#[cfg(test)]
mod oracle;
mod sliding_counter;
mod sliding_log;
pub(super) mod token_bucket;
mod window;

use self::aligned_window::AlignedWindow;
use self::concurrency::Concurrency;
use self::sliding_counter::SlidingCounter;
use self::sliding_log::SlidingLog;
use self::token_bucket::TokenBucket;
pub use self::window::{LimitModel, LimitWindow};
use super::Nanos;

/// When the same request would be accepted if nothing else came; in this order, the later the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetryTime {
    /// After this length, and not a nanosecond earlier.
    After(Nanos),
    /// Once enough of what is being answered has [finished](ServerLimiter::finished).
    Finished,
    /// Never: it weighs more than the whole window.
    Never,
}

/// Why a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRejection {
    /// The number of the window that it would wait for longest.
    pub window: usize,
    /// When it would be accepted.
    pub retry: RetryTime,
}

/// How full one window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitUsage {
    /// Which window.
    pub window: LimitWindow,
    /// How much of its limit is used, fractions rounded up.
    pub used: u64,
    /// The greatest weight that it would accept now.
    pub remaining: u64,
    /// When it would accept more than that; `After(ZERO)` if nothing is used.
    pub more: RetryTime,
    /// When it would accept as much as it ever does; `After(ZERO)` if nothing is used.
    pub all: RetryTime,
}

/// The windows of one key.
///
/// Memory is fixed: a few words for a window, and for a sliding log at most as many entries as its limit.
#[derive(Clone, Debug)]
pub struct ServerLimiter {
    windows: Vec<WindowMeter>,
    tick: Nanos,
    latest: Nanos,
}

/// A window and its count.
#[derive(Clone, Debug)]
struct WindowMeter {
    window: LimitWindow,
    count: ModelCount,
    peak_used: u64,
}

#[derive(Clone, Debug)]
enum ModelCount {
    SlidingLog(SlidingLog),
    SlidingCounter(SlidingCounter),
    AlignedWindow(AlignedWindow),
    TokenBucket(TokenBucket),
    Concurrency(Concurrency),
}

impl ServerLimiter {
    /// Nothing accepted yet. Times are rounded down to multiples of `tick` before they are looked at, as a service
    /// does whose clock gives whole milliseconds.
    pub fn new(windows: &[LimitWindow], tick: Nanos) -> Self {
        let windows =
            windows.iter().map(|window| WindowMeter { window: *window, count: ModelCount::new(*window), peak_used: 0 });
        Self { windows: windows.collect(), tick: tick.max(Nanos(1)), latest: Nanos::ZERO }
    }

    /// A request of this weight comes at `now`. It is accepted by all windows, or counts in none. A weight of 0 is
    /// always accepted.
    ///
    /// # Errors
    /// The window that has no room for longest.
    pub fn judge(&mut self, now: Nanos, weight: u64) -> Result<(), LimitRejection> {
        let at = self.advance(now);
        let mut refusal: Option<LimitRejection> = None;
        for (number, meter) in self.windows.iter_mut().enumerate() {
            if weight > meter.remaining(at) {
                let retry = meter.retry(at, weight);
                if refusal.is_none_or(|latest| latest.retry < retry) {
                    refusal = Some(LimitRejection { window: number, retry });
                }
            }
        }
        if let Some(LimitRejection { window, retry }) = refusal {
            return Err(LimitRejection { window, retry: self.relative(now, retry) });
        }
        self.windows.iter_mut().for_each(|meter| meter.take(at, weight));
        Ok(())
    }

    /// A request that was accepted has been answered. Only [`LimitModel::Concurrency`] asks.
    pub fn finished(&mut self, weight: u64) {
        for meter in &mut self.windows {
            if let ModelCount::Concurrency(count) = &mut meter.count {
                count.finished(weight);
            }
        }
    }

    /// How full each window is, in the order in which they were given.
    pub fn usages(&mut self, now: Nanos) -> Vec<LimitUsage> {
        let at = self.advance(now);
        let standings: Vec<LimitUsage> = self.windows.iter_mut().map(|meter| meter.usage(at)).collect();
        let relative =
            |s: LimitUsage| LimitUsage { more: self.relative(now, s.more), all: self.relative(now, s.all), ..s };
        standings.into_iter().map(relative).collect()
    }

    /// Each window, and the most of it that was ever used at once.
    pub fn peaks(&self) -> impl Iterator<Item = (LimitWindow, u64)> {
        self.windows.iter().map(|meter| (meter.window, meter.peak_used))
    }

    /// The time in whole ticks. A time before the latest counts as the latest: two threads that read the clock one
    /// after the other may come here the other way round.
    fn advance(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(Nanos(now.0 - now.0 % self.tick.0));
        self.latest
    }

    /// From an instant to a length from `now`: to the first tick that is not before the instant.
    fn relative(&self, now: Nanos, retry: RetryTime) -> RetryTime {
        match retry {
            RetryTime::After(at) => {
                RetryTime::After(at.0.checked_next_multiple_of(self.tick.0).map_or(Nanos::NEVER, Nanos) - now)
            }
            other => other,
        }
    }
}

impl WindowMeter {
    fn remaining(&mut self, now: Nanos) -> u64 {
        self.window.limit().saturating_sub(self.count.used(now))
    }

    /// When there will be room for a weight that there is no room for now; [`RetryTime::After`] holds an instant here.
    fn retry(&mut self, now: Nanos, weight: u64) -> RetryTime {
        match &mut self.count {
            _ if weight > self.window.limit() => RetryTime::Never,
            ModelCount::SlidingLog(count) => RetryTime::After(count.available_at(now, weight)),
            ModelCount::SlidingCounter(count) => RetryTime::After(count.available_at(now, weight)),
            ModelCount::AlignedWindow(count) => RetryTime::After(count.available_at(now)),
            ModelCount::TokenBucket(count) => RetryTime::After(count.available_at(weight)),
            ModelCount::Concurrency(_) => RetryTime::Finished,
        }
    }

    fn take(&mut self, now: Nanos, weight: u64) {
        match &mut self.count {
            ModelCount::SlidingLog(count) => count.take(now, weight),
            ModelCount::SlidingCounter(count) => count.take(now, weight),
            ModelCount::AlignedWindow(count) => count.take(now, weight),
            ModelCount::TokenBucket(count) => count.take(now, weight),
            ModelCount::Concurrency(count) => count.take(weight),
        }
        self.peak_used = self.peak_used.max(self.count.used(now));
    }

    fn usage(&mut self, now: Nanos) -> LimitUsage {
        let window = self.window;
        let remaining = self.remaining(now);
        let used = window.limit() - remaining;
        if used == 0 {
            let at_once = RetryTime::After(now);
            return LimitUsage { window, used, remaining, more: at_once, all: at_once };
        }
        let (more, all) = (self.retry(now, remaining + 1), self.retry(now, window.limit()));
        LimitUsage { window, used, remaining, more, all }
    }
}

impl ModelCount {
    fn new(window: LimitWindow) -> Self {
        let (limit, per) = (window.limit(), window.per());
        match window.model() {
            LimitModel::SlidingLog => Self::SlidingLog(SlidingLog::new(limit, per)),
            LimitModel::SlidingCounter => Self::SlidingCounter(SlidingCounter::new(limit, per)),
            LimitModel::AlignedWindow => Self::AlignedWindow(AlignedWindow::new(per)),
            LimitModel::TokenBucket => Self::TokenBucket(TokenBucket::new(limit, per)),
            LimitModel::Concurrency => Self::Concurrency(Concurrency::default()),
        }
    }

    /// What is used of the limit, fractions rounded up; at most the limit.
    fn used(&mut self, now: Nanos) -> u64 {
        match self {
            Self::SlidingLog(count) => count.used(now),
            Self::SlidingCounter(count) => count.used(now),
            Self::AlignedWindow(count) => count.used(now),
            Self::TokenBucket(count) => count.used(now),
            Self::Concurrency(count) => count.used(),
        }
    }
}
