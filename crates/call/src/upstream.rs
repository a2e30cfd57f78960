//! Upstreams: hosts, load balancing, and the permits of attempts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use http::HeaderMap;

use super::counts::UpstreamCounts;
use super::permits::{CallPermit, PermitOutcome, PermitPool};
use super::success::grpc_failure;
use super::upload::UploadState;
use super::upstream_guard::{GuardOutcome, UpstreamGuard};
use weir_decide::Nanos;
use weir_decide::admission::{AbandonReason, AdmissionConfig, ServiceOutcome};
use weir_decide::base::failure::{FailureKind, FailureSide};
use weir_decide::call::grpc::Codes;
use weir_decide::call::hedge::LaunchReason;
use weir_decide::call::latency_quantile::LatencyQuantile;
use weir_decide::call::policy::AttemptFailure;
use weir_decide::upstream::circuit_breaker::{BreakerPermit, BreakerRule, State};
use weir_decide::upstream::client_throttle::ThrottleRule;
use weir_decide::upstream::hosts::{BalancePolicy, HostBalancer, HostOutcome, OutlierRule};
use weir_http::client::Origin;
use weir_machine::lock::lock;
use weir_machine::timer::Timer;

/// One host of an upstream.
#[derive(Clone, Debug)]
pub struct UpstreamHost {
    /// Address and connection options.
    pub origin: Arc<Origin>,
    /// Weight in load balancing.
    pub weight: u32,
}

/// An upstream: hosts that do the same, shared by all event loops.
#[derive(Debug)]
pub struct Upstream {
    hosts: Vec<UpstreamHost>,
    balancer: Mutex<HostBalancer>,
    latencies: Mutex<LatencyQuantile>,
    /// Whether a hedge stage needs latency quantiles.
    records_latencies: AtomicBool,
    permits: Option<Arc<PermitPool>>,
    pub(super) guard: UpstreamGuard,
    /// Counters of the attempts.
    pub counts: UpstreamCounts,
}

impl Upstream {
    /// An upstream of 1 to 64 hosts, without limits.
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

    /// Adds a fixed concurrency limit (at least 1), and a queue of `max_queued` calls that wait up to their deadlines,
    /// first in, first out.
    #[must_use]
    pub fn with_fixed_limit(self, max_in_flight: usize, max_queued: usize) -> Self {
        self.with_admission(&PermitPool::fixed(max_in_flight, max_queued), Nanos::ZERO)
    }

    /// Adds a concurrency limit.
    ///
    /// A call waits for the slot of its first attempt, or is rejected. Further attempts take a free slot, or are
    /// skipped.
    #[must_use]
    pub fn with_admission(mut self, config: &AdmissionConfig, now: Nanos) -> Self {
        self.permits = Some(Arc::new(PermitPool::new(config, now)));
        self
    }

    /// The hosts.
    pub fn hosts(&self) -> &[UpstreamHost] {
        &self.hosts
    }

    /// Whether each host is ejected.
    pub fn ejected_hosts(&self, now: Nanos) -> Vec<bool> {
        let balancer = self.balancer();
        (0..self.hosts.len()).map(|host| balancer.is_ejected(now, host)).collect()
    }

    /// Records the result of a health check.
    pub fn health_checked(&self, now: Nanos, host: usize, ok: bool) {
        self.balancer().health_checked(now, host, ok);
    }

    /// Adds a circuit breaker and a throttle.
    #[must_use]
    pub fn with_guard(mut self, breaker: Option<BreakerRule>, throttle: Option<ThrottleRule>) -> Self {
        self.guard = UpstreamGuard::new(breaker, throttle);
        self
    }

    /// State of the circuit breaker, if there is one.
    pub fn breaker_state(&self, now: Nanos) -> Option<State> {
        self.guard.state(now)
    }

    /// Fraction of calls that the throttle rejects now, if there is one.
    pub fn throttled_fraction(&self, now: Nanos) -> Option<f64> {
        self.guard.dropped_fraction(now)
    }

    /// Permits of attempts, if there is a concurrency limit.
    pub fn permits(&self) -> Option<&Arc<PermitPool>> {
        self.permits.as_ref()
    }

    /// Current concurrency limit, if there is one.
    pub fn concurrency_limit(&self) -> Option<usize> {
        self.permits.as_ref().map(|permits| permits.slots().limit() as usize)
    }

    /// Starts to record latencies of first attempts.
    pub(super) fn record_latencies(&self) {
        self.records_latencies.store(true, Ordering::Relaxed);
    }

