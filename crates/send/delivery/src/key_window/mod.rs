//! The send times of one API key, chosen so that no rate limit is exceeded as the *server* counts.
//!
//! A client that counts its own sends is rejected: the server counts arrivals, and two requests sent 1,000 ms apart may
//! arrive 960 ms apart. A client that waits for every response leaves capacity unused. Of each request the client has
//! these instants:
//!
//! ```text
//!     s                    U = min(r, s + J)          r
//!  ───┼──────────────────────────┼────────────────────┼────► time
//!     send              latest arrival            response
//! ```
//!
//! J is the one-way delay bound: the longest time from send to arrival. A new request arrives at its send or later. So
//! each earlier request is assumed to arrive at U, its latest possible arrival, and the new one at once; then the
//! server never counts more than this side does, whatever the delays are. For N requests per T: request k may be sent
//! when now >= U(k - N) + T + one tick of the server's clock. The cost is J / (T + J) of the rate at worst, and mostly
//! less, since responses usually come before s + J.
//!
//! The argument does not need arrivals in order: of the requests in any interval that the server counts, consider the
//! one *sent* last. All others were sent before it and counted at its send, including those that it overtakes.
//!
//! - Without J only a response proves an arrival: U = r.
//! - A request without a response counts as arrived at s + J; without J, when it is abandoned.
//! - Nonces that must increase *at arrival*: request k also waits until now > U(k - 1).
//! - Several windows at once: the latest of their send times. `worst_case_count.rs` lists which count bounds which
//!   model.
//! - A [rejection](KeyWindows::rejected) disproves one of these assumptions. Sending stops for `Retry-After` (or a
//!   window), the request counts as accepted, and the estimate of the limit is lowered.
//! - Quotas that a response reports are [applied](KeyWindows::apply_quotas) where they leave less than the local count:
//!   another client uses the same limit, or earlier sends were forgotten.
//!
//! - Without a stated limit a sustainable [pace](super::pace) is learnt.
//!
//! Contents, senders and outcomes of requests are outside of this module.

mod arrival_log;
mod concurrency;
mod count_snapshot;
mod delay_bound;
mod external_usage;
mod history;
mod in_flight;
mod limit_estimate;
mod rules;
mod send_time;
mod server_quota;
mod stored;
mod stored_bounds;
mod window_count;
mod worst_case_bucket;
mod worst_case_count;

use self::count_snapshot::CountSnapshot;
pub use self::delay_bound::OneWayDelayBound;
pub use self::history::{KeyHistory, WindowHistory};
use self::in_flight::{InFlightRequests, OpenRequest};
pub use self::rules::{KeyLimit, KeyRules};
pub use self::send_time::SendTimeCause;
use self::server_quota::ServerQuota;
use self::window_count::{RejectedCount, WindowCount};

use serde::{Deserialize, Serialize};

use crate::pace::AdaptivePace;
use weir_base::Nanos;
use weir_limits::limit_unit::LimitUnit;
use weir_limits::models;

/// Maximum number of limits of a key.
pub const MAX_WINDOWS: usize = 8;

/// Minimum timeout of a probe's response.
const MIN_PROBE_TIMEOUT: Nanos = Nanos::from_millis(50);

/// Handle of a sent request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WindowSlot(u64);

/// Client-side counts of a key's limits: one for each window, and all requests in flight.
///
/// Instants should be passed in order; one before the latest counts as the latest. Each slot ends once: with
/// [`Self::responded`], [`Self::abandoned`] or [`Self::unsent`]. Memory: two words for each request in a log, and a
/// snapshot of all counts for each request that has not ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyWindows {
    counts: Vec<WindowCount>,
    in_flight: InFlightRequests,
    ordered: bool,
    delay_bound: Option<Nanos>,
    clock_tick: Nanos,
    /// Earliest time of the next send.
    held_until: Nanos,
    /// Time of the latest rejection of a request that was sent after the previous one.
    rejected_at: Option<Nanos>,
    /// Single request that goes first after a rejection, if responses report the limit's count.
    probe: Option<RejectionProbe>,
    /// Learnt pace, if no limit is stated.
    #[serde(skip)]
    pace: Option<AdaptivePace>,
    /// Quotas reported by the server that match none of `counts`.
    server_quotas: Vec<ServerQuota>,
    /// Latest time by which the last arrived request had arrived.
    last_arrival: Option<Nanos>,
    latest: Nanos,
}

/// The first request after a rejection: its response reports what other clients have used meanwhile.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RejectionProbe {
    /// Timeout of the response; a rejection would have come by then.
    timeout: Nanos,
    /// Slot of the probe, and the end of its timeout.
    in_flight: Option<(WindowSlot, Nanos)>,
}

