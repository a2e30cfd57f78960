//! A request with hedge stages and retries: rules of all calls, and the decision of one call.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use pyo3::prelude::*;
use weir::base::Nanos;
use weir::base::failure::FailureKind;
use weir::base::rng::SeededRng;
use weir::call::Success;
use weir::call::attempt_log::launch_reason;
use weir::machine::lock::lock;
use weir::resilience::hedge::{CallVerdict, Event, HedgeAction, HedgedCall, ResendRule};
use weir::resilience::policy::Policy;
use weir::retry::latency_quantile::LatencyQuantile;
use weir::retry::policy::AttemptFailure;

use super::budget::{BudgetHandle, OptionalBudget};
use super::delay_of_header;
use crate::client::not_repeated;
use crate::client::policy::PolicyHandle;
use crate::errors;

/// Maximum hosts whose recent times are kept; beyond it all are dropped.
const MAX_HOSTS: usize = 256;

/// What to do: an action (`launch`, `turn`, `cancel`, `wake`, `unsent`, `finish`), the number of an attempt from 0 or a time in
/// ns, and the reason of a launch or the verdict (`won`, `failed`, `deadline`).
type ActionArg = (&'static str, u64, &'static str);

/// Rules of all calls, their budget, and recent times by host.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct CallRulesHandle {
    policy: Arc<Policy>,
    success: Success,
    is_strict: bool,
    max_response: usize,
    budget: Option<Py<BudgetHandle>>,
    latencies: Mutex<HashMap<String, LatencyQuantile>>,
    seed: u64,
    calls: AtomicU64,
}

#[pymethods]
impl CallRulesHandle {
    /// Rules by options of calls.
    #[new]
    fn new(options: &PolicyHandle, budget: Option<Py<BudgetHandle>>, seed: u64) -> Self {
        Self {
            policy: Arc::new(options.policy.clone()),
            success: options.success.clone().unwrap_or_default(),
            is_strict: options.success.is_some(),
            max_response: options.max_response,
            budget,
            latencies: Mutex::default(),
            seed,
            calls: AtomicU64::new(0),
        }
    }

    /// Whether a call may have a second attempt.
    #[getter]
    fn has_extra_attempts(&self) -> bool {
        self.policy.allows_extra_attempts()
    }

    /// Whether attempts may run side by side.
    #[getter]
    fn has_stages(&self) -> bool {
        !self.policy.stages.is_empty()
    }

    /// Whether the caller has defined success.
    #[getter]
    fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Whether success depends on the body.
    #[getter]
    fn needs_body(&self) -> bool {
        self.success.inspects_bodies()
    }

    /// Maximum body in bytes; None is unlimited.
    #[getter]
    fn max_response(&self) -> Option<usize> {
        (self.max_response != usize::MAX).then_some(self.max_response)
    }

    /// Time from the start of a call to its deadline in ns; None is no limit.
    #[getter]
    fn deadline(&self) -> Option<u64> {
        (self.policy.deadline != Nanos::NEVER).then_some(self.policy.deadline.0)
    }

    /// Failure of a response by its head: a status, or `header`; None for a success so far.
    fn head_failure(&self, status: u16, headers: &Bound<'_, PyAny>) -> PyResult<(Option<u16>, Option<&'static str>)> {
        if !self.success.statuses.iter().any(|range| range.contains(&status)) {
            return Ok((Some(status), None));
        }
        for (name, value) in &self.success.headers {
            let values: Vec<String> = headers.call_method1("getall", (name.as_str(), ()))?.extract()?;
            if !values.iter().any(|found| found.as_bytes() == value.as_bytes()) {
                return Ok((None, Some(FailureKind::Header.name())));
            }
        }
        Ok((None, None))
    }

    /// Failure of a response by its decoded body: `body`, or None.
    fn body_failure(&self, body: Vec<u8>) -> Option<&'static str> {
        self.success.check_body(&Bytes::from(body)).is_err().then_some(FailureKind::Body.name())
    }

    /// Starts a call, with the first actions. `deadline` is a time in ns; `can_resend` is whether the body can be sent
    /// again; `host` has the recent times behind a quantile.
    fn start(
        slf: Bound<'_, Self>,
        now: u64,
        deadline: Option<u64>,
        method: &str,
        can_resend: bool,
        host: String,
    ) -> (CallDecisionHandle, Vec<ActionArg>) {
        let rules = slf.get();
        let now = Nanos(now);
        rules.budget().deposit(now);
        let resend = match can_resend {
            true => ResendRule::of(rules.policy.retryable_methods, method),
            // Of a body that is read once, nothing was read before the connection was there.
            false => ResendRule::IfUnsent,
        };
        let mut actions = Vec::new();
        let call = rules.calls.fetch_add(1, Relaxed);
        let quantile = |q| lock(&rules.latencies).get_mut(&host)?.quantile(now, q);
        let rng = SeededRng::new(rules.seed, call);
        let deadline = deadline.map_or(Nanos::NEVER, Nanos);
        let hedge = HedgedCall::start(Arc::clone(&rules.policy), now, deadline, resend, quantile, rng, &mut actions);
        let mut decision = CallDecisionHandle { rules: slf.unbind(), hedge, host, began: now, is_recorded: false };
        let actions = decision.translated(now, &actions);
        (decision, actions)
    }
}

