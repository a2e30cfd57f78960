//! State that the calls of a transport share, on all event loops.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::HeaderName;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use tokio::sync::Semaphore;
use weir::base::Nanos;
use weir::call::{CallPlan, Success, Upstream, UpstreamHost};
use weir::machine::lock::lock;
use weir::net::client::{Origin, StepTimeouts};
use weir::net::target::Target;
use weir::net::tls::TlsOptions;
use weir::resilience::admission::AdmissionConfig;
use weir::resilience::policy::Policy;
use weir::resilience::upstream::hosts::{BalancePolicy, OutlierRule};
use weir::retry::deadline::DeadlineFormat;
use weir::retry::retry_budget::RetryBudget;

use super::handle::StreamedCallHandle;
use super::kept_heap::keep_freed_memory;
use super::streamed_call::StreamedCall;
use super::task::StreamedCallStart;
use super::upload_queue::UploadQueue;
use super::upstream_key::UpstreamKey;
use crate::arguments::PythonArgs;
use crate::client::engine;
use crate::client::event_loop::clock;
use crate::client::kin;
use crate::client::owner::{TIME_LEFT_HEADER, connect_options};
use crate::client::policy::PolicyHandle;
use crate::client::request::{ClientRequest, check_framing, header_map, parse_method};
use crate::client::upstream_plan::UpstreamPlan;
use crate::decisions::budget::BudgetHandle;
use crate::errors;
use crate::form::tls_options;
use crate::limiter::handle::LimiterHandle;
use crate::limiter::keyed_rate::RateKey;

/// Maximum upstreams whose state a transport keeps; beyond it all are dropped, and their idle connections closed.
const MAX_UPSTREAMS: usize = 256;

/// Longest body with a known length, in bytes, that is received before its response is passed on: one that breaks off
/// is then a failed attempt, and not a failed call.
const COMPLETE_BYTES: u64 = 64 * 1024;

/// State that the calls of a transport share.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct TransportHandle {
    tls: TlsOptions,
    http2: bool,
    socket: Option<PathBuf>,
    idle_timeout: Option<Nanos>,
    max_idle: Option<usize>,
    /// Maximum concurrent calls.
    max_calls: Option<usize>,
    /// Whether each upstream has an adaptive concurrency limit.
    is_adaptive: bool,
    policy: Policy,
    /// Budget that others use as well.
    shared_budget: Option<Py<BudgetHandle>>,
    success: Option<Success>,
    max_response: usize,
    shared: Mutex<TransportShared>,
}

/// Shared state of one process. A child of a fork creates its own: a lock held by a thread of its parent stays locked.
struct TransportShared {
    generation: u64,
    plans: HashMap<UpstreamKey, Arc<UpstreamPlan>>,
    budget: Option<Arc<Mutex<RetryBudget>>>,
    permits: Option<Arc<Semaphore>>,
}

/// Seconds, or None for no limit.
struct SecondsArg(Nanos);

impl FromPyObject<'_, '_> for SecondsArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let seconds: Option<f64> = value.extract()?;
        // A year is without end, and what is below 0 has passed.
        let limited = seconds.filter(|seconds| *seconds < 3.2e7);
        Ok(Self(limited.map_or(Nanos::NEVER, |seconds| Nanos::from_secs_f64(seconds.max(0.0)))))
    }
}

