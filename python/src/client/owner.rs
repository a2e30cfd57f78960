//! State that the calls of a client share, on all event loops.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::HeaderName;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::sync::Semaphore;
use weir::base::Nanos;
use weir::call::{CallPlan, Upstream, UpstreamHost};
use weir::machine::lock::lock;
use weir::net::client::{ConnectOptions, Origin, Protocol};
use weir::net::target::Target;
use weir::net::tls::{Tls, TlsOptions};
use weir::resilience::upstream::hosts::{BalancePolicy, OutlierRule};
use weir::retry::deadline::DeadlineFormat;
use weir::retry::policy::BudgetRule;
use weir::retry::retry_budget::RetryBudget;

use super::engine;
use super::kin;
use super::policy::PolicyHandle;
use super::request::{ClientRequest, RequestHandle};
use super::upstream_plan::{OriginKey, UpstreamPlan};
use crate::arguments::PythonArgs;
use crate::errors;
use crate::form::tls_options;

/// Header with the remaining time of a call, as Envoy has it.
pub(crate) static TIME_LEFT_HEADER: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");

/// Maximum hosts whose state a client keeps; beyond it all are dropped, and their idle connections closed. A client
/// that a whole program shares may call any number of hosts.
const MAX_UPSTREAMS: usize = 256;

/// TLS configurations by process and options, so that certificates are read once for all clients with the same options. A
/// child of a fork has its own: a thread of its parent may have locked the sessions of one.
static TLS_CONNECT_OPTIONS: Mutex<Vec<(u64, TlsOptions, ConnectOptions)>> = Mutex::new(Vec::new());

/// State that the calls of a client share.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct ClientHandle {
    tls: TlsOptions,
    http2: bool,
    max_concurrency: Option<usize>,
    shared: Mutex<ClientShared>,
}

/// Shared state of one process. A child of a fork creates its own: a lock held by a thread of its parent stays locked.
struct ClientShared {
    generation: u64,
    upstreams: HashMap<OriginKey, Arc<Upstream>>,
    /// One budget for all calls with the same rule.
    retry_budgets: Vec<(BudgetRule, Arc<Mutex<RetryBudget>>)>,
    permits: Option<Arc<Semaphore>>,
}

impl ClientShared {
    fn new(max_concurrency: Option<usize>) -> Self {
        Self {
            generation: kin::generation(),
            upstreams: HashMap::new(),
            retry_budgets: Vec::new(),
            permits: max_concurrency.map(|max| Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)))),
        }
    }
}

#[pymethods]
impl ClientHandle {
    /// Parses the options of a client, by name.
    #[new]
    fn new(form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let form = PythonArgs(form.copy()?);
        let tls = tls_options(&form, "key")?;
        let http2 = form.take("http2")?;
        let given = form.take::<Option<i64>>("max_concurrency")?;
        if let Some(max) = given.filter(|max| *max < 1) {
            return Err(errors::usage(&format!("max_concurrency: {max} is out of range; give 1 or more, or None")));
        }
        form.is_empty()?;
        let max_concurrency = given.and_then(|max| usize::try_from(max).ok());
        let shared = Mutex::new(ClientShared::new(max_concurrency));
        let client = Self { tls, http2, max_concurrency, shared };
        if client.tls != TlsOptions::default() {
            // Invalid files are reported before the first call.
            connect_options(&client.tls, client.http2, true)?;
        }
        Ok(client)
    }

    /// Prepares a request.
    #[expect(clippy::needless_pass_by_value, reason = "values from Python")]
    #[pyo3(signature = (policy, method, url, headers, body))]
    fn request(
        &self,
        policy: &PolicyHandle,
        method: &str,
        url: &str,
        headers: Vec<(Vec<u8>, Vec<u8>)>,
        body: Option<&[u8]>,
    ) -> PyResult<RequestHandle> {
        let target = Target::parse(url).map_err(|error| errors::url(&error))?;
        let Target { url, path, .. } = target.clone();
        let mut request = ClientRequest::new(method, url, path, &headers, body)?;
        let planned = self.upstream_plan(policy, &target)?;
        // The call's own, of each attempt, is in the place of the caller's.
        for (name, _) in &planned.plan.deadline_headers {
            request.headers.remove(name);
        }
        Ok(RequestHandle { request: Arc::new(request), planned })
    }

    /// Releases the upstreams. Their connections are closed by the next sweep; calls in flight go on.
    fn close(&self) {
        self.shared(|shared| shared.upstreams.clear());
    }
}