impl CallRulesHandle {
    fn budget(&self) -> OptionalBudget<'_> {
        OptionalBudget(self.budget.as_ref().map(Py::get))
    }

    /// Records the time of a first attempt, if a hedge stage waits for a quantile of them.
    fn record(&self, host: &str, now: Nanos, time: Nanos) {
        let is_quantile = |stage: &weir::resilience::policy::HedgeStage| {
            matches!(stage.after, weir::resilience::policy::StageTrigger::Quantile(_))
        };
        if !self.policy.stages.iter().any(is_quantile) {
            return;
        }
        let mut latencies = lock(&self.latencies);
        if let Some(known) = latencies.get_mut(host) {
            return known.record(now, time);
        }
        if latencies.len() == MAX_HOSTS {
            latencies.clear();
        }
        latencies.entry(host.to_owned()).or_default().record(now, time);
    }
}

/// Decision of one call.
#[pyclass(module = "weir._weir")]
pub(crate) struct CallDecisionHandle {
    rules: Py<CallRulesHandle>,
    hedge: HedgedCall<'static>,
    host: String,
    began: Nanos,
    /// Whether the time of the first attempt is recorded.
    is_recorded: bool,
}

#[pymethods]
impl CallDecisionHandle {
    /// Handles a success.
    fn succeeded(&mut self, now: u64, attempt: u32) -> Vec<ActionArg> {
        if attempt == 0 {
            self.record_first(Nanos(now));
        }
        self.on(now, Event::Succeeded(attempt))
    }

    /// Handles a failure: a status, or a kind by its name.
    #[pyo3(signature = (now, attempt, status=None, kind=None, retry_after=None, date=None, wall_ns=0))]
    #[allow(clippy::too_many_arguments, reason = "arguments of Python have names")]
    fn failed(
        &mut self,
        now: u64,
        attempt: u32,
        status: Option<u16>,
        kind: Option<&str>,
        retry_after: Option<&str>,
        date: Option<&str>,
        wall_ns: i64,
    ) -> PyResult<Vec<ActionArg>> {
        let failure = match (status, kind) {
            (Some(status), _) => AttemptFailure::Status(status),
            (None, kind) => {
                let known = FailureKind::ALL.into_iter().find(|one| Some(one.name()) == kind);
                AttemptFailure::Kind(known.ok_or_else(|| errors::usage("kind: unknown"))?)
            }
        };
        let retry_after = delay_of_header(retry_after, date, wall_ns);
        Ok(self.on(now, Event::Failed { attempt, failure, retry_after }))
    }

    /// Why the last failure was not repeated, as text; None if the attempts show it.
    fn not_repeated(&self, method: &str) -> Option<String> {
        let method = http::Method::from_bytes(method.as_bytes()).ok()?;
        self.hedge.not_repeated().and_then(|reason| not_repeated::text(reason, &method))
    }

    /// It is the turn of the retry of an attempt.
    fn turn(&mut self, now: u64, attempt: u32) -> Vec<ActionArg> {
        self.on(now, Event::Turn(attempt))
    }

    /// Handles the time.
    fn tick(&mut self, now: u64) -> Vec<ActionArg> {
        self.on(now, Event::Tick)
    }
}

impl CallDecisionHandle {
    fn on(&mut self, now: u64, event: Event) -> Vec<ActionArg> {
        let now = Nanos(now);
        let mut actions = Vec::new();
        self.hedge.on(now, event, &mut self.rules.get().budget(), &mut actions);
        self.translated(now, &actions)
    }

    fn translated(&mut self, now: Nanos, actions: &[HedgeAction]) -> Vec<ActionArg> {
        let mut translated = Vec::with_capacity(actions.len());
        for action in actions {
            translated.push(match *action {
                HedgeAction::Launch { attempt, reason } => ("launch", attempt.into(), launch_reason(reason)),
                HedgeAction::BudgetExhausted { reason } => ("unsent", 0, launch_reason(reason)),
                HedgeAction::AwaitTurn(attempt) => ("turn", attempt.into(), ""),
                HedgeAction::Cancel(attempt) => {
                    if attempt == 0 {
                        self.record_first(now);
                    }
                    ("cancel", attempt.into(), "")
                }
                HedgeAction::WakeAt(at) => ("wake", at.0, ""),
                HedgeAction::Finish(CallVerdict::Won(attempt)) => ("finish", attempt.into(), "won"),
                HedgeAction::Finish(CallVerdict::Failed { last }) => ("finish", last.into(), "failed"),
                HedgeAction::Finish(CallVerdict::DeadlineExceeded | CallVerdict::ClientClosed) => {
                    ("finish", 0, "deadline")
                }
            });
        }
        translated
    }

    /// Records the time of the first attempt; of a cancelled one it is a lower bound.
    fn record_first(&mut self, now: Nanos) {
        if !std::mem::replace(&mut self.is_recorded, true) {
            self.rules.get().record(&self.host, now, now - self.began);
        }
    }
}