#[pymethods]
impl TransportHandle {
    /// Parses the options of a transport, by name.
    #[new]
    fn new(policy: &PolicyHandle, form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = form.py();
        let form = PythonArgs(form.copy()?);
        let tls = tls_options(&form, "key")?;
        let http2 = form.take("http2")?;
        let socket = form.take("socket")?;
        let idle_timeout = form.time("idle_timeout")?.map(Nanos::from);
        let max_idle = form.take("max_idle")?;
        let max_calls = form.take::<Option<i64>>("max_calls")?;
        if let Some(max) = max_calls.filter(|max| *max < 1) {
            return Err(errors::usage(&format!("limit: {max} is out of range; give 1 or more, 'adaptive', or None")));
        }
        let is_adaptive = form.take("is_adaptive")?;
        form.is_empty()?;
        if tls != TlsOptions::default() {
            // Invalid files are reported before the first call.
            connect_options(&tls, http2, true)?;
        }
        keep_freed_memory();
        let max_calls = max_calls.and_then(|max| usize::try_from(max).ok());
        let shared_budget = policy.shared_budget.as_ref().map(|budget| budget.clone_ref(py));
        let (policy, success, max_response) = (policy.policy.clone(), policy.success.clone(), policy.max_response);
        let shared = Mutex::new(TransportShared::new(&policy, max_calls));
        Ok(Self {
            tls,
            http2,
            socket,
            idle_timeout,
            max_idle,
            max_calls,
            is_adaptive,
            policy,
            shared_budget,
            success,
            max_response,
            shared,
        })
    }

    /// Prepares a call. `body` is None for one in pieces; `timeouts` are those of connecting, of writing, of reading,
    /// and of the wait for a permit, in seconds; `rate` is a limiter and the call's key.
    #[expect(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "the parts of a request, from Python"
    )]
    fn prepare(
        &self,
        origin: (bool, &str, u16),
        method: &str,
        target: String,
        headers: Vec<(PyBackedBytes, PyBackedBytes)>,
        body: Option<&Bound<'_, PyBytes>>,
        timeouts: (SecondsArg, SecondsArg, SecondsArg, SecondsArg),
        server_name: Option<String>,
        rate: Option<(Bound<'_, LimiterHandle>, String)>,
    ) -> PyResult<StreamedCallHandle> {
        let (SecondsArg(connect), SecondsArg(write), SecondsArg(read), SecondsArg(permit_timeout)) = timeouts;
        let (tls, host, port) = origin;
        let planned = self.plan(UpstreamKey { tls, host: host.to_owned(), port, server_name })?;
        let (method, mut map) = (parse_method(method)?, header_map(&headers)?);
        if let Some(body) = body {
            check_framing(&method, &map, body.as_bytes().len())?;
        }
        // Its own, of each attempt, is in its place.
        let replaced = (self.policy.deadline != Nanos::NEVER).then_some(&TIME_LEFT_HEADER);
        replaced.iter().for_each(|name| drop(map.remove(*name)));
        let lines = Some(header_lines(&headers, replaced));
        let whole = body.map_or_else(Bytes::new, |body| Bytes::copy_from_slice(body.as_bytes()));
        let request =
            ClientRequest { method, url: String::new(), target, headers: map, header_lines: lines, body: whole };
        let streamed = StreamedCall::new(UploadQueue::default());
        let request = Arc::new(request);
        Ok(StreamedCallHandle::new(
            StreamedCallStart {
                streamed,
                request,
                planned,
                is_upload_streamed: body.is_none(),
                timeouts: StepTimeouts { connect, write, read },
                permit_timeout,
                rate: rate.map(|(limiter, key)| RateKey { limiter: Arc::clone(&limiter.get().0), key }),
            },
            read,
        ))
    }

    /// Releases the upstreams. Their idle connections are closed by the next sweep; calls in flight go on.
    fn close(&self) {
        self.shared(|shared| shared.plans.clear());
    }
}

impl TransportShared {
    fn new(policy: &Policy, max_calls: Option<usize>) -> Self {
        let rule = policy.budget.filter(|_| policy.allows_extra_attempts());
        Self {
            generation: kin::generation(),
            plans: HashMap::new(),
            budget: rule.map(|rule| Arc::new(Mutex::new(RetryBudget::new(rule)))),
            permits: max_calls.map(|max| Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)))),
        }
    }
}

