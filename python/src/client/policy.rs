//! Options of a call in Python -> [`Policy`].
//!
//! `weir/_policy.py` has the classes; their attributes are read only here.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use weir::base::Nanos;
use weir::base::failure::FailureKind;
use weir::call::Success;
use weir::resilience::hedge::ResendRule;
use weir::resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir::retry::backoff::Backoff;
use weir::retry::grpc::Codes;
use weir::retry::policy::{BudgetRule, RetryPolicy, Retryable, RetryableMethodClass};

use super::budget_rule::RetryBudgetArg;
use super::request::shown_header_name;
use super::upstream_plan::{OriginKey, UpstreamPlan};
use crate::arguments::{PythonArgs, TimeArg, attribute};
use crate::decisions::budget::BudgetHandle;
use crate::errors;

/// Maximum attempts of a hedge stage.
const MAX_EXTRA_ATTEMPTS: u32 = 16;

/// Policy of a call, as Python passes it on.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct PolicyHandle {
    pub(crate) policy: Policy,
    /// Budget that others use as well, of the policy's rule.
    pub(crate) shared_budget: Option<Py<BudgetHandle>>,
    /// Rules of a successful response; `None` for the default.
    pub(crate) success: Option<Success>,
    /// Maximum body of a response in bytes; `usize::MAX` is unlimited.
    pub(crate) max_response: usize,
    /// Plans by process generation and origin.
    pub(crate) plans: Mutex<HashMap<(u64, OriginKey), Arc<UpstreamPlan>>>,
}

#[pymethods]
impl PolicyHandle {
    /// Parses the options of a call, by name.
    #[new]
    fn new(form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let form = PythonArgs(form.copy()?);
        let budget = form.take::<Option<BudgetArg>>("budget")?;
        let policy = Policy {
            deadline: duration(&form, "deadline")?,
            attempt_timeout: duration(&form, "timeout")?,
            stages: form.take::<HedgeArg>("hedge")?.0,
            retry: form.take::<RetryPolicyArg>("retries")?.0,
            retryable_methods: form.take::<RetryableMethodsArg>("retry_methods")?.0,
            budget: budget.as_ref().map(|budget| budget.rule),
        };
        let shared_budget = budget.and_then(|budget| budget.shared);
        let success = form.take::<Option<SuccessArg>>("success")?.map(|rules| rules.0);
        let max_response = max_response(form.take("max_response")?)?;
        form.is_empty()?;
        if let Some((what, remedy)) = policy.validation_error() {
            return Err(errors::usage(&format!("hedge, retries: {what}; {remedy}")));
        }
        Ok(Self { policy, shared_budget, success, max_response, plans: Mutex::default() })
    }

    /// Whether a request of this method may be sent more than once.
    fn may_repeat(&self, method: &str) -> bool {
        ResendRule::allows_extra_attempts(&self.policy, method)
    }
}

/// A number of bytes from 1; None is unlimited.
fn max_response(given: Option<i64>) -> PyResult<usize> {
    let Some(given) = given else { return Ok(usize::MAX) };
    usize::try_from(given).ok().filter(|max| *max > 0).ok_or_else(|| {
        errors::usage(&format!("max_response: {given} is out of range; give bytes, e.g. 64 * 2**20, or None"))
    })
}

/// A duration above 0; None is unlimited.
pub(crate) fn duration(form: &PythonArgs<'_>, name: &str) -> PyResult<Nanos> {
    match form.time(name)? {
        None => Ok(Nanos::NEVER),
        Some(Duration::ZERO) => Err(errors::usage(&format!("{name}: invalid time 0; give seconds above 0, or None"))),
        Some(length) => Ok(Nanos::from(length)),
    }
}

pub(crate) fn number_in(name: &str, value: i64, from: u32, to: u32) -> PyResult<u32> {
    u32::try_from(value)
        .ok()
        .filter(|number| (from..=to).contains(number))
        .ok_or_else(|| errors::usage(&format!("{name}: {value} is out of range; give {from} to {to}")))
}

/// None, a `Hedge`, or a sequence of them.
struct HedgeArg(Vec<HedgeStage>);

impl FromPyObject<'_, '_> for HedgeArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self(Vec::new()));
        }
        if value.hasattr("after")? {
            return Ok(Self(vec![stage(value)?]));
        }
        let items = value
            .try_iter()
            .map_err(|_| PyTypeError::new_err(format!("expected a weir.Hedge or several, not {}", value.get_type())))?;
        let stages = items.map(|item| stage(item?.as_borrowed())).collect::<PyResult<Vec<_>>>()?;
        Ok(Self(stages))
    }
}

