//! Where attempts go: the hosts behind one name, and who of them is next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;

use super::counts::UpstreamCounts;
use super::guard::{GuardOutcome, UpstreamGuard};
use super::places::{CallPermit, PermitOutcome, PermitPool};
use super::success::grpc_failure;
use super::upload::UploadState;
use crate::decide::Nanos;
use crate::decide::admit::{AbandonReason, AdmissionConfig, ServiceOutcome};
use crate::decide::breaker::{BreakerPermit, BreakerRule, State};
use crate::decide::grpc::Codes;
use crate::decide::hedge::LaunchReason;
use crate::decide::hosts::{BalancePolicy, HostBalancer, HostOutcome, OutlierRule};
use crate::decide::policy::{AttemptFailure, FailureKind, FailureSide};
use crate::decide::recent::LatencyQuantile;
use crate::decide::throttle::ThrottleRule;
use crate::http::client::Origin;
use crate::machine::timer::Timer;

/// One of an upstream's hosts.
#[derive(Clone, Debug)]
pub struct UpstreamHost {
    /// Where it is.
    pub origin: Arc<Origin>,
    /// Its share of the attempts, compared with the others'.
    pub weight: u32,
}

/// The hosts behind one name. All event loops share it.
#[derive(Debug)]
pub struct Upstream {
    hosts: Vec<UpstreamHost>,
    balancer: Mutex<HostBalancer>,
    latencies: Mutex<LatencyQuantile>,
    /// Whether anybody asks how long recent attempts took.
    records_latencies: AtomicBool,
    permits: Option<Arc<PermitPool>>,
    pub(super) guard: UpstreamGuard,
    /// What is counted.
    pub counts: UpstreamCounts,
}

impl Upstream {
    /// Of 1 to 64 hosts.
    pub fn new(hosts: Vec<UpstreamHost>, balance: BalancePolicy, health: OutlierRule) -> Self {
        let weights: Vec<u32> = hosts.iter().map(|host| host.weight).collect();
        Self {
            balancer: Mutex::new(HostBalancer::new(&weights, balance, health)),
            hosts,
            latencies: Mutex::new(LatencyQuantile::default()),
            records_latencies: AtomicBool::new(false),
            permits: None,
            guard: UpstreamGuard::default(),
            counts: UpstreamCounts::default(),
        }
    }

    /// With `at_once` attempts (one, if that is 0) at most, while `most_waiting` calls more may wait as long as their
    /// deadlines let them, first come first served.
    #[must_use]
    pub fn with_fixed_limit(self, at_once: usize, most_waiting: usize) -> Self {
        self.with_admission(&PermitPool::fixed(at_once, most_waiting), Nanos::ZERO)
    }

    /// With as many attempts at once as these terms allow, from `now` on.
    ///
    /// A call waits for the place of its first attempt, or is refused. Further attempts take one that is free at once,
    /// or are not sent.
    #[must_use]
    pub fn with_admission(mut self, terms: &AdmissionConfig, now: Nanos) -> Self {
        self.permits = Some(Arc::new(PermitPool::new(terms, now)));
        self
    }

    /// Its hosts.
    pub fn hosts(&self) -> &[UpstreamHost] {
        &self.hosts
    }

    /// Which hosts are out for their failures.
    pub fn ejected_hosts(&self, now: Nanos) -> Vec<bool> {
        let choice = self.balancer();
        (0..self.hosts.len()).map(|host| choice.is_ejected(now, host)).collect()
    }

    /// A check of a host's health has ended.
    pub fn health_checked(&self, now: Nanos, host: usize, ok: bool) {
        self.balancer().health_checked(now, host, ok);
    }

    /// With calls refused while it is down (`breaker`), or while it says that it has too many (`throttle`).
    #[must_use]
    pub fn with_guard(mut self, breaker: Option<BreakerRule>, throttle: Option<ThrottleRule>) -> Self {
        self.guard = UpstreamGuard::new(breaker, throttle);
        self
    }

    /// What its breaker does with calls, if it has one.
    pub fn breaker_state(&self, now: Nanos) -> Option<State> {
        self.guard.state(now)
    }

    /// The share of calls that are refused for its answers of 429 and 503, if that may be.
    pub fn throttled_fraction(&self, now: Nanos) -> Option<f64> {
        self.guard.dropped_fraction(now)
    }

    /// The places of its attempts, if they are limited.
    pub fn permits(&self) -> Option<&Arc<PermitPool>> {
        self.permits.as_ref()
    }

    /// How many attempts there may be at once now, if that is limited.
    pub fn concurrency_limit(&self) -> Option<usize> {
        self.permits.as_ref().map(|places| places.slots().limit() as usize)
    }

    /// Keeps in mind how long first attempts take, from now on.
    pub(super) fn record_latencies(&self) {
        self.records_latencies.store(true, Ordering::Relaxed);
    }

