//! One attempt at a host: its permits, and what its outcome says about the host.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;

use super::call_start::CallStart;
use super::permits::{CallPermit, PermitOutcome};
use super::success::grpc_failure;
use super::upload::UploadState;
use super::upstream::{Upstream, failure_text};
use super::upstream_guard::GuardOutcome;
use weir_base::Nanos;
use weir_base::failure::{FailureKind, FailureSide};
use weir_machine::timer::Timer;
use weir_net::client::Origin;
use weir_resilience::admission::{AbandonReason, ServiceOutcome};
use weir_resilience::hedge::LaunchReason;
use weir_resilience::policy::Policy;
use weir_resilience::upstream::circuit_breaker::BreakerPermit;
use weir_resilience::upstream::hosts::{HostOutcome, HostSlot};
use weir_retry::grpc::Codes;
use weir_retry::policy::AttemptFailure;

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
    /// Whether the caller has chosen it, and it is earlier than the policy's.
    pub(super) is_callers_deadline: bool,
}

impl BlameRule {
    /// The rule for an attempt of this number that is launched `now`.
    pub(super) fn of(policy: &Policy, start: &CallStart, number: u32, now: Nanos) -> Self {
        let CallStart { began, deadline, .. } = *start;
        // 90% of the policy's deadline count as all of it: a gateway counts it from an earlier time.
        let is_callers_deadline = began + policy.deadline - deadline > Nanos(policy.deadline.0 / 10);
        let host_blamed_at = if number == 0 && !is_callers_deadline { deadline } else { Nanos::NEVER };
        Self { attempt_timeout_at: now + policy.attempt_timeout, host_blamed_at, deadline, is_callers_deadline }
    }
}

/// Preferences in the choice of an attempt's host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostChoice {
    /// Hosts to avoid if there is another, as a bit set.
    pub(super) avoid: u64,
    /// Key of the call, for consistent hashing.
    pub(super) key: Option<u64>,
}

/// Permit of an attempt at a host, until the last byte of the response; dropped earlier, the attempt was cancelled.
#[derive(Debug)]
pub(super) struct HostPermit {
    pub(super) upstream: Arc<Upstream>,
    pub(super) host: HostSlot,
    origin: Arc<Origin>,
    /// Start of the attempt and time to its response's head, if hosts are compared by it.
    latency_from: Option<Nanos>,
    latency: Option<Nanos>,
    blame_rule: BlameRule,
    timer: Timer,
    host_outcome: Option<HostOutcome>,
    /// The failure that the outcome comes from, and its cause as text.
    failure: Option<AttemptFailure>,
    cause: Option<Cow<'static, str>>,
    /// Outcome for the concurrency limit, if the response is complete.
    permit_outcome: PermitOutcome,
    is_complete: bool,
    /// Time of the end, if it is dropped then; None: the time of the drop.
    ended: Option<Nanos>,
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
    /// Chooses a host of the upstream for an attempt that starts now.
    pub(super) fn acquire(
        upstream: &Arc<Upstream>,
        timer: &Timer,
        now: Nanos,
        blame_rule: BlameRule,
        choice: HostChoice,
        reason: LaunchReason,
        (permit, breaker_permit): (Option<CallPermit>, Option<BreakerPermit>),
    ) -> Self {
        upstream.counts.began(reason);
        let (host, origin) = upstream.choose_host(now, choice.avoid, choice.key);
        let latency_from = upstream.compares_latency().then_some(now);
        let (upstream, timer) = (Arc::clone(upstream), timer.clone());
        Self {
            upstream,
            host,
            origin,
            latency_from,
            latency: None,
            blame_rule,
            timer,
            host_outcome: None,
            failure: None,
            cause: None,
            permit_outcome: PermitOutcome::Ended(ServiceOutcome::Failed),
            is_complete: false,
            ended: None,
            unread_since: None,
            read_delay: Nanos::ZERO,
            permit,
            route_permit: None,
            breaker_permit,
            upload: None,
            failing_codes: Codes::NONE,
        }
    }

    pub(super) fn origin(&self) -> &Arc<Origin> {
        &self.origin
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
        if self.latency.is_none() {
            self.latency = self.latency_from.map(|from| self.timer.now() - from);
        }
        self.permit_outcome = PermitOutcome::Ended(if matches!(status, 429 | 503) {
            ServiceOutcome::Overloaded
        } else {
            ServiceOutcome::Responded
        });
    }

    /// Records that the caller has all that was received until now, and does not poll.
    pub(super) fn start_read_delay(&mut self, now: Nanos) {
        self.unread_since = Some(now);
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

    /// Time of the event loop.
    pub(super) fn now(&self) -> Nanos {
        self.timer.now()
    }

    /// Sets the time of the end, which is now.
    pub(super) fn end(&mut self, now: Nanos) {
        self.ended = Some(now);
    }

    pub(super) fn succeeded(&mut self) {
        self.host_outcome = Some(HostOutcome::Ok);
    }

    /// Records that the body of a success broke off.
    pub(super) fn body_failed(&mut self, fault: FailureSide) {
        match fault {
            FailureSide::Upstream => {
                (self.host_outcome, self.cause) = (Some(HostOutcome::Failed), Some("the body broke off".into()));
                self.failure = Some(AttemptFailure::Kind(FailureKind::Closed));
            }
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

    /// Records a failure with its cause as text.
    pub(super) fn failed_by(&mut self, failure: AttemptFailure, cause: Cow<'static, str>) {
        self.cause = Some(cause);
        self.failed(failure);
    }

    /// Sets the outcomes of a failure for the concurrency limit and for outlier detection.
    fn record_failure(&mut self, failure: AttemptFailure) {
        self.failure = Some(failure);
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
        let now = self.ended.unwrap_or_else(|| self.timer.now());
        if self.host_outcome.is_none() {
            self.on_cancelled(now);
        }
        if !self.is_complete {
            let awaits_caller = self.awaits_caller() || self.unread_since.is_some();
            self.end_read_delay();
            let is_late = self.blame_rule.deadline <= now;
            self.permit_outcome = if awaits_caller {
                // The upstream does not work on it, but waits as well.
                PermitOutcome::Ended(ServiceOutcome::Failed)
            } else if is_late && self.blame_rule.is_callers_deadline {
                PermitOutcome::Cancelled(AbandonReason::CallerDeadlineExceeded)
            } else if is_late {
                PermitOutcome::Cancelled(AbandonReason::DeadlineExceeded)
            } else {
                PermitOutcome::Cancelled(AbandonReason::Unwanted)
            };
            self.complete();
        }
        self.upstream.guard.ended(now, self.breaker_permit.take(), self.guard_outcome());
        // Without a head the time so far is a lower bound, unless the caller owed a part of its request.
        let bound = self.latency_from.filter(|_| !self.awaits_caller()).map(|from| now - from);
        let outcome = self.host_outcome.unwrap_or(HostOutcome::Cancelled);
        let cause = || match outcome {
            HostOutcome::Failed => failure_text(self.failure, self.cause.as_deref()),
            HostOutcome::Ok | HostOutcome::Cancelled => "an attempt succeeded".to_owned(),
        };
        self.upstream.host_ended(now, self.host, outcome, self.latency.or(bound), cause);
    }
}