fn stage(value: Borrowed<'_, '_, PyAny>) -> PyResult<HedgeStage> {
    if !value.hasattr("after")? || !value.hasattr("attempts")? {
        return Err(PyTypeError::new_err(format!("expected a weir.Hedge, not {}", value.get_type())));
    }
    let attempts = number_in("attempts", attribute(value, "attempts")?, 1, MAX_EXTRA_ATTEMPTS)?;
    let on_failure: bool = attribute(value, "on_failure")?;
    let HedgeDelayArg(after) = attribute(value, "after")?;
    if after == StageTrigger::Failure && !on_failure {
        return Err(errors::usage(
            "after: a stage with None starts after a failure only; give a time, or on_failure=True",
        ));
    }
    Ok(HedgeStage { after, on_failure, attempts })
}

/// A time, a quantile of recent times such as `p95`, or None: only after a failure.
struct HedgeDelayArg(StageTrigger);

impl FromPyObject<'_, '_> for HedgeDelayArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self(StageTrigger::Failure));
        }
        if let Ok(text) = value.cast::<PyString>() {
            let text = text.to_cow()?;
            if let Some(digits) = text.strip_prefix('p') {
                let percentile = digits.parse::<f64>().ok().filter(|p| *p > 0.0 && *p < 100.0).ok_or_else(|| {
                    errors::usage(&format!("invalid percentile '{text}'; write e.g. 'p95' or 'p99.9'"))
                })?;
                return Ok(Self(StageTrigger::Quantile(percentile / 100.0)));
            }
        }
        let TimeArg(length) = value.extract()?;
        Ok(Self(StageTrigger::Time(Nanos::from(length))))
    }
}

/// None, a number, or a `Retry`.
struct RetryPolicyArg(RetryPolicy);

impl FromPyObject<'_, '_> for RetryPolicyArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self(RetryPolicy::default()));
        }
        if let Ok(times) = value.extract::<i64>() {
            return Ok(Self(RetryPolicy {
                max_retries: number_in("times", times, 0, 1000)?,
                ..RetryPolicy::default()
            }));
        }
        if !value.hasattr("times")? {
            return Err(PyTypeError::new_err(format!("expected a number or a weir.Retry, not {}", value.get_type())));
        }
        let (TimeArg(min), TimeArg(max)) = attribute::<(TimeArg, TimeArg)>(value, "backoff")?;
        if min > max {
            let message = format!("backoff: the minimum, {min:?}, is above the maximum, {max:?}; swap them");
            return Err(errors::usage(&message));
        }
        Ok(Self(RetryPolicy {
            max_retries: number_in("times", attribute(value, "times")?, 0, 1000)?,
            on: attribute::<RetryOnArg>(value, "on")?.0,
            backoff: Backoff { min: Nanos::from(min), max: Nanos::from(max) },
            honor_retry_after: attribute(value, "retry_after")?,
        }))
    }
}

/// None, or kinds and statuses: `("connect", 503, "5xx", (500, 599))`.
struct RetryOnArg(Retryable);

impl FromPyObject<'_, '_> for RetryOnArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self(Retryable::default()));
        }
        let mut on = Retryable { kinds: Vec::new(), statuses: Vec::new(), grpc: Codes::NONE };
        for item in value.try_iter()? {
            let item = item?;
            let word = item.cast::<PyString>().ok().map(ToString::to_string);
            match word.and_then(|word| FailureKind::retryable().find(|kind| kind.name() == word)) {
                Some(kind) => on.kinds.push(kind),
                None => on.statuses.push(status_range(&item).map_err(|_| unknown_failure(&item))?),
            }
        }
        Ok(Self(on))
    }
}

/// 503, `"5xx"`, `"500-504"`, or a pair.
fn status_range(value: &Bound<'_, PyAny>) -> PyResult<RangeInclusive<u16>> {
    let range = if let Ok(text) = value.cast::<PyString>() {
        parse_status_range(&text.to_cow()?)
    } else if let Ok((from, to)) = value.extract::<(u16, u16)>() {
        Some(from..=to)
    } else {
        value.extract::<u16>().ok().map(|status| status..=status)
    };
    range
        .filter(|range| *range.start() >= 100 && *range.end() <= 999 && !range.is_empty())
        .ok_or_else(|| errors::usage(&format!("unknown status {}; give 200, '2xx' or '200-299'", shown(value))))
}