    /// What this share of recent first attempts took at most; none while too few are known.
    pub fn latency_quantile(&self, now: Nanos, share: f64) -> Option<Nanos> {
        self.latencies().quantile(now, share)
    }

    fn balancer(&self) -> MutexGuard<'_, HostBalancer> {
        self.balancer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn latencies(&self) -> MutexGuard<'_, LatencyQuantile> {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A first attempt has taken so long, at least.
    pub(super) fn record_latency(&self, now: Nanos, took: Nanos) {
        if self.records_latencies.load(Ordering::Relaxed) {
            self.latencies().record(now, took);
        }
    }

    /// Chooses a host for an attempt that starts now, not one of `avoid` if there is another.
    pub(super) fn acquire_host(
        self: &Arc<Self>,
        timer: &Timer,
        now: Nanos,
        term: BlameRule,
        avoid: u64,
        why: LaunchReason,
        (place, pass): (Option<CallPermit>, Option<BreakerPermit>),
    ) -> HostPermit {
        self.counts.began(why);
        let host = if self.hosts.len() == 1 {
            0
        } else {
            let mut choice = self.balancer();
            let host = choice.pick(now, avoid);
            choice.began(host);
            host
        };
        let (upstream, timer) = (Arc::clone(self), timer.clone());
        HostPermit {
            upstream,
            host,
            blame_rule: term,
            timer,
            host_outcome: None,
            permit_outcome: PermitOutcome::Ended(ServiceOutcome::Failed),
            is_complete: false,
            unread_since: None,
            read_delay: Nanos::ZERO,
            permit: place,
            route_permit: None,
            breaker_permit: pass,
            upload: None,
            failing_codes: Codes::NONE,
        }
    }
}

/// What it means that an attempt is given up, by when.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlameRule {
    /// From then on it has failed: it has had the time of an attempt.
    pub(super) attempt_timeout_at: Nanos,
    /// From then on its host has: it has had all the time that its call's policy gives. Else a host that hangs would
    /// keep its share of the calls for ever, if there is no limit but the deadline.
    pub(super) host_blamed_at: Nanos,
    /// From then on nobody wants an answer any more.
    pub(super) deadline: Nanos,
}

/// An attempt's place at a host, until the last byte of its answer; given up before the end, it was cancelled.
#[derive(Debug)]
pub(super) struct HostPermit {
    pub(super) upstream: Arc<Upstream>,
    pub(super) host: usize,
    blame_rule: BlameRule,
    timer: Timer,
    host_outcome: Option<HostOutcome>,
    /// What its answer says of the upstream's load, if it comes whole.
    permit_outcome: PermitOutcome,
    is_complete: bool,
    /// When its caller was given all that had come; none while the caller waits for more.
    unread_since: Option<Nanos>,
    /// How long the caller has left what had come unread: no time of the upstream's.
    read_delay: Nanos,
    permit: Option<CallPermit>,
    /// Its route's, once nothing else holds it.
    pub(super) route_permit: Option<CallPermit>,
    breaker_permit: Option<BreakerPermit>,
    /// Of a request whose body its caller still sends.
    upload: Option<UploadState>,
    /// With what in its trailers a gRPC answer has failed.
    failing_codes: Codes,
}

impl HostPermit {
    pub(super) fn origin(&self) -> &Arc<Origin> {
        &self.upstream.hosts[self.host].origin
    }

    /// Its request's body comes from the caller meanwhile.
    pub(super) fn set_upload(&mut self, upload: UploadState) {
        self.upload = Some(upload);
    }

    /// Whether nothing can happen before the caller has sent more.
    fn awaits_caller(&self) -> bool {
        self.upload.as_ref().is_some_and(UploadState::awaits_caller)
    }

    /// An answer with this status has begun.
    pub(super) fn response_started(&mut self, status: u16) {
        self.permit_outcome = PermitOutcome::Ended(if matches!(status, 429 | 503) {
            ServiceOutcome::Overloaded
        } else {
            ServiceOutcome::Responded
        });
    }

    /// The caller has what has come so far, and reads it.
    pub(super) fn start_read_delay(&mut self) {
        self.unread_since = Some(self.timer.now());
    }

    /// The caller asks for more of the answer.
    pub(super) fn end_read_delay(&mut self) {
        if let Some(since) = self.unread_since.take() {
            self.read_delay += self.timer.now() - since;
        }
    }

