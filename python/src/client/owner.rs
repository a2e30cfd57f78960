//! What a client's calls share, whichever event loop they run on.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderName;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::sync::Semaphore;
use weir::call::{CallPlan, Upstream, UpstreamHost};
use weir::decide::Nanos;
use weir::decide::budget::RetryBudget;
use weir::decide::deadline::DeadlineFormat as DeadlineForm;
use weir::decide::hosts::{BalancePolicy, OutlierRule};
use weir::decide::policy::BudgetRule;
use weir::http::client::{ConnectOptions, Origin, Protocol};
use weir::http::target::Target;
use weir::http::tls::{Tls, TlsOptions};

use super::engine::{self, UpstreamPlan};
use super::kin;
use super::policy::PolicyHandle;
use super::request::{ClientRequest, RequestHandle};
use crate::errors;
use crate::form::PythonArgs;

/// Tells the upstream how much time is left.
static TIME_LEFT_HEADER: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");

/// A client that has called more hosts than these forgets them all, and their idle connections are closed: one that is
/// shared by a whole program may call any number of hosts.
const MAX_UPSTREAMS: usize = 256;

/// What TLS connections of all clients with the same options share: certificates are read once.
static TLS_CONNECT_OPTIONS: Mutex<Vec<(TlsOptions, ConnectOptions)>> = Mutex::new(Vec::new());

/// What a client's calls share.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct ClientHandle {
    tls: TlsOptions,
    http2: bool,
    max_concurrency: Option<usize>,
    shared: Mutex<ClientShared>,
}

/// What one process shares. A child makes its own: what a thread of its parent held is held for ever.
struct ClientShared {
    generation: u64,
    upstreams: HashMap<OriginKey, Arc<Upstream>>,
    /// One for all calls with the same terms.
    retry_budgets: Vec<(BudgetRule, Arc<Mutex<RetryBudget>>)>,
    permits: Option<Arc<Semaphore>>,
}

/// TLS, host and port.
pub(crate) type OriginKey = (bool, String, u16);

impl ClientShared {
    fn new(limit: Option<usize>) -> Self {
        Self {
            generation: kin::generation(),
            upstreams: HashMap::new(),
            retry_budgets: Vec::new(),
            permits: limit.map(|limit| Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)))),
        }
    }
}

#[pymethods]
impl ClientHandle {
    /// Reads the options of a client, by name.
    #[new]
    fn new(form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let form = PythonArgs(form.copy()?);
        let tls = TlsOptions {
            cacert: form.take::<Option<PathBuf>>("cacert")?,
            cert: form.take("cert")?,
            key: form.take("key")?,
            insecure: form.take("insecure")?,
        };
        let http2 = form.take("http2")?;
        let limit = form.take::<Option<i64>>("limit")?;
        if limit.is_some_and(|limit| limit < 1) {
            return Err(errors::usage("limit: there has to be room for a call; give 1 or more, or None"));
        }
        form.is_empty()?;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let client = Self { tls, http2, max_concurrency: limit, shared: Mutex::new(ClientShared::new(limit)) };
        if client.tls != TlsOptions::default() {
            // What is wrong with files is said before the first call.
            client.connect_options(true)?;
        }
        Ok(client)
    }

    /// Prepares a request.
    #[pyo3(signature = (policy, method, url, headers, body))]
    fn request(
        &self,
        policy: &PolicyHandle,
        method: &str,
        url: &str,
        headers: Vec<(Vec<u8>, Vec<u8>)>,
        body: Option<&[u8]>,
    ) -> PyResult<RequestHandle> {
        let target = Target::parse(url).map_err(|error| errors::usage(&format!("url: {error}")))?;
        let Target { url, path, .. } = target.clone();
        let request = ClientRequest::new(method, url, path, headers, body)?;
        let planned = self.upstream_plan(policy, &target)?;
        Ok(RequestHandle { request: Arc::new(request), planned })
    }

    /// Lets go of the upstreams. Connections of theirs are closed by the next sweep; a call still ends.
    fn close(&self) {
        self.shared(|shared| shared.upstreams.clear());
    }
}

