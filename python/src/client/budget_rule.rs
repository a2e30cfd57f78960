//! `weir.Budget` -> [`BudgetRule`].

use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use weir::base::Nanos;
use weir::retry::policy::BudgetRule;

use crate::arguments::{TimeArg, attribute};
use crate::errors;

/// A `Budget`.
pub(crate) struct RetryBudgetArg(pub(crate) BudgetRule);

impl FromPyObject<'_, '_> for RetryBudgetArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if !value.hasattr("fraction")? {
            return Err(PyTypeError::new_err(format!(
                "expected a weir.Budget, a weir.SharedBudget or None, not {}",
                value.get_type()
            )));
        }
        let fraction: f64 = attribute(value, "fraction")?;
        if !(0.0..=100.0).contains(&fraction) {
            return Err(errors::usage(&format!(
                "fraction: {fraction} is out of range; give extra attempts per call, 0 to 100"
            )));
        }
        let TimeArg(window) = attribute(value, "window")?;
        if window.is_zero() {
            return Err(errors::usage("window: invalid time 0; give seconds above 0"));
        }
        let min_per_window = min_per_window(attribute(value, "min_per_s")?, window)?;
        Ok(Self(BudgetRule { fraction, min_per_window, window: Nanos::from(window) }))
    }
}

/// Extra attempts per window, whatever the number of calls: a whole number up to 1,000,000.
fn min_per_window(min_per_s: f64, window: Duration) -> PyResult<u32> {
    let number = min_per_s * window.as_secs_f64();
    let whole = number.round();
    if !(0.0..=1e6).contains(&whole) {
        return Err(errors::usage(&format!(
            "min_per_s: {min_per_s} is out of range; give 0 to 1,000,000 extra attempts per window"
        )));
    }
    // Decimal fractions such as 0.1 are not exact in binary.
    if (number - whole).abs() > 1e-6 {
        return Err(errors::usage(&format!(
            "min_per_s: {min_per_s} x window ({window:?}) is not whole; give e.g. 1, or a longer window"
        )));
    }
    Ok(whole as u32)
}