    /// The answer has come to its end, or to the end of the time that there was for it.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
        for place in self.permit.iter_mut().chain(&mut self.route_permit) {
            place.set_outcome(self.permit_outcome, self.read_delay);
        }
    }

    pub(super) fn succeeded(&mut self) {
        self.host_outcome = Some(HostOutcome::Ok);
    }

    /// The rest of a success did not come.
    pub(super) fn body_failed(&mut self, fault: FailureSide) {
        match fault {
            FailureSide::Upstream => self.host_outcome = Some(HostOutcome::Failed),
            FailureSide::Caller => {
                (self.permit_outcome, self.host_outcome) =
                    (PermitOutcome::Cancelled(AbandonReason::Unwanted), Some(HostOutcome::Cancelled));
            }
        }
    }

    /// With these codes in its trailers the answer that is passed on is a failure all the same.
    pub(super) fn set_failing_codes(&mut self, codes: Codes) {
        self.failing_codes = codes;
    }

    /// The trailers of an answer that is passed on.
    pub(super) fn on_trailers(&mut self, trailers: &HeaderMap) {
        if let Some(failure) = grpc_failure(self.failing_codes, trailers) {
            self.record_failure(failure);
            self.upstream.counts.count_failure(failure);
        }
    }

    /// Its answer, if there is one, may be kept until the call's end and needs no place: the call's next attempt may
    /// wait for that.
    pub(super) fn failed(&mut self, failure: AttemptFailure) {
        self.record_failure(failure);
        self.complete();
        self.permit = None;
        self.upstream.counts.failed(failure);
    }

    /// What a failure says of the upstream's load, and of the host's health.
    fn record_failure(&mut self, failure: AttemptFailure) {
        let unwell = |status| if (502..=504).contains(&status) { HostOutcome::Failed } else { HostOutcome::Ok };
        let (heard, ended) = match failure {
            // Nothing at all.
            _ if failure.side() == FailureSide::Caller => {
                (PermitOutcome::Cancelled(AbandonReason::Unwanted), HostOutcome::Cancelled)
            }
            AttemptFailure::Kind(FailureKind::Timeout) => {
                (PermitOutcome::Cancelled(AbandonReason::DeadlineExceeded), HostOutcome::Failed)
            }
            AttemptFailure::Kind(FailureKind::Body | FailureKind::Header) => (self.permit_outcome, HostOutcome::Ok),
            AttemptFailure::Kind(_) => (PermitOutcome::Ended(ServiceOutcome::Failed), HostOutcome::Failed),
            AttemptFailure::Status(status) => (self.permit_outcome, unwell(status)),
            AttemptFailure::Grpc(code) => match code.as_http() {
                Some(status) => {
                    self.response_started(status);
                    (self.permit_outcome, unwell(status))
                }
                None => (self.permit_outcome, HostOutcome::Ok),
            },
        };
        (self.permit_outcome, self.host_outcome) = (heard, Some(ended));
    }

    fn on_cancelled(&mut self, now: Nanos) {
        let owed = self.awaits_caller();
        if self.blame_rule.attempt_timeout_at <= now {
            self.failed(AttemptFailure::Kind(if owed { FailureKind::Request } else { FailureKind::Timeout }));
        } else {
            self.upstream.counts.cancelled();
            let blamed = self.blame_rule.host_blamed_at <= now && !owed;
            self.host_outcome = Some(if blamed { HostOutcome::Failed } else { HostOutcome::Cancelled });
        }
    }
}

impl HostPermit {
    /// What it says of its upstream.
    fn guard_outcome(&self) -> GuardOutcome {
        match (self.permit_outcome, self.host_outcome) {
            (PermitOutcome::Ended(ServiceOutcome::Overloaded), _) => GuardOutcome::Overloaded,
            (PermitOutcome::Ended(ServiceOutcome::Responded), ended) => {
                GuardOutcome::Responded(ended != Some(HostOutcome::Failed))
            }
            (_, Some(HostOutcome::Failed)) => GuardOutcome::Failed,
            // Its head was there, and nobody wanted the rest.
            (_, Some(HostOutcome::Ok)) => GuardOutcome::Responded(true),
            (_, Some(HostOutcome::Cancelled) | None) => GuardOutcome::Cancelled,
        }
    }
}

impl Drop for HostPermit {
    fn drop(&mut self) {
        self.upstream.counts.released();
        let now = self.timer.now();
        if self.host_outcome.is_none() {
            self.on_cancelled(now);
        }
        if !self.is_complete {
            let waits = self.awaits_caller() || self.unread_since.is_some();
            self.end_read_delay();
            let late = self.blame_rule.deadline <= now && !waits;
            self.permit_outcome =
                PermitOutcome::Cancelled(if late { AbandonReason::DeadlineExceeded } else { AbandonReason::Unwanted });
            self.complete();
        }
        self.upstream.guard.ended(now, self.breaker_permit.take(), self.guard_outcome());
        if self.upstream.hosts.len() > 1 {
            self.upstream.balancer().ended(now, self.host, self.host_outcome.unwrap_or(HostOutcome::Cancelled));
        }
    }
}