impl ClientHandle {
    fn shared<T>(&self, access: impl FnOnce(&mut ClientShared) -> T) -> T {
        // Only locked with the GIL held, and Python forks with the GIL held: in a child it is unlocked.
        let mut shared = lock(&self.shared);
        if shared.generation != kin::generation() {
            *shared = ClientShared::new(self.max_concurrency);
        }
        access(&mut shared)
    }

    fn upstream_plan(&self, policy: &PolicyHandle, target: &Target) -> PyResult<Arc<UpstreamPlan>> {
        let origin = (target.tls, target.host.clone(), target.port);
        let key = (kin::generation(), origin);
        let mut plans = lock(&policy.plans);
        if let Some(planned) = plans.get(&key) {
            return Ok(Arc::clone(planned));
        }
        let upstream = self.upstream(&key.1, target)?;
        let permits = self.shared(|shared| shared.permits.clone());
        let rule = policy.policy.budget.filter(|_| policy.policy.allows_extra_attempts());
        let mut success = policy.success.clone().unwrap_or_default();
        // Bodies in Python are whole, so an attempt lasts to the last byte.
        (success.require_complete, success.max_body_bytes) = (true, policy.max_response);
        let mut plan = CallPlan::new(policy.policy.clone(), success, upstream);
        plan.budget = match &policy.shared_budget {
            Some(budget) => Some(budget.get().current()),
            None => rule.map(|rule| self.retry_budget(rule)),
        };
        if policy.policy.deadline != Nanos::NEVER {
            plan.deadline_headers.push((TIME_LEFT_HEADER.clone(), DeadlineFormat::Millis));
        }
        let upstream_name = Arc::from(target.host_header());
        let planned = Arc::new(UpstreamPlan { plan, upstream_name, strict: policy.success.is_some(), permits });
        if plans.len() >= MAX_UPSTREAMS {
            plans.clear();
        }
        plans.insert(key, Arc::clone(&planned));
        Ok(planned)
    }

    fn retry_budget(&self, rule: BudgetRule) -> Arc<Mutex<RetryBudget>> {
        self.shared(|shared| {
            if let Some((_, budget)) = shared.retry_budgets.iter().find(|(known, _)| *known == rule) {
                return Arc::clone(budget);
            }
            let budget = Arc::new(Mutex::new(RetryBudget::new(rule)));
            shared.retry_budgets.push((rule, Arc::clone(&budget)));
            budget
        })
    }

    fn upstream(&self, key: &OriginKey, target: &Target) -> PyResult<Arc<Upstream>> {
        if let Some(upstream) = self.shared(|shared| shared.upstreams.get(key).cloned()) {
            return Ok(upstream);
        }
        let origin = Origin::new(target, &connect_options(&self.tls, self.http2, target.tls)?)
            .map_err(|error| errors::tls(&error))?;
        let hosts = vec![UpstreamHost { origin: Arc::new(origin), weight: 1 }];
        let upstream = Arc::new(Upstream::new(hosts, BalancePolicy::default(), OutlierRule::default()));
        self.shared(|shared| {
            if shared.upstreams.len() >= MAX_UPSTREAMS {
                shared.upstreams.clear();
                engine::request_cleanup();
            }
            shared.upstreams.insert(key.clone(), Arc::clone(&upstream));
        });
        Ok(upstream)
    }
}

/// Protocol and TLS of connections.
pub(crate) fn connect_options(options: &TlsOptions, http2: bool, tls: bool) -> PyResult<ConnectOptions> {
    let protocol = if http2 && tls { Protocol::Auto } else { Protocol::Http1 };
    if !tls {
        return Ok(ConnectOptions { protocol, ..ConnectOptions::default() });
    }
    let mut cache = lock(&TLS_CONNECT_OPTIONS);
    let process = kin::generation();
    if let Some((.., cached)) = cache.iter().find(|(of, known, _)| *of == process && known == options) {
        return Ok(ConnectOptions { protocol, ..cached.clone() });
    }
    let shared = Tls::shared(options).map_err(|error| errors::tls(&error))?;
    let connect = ConnectOptions { protocol, tls: Some(shared), ..ConnectOptions::default() };
    // Files may change.
    if options.cacert.is_none() && options.cert.is_none() {
        cache.push((process, options.clone(), connect.clone()));
    }
    Ok(connect)
}