impl ClientHandle {
    fn shared<T>(&self, look: impl FnOnce(&mut ClientShared) -> T) -> T {
        // Only ever taken with the GIL held, and Python forks with the GIL held: a child finds it free.
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.generation != kin::generation() {
            *shared = ClientShared::new(self.max_concurrency);
        }
        look(&mut shared)
    }

    fn upstream_plan(&self, policy: &PolicyHandle, target: &Target) -> PyResult<Arc<UpstreamPlan>> {
        let place = (target.tls, target.host.to_ascii_lowercase(), target.port);
        let key = (kin::generation(), place);
        let mut plans = policy.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(planned) = plans.get(&key) {
            return Ok(Arc::clone(planned));
        }
        let upstream = self.upstream(&key.1, target)?;
        let places = self.shared(|shared| shared.permits.clone());
        let terms = policy.policy.budget.filter(|_| policy.policy.allows_extra_attempts());
        let mut success = policy.success.clone().unwrap_or_default();
        // Python has whole bodies only; so an attempt lasts to the last byte.
        (success.require_complete, success.max_body_bytes) = (true, usize::MAX);
        let mut plan = CallPlan::new(policy.policy.clone(), success, upstream);
        plan.budget = terms.map(|terms| self.retry_budget(terms));
        if policy.policy.deadline != Nanos::NEVER {
            plan.deadline_headers.push((TIME_LEFT_HEADER.clone(), DeadlineForm::Millis));
        }
        let name = Arc::from(target.host_header());
        let planned =
            Arc::new(UpstreamPlan { plan, upstream_name: name, strict: policy.success.is_some(), permits: places });
        if plans.len() >= MAX_UPSTREAMS {
            plans.clear();
        }
        plans.insert(key, Arc::clone(&planned));
        Ok(planned)
    }

    fn retry_budget(&self, terms: BudgetRule) -> Arc<Mutex<RetryBudget>> {
        self.shared(|shared| {
            if let Some((_, ledger)) = shared.retry_budgets.iter().find(|(known, _)| *known == terms) {
                return Arc::clone(ledger);
            }
            let ledger = Arc::new(Mutex::new(RetryBudget::new(terms)));
            shared.retry_budgets.push((terms, Arc::clone(&ledger)));
            ledger
        })
    }

    fn upstream(&self, place: &OriginKey, target: &Target) -> PyResult<Arc<Upstream>> {
        if let Some(upstream) = self.shared(|shared| shared.upstreams.get(place).cloned()) {
            return Ok(upstream);
        }
        let origin = Origin::new(target, &self.connect_options(target.tls)?).map_err(|error| errors::tls(&error))?;
        let hosts = vec![UpstreamHost { origin: Arc::new(origin), weight: 1 }];
        let upstream = Arc::new(Upstream::new(hosts, BalancePolicy::default(), OutlierRule::default()));
        self.shared(|shared| {
            if shared.upstreams.len() >= MAX_UPSTREAMS {
                shared.upstreams.clear();
                engine::request_cleanup();
            }
            shared.upstreams.insert(place.clone(), Arc::clone(&upstream));
        });
        Ok(upstream)
    }

    /// How hosts are reached.
    fn connect_options(&self, tls: bool) -> PyResult<ConnectOptions> {
        let protocol = if self.http2 && tls { Protocol::Auto } else { Protocol::Http1 };
        if !tls {
            return Ok(ConnectOptions { protocol, ..ConnectOptions::default() });
        }
        let mut reaches = TLS_CONNECT_OPTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, reach)) = reaches.iter().find(|(options, _)| *options == self.tls) {
            return Ok(ConnectOptions { protocol, ..reach.clone() });
        }
        let shared = Tls::shared(&self.tls).map_err(|error| errors::tls(&error))?;
        let reach = ConnectOptions { protocol, tls: Some(shared), ..ConnectOptions::default() };
        // Files may change under their names.
        if self.tls.cacert.is_none() && self.tls.cert.is_none() {
            reaches.push((self.tls.clone(), reach.clone()));
        }
        Ok(reach)
    }
}
