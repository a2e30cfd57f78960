//! A function that is retried: rules of all its calls, and the state of one call.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::base::Nanos;
use weir::base::failure::FailureKind;
use weir::base::rng::SeededRng;
use weir::retry::backoff::Backoff;
use weir::retry::grants::{RetryDenial, RetryGrants};
use weir::retry::policy::{AttemptFailure, RetryPolicy};
use weir::retry::retry_after::is_waited_for;
use weir::retry::retry_budget::Budget;

use super::budget::{BudgetHandle, OptionalBudget};
use super::delay_of_header;
use crate::arguments::{PythonArgs, TimeArg};
use crate::client::policy::duration;
use crate::errors;

/// The failure that stands for all that Python retries; what it does not retry is not reported as a failure.
const RAISED: AttemptFailure = AttemptFailure::Kind(FailureKind::Closed);

/// Rules of all calls of a function, and what was counted.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct RetryRulesHandle {
    policy: Arc<RetryPolicy>,
    deadline: Nanos,
    budget: Option<Py<BudgetHandle>>,
    seed: u64,
    calls: AtomicU64,
    attempts: AtomicU64,
    retries: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    denied_by_budget: AtomicU64,
    waited_ns: AtomicU64,
}

#[pymethods]
impl RetryRulesHandle {
    /// Parses the options, by name.
    #[new]
    fn new(form: &Bound<'_, PyDict>, seed: u64) -> PyResult<Self> {
        let form = PythonArgs(form.copy()?);
        let deadline = duration(&form, "deadline")?;
        let attempts: Option<i64> = form.take("attempts")?;
        let max_retries = match attempts {
            None if deadline == Nanos::NEVER => {
                return Err(errors::usage("attempts: None needs a deadline; give one, or a number of attempts"));
            }
            None => u32::MAX,
            Some(attempts) => retries_of(attempts)?,
        };
        let backoff = form.take::<BackoffArg>("backoff")?.0;
        let budget = form.take("budget")?;
        form.is_empty()?;
        let policy = Arc::new(RetryPolicy { max_retries, backoff, ..RetryPolicy::default() });
        let [calls, attempts, retries, succeeded, failed, denied_by_budget, waited_ns] = Default::default();
        Ok(Self {
            policy,
            deadline,
            budget,
            seed,
            calls,
            attempts,
            retries,
            succeeded,
            failed,
            denied_by_budget,
            waited_ns,
        })
    }

    /// Starts a call and its first attempt. It has at most `attempts`; without `waits` no time passes
    /// between them.
    fn start(slf: Bound<'_, Self>, now: u64, attempts: Option<i64>, waits: bool) -> PyResult<RetryCallHandle> {
        let rules = slf.get();
        let now = Nanos(now);
        let mut policy = Arc::clone(&rules.policy);
        if let Some(attempts) = attempts {
            let retries = retries_of(attempts)?.min(policy.max_retries);
            Arc::make_mut(&mut policy).max_retries = retries;
        }
        if !waits {
            let policy = Arc::make_mut(&mut policy);
            policy.backoff = Backoff { min: Nanos::ZERO, max: Nanos::ZERO };
            policy.honor_retry_after = false;
        }
        let call = rules.calls.fetch_add(1, Relaxed);
        rules.attempts.fetch_add(1, Relaxed);
        rules.budget().deposit(now);
        let grants = RetryGrants::new(&policy, SeededRng::new(rules.seed, call));
        let deadline = now + rules.deadline;
        Ok(RetryCallHandle { rules: slf.unbind(), policy, grants, deadline, failed_at: now, is_ended: false })
    }

    /// Calls, attempts, retries, successes, failures, retries that the budget denied, and waits in ns.
    fn counts(&self) -> [u64; 7] {
        let counts = [&self.calls, &self.attempts, &self.retries, &self.succeeded, &self.failed];
        let [calls, attempts, retries, succeeded, failed] = counts.map(|count| count.load(Relaxed));
        let [denied, waited_ns] = [&self.denied_by_budget, &self.waited_ns].map(|count| count.load(Relaxed));
        [calls, attempts, retries, succeeded, failed, denied, waited_ns]
    }
}

impl RetryRulesHandle {
    fn budget(&self) -> OptionalBudget<'_> {
        OptionalBudget(self.budget.as_ref().map(Py::get))
    }
}

