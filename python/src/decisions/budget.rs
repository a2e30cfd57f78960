//! Retry budget as an object of Python.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use weir::base::Nanos;
use weir::machine::lock::lock;
use weir::retry::policy::BudgetRule;
use weir::retry::retry_budget::{Budget, RetryBudget};

use crate::client::budget_rule::RetryBudgetArg;
use crate::client::event_loop::clock;
use crate::client::kin::generation;
use crate::errors;

/// Budget of the extra attempts of all calls that use this object.
///
/// A child of a fork has one of its own: calls of the core lock theirs on any thread.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct BudgetHandle {
    rule: BudgetRule,
    /// Locked with the GIL held, and never while another thread could run, so that a child of a fork finds it free.
    own: Mutex<(u64, Arc<Mutex<RetryBudget>>)>,
}

#[pymethods]
impl BudgetHandle {
    /// Parses a `weir.Budget`.
    #[new]
    fn new(rule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let parsed: PyResult<RetryBudgetArg> = rule.extract();
        let RetryBudgetArg(rule) = parsed.map_err(|error| errors::argument(rule.py(), "budget", rule, &error))?;
        Ok(Self { rule, own: Mutex::new((generation(), Self::of(rule))) })
    }

    /// Extra attempts that could be made now.
    fn remaining(&self, now: u64) -> u32 {
        lock(&self.current()).remaining(Nanos(now))
    }

    /// Notation of the rule: `5% + 250/10s`.
    fn __str__(&self) -> String {
        self.rule.to_string()
    }
}

impl BudgetHandle {
    fn of(rule: BudgetRule) -> Arc<Mutex<RetryBudget>> {
        Arc::new(Mutex::new(RetryBudget::new(rule)))
    }

    /// Rule of the budget.
    pub(crate) fn rule(&self) -> BudgetRule {
        self.rule
    }

    /// State of this process, on the clock of [`now_ns`].
    pub(crate) fn current(&self) -> Arc<Mutex<RetryBudget>> {
        let mut own = lock(&self.own);
        if own.0 != generation() {
            *own = (generation(), Self::of(self.rule));
        }
        Arc::clone(&own.1)
    }
}

/// Time of all calls of this process, in nanoseconds.
#[pyfunction]
pub(crate) fn now_ns() -> u64 {
    clock().now().0
}

/// Budget of one driver, or none.
pub(super) struct OptionalBudget<'a>(pub(super) Option<&'a BudgetHandle>);

impl OptionalBudget<'_> {
    /// Counts a call that begins.
    pub(super) fn deposit(&self, now: Nanos) {
        if let Some(budget) = self.0 {
            lock(&budget.current()).deposit(now);
        }
    }
}

impl Budget for OptionalBudget<'_> {
    fn can_withdraw(&mut self, now: Nanos) -> bool {
        self.0.is_none_or(|budget| lock(&budget.current()).can_withdraw(now))
    }

    fn withdraw(&mut self, now: Nanos) -> bool {
        self.0.is_none_or(|budget| lock(&budget.current()).withdraw(now))
    }
}
