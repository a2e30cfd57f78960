//! One window of a key: its count, the estimate of its limit, and its rejections.

use serde::{Deserialize, Serialize};

use super::count_snapshot::CountSnapshot;
use super::external_usage::{CountReport, ExternalUsage};
use super::in_flight::{InTransit, OutstandingRequests};
use super::limit_estimate::{HIGH_LIMIT, LimitEstimate};
use super::worst_case_count::WorstCaseCount;
use super::{KeyLimit, KeyRules, Nanos, WindowHistory};
use crate::limit_headers::Quota;
use weir_limits::models::LimitModel;

/// Counts of a window that a rejected request met.
#[derive(Clone, Copy, Debug)]
pub(super) struct RejectedCount {
    /// Count before the request's send.
    pub(super) before_send: u64,
    /// Count when the rejection came.
    pub(super) now: u64,
}

/// A window of a key, kept so that the server's count never exceeds its limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WindowCount {
    pub(super) limit: KeyLimit,
    estimate: LimitEstimate,
    count: WorstCaseCount,
    clock_tick: Nanos,
    /// One-way delay bound that the counter's bucket is sized for.
    delay_bound: Nanos,
    /// Amount ever sent.
    total_sent: u64,
    /// Amount that ever arrived or was booked for other clients.
    total_arrived: i128,
    external: ExternalUsage,
    /// Whether the last report had the remaining amount, and the limit.
    reports_remaining: bool,
    reports_limit: bool,
    /// Time and reset of the last report with a reset.
    reset: Option<(Nanos, Nanos)>,
    consecutive_rejections: u32,
    last_rejection: Option<RejectionEvent>,
}

/// The latest rejection, and those of requests sent before it came.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RejectionEvent {
    /// Send time of the rejected request.
    sent_at: Nanos,
    /// Amount ever sent, and the count, when the rejection came.
    total_sent: u64,
    used: u64,
    /// Amount rejected by this event.
    rejected: u64,
    /// Amount sent since the previous event, and for how long.
    sent_since_previous: Option<(u64, Nanos)>,
}

impl RejectionEvent {
    /// `percent` of the amount that went through per `per` since the previous event.
    fn measured(&self, per: Nanos, percent: u64) -> Option<u64> {
        let (sent, length) = self.sent_since_previous?;
        let taken = u128::from(sent.saturating_sub(self.rejected));
        u64::try_from(taken * u128::from(per.0 / 100 * percent) / u128::from(length.0.max(1))).ok()
    }
}

/// Longest hold after a first rejection without `Retry-After`.
const MAX_FIRST_HOLD: Nanos = Nanos::from_secs(60);
/// Fewer requests between two rejections are not a measurement; a measured limit is used with a margin.
const MIN_MEASURED_REQUESTS: u64 = 20;
const MARGIN_PERCENT: u64 = 98;
const REPORTED_PERCENT: u64 = 104;
/// Minimum time of a measurement, so that varying delays do not matter.
const MIN_MEASURED_TIME: Nanos = Nanos::from_millis(500);

impl WindowCount {
    pub(super) fn new(limit: KeyLimit, rules: &KeyRules) -> Self {
        let per = limit.window.per();
        let delay_bound = rules.delay_bound.unwrap_or(Nanos(per.0 / 4));
        let count = WorstCaseCount::new(limit.window, rules, delay_bound);
        let estimate = LimitEstimate::new(limit.window.limit(), per);
        Self {
            limit,
            estimate,
            count,
            clock_tick: rules.clock_tick,
            delay_bound,
            total_sent: 0,
            total_arrived: 0,
            external: ExternalUsage::default(),
            reports_remaining: false,
            reports_limit: false,
            reset: None,
            last_rejection: None,
            consecutive_rejections: 0,
        }
    }