/// State of one call.
#[pyclass(module = "weir._weir")]
pub(crate) struct RetryCallHandle {
    rules: Py<RetryRulesHandle>,
    policy: Arc<RetryPolicy>,
    grants: RetryGrants,
    deadline: Nanos,
    failed_at: Nanos,
    is_ended: bool,
}

#[pymethods]
impl RetryCallHandle {
    /// Deadline in ns; None is no limit.
    #[getter]
    fn deadline(&self) -> Option<u64> {
        (self.deadline != Nanos::NEVER).then_some(self.deadline.0)
    }

    /// Handles a failed attempt: the time of its retry in ns, or the limit that denies one.
    ///
    /// The wait is at least each of `at_least`, and the `Retry-After` of the response.
    #[pyo3(signature = (now, at_least=Vec::new(), retry_after=None, date=None, wall_ns=0))]
    fn failed(
        &mut self,
        now: u64,
        at_least: Vec<TimeArg>,
        retry_after: Option<&str>,
        date: Option<&str>,
        wall_ns: i64,
    ) -> (Option<u64>, Option<&'static str>) {
        let now = Nanos(now);
        self.failed_at = now;
        let stated = delay_of_header(retry_after, date, wall_ns);
        if self.policy.honor_retry_after && !is_waited_for(stated, self.deadline) {
            return (None, Some("retry_after"));
        }
        let least = at_least.into_iter().map(|TimeArg(time)| Nanos::from(time)).max();
        let min_delay = least.max(stated);
        let rules = self.rules.get();
        let granted = self.grants.grant(&self.policy, now, self.deadline, RAISED, min_delay, &mut rules.budget());
        match granted {
            Ok(at) => (Some(at.0), None),
            Err(denial) => (None, Some(self.denied(denial))),
        }
    }

    /// Starts the retry whose time has come; the limit that denies it, or None.
    fn retry(&mut self, now: u64) -> Option<&'static str> {
        let now = Nanos(now);
        let rules = self.rules.get();
        rules.waited_ns.fetch_add((now - self.failed_at).0, Relaxed);
        // A wait may have lasted longer than was decided.
        if now >= self.deadline {
            return Some(self.denied(RetryDenial::Deadline));
        }
        if !rules.budget().withdraw(now) {
            return Some(self.denied(RetryDenial::Budget));
        }
        rules.attempts.fetch_add(1, Relaxed);
        rules.retries.fetch_add(1, Relaxed);
        None
    }

    /// Counts the end of the call, once.
    fn ended(&mut self, succeeded: bool) {
        if !std::mem::replace(&mut self.is_ended, true) {
            let rules = self.rules.get();
            if succeeded { &rules.succeeded } else { &rules.failed }.fetch_add(1, Relaxed);
        }
    }
}

impl RetryCallHandle {
    fn denied(&self, denial: RetryDenial) -> &'static str {
        match denial {
            RetryDenial::NotRetryable | RetryDenial::NoneLeft => "attempts",
            RetryDenial::Deadline => "deadline",
            RetryDenial::Budget => {
                self.rules.get().denied_by_budget.fetch_add(1, Relaxed);
                "budget"
            }
        }
    }
}

/// A number of attempts from 1, as retries.
fn retries_of(attempts: i64) -> PyResult<u32> {
    let retries = attempts.checked_sub(1).and_then(|retries| u32::try_from(retries).ok());
    retries.filter(|retries| *retries < u32::MAX).ok_or_else(|| {
        errors::usage(&format!("attempts: {attempts} is out of range; give 1 or more, or None with a deadline"))
    })
}

/// A time, or a pair: minimum and maximum.
struct BackoffArg(Backoff);

impl FromPyObject<'_, '_> for BackoffArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let (TimeArg(min), TimeArg(max)) = match value.extract::<(TimeArg, TimeArg)>() {
            Ok(pair) => pair,
            Err(error) if value.is_instance_of::<pyo3::types::PyTuple>() => return Err(error),
            Err(_) => {
                let time: PyResult<TimeArg> = value.extract();
                let TimeArg(time) = time.map_err(|error| match error.is_instance_of::<PyTypeError>(value.py()) {
                    true => PyTypeError::new_err("a time, a pair of times (minimum, maximum), or a function"),
                    false => error,
                })?;
                (TimeArg(time), TimeArg(time))
            }
        };
        if min > max {
            let message = format!("the minimum, {min:?}, is above the maximum, {max:?}; swap them");
            return Err(errors::usage(&message));
        }
        Ok(Self(Backoff { min: Nanos::from(min), max: Nanos::from(max) }))
    }
}
