//! Rate limits as a service enforces them: several windows at once, all or nothing.
//!
//! Services count in different ways, and a client that assumes the wrong one is rejected or leaves capacity unused:
//!
//! | model | a request of weight w is accepted if | worst case |
//! |---|---|---|
//! | [`LimitModel::SlidingLog`] | what was accepted within the last `per`, plus w, is at most the limit | the limit, in
//! any `per` |
//! | [`LimitModel::SlidingCounter`] | this window's count, plus the overlapping fraction of the last one's, plus w, is
//! | about the limit |
//! | [`LimitModel::AlignedWindow`] | the count since the last multiple of `per`, plus w, is | twice the limit, around
//! an edge |
//! | [`LimitModel::TokenBucket`] | w tokens are there; they refill evenly, a whole bucket per `per` | twice the limit,
//! after a pause |
//! | [`LimitModel::Concurrency`] | the weight in progress, plus w, is | unlimited with fast responses |
//!
//! Each model has three operations: the amount used now, the time when a weight would fit if nothing else came, and an
//! acceptance. Between acceptances the free amount only grows; so the windows can be queried one by one, and the latest
//! of their times is exact for all together.

mod aligned_window;
mod concurrency;
mod sliding_counter;
mod sliding_log;
pub mod token_bucket;
mod window;

use self::aligned_window::AlignedWindow;
use self::concurrency::Concurrency;
use self::sliding_counter::SlidingCounter;
use self::sliding_log::SlidingLog;
use self::token_bucket::TokenBucket;
pub use self::window::{LimitModel, LimitWindow};
use weir_base::Nanos;

/// Time when the same request would be accepted if nothing else came; ordered, later is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetryTime {
    /// After this time, and not a nanosecond earlier.
    After(Nanos),
    /// Once enough requests in progress have [finished](ServerLimiter::finished).
    Finished,
    /// Never: the weight exceeds the limit.
    Never,
}

/// Reason of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRejection {
    /// Number of the window with the longest wait.
    pub window: usize,
    /// Time of acceptance.
    pub retry: RetryTime,
}

/// Usage of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitUsage {
    /// The window.
    pub window: LimitWindow,
    /// Used amount, fractions rounded up.
    pub used: u64,
    /// Largest weight that would be accepted now.
    pub remaining: u64,
    /// Time until more than that would be accepted; `After(ZERO)` if nothing is used.
    pub more: RetryTime,
    /// Time until the whole limit would be accepted; `After(ZERO)` if nothing is used.
    pub all: RetryTime,
}

/// The windows of one key at a service.
///
/// Memory is fixed: a few words per window, and for a sliding log at most as many entries as its limit.
#[derive(Clone, Debug)]
pub struct ServerLimiter {
    windows: Vec<WindowMeter>,
    tick: Nanos,
    latest: Nanos,
}

/// A window, its count and its peak.
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
    /// A limiter without requests. Times are rounded down to multiples of `tick`, as at a service whose clock has whole
    /// milliseconds.
    pub fn new(windows: &[LimitWindow], tick: Nanos) -> Self {
        let windows =
            windows.iter().map(|window| WindowMeter { window: *window, count: ModelCount::new(*window), peak_used: 0 });
        Self { windows: windows.collect(), tick: tick.max(Nanos(1)), latest: Nanos::ZERO }
    }

    /// Decides on a request of this weight at `now`: all windows accept it, or it counts in none. A weight of 0 is
    /// always accepted.
    ///
    /// # Errors
    /// The window with the longest wait.
    pub fn judge(&mut self, now: Nanos, weight: u64) -> Result<(), LimitRejection> {
        let at = self.advance(now);
        let mut rejection: Option<LimitRejection> = None;
        for (number, meter) in self.windows.iter_mut().enumerate() {
            if weight > meter.remaining(at) {
                let retry = meter.retry(at, weight);
                if rejection.is_none_or(|latest| latest.retry < retry) {
                    rejection = Some(LimitRejection { window: number, retry });
                }
            }
        }
        if let Some(LimitRejection { window, retry }) = rejection {
            return Err(LimitRejection { window, retry: self.relative(now, retry) });
        }
        self.windows.iter_mut().for_each(|meter| meter.take(at, weight));
        Ok(())
    }

    /// Ends an accepted request. Only [`LimitModel::Concurrency`] uses it.
    pub fn finished(&mut self, weight: u64) {
        for meter in &mut self.windows {
            if let ModelCount::Concurrency(count) = &mut meter.count {
                count.finished(weight);
            }
        }
    }

    /// Usage of each window, in their order.
    pub fn usages(&mut self, now: Nanos) -> Vec<LimitUsage> {
        let at = self.advance(now);
        let usages: Vec<LimitUsage> = self.windows.iter_mut().map(|meter| meter.usage(at)).collect();
        let relative =
            |s: LimitUsage| LimitUsage { more: self.relative(now, s.more), all: self.relative(now, s.all), ..s };
        usages.into_iter().map(relative).collect()
    }

    /// Each window and its highest usage so far.
    pub fn peaks(&self) -> impl Iterator<Item = (LimitWindow, u64)> {
        self.windows.iter().map(|meter| (meter.window, meter.peak_used))
    }

    /// The time in whole ticks. A time before the latest counts as the latest, since two threads may pass theirs out of
    /// order.
    fn advance(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(Nanos(now.0 - now.0 % self.tick.0));
        self.latest
    }

    /// Converts an instant to a time from `now`, rounded up to a tick.
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

    /// Time when a weight that does not fit now will; [`RetryTime::After`] holds an instant here.
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

    /// Used amount, fractions rounded up; at most the limit.
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