    /// Replaces the delay bound: a counter's bucket is sized for it, with room for late timers. Any size is safe;
    /// without a bound the last one stays.
    pub(super) fn set_delay_bound(&mut self, now: Nanos, delay_bound: Option<Nanos>) {
        let Some(delay_bound) = delay_bound else { return };
        self.delay_bound = delay_bound.max(Nanos(self.limit.window.per().0 / 50));
        if self.limit.window.model() == LimitModel::SlidingCounter {
            self.resize(now);
        }
    }

    /// Computes what is not stored, for this limit; false: the numbers contradict one another.
    pub(super) fn restore(&mut self, like: &Self) -> bool {
        self.clock_tick = like.clock_tick;
        self.limit == like.limit
            && self.estimate.is_valid(self.limit.window.limit())
            && self.external.is_valid()
            && self.total_arrived.unsigned_abs() < super::stored_bounds::MAX_SUM
            && self.count.restore(&like.count)
    }

    /// Whether nothing is counted.
    pub(super) fn is_empty(&self, now: Nanos) -> bool {
        self.count.used(now) == 0
    }

    pub(super) fn estimate(&self) -> u64 {
        self.estimate.current()
    }

    /// After a rejection one request goes first, since its response reports what others have used meanwhile.
    pub(super) fn needs_probe(&self) -> bool {
        self.reports_remaining && self.limit.window.limit() >= HIGH_LIMIT
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        self.count.advance(now);
        if self.estimate.advance(now) {
            self.resize(now);
        }
    }

    pub(super) fn send(&mut self, amount: u64) {
        self.total_sent = self.total_sent.wrapping_add(amount);
        self.count.send(amount);
    }

    /// Counts an arrival at `by` at the latest.
    pub(super) fn arrive(&mut self, by: Nanos, amount: u64) {
        self.total_arrived += i128::from(amount);
        self.count.arrive(by, amount);
    }

    /// Takes back an arrival of a request that had departed then, and was never sent.
    pub(super) fn take_back(&mut self, departed_at: Nanos, amount: u64) {
        self.count.take_back(departed_at, amount);
    }

    /// Moves an arrival assumed at `from` to as late as `to`.
    pub(super) fn postpone(&mut self, from: Nanos, to: Nanos, amount: u64) {
        self.count.postpone(from, to, amount);
    }

    /// Ends the snapshot's request, which the server has finished at `at` at the latest.
    pub(super) fn end(&mut self, at: Nanos, amount: u64, snapshot: &CountSnapshot) {
        if !snapshot.is_reported {
            self.external.ended_unreported(amount);
        }
        self.count.end(at, amount);
    }

    /// Earliest time to send this amount.
    pub(super) fn earliest(&self, amount: u64, ahead: &InTransit<'_>) -> Nanos {
        let max = self.estimate();
        // A request above the estimate goes when nothing else is counted.
        let amount = amount.saturating_add(self.external.reserve(max)).min(max);
        self.count.earliest(amount, max, ahead)
    }

    /// The count now, to compare with what the response to a request sent now reports.
    pub(super) fn snapshot(&self, now: Nanos, ahead: &InTransit<'_>) -> CountSnapshot {
        let in_transit = if self.count.is_concurrency() { 0 } else { ahead.total() };
        let used = self.count.used(now).saturating_add(in_transit);
        CountSnapshot { used, total_sent: self.total_sent, external: self.external.snapshot(), is_reported: false }
    }

    /// Amount that remains by the estimate once all requests sent so far are counted.
    pub(super) fn min_remaining(&self, snapshot: &CountSnapshot, weight: u64) -> u64 {
        let (own, since) = self.own_and_later(snapshot, weight);
        self.estimate().saturating_sub(snapshot.used.saturating_add(own).saturating_add(since))
    }

    /// Amount of the snapshot's request, and the amount sent after it.
    fn own_and_later(&self, snapshot: &CountSnapshot, weight: u64) -> (u64, u64) {
        let own = self.limit.unit.amount(weight);
        (own, self.total_sent.wrapping_sub(snapshot.total_sent).saturating_sub(own))
    }

