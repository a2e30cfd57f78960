//! Simulation for Python, without the GIL and interruptible by Ctrl-C.

use pyo3::prelude::*;
use weir::machine::parallel;
use weir::simulate::{LimiterComparison, SimulationPlan, run as simulate, text};

use crate::errors;

/// Runs the scenarios with the limiters, by name; returns the simulation as JSON and as text.
#[pyfunction]
#[pyo3(name = "simulate")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn run_simulation(
    py: Python<'_>,
    scenarios: Vec<String>,
    limiters: Vec<String>,
    seed: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let seed = seed
        .map(|seed| seed.extract::<u64>().map_err(|error| errors::argument(py, "seed", &seed, &error)))
        .transpose()?;
    let plan = SimulationPlan::new(&scenarios, &limiters, seed).map_err(|reason| errors::usage(&reason))?;
    let mut raised: Option<PyErr> = None;
    let result = py.detach(|| {
        let mut go_on = || {
            #[expect(
                clippy::redundant_closure_for_method_calls,
                reason = "the method is not for any interpreter's lifetime"
            )]
            let signals = Python::try_attach(|py| py.check_signals());
            // Without an interpreter to attach to, it is shutting down.
            match signals {
                Some(Ok(())) => raised.is_none(),
                Some(Err(error)) => {
                    raised = Some(error);
                    false
                }
                None => false,
            }
        };
        let reports = parallel(&plan.runs(), |(scenario, limiter)| simulate(scenario, limiter), &mut go_on);
        let comparison = LimiterComparison::new(reports);
        let json = serde_json::to_string(&comparison).map_err(|error| errors::usage(&error.to_string()))?;
        Ok((json + "\n", text::render(&comparison)))
    });
    raised.map_or(result, Err)
}
