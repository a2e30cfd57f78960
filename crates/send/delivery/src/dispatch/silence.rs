//! Silence of a host: requests leave, and none has a response.
//!
//! A host that takes requests and responds to none fails no job until the timeouts, and gets all requests of that time.
//! So silence itself is evidence. A host that is merely slow looks the same for a while, and holding it back costs
//! throughput; hence the conditions:
//!
//! - [`MIN_UNANSWERED`] requests were sent since the last response. Those sent before it prove nothing: they may be
//!   slow ones. One of them must have left, or the stall is on this side.
//! - The first of them is older than the 99th percentile of the recent response times, plus a quarter. A host with few
//!   responses so far has no usual response time, and only timeouts count.
//! - A *pause* is a silence after which the requests at its begin have responses after all. For a while only a silence
//!   that is half as long again counts. The quantile alone is not enough: with sending held back, few requests take as
//!   long as the pause. Pauses of length L thus cost a rate at most 0.6% of L per second, however often they come.

use super::Nanos;
use weir_retry::latency_quantile::LatencyQuantile;

/// Requests without a response since the last one. Three that are slower than 99% by chance are one in a million.
const MIN_UNANSWERED: u32 = 3;
/// Shortest silence: what the network and the scheduler take at times.
const MIN_SILENCE: Nanos = Nanos::from_millis(100);
/// Responses below which a host has no usual response time.
const MIN_RESPONSES: u64 = 10;
const SLOW_QUANTILE: f64 = 0.99;
/// Period of the quantile: covers the last one to two.
const QUANTILE_PERIOD: Nanos = Nanos::from_secs(30);
/// Time in which the memory of a pause halves.
const PAUSE_HALF_LIFE: Nanos = Nanos::from_secs(60);

/// Time without a response.
#[derive(Clone, Copy, Debug, Default)]
struct ResponseGap {
    begin: Nanos,
    end: Nanos,
}

/// A pause that was longer than expected.
#[derive(Clone, Copy, Debug, Default)]
struct LongPause {
    length: Nanos,
    ended_at: Nanos,
}

/// Requests and responses of one host, as far as they concern silence.
#[derive(Clone, Debug)]
pub(super) struct SilenceDetector {
    /// Response times without rejections and errors, which are often quicker.
    response_times: LatencyQuantile,
    /// Time of the last response.
    responded_at: Nanos,
    /// Requests sent since then, and the send times of the first and of the [`MIN_UNANSWERED`]-th.
    unanswered: u32,
    first_at: Nanos,
    confirmed_at: Nanos,
    /// Whether one of them has left.
    has_departed: bool,
    /// Latest time without a response to [`MIN_UNANSWERED`] requests.
    gap: ResponseGap,
    /// The last pause that was longer than expected.
    pause: LongPause,
}

impl SilenceDetector {
    pub(super) fn new() -> Self {
        Self {
            response_times: LatencyQuantile::coarse(QUANTILE_PERIOD),
            responded_at: Nanos::ZERO,
            unanswered: 0,
            first_at: Nanos::ZERO,
            confirmed_at: Nanos::ZERO,
            has_departed: false,
            gap: ResponseGap::default(),
            pause: LongPause::default(),
        }
    }

    pub(super) fn sent(&mut self, now: Nanos) {
        self.unanswered = self.unanswered.saturating_add(1);
        if self.unanswered == 1 {
            self.first_at = now;
        }
        if self.unanswered == MIN_UNANSWERED {
            self.confirmed_at = now;
        }
    }

    /// Records that the bytes of a request left.
    pub(super) fn departed(&mut self) {
        self.has_departed = self.unanswered > 0;
    }

    /// Records a response to a request that was sent then. `is_typical`: the time counts as a response time.
    pub(super) fn responded(&mut self, now: Nanos, sent: Nanos, is_typical: bool) {
        if self.unanswered >= MIN_UNANSWERED {
            self.gap = ResponseGap { begin: self.first_at, end: now };
        }
        let ResponseGap { begin, end } = self.gap;
        let length = end - begin;
        if sent + Nanos(length.0 / 2) <= end && length > self.expected_pause(now) {
            self.pause = LongPause { length, ended_at: now };
        }
        self.responded_at = now;
        self.connection_failed();
        if is_typical {
            self.response_times.record(now, now - sent);
        }
    }

    /// Records a connection that was refused or broke: the host is not silent.
    pub(super) fn connection_failed(&mut self) {
        (self.unanswered, self.has_departed) = (0, false);
    }

    /// Time of the last response.
    pub(super) fn responded_at(&self) -> Nanos {
        self.responded_at
    }

    /// Time in which the host usually responds to a request, pauses included. `rough_limit`: that time with too few
    /// responses for a quantile.
    pub(super) fn limit(&mut self, now: Nanos, rough_limit: Nanos) -> Nanos {
        let slow = self.response_times.quantile(now, SLOW_QUANTILE);
        let limit = slow.map_or(rough_limit, |slow| slow + Nanos(slow.0 / 4)).max(MIN_SILENCE);
        let pause = self.expected_pause(now);
        limit.max(pause + Nanos(pause.0 / 2))
    }

    /// Whether the host is silent.
    pub(super) fn is_silent(&mut self, now: Nanos, rough_limit: Nanos) -> bool {
        if self.unanswered < MIN_UNANSWERED || !self.has_departed || self.response_times.len() < MIN_RESPONSES {
            return false;
        }
        let limit = self.limit(now, rough_limit);
        now >= self.first_at + limit && now >= self.confirmed_at + Nanos(limit.0 / 2)
    }

    /// Expects pauses of any length.
    #[cfg(test)]
    pub(super) fn disable(&mut self) {
        self.pause = LongPause { length: Nanos::NEVER, ended_at: Nanos::NEVER };
    }

    /// Length up to which a pause is expected.
    fn expected_pause(&self, now: Nanos) -> Nanos {
        let LongPause { length, ended_at } = self.pause;
        let half_lives = ((now - ended_at).0 / PAUSE_HALF_LIFE.0).min(63);
        Nanos(length.0 >> half_lives)
    }
}