    /// Hold time after a rejection without `Retry-After`: the window, at first at most a minute, doubled each time;
    /// never longer than the reset that the same response reports.
    pub(super) fn hold(&mut self, now: Nanos, is_new_event: bool) -> Nanos {
        let reset = self.reset.filter(|(at, _)| *at == now).map_or(Nanos::NEVER, |(_, reset)| reset);
        let per = self.limit.window.per().max(Nanos::SECOND);
        self.consecutive_rejections += u32::from(is_new_event);
        // The count of a high limit already gives the time to wait.
        let min = if self.limit.window.model() == LimitModel::TokenBucket { MIN_MEASURED_TIME } else { Nanos::SECOND };
        let per = if self.limit.window.limit() >= HIGH_LIMIT { Nanos(per.0 / 10).max(min) } else { per };
        let longer = 1_u64 << self.consecutive_rejections.saturating_sub(1).min(16);
        Nanos(per.min(MAX_FIRST_HOLD).0.saturating_mul(longer)).min(per.max(MAX_FIRST_HOLD)).min(reset)
            + self.clock_tick
    }

    pub(super) fn accepted(&mut self) {
        self.consecutive_rejections = 0;
    }

    /// Lowers the estimate: a request sent at `sent_at` was rejected. `first`: start of the event that it belongs to, if
    /// it was sent before the event's first rejection came.
    pub(super) fn shrink(
        &mut self,
        now: Nanos,
        sent_at: Nanos,
        counted: RejectedCount,
        weight: u64,
        first: Option<Nanos>,
    ) {
        let amount = self.limit.unit.amount(weight);
        let is_high = self.limit.window.limit() >= HIGH_LIMIT;
        let RejectedCount { before_send: before, now: used } = counted;
        let mut event = match self.last_rejection.filter(|_| first.is_some()) {
            Some(event) => event,
            None => RejectionEvent {
                sent_at,
                total_sent: self.total_sent,
                used,
                rejected: 0,
                sent_since_previous: self.sent_since_rejection(sent_at),
            },
        };
        event.rejected = event.rejected.saturating_add(amount);
        self.last_rejection = Some(event);
        // With reports of the remaining amount a small excess is harmless: usage by others is booked.
        let percent = if self.reports_remaining { REPORTED_PERCENT } else { MARGIN_PERCENT };
        let measured = event.measured(self.limit.window.per(), percent).filter(|_| is_high);
        // The server reports its count, so usage by others or a lower limit is booked already.
        if self.reports_remaining && is_high {
            self.external.mark_shared();
            if self.reports_limit || measured.is_none() {
                return;
            }
        }
        // Requests arrive in any order: those not rejected, once all rejections are here, went through.
        let counted = if is_high { event.used.saturating_sub(event.rejected) } else { before };
        match first {
            None => self.estimate.rejected(now, counted, measured),
            Some(first) => self.estimate.also_rejected(first, measured.unwrap_or(counted)),
        }
        self.resize(now);
        // The bucket did not even have this amount.
        self.count.had_less_than(now, amount);
    }

    /// Amount sent since the previous event and not rejected then, and the time; None if that is not a measurement.
    fn sent_since_rejection(&self, sent_at: Nanos) -> Option<(u64, Nanos)> {
        let before = self.last_rejection?;
        let per = self.limit.window.per();
        let taken = self.total_sent.wrapping_sub(before.total_sent);
        let length = sent_at - before.sent_at;
        let shortest = match self.limit.window.model() {
            LimitModel::Concurrency => return None,
            // The bucket was empty both times.
            LimitModel::TokenBucket => Nanos(per.0 / 2).min(MIN_MEASURED_TIME),
            _ => Nanos(per.0 / 2),
        };
        // Over a long time the limit was not always used fully.
        let longest = Nanos(per.max(Nanos::SECOND).0.saturating_mul(20));
        (taken >= MIN_MEASURED_REQUESTS && (shortest..longest).contains(&length)).then_some((taken, length))
    }