impl KeyWindows {
    /// Windows without any request.
    pub fn new(rules: &KeyRules) -> Self {
        Self {
            counts: rules.limits.iter().take(MAX_WINDOWS).map(|limit| WindowCount::new(*limit, rules)).collect(),
            in_flight: InFlightRequests::default(),
            ordered: rules.ordered,
            delay_bound: rules.delay_bound,
            clock_tick: rules.clock_tick,
            held_until: Nanos::ZERO,
            rejected_at: None,
            probe: None,
            pace: (rules.learns_pace && rules.limits.is_empty()).then(AdaptivePace::default),
            server_quotas: Vec::new(),
            last_arrival: None,
            latest: Nanos::ZERO,
        }
    }

    /// Whether the weight is within every limit.
    pub fn fits(&self, weight: u64) -> bool {
        self.counts.iter().all(|count| count.limit.unit.amount(weight) <= count.limit.window.limit())
    }

    /// Requests per second that the limits on requests allow, by their current estimates; infinite without a limit by
    /// time.
    pub fn rate_per_s(&self) -> f64 {
        let rates = self.counts.iter().filter(|count| count.limit.unit == LimitUnit::Requests).map(|count| {
            let per = match count.limit.window.model() {
                models::LimitModel::Concurrency => Nanos::ZERO,
                models::LimitModel::TokenBucket => count.limit.window.per(),
                _ => count.limit.window.per() + self.clock_tick + self.delay_bound.unwrap_or_default(),
            };
            count.estimate() as f64 / per.as_secs_f64()
        });
        rates.fold(self.pace.as_ref().map_or(f64::INFINITY, AdaptivePace::rate_per_s), f64::min)
    }

    /// Adds a request of this weight. Until it has [departed](Self::departed) its arrival has no bound.
    pub fn sent(&mut self, now: Nanos, weight: u64) -> WindowSlot {
        let now = self.advance(now);
        let mut snapshots = [CountSnapshot::default(); MAX_WINDOWS];
        for (count, snapshot) in self.counts.iter_mut().zip(&mut snapshots) {
            let amount = count.limit.unit.amount(weight);
            *snapshot = count.snapshot(now, &self.in_flight.in_transit(count.limit.unit, self.delay_bound));
            count.send(amount);
        }
        self.server_quotas.iter_mut().for_each(|quota| quota.send(weight));
        let pace = self.pace.as_mut().map(|pace| pace.sent(now, weight));
        let slot = self.in_flight.push(OpenRequest {
            intended_at: now,
            departed_at: None,
            weight,
            arrived: false,
            ended: false,
            snapshots,
            pace,
        });
        self.probe = self.probe.filter(|probe| probe.in_flight.is_none());
        if let Some(probe) = &mut self.probe {
            probe.in_flight = Some((slot, now + probe.timeout));
        }
        slot
    }

    /// Marks the request's bytes as written now and not earlier. Called at once if a connection is ready, otherwise
    /// when there is one, so that the delay bound does not include connecting.
    pub fn departed(&mut self, slot: WindowSlot, now: Nanos) {
        let now = self.advance(now);
        self.in_flight.depart(slot, now);
    }

    /// Records a response: the request arrived by now. Returns its round trip if it was in flight.
    ///
    /// A round trip clearly above `usual` may be a delay on the way to the server beyond the bound: then only the
    /// response proves the arrival. [`Nanos::NEVER`]: the usual round trip is unknown.
    pub fn responded(&mut self, slot: WindowSlot, now: Nanos, usual: Nanos) -> Option<Nanos> {
        let now = self.advance(now);
        let tick = self.clock_tick;
        let open = self.in_flight.get(slot)?;
        let (departed_at, weight) = (open.departed_at, open.weight);
        self.mark_arrived(slot.0, now);
        self.end(slot, now + tick);
        let round_trip = now - departed_at?;
        // Up to a tenth above the usual round trip is normal variation.
        if let (Some(departed_at), Some(max_delay)) = (departed_at, self.delay_bound)
            && round_trip > (usual + Nanos(usual.0 / 10)).max(max_delay)
        {
            for count in &mut self.counts {
                count.postpone(departed_at + max_delay, now, count.limit.unit.amount(weight));
            }
            self.last_arrival = self.last_arrival.max(Some(now));
        }
        Some(round_trip)
    }

    /// Gives a request up. It counts as arrived, and as being processed for as long again as it was in flight.
    pub fn abandoned(&mut self, slot: WindowSlot, now: Nanos) {
        let now = self.advance(now);
        let Some(open) = self.in_flight.get(slot) else { return };
        let (sent_at, departed_at) = (open.intended_at, open.departed_at);
        if self.delay_bound.is_none() || departed_at.is_none() {
            self.mark_arrived(slot.0, now);
        }
        self.end(slot, now + (now - sent_at));
    }

