//! `LimiterHandle`: limits of any number of keys.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::base::Nanos;
use weir::delivery::key_window::{KeyRules, MAX_WINDOWS};
use weir::delivery::limiter::LimiterRules;
use weir::limiter::{Limiter, Look, SharedPlace, StoreTrouble, TicketId};
use weir::limits::limit_unit::LimitUnit;
use weir::send::HostLimit;

use super::own::{OwnLimiter, WakesForm};
use super::slot::LimiterSlotHandle;
use crate::arguments::{PythonArgs, TimeArg};
use crate::errors;
use crate::send::options::{DelayBound, StringsArg, limits};

/// Added to a declared delay bound, for the machines at both ends: the interpreter switches threads every 5 ms.
const MACHINE_DELAY: Nanos = Nanos::from_millis(5);

/// Limiter of the core; unusable in a child of a fork.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct LimiterHandle(pub(crate) Arc<OwnLimiter>);

#[pymethods]
impl LimiterHandle {
    /// A limiter with options by name.
    #[new]
    fn new(py: Python<'_>, form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let (rules, place, holder, falls_back) = read(form)?;
        let is_shared = !matches!(place, SharedPlace::Memory);
        let made = py.detach(|| Limiter::new(rules, place, holder, falls_back));
        let limiter = made.map_err(|trouble| trouble_error(&trouble))?;
        Ok(Self(Arc::new(OwnLimiter::new(limiter, is_shared))))
    }

    /// Whether this process made it.
    fn is_ours(&self) -> bool {
        self.0.ours().is_some()
    }

    /// Sets what wakes those that wait in Python, for calls of the core: it takes tickets, and a line for the log.
    fn set_wake(&self, wake: Py<PyAny>) {
        self.0.set_wake_python(wake);
    }

    /// Whether it needs `work`.
    fn is_remote(&self) -> bool {
        self.0.ours().is_some_and(Limiter::is_remote)
    }

    /// Joins the line of a key: a ticket, and the timeout in seconds.
    fn join(
        &self,
        py: Python<'_>,
        key: &str,
        weight: &Bound<'_, PyAny>,
        timeout: &Bound<'_, PyAny>,
    ) -> PyResult<(u64, Option<f64>)> {
        let wrong = |error: PyErr| errors::argument(py, "timeout", timeout, &error);
        let time = timeout.extract::<Option<TimeArg>>().map_err(wrong)?.map(|TimeArg(time)| time.as_secs_f64());
        let weight: i64 = weight.extract().map_err(|error| errors::argument(py, "weight", weight, &error))?;
        let too_low = || errors::usage(&format!("invalid weight {weight}; give 1 or more"));
        let weight = u64::try_from(weight).ok().filter(|weight| *weight > 0).ok_or_else(too_low)?;
        let ticket = self.0.call(py, |limiter| limiter.fits(weight).then(|| limiter.join(key, weight)))?;
        let too_heavy = || errors::usage(&format!("invalid weight {weight}: above the limit itself; give less"));
        ticket.map(|TicketId(ticket)| (ticket, time)).ok_or_else(too_heavy)
    }

    /// A slot, or the time to wait, and whether the limits were asked; and whom to wake.
    fn look(&self, py: Python<'_>, ticket: u64) -> PyResult<(Option<LimiterSlotHandle>, f64, bool, WakesForm)> {
        let (look, wakes) =
            self.0.call(py, |limiter| limiter.look(TicketId(ticket)))?.map_err(|trouble| trouble_error(&trouble))?;
        let wakes = self.0.wakes_form(wakes);
        Ok(match look {
            Look::Taken(slot) => (Some(LimiterSlotHandle::new(Arc::clone(&self.0), slot)), 0.0, true, wakes),
            Look::Wait { wait: Nanos::NEVER, is_sure } => (None, f64::INFINITY, is_sure, wakes),
            Look::Wait { wait, is_sure } => (None, wait.as_secs_f64(), is_sure, wakes),
        })
    }

    /// Leaves the line: whom to wake.
    fn cancel(&self, py: Python<'_>, ticket: u64) -> PyResult<WakesForm> {
        self.0.call(py, |limiter| limiter.cancel(TicketId(ticket))).map(|wakes| self.0.wakes_form(wakes))
    }

    /// Makes the steps that are due within this time in seconds; None once it is closed.
    fn work(&self, py: Python<'_>, within: f64) -> PyResult<Option<WakesForm>> {
        let worked = self.0.call(py, |limiter| limiter.work(Nanos::from_secs_f64(within)))?;
        Ok(worked.map(|wakes| self.0.wakes_form(wakes)))
    }

    /// Ends `work`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_ours() { self.0.call(py, Limiter::close) } else { Ok(()) }
    }

    /// Closes the parent's files, in a child of a fork.
    fn release_in_child(&self) {
        if self.0.ours().is_none() {
            self.0.release_in_child();
        }
    }
}

impl Drop for LimiterHandle {
    fn drop(&mut self) {
        if self.0.ours().is_none() {
            // Its locks may be held by threads that a child does not have.
            std::mem::forget(Arc::clone(&self.0));
        }
    }
}

fn read(form: &Bound<'_, PyDict>) -> PyResult<(LimiterRules, SharedPlace, u64, bool)> {
    let form = PythonArgs(form.copy()?);
    let mut all = Vec::new();
    for (name, unit) in [("limits", LimitUnit::Requests), ("weight_limits", LimitUnit::Weight)] {
        let StringsArg(texts) = form.take(name)?;
        for HostLimit { host, limit } in limits(name, &texts, unit)? {
            if let Some(host) = host {
                let remedy = "make a limiter for each host, or use the host as the key";
                return Err(errors::usage(&format!("{name}: host={host}: a limiter has keys and no hosts; {remedy}")));
            }
            all.push(limit);
        }
    }
    if all.is_empty() {
        return Err(errors::usage("limits: none is given; give e.g. '20/1s'"));
    }
    if all.len() > MAX_WINDOWS {
        return Err(errors::usage(&format!("limits: {} are too many; give at most {MAX_WINDOWS}", all.len())));
    }
    let bound: DelayBound = form.take("delay_bound")?;
    let max_pause = form.time("max_pause")?;
    let max_pause = max_pause.ok_or_else(|| errors::usage("invalid max_pause: no time; give e.g. 3600 or '1h'"))?;
    let place = match form.take::<Option<PathBuf>>("shared")? {
        None => SharedPlace::Memory,
        Some(path) => SharedPlace::read(&path).map_err(|trouble| trouble_error(&trouble))?,
    };
    let falls_back = match form.take::<String>("unreachable")?.as_str() {
        "raise" => false,
        "local" => true,
        other => return Err(errors::usage(&format!("unknown unreachable '{other}'; choose raise or local"))),
    };
    let holder = form.take("holder")?;
    form.is_empty()?;
    let delay_bound = bound.given().map(|bound| bound + MACHINE_DELAY);
    let key = KeyRules { limits: all, delay_bound, learns_pace: false, ..KeyRules::default() };
    let learns_delay_bound = matches!(bound, DelayBound::Learnt);
    Ok((LimiterRules { key, learns_delay_bound, max_pause: max_pause.into() }, place, holder, falls_back))
}

fn trouble_error(trouble: &StoreTrouble) -> PyErr {
    match trouble {
        StoreTrouble::Unusable(why) => errors::usage(why),
        StoreTrouble::Busy | StoreTrouble::Failed(_) => errors::limiter(&trouble.to_string()),
    }
}
