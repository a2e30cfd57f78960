//! Retry budget as an object of Python.

use std::sync::Mutex;

use pyo3::prelude::*;
use weir::base::Nanos;
use weir::machine::lock::lock;
use weir::retry::policy::BudgetRule;
use weir::retry::retry_budget::{Budget, RetryBudget};

use crate::client::policy::RetryBudgetArg;
use crate::errors;

/// Budget of the extra attempts of all calls that use this object.
///
/// It is locked with the GIL held and never while another thread could run, so that a child of a fork finds it free.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct BudgetHandle {
    rule: BudgetRule,
    state: Mutex<RetryBudget>,
}

#[pymethods]
impl BudgetHandle {
    /// Parses a `weir.Budget`.
    #[new]
    fn new(rule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let parsed: PyResult<RetryBudgetArg> = rule.extract();
        let RetryBudgetArg(rule) = parsed.map_err(|error| errors::argument(rule.py(), "budget", rule, &error))?;
        Ok(Self { rule, state: Mutex::new(RetryBudget::new(rule)) })
    }

    /// Extra attempts that could be made now.
    fn remaining(&self, now: u64) -> u32 {
        lock(&self.state).remaining(Nanos(now))
    }

    /// Notation of the rule: `5% + 250/10s`.
    fn __str__(&self) -> String {
        self.rule.to_string()
    }
}

/// Budget of one driver, or none.
pub(super) struct OptionalBudget<'a>(pub(super) Option<&'a BudgetHandle>);

impl OptionalBudget<'_> {
    /// Counts a call that begins.
    pub(super) fn deposit(&self, now: Nanos) {
        if let Some(budget) = self.0 {
            lock(&budget.state).deposit(now);
        }
    }
}

impl Budget for OptionalBudget<'_> {
    fn can_withdraw(&mut self, now: Nanos) -> bool {
        self.0.is_none_or(|budget| lock(&budget.state).can_withdraw(now))
    }

    fn withdraw(&mut self, now: Nanos) -> bool {
        self.0.is_none_or(|budget| lock(&budget.state).withdraw(now))
    }
}