    /// Quantile of the latencies of recent first attempts; None while there are too few.
    pub fn latency_quantile(&self, now: Nanos, quantile: f64) -> Option<Nanos> {
        self.latencies().quantile(now, quantile)
    }

    fn balancer(&self) -> MutexGuard<'_, HostBalancer> {
        lock(&self.balancer)
    }

    fn latencies(&self) -> MutexGuard<'_, LatencyQuantile> {
        lock(&self.latencies)
    }

    /// Records the latency of a first attempt, or a lower bound of it.
    pub(super) fn record_latency(&self, now: Nanos, latency: Nanos) {
        if self.records_latencies.load(Ordering::Relaxed) {
            self.latencies().record(now, latency);
        }
    }

    /// Chooses a host for an attempt that starts now, not one in the bit set `avoid` if there is another.
    pub(super) fn acquire_host(
        self: &Arc<Self>,
        timer: &Timer,
        now: Nanos,
        blame_rule: BlameRule,
        avoid: u64,
        reason: LaunchReason,
        (permit, breaker_permit): (Option<CallPermit>, Option<BreakerPermit>),
    ) -> HostPermit {
        self.counts.began(reason);
        let host = if self.hosts.len() == 1 {
            0
        } else {
            let mut balancer = self.balancer();
            let host = balancer.pick(now, avoid);
            balancer.began(host);
            host
        };
        let (upstream, timer) = (Arc::clone(self), timer.clone());
        HostPermit {
            upstream,
            host,
            blame_rule,
            timer,
            host_outcome: None,
            permit_outcome: PermitOutcome::Ended(ServiceOutcome::Failed),
            is_complete: false,
            unread_since: None,
            read_delay: Nanos::ZERO,
            permit,
            route_permit: None,
            breaker_permit,
            upload: None,
            failing_codes: Codes::NONE,
        }
    }
}

/// Meaning of a cancelled attempt, by the time of its cancellation.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlameRule {
    /// From here on the attempt has failed: its timeout has passed.
    pub(super) attempt_timeout_at: Nanos,
    /// From here on the host has failed: it had all the time of the call's policy. Otherwise a host that hangs would
    /// never be ejected if there is no limit but the deadline.
    pub(super) host_blamed_at: Nanos,
    /// Deadline of the call.
    pub(super) deadline: Nanos,
}

/// Permit of an attempt at a host, until the last byte of the response; dropped earlier, the attempt was cancelled.
#[derive(Debug)]
pub(super) struct HostPermit {
    pub(super) upstream: Arc<Upstream>,
    pub(super) host: usize,
    blame_rule: BlameRule,
    timer: Timer,
    host_outcome: Option<HostOutcome>,
    /// Outcome for the concurrency limit, if the response is complete.
    permit_outcome: PermitOutcome,
    is_complete: bool,
    /// Time since when the caller has not polled for more; None while it waits for the upstream.
    unread_since: Option<Nanos>,
    /// Total time that the response waited for its caller, which is not service time.
    read_delay: Nanos,
    permit: Option<CallPermit>,
    /// The route's permit, once the call has ended.
    pub(super) route_permit: Option<CallPermit>,
    breaker_permit: Option<BreakerPermit>,
    /// State of a request body that the caller still sends.
    upload: Option<UploadState>,
    /// Codes in the trailers with which a gRPC response is a failure.
    failing_codes: Codes,
}

impl HostPermit {
    pub(super) fn origin(&self) -> &Arc<Origin> {
        &self.upstream.hosts[self.host].origin
    }

    /// Sets the state of a streamed request body.
    pub(super) fn set_upload(&mut self, upload: UploadState) {
        self.upload = Some(upload);
    }

    /// Whether the next part of the request has to come from the caller.
    fn awaits_caller(&self) -> bool {
        self.upload.as_ref().is_some_and(UploadState::awaits_caller)
    }

    /// Records the status of the response.
    pub(super) fn response_started(&mut self, status: u16) {
        self.permit_outcome = PermitOutcome::Ended(if matches!(status, 429 | 503) {
            ServiceOutcome::Overloaded
        } else {
            ServiceOutcome::Responded
        });
    }

    /// Records that the caller has all that was received, and does not poll.
    pub(super) fn start_read_delay(&mut self) {
        self.unread_since = Some(self.timer.now());
    }

