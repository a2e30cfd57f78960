//! One window, as it must be kept so that the server's count is never above its limit.

use super::limit_estimate::{HIGH_LIMIT, LimitEstimate};
use super::worst_case_bucket::WorstCaseBucket;
use super::arrival_log::ArrivalLog;
use super::external_usage::{CountReport, ExternalSnapshot, ExternalUsage};
use super::in_flight::InTransit;
use super::concurrency::ConcurrencyCount;
use super::{KeyLimit, KeyRules, Nanos, WindowHistory};
use crate::decide::feedback::Quota;
use crate::decide::limit::LimitModel;

/// One window and its count.
///
/// | the server's model | kept here | why that is enough |
/// |---|---|---|
/// | log | a log of `per` | it counts what arrived within `per`, and so does the log, with the latest arrivals and the earliest next one |
/// | aligned | a log of `per` | an aligned window is one of those that the log keeps to the limit |
/// | bucket | a bucket | see [`WorstCaseBucket`] |
/// | counter | a bucket of B that gets N - B back in `per`, or a log of 2 x `per`, whichever lets go first | its estimate is at most B + (N - B) in the one case, and at most what two windows hold in the other |
/// | concurrency | what has not ended | that is what it counts |
#[derive(Clone, Debug)]
pub(super) struct WindowCount {
    pub(super) limit: KeyLimit,
    estimate: LimitEstimate,
    kind: Kind,
    clock_tick: Nanos,
    /// The longest way in, as far as the counter's bucket is cut for it.
    delay_bound: Nanos,
    /// All that was ever sent.
    total_sent: u64,
    /// All that ever arrived, or was booked for others.
    total_arrived: i128,
    external: ExternalUsage,
    /// Whether the last report told how much is left, and the limit itself, too.
    reports_remaining: bool,
    reports_limit: bool,
    /// When it came, and when all of the limit, or more of it, is free by it.
    reset: Option<(Nanos, Nanos)>,
    consecutive_rejections: u32,
    last_rejection: Option<RejectionEvent>,
}

/// The latest refusal, and those that had been sent before it came.
#[derive(Clone, Copy, Debug)]
struct RejectionEvent {
    /// When it was sent.
    sent_at: Nanos,
    /// What had been sent when its refusal came, and what was counted.
    total_sent: u64,
    used: u64,
    /// What has been refused since.
    rejected: u64,
    /// What had been sent since the refusal before, and for how long.
    sent_since_previous: Option<(u64, Nanos)>,
}