    /// Whether the quota is of this limit.
    pub(super) fn matches(&self, quota: &Quota) -> bool {
        let window = self.limit.window;
        let longest = window.per() + window.per() + Nanos::SECOND;
        let seconds = Nanos(window.per().0.div_ceil(Nanos::SECOND.0).saturating_mul(Nanos::SECOND.0));
        window.model() != LimitModel::Concurrency
            && quota.unit.is_none_or(|unit| unit == self.limit.unit)
            && quota.per.is_none_or(|per| per == window.per() || per == seconds)
            && quota.limit.is_none_or(|limit| limit <= window.limit())
            && quota.reset.is_none_or(|reset| reset <= longest)
    }

    /// Applies the quota that the response to the snapshot's request reports: `weight` is that of the request, `out`
    /// what has no outcome besides. Usage by other clients is booked ([`ExternalUsage`]). A report without the limit
    /// refers to the estimate.
    pub(super) fn apply_quota(
        &mut self,
        quota: &Quota,
        snapshot: &CountSnapshot,
        weight: u64,
        out: &OutstandingRequests<'_>,
        now: Nanos,
    ) {
        if quota.limit.is_some_and(|limit| self.estimate.set_reported(limit)) {
            self.resize(now);
        }
        self.reset = quota.reset.map(|reset| (now, reset));
        let Some(remaining) = quota.remaining else { return };
        let (own, since) = self.own_and_later(snapshot, weight);
        let used = self.count.used(now);
        let report = CountReport {
            counted: quota.limit.unwrap_or(self.estimate()).saturating_sub(remaining),
            at_send: (snapshot.used.saturating_add(own), snapshot.total_sent, snapshot.external),
            sent_later: since,
            in_flight: out.in_flight,
            local_count: used.saturating_add(out.in_transit.total()),
            local_arrived: used,
            total_arrived: self.total_arrived,
            total_sent: self.total_sent,
            limit: self.limit.window.limit(),
            per: self.limit.window.per(),
        };
        let booked = self.external.apply_report(&report, now);
        match u64::try_from(booked) {
            Ok(0) => {}
            Ok(more) => self.arrive(now, more),
            Err(_) => self.refund(u64::try_from(-booked).unwrap_or(u64::MAX)),
        }
        (self.reports_remaining, self.reports_limit) = (true, quota.limit.is_some());
    }

    /// Takes back an amount booked last that was counted twice.
    fn refund(&mut self, amount: u64) {
        let until = self.external.booked_at();
        self.total_arrived -= i128::from(amount);
        self.count.refund(until, amount);
    }

    fn resize(&mut self, now: Nanos) {
        let (max, per) = (self.estimate(), self.limit.window.per());
        self.count.resize(now, max, per, self.clock_tick, self.delay_bound);
    }

    pub(super) fn history(&self, now: Nanos) -> WindowHistory {
        let (arrived, full_in) = self.count.history(now);
        WindowHistory { window: self.limit.window, limit_estimate: self.estimate(), arrived, full_in }
    }

    /// Continues from a previous owner's history, written `since` ago.
    pub(super) fn resume(&mut self, past: &WindowHistory, now: Nanos, since: Nanos) {
        self.estimate.resume(past.limit_estimate, now);
        self.resize(now);
        for (ago, amount) in &past.arrived {
            self.count.resume_arrival(now - (*ago + since), *amount);
        }
        if let Some(full_in) = past.full_in {
            self.count.set_full_at(now + (full_in - since));
        }
    }

    /// Assumes that a bucket was empty at `by`, since earlier sends are unknown.
    pub(super) fn assume_empty(&mut self, by: Nanos) {
        self.count.assume_empty(by);
    }
}