    /// Records that the caller polls for more.
    pub(super) fn end_read_delay(&mut self) {
        if let Some(since) = self.unread_since.take() {
            self.read_delay += self.timer.now() - since;
        }
    }

    /// Records the end of the response, or of the time for it.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
        for permit in self.permit.iter_mut().chain(&mut self.route_permit) {
            permit.set_outcome(self.permit_outcome, self.read_delay);
        }
    }

    pub(super) fn succeeded(&mut self) {
        self.host_outcome = Some(HostOutcome::Ok);
    }

    /// Records that the body of a success broke off.
    pub(super) fn body_failed(&mut self, fault: FailureSide) {
        match fault {
            FailureSide::Upstream => self.host_outcome = Some(HostOutcome::Failed),
            FailureSide::Caller => {
                (self.permit_outcome, self.host_outcome) =
                    (PermitOutcome::Cancelled(AbandonReason::Unwanted), Some(HostOutcome::Cancelled));
            }
        }
    }

    /// Sets the codes in the trailers with which a streamed response is a failure.
    pub(super) fn set_failing_codes(&mut self, codes: Codes) {
        self.failing_codes = codes;
    }

    /// Evaluates the trailers of a streamed response.
    pub(super) fn on_trailers(&mut self, trailers: &HeaderMap) {
        if let Some(failure) = grpc_failure(self.failing_codes, trailers) {
            self.record_failure(failure);
            self.upstream.counts.count_failure(failure);
        }
    }

    /// Records a failure, and releases the slot: the response may be kept until the call's end, and the next attempt
    /// may need a slot.
    pub(super) fn failed(&mut self, failure: AttemptFailure) {
        self.record_failure(failure);
        self.complete();
        self.permit = None;
        self.upstream.counts.failed(failure);
    }

    /// Sets the outcomes of a failure for the concurrency limit and for outlier detection.
    fn record_failure(&mut self, failure: AttemptFailure) {
        let host_outcome = |status| if (502..=504).contains(&status) { HostOutcome::Failed } else { HostOutcome::Ok };
        let (permit_outcome, host_outcome) = match failure {
            // No evidence.
            _ if failure.side() == FailureSide::Caller => {
                (PermitOutcome::Cancelled(AbandonReason::Unwanted), HostOutcome::Cancelled)
            }
            AttemptFailure::Kind(FailureKind::Timeout) => {
                (PermitOutcome::Cancelled(AbandonReason::DeadlineExceeded), HostOutcome::Failed)
            }
            AttemptFailure::Kind(FailureKind::Body | FailureKind::Header) => (self.permit_outcome, HostOutcome::Ok),
            AttemptFailure::Kind(_) => (PermitOutcome::Ended(ServiceOutcome::Failed), HostOutcome::Failed),
            AttemptFailure::Status(status) => (self.permit_outcome, host_outcome(status)),
            AttemptFailure::Grpc(code) => match code.as_http() {
                Some(status) => {
                    self.response_started(status);
                    (self.permit_outcome, host_outcome(status))
                }
                None => (self.permit_outcome, HostOutcome::Ok),
            },
        };
        (self.permit_outcome, self.host_outcome) = (permit_outcome, Some(host_outcome));
    }

    fn on_cancelled(&mut self, now: Nanos) {
        let awaits_caller = self.awaits_caller();
        if self.blame_rule.attempt_timeout_at <= now {
            self.failed(AttemptFailure::Kind(if awaits_caller { FailureKind::Request } else { FailureKind::Timeout }));
        } else {
            self.upstream.counts.cancelled();
            let blamed = self.blame_rule.host_blamed_at <= now && !awaits_caller;
            self.host_outcome = Some(if blamed { HostOutcome::Failed } else { HostOutcome::Cancelled });
        }
    }
}

impl HostPermit {
    /// Outcome for circuit breaker and throttle.
    fn guard_outcome(&self) -> GuardOutcome {
        match (self.permit_outcome, self.host_outcome) {
            (PermitOutcome::Ended(ServiceOutcome::Overloaded), _) => GuardOutcome::Overloaded,
            (PermitOutcome::Ended(ServiceOutcome::Responded), ended) => {
                GuardOutcome::Responded(ended != Some(HostOutcome::Failed))
            }
            (_, Some(HostOutcome::Failed)) => GuardOutcome::Failed,
            // Cancelled after its head had arrived.
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
            let awaits_caller = self.awaits_caller() || self.unread_since.is_some();
            self.end_read_delay();
            let late = self.blame_rule.deadline <= now && !awaits_caller;
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