impl RejectionEvent {
    /// What has gone through in `per` since the refusal before, so many percent of it.
    fn measured(&self, per: Nanos, percent: u64) -> Option<u64> {
        let (sent, length) = self.sent_since_previous?;
        let taken = u128::from(sent.saturating_sub(self.rejected));
        u64::try_from(taken * u128::from(per.0 / 100 * percent) / u128::from(length.0.max(1))).ok()
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Log(ArrivalLog),
    Bucket(WorstCaseBucket),
    BucketOrLog(WorstCaseBucket, ArrivalLog),
    Concurrency(ConcurrencyCount),
}

/// Without a word from the server, nobody holds a key for longer after the first refusal.
const MAX_FIRST_HOLD: Nanos = Nanos::from_secs(60);
/// Fewer that went through between two refusals are no measure, and what is measured is believed with a margin.
const MIN_MEASURED_REQUESTS: u64 = 20;
const MARGIN_PERCENT: u64 = 98;
const REPORTED_PERCENT: u64 = 104;
/// Ways in that differ spoil no measure that is this long.
const MIN_MEASURED_TIME: Nanos = Nanos::from_millis(500);

impl WindowCount {
    pub(super) fn new(limit: KeyLimit, rules: &KeyRules) -> Self {
        let per = limit.window.per();
        let delay_bound = rules.delay_bound.unwrap_or(Nanos(per.0 / 4));
        let span = per + rules.clock_tick;
        let most = limit.window.limit();
        let kind = match limit.window.model() {
            LimitModel::SlidingLog | LimitModel::AlignedWindow => Kind::Log(ArrivalLog::new(span)),
            LimitModel::TokenBucket => Kind::Bucket(WorstCaseBucket::for_token_bucket(most, per, rules.clock_tick)),
            LimitModel::SlidingCounter => Kind::BucketOrLog(
                WorstCaseBucket::for_sliding_counter(most, per, rules.clock_tick, delay_bound),
                ArrivalLog::new(per + span),
            ),
            LimitModel::Concurrency => Kind::Concurrency(ConcurrencyCount::default()),
        };
        let estimate = LimitEstimate::new(most, per);
        Self {
            limit,
            estimate,
            kind,
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

    /// Another bound on the way in: a counter's bucket is cut for it, and holds enough for timers that are late.
    /// Any cut is safe; without a bound the last one stays.
    pub(super) fn set_delay_bound(&mut self, now: Nanos, way_in: Option<Nanos>) {
        let Some(way_in) = way_in else { return };
        self.delay_bound = way_in.max(Nanos(self.limit.window.per().0 / 50));
        if matches!(self.kind, Kind::BucketOrLog(..)) {
            self.resize(now);
        }
    }

    pub(super) fn estimate(&self) -> u64 {
        self.estimate.current()
    }

    /// After a rejection one request goes first, since its report tells what others have spent meanwhile.
    pub(super) fn needs_probe(&self) -> bool {
        self.reports_remaining && self.limit.window.limit() >= HIGH_LIMIT
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        match &mut self.kind {
            Kind::Log(log) | Kind::BucketOrLog(_, log) => log.advance(now),
            Kind::Concurrency(running) => running.advance(now),
            Kind::Bucket(_) => {}
        }
        if self.estimate.advance(now) {
            self.resize(now);
        }
    }

    pub(super) fn send(&mut self, amount: u64) {
        self.total_sent = self.total_sent.wrapping_add(amount);
        if let Kind::Concurrency(running) = &mut self.kind {
            running.start(amount);
        }
    }

    /// It had surely arrived by then.
    pub(super) fn arrive(&mut self, by: Nanos, amount: u64) {
        self.total_arrived += i128::from(amount);
        match &mut self.kind {
            Kind::Log(log) => log.arrive(by, amount),
            Kind::Bucket(bucket) => bucket.arrive(by, amount),
            Kind::BucketOrLog(bucket, log) => {
                bucket.arrive(by, amount);
                log.arrive(by, amount);
            }
            Kind::Concurrency(_) => {}
        }
    }

    /// This much, which was taken to have arrived at `from`, may have done so as late as at `to`.
    pub(super) fn postpone(&mut self, from: Nanos, to: Nanos, amount: u64) {
        match &mut self.kind {
            Kind::Log(log) => log.postpone(from, to),
            Kind::Bucket(bucket) => bucket.postpone(from, to, amount),
            Kind::BucketOrLog(bucket, log) => {
                bucket.postpone(from, to, amount);
                log.postpone(from, to);
            }
            Kind::Concurrency(_) => {}
        }
    }

    /// The server is done with the marked request at `at`, and no later.
    pub(super) fn end(&mut self, at: Nanos, amount: u64, mark: &CountSnapshot) {
        if !mark.is_reported {
            self.external.ended_unreported(amount);
        }
        if let Kind::Concurrency(running) = &mut self.kind {
            running.end(at, amount);
        }
    }

    /// When a request that counts so much may be sent.
    pub(super) fn earliest(&self, amount: u64, ahead: &InTransit<'_>) -> Nanos {
        let most = self.estimate();
        // What weighs more than is believed goes when it has all to itself.
        let amount = amount.saturating_add(self.external.reserve(most)).min(most);
        match &self.kind {
            _ if amount == 0 => Nanos::ZERO,
            Kind::Log(log) => log.earliest(amount, most, ahead),
            Kind::Bucket(bucket) => bucket.earliest(amount, ahead),
            Kind::BucketOrLog(bucket, log) => bucket.earliest(amount, ahead).min(log.earliest(amount, most, ahead)),
            Kind::Concurrency(running) => running.earliest(amount, most),
        }
    }

    /// What is counted, without what is on its way.
    fn used(&self, now: Nanos) -> u64 {
        match &self.kind {
            Kind::Log(log) | Kind::BucketOrLog(_, log) => log.used(),
            Kind::Bucket(bucket) => bucket.used(now),
            Kind::Concurrency(running) => running.used(),
        }
    }

    /// The count of this moment, to compare with what the response to a request that is sent now reports.
    pub(super) fn snapshot(&self, now: Nanos, ahead: &InTransit<'_>) -> CountSnapshot {
        let is_running = matches!(self.kind, Kind::Concurrency(_));
        let used = self.used(now).saturating_add(if is_running { 0 } else { ahead.total() });
        CountSnapshot { used, total_sent: self.total_sent, external: self.external.snapshot(), is_reported: false }
    }

    /// What must be left when all that was sent up to now is judged, too, as far as the limit is believed.
    pub(super) fn min_remaining(&self, mark: &CountSnapshot, weight: u64) -> u64 {
        let (own, since) = self.own_and_later(mark, weight);
        self.estimate().saturating_sub(mark.used.saturating_add(own).saturating_add(since))
    }

    /// What the marked request counts, and what was sent after it.
    fn own_and_later(&self, mark: &CountSnapshot, weight: u64) -> (u64, u64) {
        let own = self.limit.unit.amount(weight);
        (own, self.total_sent.wrapping_sub(mark.total_sent).saturating_sub(own))
    }

    /// How long to hold still after a refusal that says nothing about it: the window, at first at most a minute, then
    /// twice as long each time.
    /// No longer than the reset that the same response reports.
    pub(super) fn hold(&mut self, now: Nanos, news: bool) -> Nanos {
        let reset = self.reset.filter(|(at, _)| *at == now).map_or(Nanos::NEVER, |(_, reset)| reset);
        let per = self.limit.window.per().max(Nanos::SECOND);
        self.consecutive_rejections += u32::from(news);
        // Of a high limit the count itself tells how long to wait.
        let least =
            if self.limit.window.model() == LimitModel::TokenBucket { MIN_MEASURED_TIME } else { Nanos::SECOND };
        let per = if self.limit.window.limit() >= HIGH_LIMIT { Nanos(per.0 / 10).max(least) } else { per };
        let longer = 1_u64 << self.consecutive_rejections.saturating_sub(1).min(16);
        Nanos(per.min(MAX_FIRST_HOLD).0.saturating_mul(longer)).min(per.max(MAX_FIRST_HOLD)).min(reset)
            + self.clock_tick
    }

    pub(super) fn accepted(&mut self) {
        self.consecutive_rejections = 0;
    }

    /// What was sent at `asked`, when it may have counted so much, was refused; `first`: it was sent before the refusal
    /// then. `counted`: before it was sent, and now.
    pub(super) fn shrink(&mut self, now: Nanos, asked: Nanos, counted: (u64, u64), weight: u64, first: Option<Nanos>) {
        let amount = self.limit.unit.amount(weight);
        let is_high = self.limit.window.limit() >= HIGH_LIMIT;
        let (before, used) = counted;
        let mut event = match self.last_rejection.filter(|_| first.is_some()) {
            Some(event) => event,
            None => RejectionEvent {
                sent_at: asked,
                total_sent: self.total_sent,
                used,
                rejected: 0,
                sent_since_previous: self.sent_since_rejection(asked),
            },
        };
        event.rejected = event.rejected.saturating_add(amount);
        self.last_rejection = Some(event);
        // Where the rest is reported, a little more does no harm: what is not there is booked.
        let percent = if self.reports_remaining { REPORTED_PERCENT } else { MARGIN_PERCENT };
        let measured = event.measured(self.limit.window.per(), percent).filter(|_| is_high);
        // The server itself reports its count: others have spent it, or there is less of it, and that is booked.
        if self.reports_remaining && is_high {
            self.external.mark_shared();
            if self.reports_limit || measured.is_none() {
                return;
            }
        }
        // Many arrive in any order: what is left of them when all rejections are here is what went through.
        let counted = if is_high { event.used.saturating_sub(event.rejected) } else { before };
        match first {
            None => self.estimate.rejected(now, counted, measured),
            Some(first) => self.estimate.also_rejected(first, measured.unwrap_or(counted)),
        }
        self.resize(now);
        if let Kind::Bucket(bucket) = &mut self.kind {
            // Not even this was left in it.
            bucket.had_less_than(now, amount);
        }
    }

    /// What has been sent since the refusal before and was not refused then, and how long that took, if it is a measure.
    fn sent_since_rejection(&self, asked: Nanos) -> Option<(u64, Nanos)> {
        let before = self.last_rejection?;
        let per = self.limit.window.per();
        let taken = self.total_sent.wrapping_sub(before.total_sent);
        let length = asked - before.sent_at;
        let shortest = match self.limit.window.model() {
            LimitModel::Concurrency => return None,
            // It was empty both times.
            LimitModel::TokenBucket => Nanos(per.0 / 2).min(MIN_MEASURED_TIME),
            _ => Nanos(per.0 / 2),
        };
        // Over a long time it was not always used.
        let longest = Nanos(per.max(Nanos::SECOND).0.saturating_mul(20));
        (taken >= MIN_MEASURED_REQUESTS && (shortest..longest).contains(&length)).then_some((taken, length))
    }

    /// Whether the server speaks of this limit.
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

    /// What the server reports of this limit in the response to the marked request: `own` is what it weighs, `ahead` what is on
    /// its way, `in_flight` what has no response yet, without itself. What others have spent is booked
    /// ([`ExternalUsage`]). A report without the limit is taken to be of the limit that is believed.
    pub(super) fn apply_quota(
        &mut self,
        quota: &Quota,
        mark: &CountSnapshot,
        weight: u64,
        out: &OutstandingRequests<'_>,
        now: Nanos,
    ) {
        if quota.limit.is_some_and(|limit| self.estimate.set_reported(limit)) {
            self.resize(now);
        }
        self.reset = quota.reset.map(|reset| (now, reset));
        let Some(remaining) = quota.remaining else { return };
        let (own, since) = self.own_and_later(mark, weight);
        let used = self.used(now);
        let report = CountReport {
            counted: quota.limit.unwrap_or(self.estimate()).saturating_sub(remaining),
            at_send: (mark.used.saturating_add(own), mark.total_sent, mark.external),
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

    /// This much of what was booked last was counted twice.
    fn refund(&mut self, amount: u64) {
        let until = self.external.booked_at();
        self.total_arrived -= i128::from(amount);
        match &mut self.kind {
            Kind::Log(log) => log.refund(until, amount),
            Kind::Bucket(bucket) => bucket.refund(amount),
            Kind::BucketOrLog(bucket, log) => {
                bucket.refund(amount);
                log.refund(until, amount);
            }
            Kind::Concurrency(_) => {}
        }
    }

    fn resize(&mut self, now: Nanos) {
        let most = self.estimate();
        let per = self.limit.window.per();
        match &mut self.kind {
            Kind::Bucket(bucket) => {
                *bucket = WorstCaseBucket::for_token_bucket(most, per, self.clock_tick)
                    .with_usage_of(bucket, now)
                    .at_worst_empty(now);
            }
            Kind::BucketOrLog(bucket, _) => {
                *bucket = WorstCaseBucket::for_sliding_counter(most, per, self.clock_tick, self.delay_bound)
                    .with_usage_of(bucket, now);
            }
            Kind::Log(_) | Kind::Concurrency(_) => {}
        }
    }

    pub(super) fn history(&self, now: Nanos) -> WindowHistory {
        let (arrived, full_in) = match &self.kind {
            Kind::Log(log) => (log.ages(now).collect(), None),
            Kind::Bucket(bucket) => (Vec::new(), Some(bucket.full_at() - now)),
            Kind::BucketOrLog(bucket, log) => (log.ages(now).collect(), Some(bucket.full_at() - now)),
            Kind::Concurrency(_) => (Vec::new(), None),
        };
        WindowHistory { window: self.limit.window, limit_estimate: self.estimate(), arrived, full_in }
    }

    /// Takes up what another has kept, `since` after that.
    pub(super) fn resume(&mut self, past: &WindowHistory, now: Nanos, since: Nanos) {
        self.estimate.resume(past.limit_estimate, now);
        self.resize(now);
        for (ago, amount) in &past.arrived {
            let by = now - (*ago + since);
            if let Kind::Log(log) | Kind::BucketOrLog(_, log) = &mut self.kind {
                log.arrive(by, *amount);
            }
        }
        if let (Kind::Bucket(bucket) | Kind::BucketOrLog(bucket, _), Some(full_in)) = (&mut self.kind, past.full_in) {
            bucket.set_full_at(now + (full_in - since));
        }
    }

    /// Nobody knows what was sent before `by`: a bucket may have been empty then.
    pub(super) fn assume_empty(&mut self, by: Nanos) {
        if let Kind::Bucket(bucket) | Kind::BucketOrLog(bucket, _) = &mut self.kind {
            bucket.empty_at(by);
        }
    }
}

/// A window's count at the moment of a send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountSnapshot {
    /// The most that the server may count, what is on its way included, without the request itself.
    pub(super) used: u64,
    /// All that was ever sent, without the request itself.
    total_sent: u64,
    external: ExternalSnapshot,
    /// Its response has reported on the limit.
    pub(super) is_reported: bool,
}

/// What has been sent and of which something is yet to be heard.
pub(super) struct OutstandingRequests<'a> {
    /// What may not have arrived.
    pub(super) in_transit: InTransit<'a>,
    /// What has no response, without the request that is reported on.
    pub(super) in_flight: u64,
}
