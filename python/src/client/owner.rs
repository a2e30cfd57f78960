//! What a client's calls share, whichever event loop they run on.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderName;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::sync::Semaphore;
use weir::call::{Host, Plan, Upstream};
use weir::decide::Nanos;
use weir::decide::budget::Ledger;
use weir::decide::deadline::Form as DeadlineForm;
use weir::decide::hosts::{Balance, Health};
use weir::decide::policy::Budget;
use weir::http::client::{Origin, Protocol, Reach};
use weir::http::target::Target;
use weir::http::tls::{Tls, TlsOptions};

use super::engine::{self, Planned};
use super::kin;
use super::policy::PolicyHandle;
use super::request::{Request, RequestHandle};
use crate::errors;
use crate::form::Form;

/// Tells the upstream how much time is left.
static TIME_LEFT: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");

/// A client that has called more hosts than these forgets them all, and their idle connections are closed: one that is
/// shared by a whole program may call any number of hosts.
const MOST_HOSTS: usize = 256;

/// What TLS connections of all clients with the same options share: certificates are read once.
static REACHES: Mutex<Vec<(TlsOptions, Reach)>> = Mutex::new(Vec::new());

/// What a client's calls share.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct ClientHandle {
    tls: TlsOptions,
    http2: bool,
    limit: Option<usize>,
    shared: Mutex<Shared>,
}

/// What one process shares. A child makes its own: what a thread of its parent held is held for ever.
struct Shared {
    generation: u64,
    upstreams: HashMap<Place, Arc<Upstream>>,
    /// One for all calls with the same terms.
    ledgers: Vec<(Budget, Arc<Mutex<Ledger>>)>,
    places: Option<Arc<Semaphore>>,
}

/// TLS, host and port.
pub(crate) type Place = (bool, String, u16);

impl Shared {
    fn new(limit: Option<usize>) -> Self {
        Self {
            generation: kin::generation(),
            upstreams: HashMap::new(),
            ledgers: Vec::new(),
            places: limit.map(|limit| Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)))),
        }
    }
}

#[pymethods]
impl ClientHandle {
    /// Reads the options of a client, by name.
    #[new]
    fn new(form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let form = Form(form.copy()?);
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
        let client = Self { tls, http2, limit, shared: Mutex::new(Shared::new(limit)) };
        if client.tls != TlsOptions::default() {
            // What is wrong with files is said before the first call.
            client.reach(true)?;
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
        let request = Request::new(method, url, path, headers, body)?;
        let planned = self.planned(policy, &target)?;
        Ok(RequestHandle { request: Arc::new(request), planned })
    }

    /// Lets go of the upstreams. Connections of theirs are closed by the next sweep; a call still ends.
    fn close(&self) {
        self.shared(|shared| shared.upstreams.clear());
    }
}

impl ClientHandle {
    fn shared<T>(&self, look: impl FnOnce(&mut Shared) -> T) -> T {
        // Only ever taken with the GIL held, and Python forks with the GIL held: a child finds it free.
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.generation != kin::generation() {
            *shared = Shared::new(self.limit);
        }
        look(&mut shared)
    }

    fn planned(&self, policy: &PolicyHandle, target: &Target) -> PyResult<Arc<Planned>> {
        let place = (target.tls, target.host.to_ascii_lowercase(), target.port);
        let key = (kin::generation(), place);
        let mut plans = policy.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(planned) = plans.get(&key) {
            return Ok(Arc::clone(planned));
        }
        let upstream = self.upstream(&key.1, target)?;
        let places = self.shared(|shared| shared.places.clone());
        let terms = policy.policy.budget.filter(|_| policy.policy.repeats());
        let mut success = policy.wanted.clone().unwrap_or_default();
        // Python has whole bodies only; so an attempt lasts to the last byte.
        (success.whole, success.most) = (true, usize::MAX);
        let mut plan = Plan::new(policy.policy.clone(), success, upstream);
        plan.ledger = terms.map(|terms| self.ledger(terms));
        if policy.policy.deadline != Nanos::NEVER {
            plan.deadline_headers.push((TIME_LEFT.clone(), DeadlineForm::Millis));
        }
        let name = Arc::from(target.host_header());
        let planned = Arc::new(Planned { plan, name, strict: policy.wanted.is_some(), places });
        if plans.len() >= MOST_HOSTS {
            plans.clear();
        }
        plans.insert(key, Arc::clone(&planned));
        Ok(planned)
    }

    fn ledger(&self, terms: Budget) -> Arc<Mutex<Ledger>> {
        self.shared(|shared| {
            if let Some((_, ledger)) = shared.ledgers.iter().find(|(known, _)| *known == terms) {
                return Arc::clone(ledger);
            }
            let ledger = Arc::new(Mutex::new(Ledger::new(terms)));
            shared.ledgers.push((terms, Arc::clone(&ledger)));
            ledger
        })
    }

    fn upstream(&self, place: &Place, target: &Target) -> PyResult<Arc<Upstream>> {
        if let Some(upstream) = self.shared(|shared| shared.upstreams.get(place).cloned()) {
            return Ok(upstream);
        }
        let origin = Origin::new(target, &self.reach(target.tls)?).map_err(|error| errors::tls(&error))?;
        let hosts = vec![Host { origin: Arc::new(origin), weight: 1 }];
        let upstream = Arc::new(Upstream::new(hosts, Balance::default(), Health::default()));
        self.shared(|shared| {
            if shared.upstreams.len() >= MOST_HOSTS {
                shared.upstreams.clear();
                engine::no_longer_needed();
            }
            shared.upstreams.insert(place.clone(), Arc::clone(&upstream));
        });
        Ok(upstream)
    }

    /// How hosts are reached.
    fn reach(&self, tls: bool) -> PyResult<Reach> {
        let protocol = if self.http2 && tls { Protocol::Auto } else { Protocol::Http1 };
        if !tls {
            return Ok(Reach { protocol, ..Reach::default() });
        }
        let mut reaches = REACHES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, reach)) = reaches.iter().find(|(options, _)| *options == self.tls) {
            return Ok(Reach { protocol, ..reach.clone() });
        }
        let shared = Tls::shared(&self.tls).map_err(|error| errors::tls(&error))?;
        let reach = Reach { protocol, tls: Some(shared), ..Reach::default() };
        // Files may change under their names.
        if self.tls.cacert.is_none() && self.tls.cert.is_none() {
            reaches.push((self.tls.clone(), reach.clone()));
        }
        Ok(reach)
    }
}