    /// Takes back a request that was never written. If it was taken for arrived meanwhile, logs take it back; a bucket
    /// may have been full since, and keeps it.
    pub fn unsent(&mut self, slot: WindowSlot, now: Nanos) {
        let now = self.advance(now);
        if let Some(open) = self.in_flight.get(slot) {
            let (weight, departed_at) = (open.weight, open.departed_at.filter(|_| open.arrived));
            if let Some(departed_at) = departed_at {
                self.counts.iter_mut().for_each(|count| count.take_back(departed_at, count.limit.unit.amount(weight)));
            }
            self.in_flight.arrive(slot.0);
            self.end(slot, now);
        }
    }

    /// Records an acceptance, which ends the growth of hold times; called before the slot ends.
    pub fn accepted(&mut self, slot: WindowSlot, now: Nanos) {
        let now = self.advance(now);
        self.counts.iter_mut().for_each(WindowCount::accepted);
        let Some(open) = self.in_flight.get(slot) else { return };
        if let (Some(pace), Some(sent)) = (&mut self.pace, open.pace.take()) {
            pace.accepted(now, sent);
        }
    }

    /// Records a rate-limit rejection; called before the slot ends. Sending stops for `retry_after`, or for the
    /// window's length without one. With `shrink`, the estimate of the limit with the least remaining is lowered;
    /// rejections of all requests sent before the first one came count as one.
    pub fn rejected(&mut self, slot: WindowSlot, now: Nanos, retry_after: Option<Nanos>, shrink: bool) {
        let now = self.advance(now);
        let Some(open) = self.in_flight.get(slot) else { return };
        if let (Some(pace), Some(sent)) = (&mut self.pace, open.pace.take()) {
            return pace.rejected(now, sent, retry_after);
        }
        let (snapshots, weight, sent_at) = (open.snapshots, open.weight, open.intended_at);
        let first = self.rejected_at.filter(|first| open.intended_at < *first);
        let is_new_event = first.is_none();
        let windows = self.counts.iter_mut().zip(snapshots);
        let fullest = windows.min_by_key(|(count, snapshot)| count.min_remaining(snapshot, weight));
        let mut hold = Nanos::SECOND;
        if let Some((count, snapshot)) = fullest {
            if shrink {
                let used = count.snapshot(now, &self.in_flight.in_transit(count.limit.unit, self.delay_bound)).used;
                let counted = RejectedCount { before_send: snapshot.used, now: used };
                count.shrink(now, sent_at, counted, weight, first);
            }
            hold = count.hold(now, is_new_event);
            if is_new_event && count.needs_probe() {
                let timeout = Nanos((now - sent_at).0.saturating_mul(4)).max(MIN_PROBE_TIMEOUT);
                self.probe = Some(RejectionProbe { timeout, in_flight: None });
            }
        }
        if is_new_event {
            self.rejected_at = Some(now);
        }
        self.hold_until(now + retry_after.unwrap_or(hold));
    }

    /// Earliest time of the next send.
    pub fn hold_until(&mut self, at: Nanos) {
        self.held_until = self.held_until.max(at);
    }

    /// Replaces the one-way delay bound.
    pub fn set_delay_bound(&mut self, now: Nanos, max_delay: Option<Nanos>) {
        let now = self.advance(now);
        self.delay_bound = max_delay;
        self.counts.iter_mut().for_each(|count| count.set_delay_bound(now, max_delay));
        if max_delay.is_none() {
            // Abandoned requests get no response that would prove their arrival.
            for number in self.in_flight.ended_in_transit() {
                self.mark_arrived(number, now);
            }
            self.in_flight.prune();
        }
    }

    /// Moves time forward: requests arrive by the delay bound, and counts expire.
    pub fn advance(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(now);
        let now = self.latest;
        if let Some(max_delay) = self.delay_bound {
            while let Some((by, number)) = self.in_flight.next_arrived(now, max_delay) {
                self.mark_arrived(number, by);
            }
        }
        self.counts.iter_mut().for_each(|count| count.advance(now));
        self.server_quotas.retain_mut(|quota| quota.is_active(now));
        now
    }

    /// Counts the request as arrived, unless it is already.
    fn mark_arrived(&mut self, number: u64, by: Nanos) {
        if let Some(open) = self.in_flight.arrive(number) {
            self.arrive(by, open.weight);
        }
    }

    fn arrive(&mut self, by: Nanos, weight: u64) {
        let by = by.max(self.last_arrival.unwrap_or_default());
        self.last_arrival = Some(by);
        for count in &mut self.counts {
            count.arrive(by, count.limit.unit.amount(weight));
        }
    }

    fn end(&mut self, slot: WindowSlot, at: Nanos) {
        if self.probe.is_some_and(|probe| probe.in_flight.is_some_and(|(out, _)| out == slot)) {
            self.probe = None;
        }
        if let Some(open) = self.in_flight.end(slot) {
            let weight = open.weight;
            if let (Some(pace), Some(_)) = (&mut self.pace, open.pace.take()) {
                pace.ended();
            }
            for (count, snapshot) in self.counts.iter_mut().zip(&open.snapshots) {
                count.end(at, count.limit.unit.amount(weight), snapshot);
            }
        }
        self.in_flight.prune();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
