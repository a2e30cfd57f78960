//! The client-side count of one window, by the model of the server.

use serde::{Deserialize, Serialize};

use super::arrival_log::ArrivalLog;
use super::concurrency::ConcurrencyCount;
use super::in_flight::InTransit;
use super::worst_case_bucket::WorstCaseBucket;
use super::{KeyRules, Nanos, models};
use weir_limits::models::LimitModel;

/// Count that is never below the server's.
///
/// | the server's model | counted here | why that is sufficient |
/// |---|---|---|
/// | log | a log of `per` | the server counts what arrived within `per`; so does the log, with the latest arrivals of
/// earlier requests and the earliest of the next |
/// | aligned | a log of `per` | the log keeps every window of `per` within the limit, so also the aligned ones |
/// | bucket | a bucket | see [`WorstCaseBucket`] |
/// | counter | a bucket of B that refills N - B per `per`, or a log of 2 x `per`, whichever allows first | the server's
/// estimate is at most B + (N - B) in the one case, and at most what two windows hold in the other |
/// | concurrency | requests that have not ended | the same |
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum WorstCaseCount {
    Log(ArrivalLog),
    Bucket(WorstCaseBucket),
    BucketOrLog(WorstCaseBucket, ArrivalLog),
    Concurrency(ConcurrencyCount),
}

impl WorstCaseCount {
    pub(super) fn new(window: models::LimitWindow, rules: &KeyRules, delay_bound: Nanos) -> Self {
        let (max, per) = (window.limit(), window.per());
        let span = per + rules.clock_tick;
        let grain =
            rules.max_log_entries.filter(|most| max > *most).map_or(Nanos(1), |most| Nanos(per.0 / most.max(1)));
        let grain = grain.max(Nanos(1));
        match window.model() {
            LimitModel::SlidingLog | LimitModel::AlignedWindow => Self::Log(ArrivalLog::new(span, grain)),
            LimitModel::TokenBucket => Self::Bucket(WorstCaseBucket::for_token_bucket(max, per, rules.clock_tick)),
            LimitModel::SlidingCounter => Self::BucketOrLog(
                WorstCaseBucket::for_sliding_counter(max, per, rules.clock_tick, delay_bound),
                ArrivalLog::new(per + span, grain),
            ),
            LimitModel::Concurrency => Self::Concurrency(ConcurrencyCount::default()),
        }
    }

    /// Computes what is not stored, for a count of the same limit without requests; false: the numbers contradict one
    /// another.
    pub(super) fn restore(&mut self, like: &Self) -> bool {
        match (self, like) {
            (Self::Log(log), Self::Log(like)) => log.restore(like),
            (Self::Bucket(bucket), Self::Bucket(_)) => bucket.is_valid(),
            (Self::BucketOrLog(bucket, log), Self::BucketOrLog(_, like)) => log.restore(like) && bucket.is_valid(),
            (Self::Concurrency(_), Self::Concurrency(_)) => true,
            _ => false,
        }
    }

    pub(super) fn is_concurrency(&self) -> bool {
        matches!(self, Self::Concurrency(_))
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        match self {
            Self::Log(log) | Self::BucketOrLog(_, log) => log.advance(now),
            Self::Concurrency(running) => running.advance(now),
            Self::Bucket(_) => {}
        }
    }

    pub(super) fn send(&mut self, amount: u64) {
        if let Self::Concurrency(running) = self {
            running.start(amount);
        }
    }

    /// Counts an arrival at `by` at the latest.
    pub(super) fn arrive(&mut self, by: Nanos, amount: u64) {
        match self {
            Self::Log(log) => log.arrive(by, amount),
            Self::Bucket(bucket) => bucket.arrive(by, amount),
            Self::BucketOrLog(bucket, log) => {
                bucket.arrive(by, amount);
                log.arrive(by, amount);
            }
            Self::Concurrency(_) => {}
        }
    }

    /// Moves an arrival assumed at `from` to as late as `to`.
    pub(super) fn postpone(&mut self, from: Nanos, to: Nanos, amount: u64) {
        match self {
            Self::Log(log) => log.postpone(from, to),
            Self::Bucket(bucket) => bucket.postpone(from, to, amount),
            Self::BucketOrLog(bucket, log) => {
                bucket.postpone(from, to, amount);
                log.postpone(from, to);
            }
            Self::Concurrency(_) => {}
        }
    }