fn unknown_failure(value: &Bound<'_, PyAny>) -> PyErr {
    let kinds = FailureKind::retryable().map(FailureKind::name).collect::<Vec<_>>().join(", ");
    let remedy = format!("give a status (503, '5xx', '500-504') or a kind ({kinds})");
    errors::usage(&format!("unknown failure {}; {remedy}", shown(value)))
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string())
}

fn parse_status_range(text: &str) -> Option<RangeInclusive<u16>> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| *class < 10)?;
        return Some(class * 100..=class * 100 + 99);
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some(from.trim().parse().ok()?..=to.trim().parse().ok()?)
}

/// `"safe"`, `"idempotent"` or `"all"`.
struct RetryableMethodsArg(RetryableMethodClass);

impl FromPyObject<'_, '_> for RetryableMethodsArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let text: String = value.extract()?;
        match text.as_str() {
            "safe" => Ok(Self(RetryableMethodClass::Safe)),
            "idempotent" => Ok(Self(RetryableMethodClass::Idempotent)),
            "all" => Ok(Self(RetryableMethodClass::All)),
            _ => Err(errors::usage(&format!("unknown class of methods '{text}'; choose safe, idempotent or all"))),
        }
    }
}

/// A `Budget` of the caller's own, or a `SharedBudget`.
struct BudgetArg {
    rule: BudgetRule,
    shared: Option<Py<BudgetHandle>>,
}

impl FromPyObject<'_, '_> for BudgetArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(handle) = value.getattr("_handle")
            && let Ok(shared) = handle.cast_into::<BudgetHandle>()
        {
            return Ok(Self { rule: shared.get().rule(), shared: Some(shared.unbind()) });
        }
        let RetryBudgetArg(rule) = value.extract()?;
        Ok(Self { rule, shared: None })
    }
}

/// Statuses of success: one, a text with commas, or several; None for any.
pub(crate) fn status_ranges(status: &Bound<'_, PyAny>) -> PyResult<Option<Vec<RangeInclusive<u16>>>> {
    if status.is_none() {
        return Ok(None);
    }
    if let Ok(text) = status.cast::<PyString>() {
        let parts = text.to_cow()?;
        let one = |part: &str| status_range(PyString::new(status.py(), part).as_any());
        return parts.split(',').map(str::trim).map(one).collect::<PyResult<_>>().map(Some);
    }
    if status.extract::<u16>().is_ok() {
        return Ok(Some(vec![status_range(status)?]));
    }
    // A pair is two statuses here, not a range: (200, 204).
    let ranges = status.try_iter()?.map(|one| status_range(&one?)).collect::<PyResult<Vec<_>>>()?;
    if ranges.is_empty() {
        return Err(errors::usage("status: empty; give statuses, or None for any"));
    }
    Ok(Some(ranges))
}

/// A `Success`.
struct SuccessArg(Success);

impl FromPyObject<'_, '_> for SuccessArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if !value.hasattr("status")? {
            return Err(PyTypeError::new_err(format!("expected a weir.Success or None, not {}", value.get_type())));
        }
        let status = value.getattr("status")?;
        let ranges = status_ranges(&status)?;
        let mut headers = Vec::new();
        let named = value.getattr("headers")?;
        if !named.is_none() {
            for item in named.call_method0("items")?.try_iter()? {
                let item = item?;
                let (name, text): (String, String) = item.cast::<PyTuple>()?.extract()?;
                let header = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(&text).ok());
                headers.push(header.ok_or_else(|| {
                    errors::usage(&format!("headers: invalid header '{}'", shown_header_name(&name)))
                })?);
            }
        }
        let mut success = Success::default();
        success.statuses = ranges.unwrap_or_else(|| vec![100..=999]);
        success.headers = headers;
        success.json = attribute(value, "json")?;
        let Some(text) = attribute::<Option<String>>(value, "_schema_text")? else { return Ok(Self(success)) };
        let schema = serde_json::from_str(&text).map_err(|error| errors::usage(&format!("schema: {error}")))?;
        success.with_schema(&schema).map(Self).map_err(|error| errors::usage(&format!("schema: {error}")))
    }
}
