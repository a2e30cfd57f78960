//! How a service limits the rate of its callers: several windows at once, judged all or nothing.
//!
//! Services count in different ways, and a client that assumes the wrong one is refused or wastes room:
//!
//! | model | a request of weight w is accepted if | what it lets through at worst |
//! |---|---|---|
//! | [`Model::SlidingLog`] | what was accepted within the last `per`, plus w, is at most the limit | the limit, in any `per` |
//! | [`Model::SlidingCounter`] | this window's count, plus the share of the last one's that still overlaps, plus w, is | about the limit |
//! | [`Model::AlignedWindow`] | the count since the last multiple of `per`, plus w, is | twice the limit, around an edge |
//! | [`Model::TokenBucket`] | w tokens are there; they come back evenly, a whole bucket in `per` | twice the limit, after a pause |
//! | [`Model::Concurrency`] | what is being answered, plus w, is | whatever answers fast |
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
pub use self::window::{Model, Window};
use super::Nanos;

/// When the same request would be accepted if nothing else came; in this order, the later the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Retry {
    /// After this length, and not a nanosecond earlier.
    After(Nanos),
    /// Once enough of what is being answered has [finished](Limiter::finished).
    Finished,
    /// Never: it weighs more than the whole window.
    Never,
}

/// Why a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The number of the window that it would wait for longest.
    pub window: usize,
    /// When it would be accepted.
    pub retry: Retry,
}

/// How full one window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which window.
    pub window: Window,
    /// How much of its limit is used, fractions rounded up.
    pub used: u64,
    /// The greatest weight that it would accept now.
    pub remaining: u64,
    /// When it would accept more than that; `After(ZERO)` if nothing is used.
    pub more: Retry,
    /// When it would accept as much as it ever does; `After(ZERO)` if nothing is used.
    pub all: Retry,
}

/// The windows of one key.
///
/// Memory is fixed: a few words for a window, and for a sliding log at most as many entries as its limit.
#[derive(Clone, Debug)]
pub struct Limiter {
    windows: Vec<Meter>,
    tick: Nanos,
    latest: Nanos,
}

/// A window and its count.
#[derive(Clone, Debug)]
struct Meter {
    window: Window,
    count: Count,
    closest: u64,
}

#[derive(Clone, Debug)]
enum Count {
    SlidingLog(SlidingLog),
    SlidingCounter(SlidingCounter),
    AlignedWindow(AlignedWindow),
    TokenBucket(TokenBucket),
    Concurrency(Concurrency),
}

impl Limiter {
    /// Nothing accepted yet. Times are rounded down to multiples of `tick` before they are looked at, as a service
    /// does whose clock gives whole milliseconds.
    pub fn new(windows: &[Window], tick: Nanos) -> Self {
        let windows = windows.iter().map(|window| Meter { window: *window, count: Count::new(*window), closest: 0 });
        Self { windows: windows.collect(), tick: tick.max(Nanos(1)), latest: Nanos::ZERO }
    }

    /// A request of this weight comes at `now`. It is accepted by all windows, or counts in none. A weight of 0 is
    /// always accepted.
    ///
    /// # Errors
    /// The window that has no room for longest.
    pub fn judge(&mut self, now: Nanos, weight: u64) -> Result<(), Refusal> {
        let at = self.advance(now);
        let mut refusal: Option<Refusal> = None;
        for (number, meter) in self.windows.iter_mut().enumerate() {
            if weight > meter.remaining(at) {
                let retry = meter.retry(at, weight);
                if refusal.is_none_or(|latest| latest.retry < retry) {
                    refusal = Some(Refusal { window: number, retry });
                }
            }
        }
        if let Some(Refusal { window, retry }) = refusal {
            return Err(Refusal { window, retry: self.length(now, retry) });
        }
        self.windows.iter_mut().for_each(|meter| meter.take(at, weight));
        Ok(())
    }

    /// A request that was accepted has been answered. Only [`Model::Concurrency`] asks.
    pub fn finished(&mut self, weight: u64) {
        for meter in &mut self.windows {
            if let Count::Concurrency(count) = &mut meter.count {
                count.finished(weight);
            }
        }
    }

    /// How full each window is, in the order in which they were given.
    pub fn standings(&mut self, now: Nanos) -> Vec<Standing> {
        let at = self.advance(now);
        let standings: Vec<Standing> = self.windows.iter_mut().map(|meter| meter.standing(at)).collect();
        let relative = |s: Standing| Standing { more: self.length(now, s.more), all: self.length(now, s.all), ..s };
        standings.into_iter().map(relative).collect()
    }

    /// Each window, and the most of it that was ever used at once.
    pub fn closest(&self) -> impl Iterator<Item = (Window, u64)> {
        self.windows.iter().map(|meter| (meter.window, meter.closest))
    }

    /// The time in whole ticks. A time before the latest counts as the latest: two threads that read the clock one
    /// after the other may come here the other way round.
    fn advance(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(Nanos(now.0 - now.0 % self.tick.0));
        self.latest
    }

    /// From an instant to a length from `now`: to the first tick that is not before the instant.
    fn length(&self, now: Nanos, retry: Retry) -> Retry {
        match retry {
            Retry::After(at) => {
                Retry::After(at.0.checked_next_multiple_of(self.tick.0).map_or(Nanos::NEVER, Nanos) - now)
            }
            other => other,
        }
    }
}

impl Meter {
    fn remaining(&mut self, now: Nanos) -> u64 {
        self.window.limit().saturating_sub(self.count.used(now))
    }

    /// When there will be room for a weight that there is no room for now; [`Retry::After`] holds an instant here.
    fn retry(&mut self, now: Nanos, weight: u64) -> Retry {
        match &mut self.count {
            _ if weight > self.window.limit() => Retry::Never,
            Count::SlidingLog(count) => Retry::After(count.room(now, weight)),
            Count::SlidingCounter(count) => Retry::After(count.room(now, weight)),
            Count::AlignedWindow(count) => Retry::After(count.room(now)),
            Count::TokenBucket(count) => Retry::After(count.room(weight)),
            Count::Concurrency(_) => Retry::Finished,
        }
    }

    fn take(&mut self, now: Nanos, weight: u64) {
        match &mut self.count {
            Count::SlidingLog(count) => count.take(now, weight),
            Count::SlidingCounter(count) => count.take(now, weight),
            Count::AlignedWindow(count) => count.take(now, weight),
            Count::TokenBucket(count) => count.take(now, weight),
            Count::Concurrency(count) => count.take(weight),
        }
        self.closest = self.closest.max(self.count.used(now));
    }

    fn standing(&mut self, now: Nanos) -> Standing {
        let window = self.window;
        let remaining = self.remaining(now);
        let used = window.limit() - remaining;
        if used == 0 {
            let at_once = Retry::After(now);
            return Standing { window, used, remaining, more: at_once, all: at_once };
        }
        let (more, all) = (self.retry(now, remaining + 1), self.retry(now, window.limit()));
        Standing { window, used, remaining, more, all }
    }
}

impl Count {
    fn new(window: Window) -> Self {
        let (limit, per) = (window.limit(), window.per());
        match window.model() {
            Model::SlidingLog => Self::SlidingLog(SlidingLog::new(limit, per)),
            Model::SlidingCounter => Self::SlidingCounter(SlidingCounter::new(limit, per)),
            Model::AlignedWindow => Self::AlignedWindow(AlignedWindow::new(per)),
            Model::TokenBucket => Self::TokenBucket(TokenBucket::new(limit, per)),
            Model::Concurrency => Self::Concurrency(Concurrency::default()),
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