    /// Takes back an arrival of a request that had departed then, from a log.
    pub(super) fn take_back(&mut self, departed_at: Nanos, amount: u64) {
        if let Self::Log(log) = self {
            log.take_back(departed_at, amount);
        }
    }

    /// Takes back an amount of the arrivals up to `until` that was counted twice.
    pub(super) fn refund(&mut self, until: Nanos, amount: u64) {
        match self {
            Self::Log(log) => log.refund(until, amount),
            Self::Bucket(bucket) => bucket.refund(amount),
            Self::BucketOrLog(bucket, log) => {
                bucket.refund(amount);
                log.refund(until, amount);
            }
            Self::Concurrency(_) => {}
        }
    }

    /// Marks a request as ended at the server at `at` at the latest.
    pub(super) fn end(&mut self, at: Nanos, amount: u64) {
        if let Self::Concurrency(running) = self {
            running.end(at, amount);
        }
    }

    /// Earliest time to send this amount, if the limit is `max`.
    pub(super) fn earliest(&self, amount: u64, max: u64, ahead: &InTransit<'_>) -> Nanos {
        match self {
            _ if amount == 0 => Nanos::ZERO,
            Self::Log(log) => log.earliest(amount, max, ahead),
            Self::Bucket(bucket) => bucket.earliest(amount, ahead),
            Self::BucketOrLog(bucket, log) => bucket.earliest(amount, ahead).min(log.earliest(amount, max, ahead)),
            Self::Concurrency(running) => running.earliest(amount, max),
        }
    }

    /// Counted amount, without requests in transit.
    pub(super) fn used(&self, now: Nanos) -> u64 {
        match self {
            Self::Log(log) | Self::BucketOrLog(_, log) => log.used(),
            Self::Bucket(bucket) => bucket.used(now),
            Self::Concurrency(running) => running.used(),
        }
    }

    /// Fits the bucket to another limit or delay bound; its used amount stays.
    pub(super) fn resize(&mut self, now: Nanos, max: u64, per: Nanos, clock_tick: Nanos, delay_bound: Nanos) {
        match self {
            Self::Bucket(bucket) => {
                *bucket = WorstCaseBucket::for_token_bucket(max, per, clock_tick)
                    .with_usage_of(bucket, now)
                    .at_worst_empty(now);
            }
            Self::BucketOrLog(bucket, _) => {
                *bucket =
                    WorstCaseBucket::for_sliding_counter(max, per, clock_tick, delay_bound).with_usage_of(bucket, now);
            }
            Self::Log(_) | Self::Concurrency(_) => {}
        }
    }

    /// Ages and amounts of the logged arrivals, and the time until the bucket is full.
    pub(super) fn history(&self, now: Nanos) -> (Vec<(Nanos, u64)>, Option<Nanos>) {
        match self {
            Self::Log(log) => (log.ages(now).collect(), None),
            Self::Bucket(bucket) => (Vec::new(), Some(bucket.full_at() - now)),
            Self::BucketOrLog(bucket, log) => (log.ages(now).collect(), Some(bucket.full_at() - now)),
            Self::Concurrency(_) => (Vec::new(), None),
        }
    }

    /// Adds an arrival of a previous owner to the log.
    pub(super) fn resume_arrival(&mut self, by: Nanos, amount: u64) {
        if let Self::Log(log) | Self::BucketOrLog(_, log) = self {
            log.arrive(by, amount);
        }
    }

    /// Sets when the bucket is full, if that is later than by the current count.
    pub(super) fn set_full_at(&mut self, at: Nanos) {
        if let Self::Bucket(bucket) | Self::BucketOrLog(bucket, _) = self {
            bucket.set_full_at(at);
        }
    }

    /// Assumes that the bucket was empty at `by`, since earlier sends are unknown.
    pub(super) fn assume_empty(&mut self, by: Nanos) {
        if let Self::Bucket(bucket) | Self::BucketOrLog(bucket, _) = self {
            bucket.empty_at(by);
        }
    }

    /// Assumes that less than `amount` was available at `by`; for a token bucket only.
    pub(super) fn had_less_than(&mut self, by: Nanos, amount: u64) {
        if let Self::Bucket(bucket) = self {
            bucket.had_less_than(by, amount);
        }
    }
}