impl TransportHandle {
    fn shared<T>(&self, access: impl FnOnce(&mut TransportShared) -> T) -> T {
        // Only locked with the GIL held, and Python forks with the GIL held: in a child it is unlocked.
        let mut shared = lock(&self.shared);
        if shared.generation != kin::generation() {
            *shared = TransportShared::new(&self.policy, self.max_calls);
        }
        access(&mut shared)
    }

    fn plan(&self, key: UpstreamKey) -> PyResult<Arc<UpstreamPlan>> {
        if let Some(planned) = self.shared(|shared| shared.plans.get(&key).cloned()) {
            return Ok(planned);
        }
        let planned = Arc::new(self.new_plan(&key)?);
        self.shared(|shared| {
            if shared.plans.len() >= MAX_UPSTREAMS {
                shared.plans.clear();
                engine::request_cleanup();
            }
            shared.plans.insert(key, Arc::clone(&planned));
        });
        Ok(planned)
    }

    fn new_plan(&self, key: &UpstreamKey) -> PyResult<UpstreamPlan> {
        let scheme = if key.tls { "https" } else { "http" };
        let host = if key.host.contains(':') { format!("[{}]", key.host) } else { key.host.clone() };
        let target = Target::parse(&format!("{scheme}://{host}:{}/", key.port)).map_err(|error| errors::url(&error))?;
        let mut connect = connect_options(&self.tls, self.http2, key.tls)?;
        // The caller's timeouts are exact, and in their place.
        (connect.connect_timeout, connect.stall_timeout) = (Nanos::NEVER, Nanos::NEVER);
        connect.socket.clone_from(&self.socket);
        connect.server_name.clone_from(&key.server_name);
        (connect.idle_timeout, connect.max_idle) = (self.idle_timeout, self.max_idle);
        let origin = Origin::new(&target, &connect).map_err(|error| errors::tls(&error))?;
        let hosts = vec![UpstreamHost { origin: Arc::new(origin), weight: 1 }];
        let mut upstream = Upstream::new(hosts, BalancePolicy::default(), OutlierRule::default());
        if self.is_adaptive {
            upstream = upstream.with_admission(&AdmissionConfig::default(), clock().now());
        }
        let mut success = self.success.clone().unwrap_or_default();
        success.max_body_bytes = self.max_response;
        success.complete_bytes = COMPLETE_BYTES;
        success.require_start = !self.policy.stages.is_empty();
        let mut plan = CallPlan::new(self.policy.clone(), success, Arc::new(upstream));
        plan.budget = match &self.shared_budget {
            Some(budget) => Some(budget.get().current()),
            None => self.shared(|shared| shared.budget.clone()),
        };
        if self.policy.deadline != Nanos::NEVER {
            plan.deadline_headers.push((TIME_LEFT_HEADER.clone(), DeadlineFormat::Millis));
        }
        let permits = self.shared(|shared| shared.permits.clone());
        let upstream_name = Arc::from(target.host_header());
        Ok(UpstreamPlan { plan, upstream_name, strict: self.success.is_some(), permits })
    }
}

/// Lines of headers in the caller's order and spelling, but for framing headers, and Connection if it is more than
/// keep-alive; and but for one that is replaced.
fn header_lines<T: AsRef<[u8]>>(headers: &[(T, T)], replaced: Option<&HeaderName>) -> Bytes {
    let mut lines = Vec::with_capacity(256);
    let mut has_host = false;
    for (name, value) in headers {
        let name = name.as_ref();
        let is = |known: &HeaderName| name.eq_ignore_ascii_case(known.as_str().as_bytes());
        let is_framing = is(&CONTENT_LENGTH)
            || is(&TRANSFER_ENCODING)
            || (is(&CONNECTION) && !value.as_ref().eq_ignore_ascii_case(b"keep-alive"));
        if is_framing || replaced.is_some_and(is) || (is(&HOST) && std::mem::replace(&mut has_host, true)) {
            continue;
        }
        for part in [name, b": ", value.as_ref().trim_ascii(), b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    lines.into()
}
