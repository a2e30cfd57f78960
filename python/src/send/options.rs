//! Options of a sender from Python's arguments.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use weir::base::Nanos;
use weir::delivery::dispatch;
use weir::delivery::dispatch::{DeliveryGuarantee, DispatchRules};
use weir::delivery::key_window;
use weir::limits::limit_unit::LimitUnit;
use weir::net::tls::{Tls, TlsOptions};
use weir::retry::backoff::Backoff;
use weir::retry::policy::RetryPolicy;
use weir::send::store::{self, MemoryStore, QueueBounds, Store, StoreUrl};
use weir::send::{ApiKey, HostLimit, JobDefaults, KeyHosts, Options, ResponseRules, State, TtlExtensionOptions};

use super::job::{SenderJobContext, TtlMsArg, headers, method};
use crate::arguments::{PythonArgs as Arguments, TimeArg};
use crate::client::policy::{number_in, status_ranges};
use crate::errors;

/// Options of a sender, read from arguments.
pub(crate) struct SenderRequest {
    pub(crate) common: SenderJobContext,
    pub(crate) options: Options,
    pub(crate) store_url: StoreUrl,
    order: store::JobOrder,
    bounds: QueueBounds,
}

/// Default bounds of a queue in memory.
const DEFAULT_MEMORY_BOUNDS: QueueBounds = QueueBounds { jobs: 100_000, bytes: 256 << 20 };
/// Upper bounds, as on the command line.
const MAX_CONCURRENCY: u32 = 60_000;
const MAX_RETRIES: u32 = 1000;

impl SenderRequest {
    /// Reads all arguments.
    pub(crate) fn read(form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let form = Arguments(form.copy()?);
        let KeysArg(keys) = form.take("keys")?;
        check_keys(&keys)?;
        let StringsArg(stated) = form.take("limits")?;
        let is_unlimited = HostLimit::is_unlimited(&stated);
        let mut limits = limits("limits", if is_unlimited { &[] } else { &stated }, LimitUnit::Requests)?;
        limits.extend(self::limits("weight_limits", &form.take::<StringsArg>("weight_limits")?.0, LimitUnit::Weight)?);
        let (limits, host_limits) =
            HostLimit::split_by_host(limits).map_err(|why| errors::usage(&format!("limits: {why}")))?;
        let backoff = backoff(form.take("backoff")?)?;
        let bound: DelayBound = form.take("delay_bound")?;
        let retries = number_in("retries", form.take("retries")?, 0, MAX_RETRIES)?;
        let timeout = match form.time("timeout")? {
            Some(timeout) if !timeout.is_zero() => Nanos::from(timeout),
            _ => return Err(errors::usage("invalid timeout: not above 0; give e.g. 30 or '500ms'")),
        };
        let max_pause = match form.time("max_pause")? {
            Some(longest) => Nanos::from(longest),
            None => return Err(errors::usage("invalid max_pause: no time; give e.g. 3600 or '1h'")),
        };
        let order = match form.take::<String>("order")?.as_str() {
            "deadline" => (dispatch::DispatchOrder::Deadline, store::JobOrder::Deadline),
            "arrival" => (dispatch::DispatchOrder::Fifo, store::JobOrder::Fifo),
            other => return Err(errors::usage(&format!("unknown order '{other}'; choose deadline or arrival"))),
        };
        let defaults = DispatchRules::default();
        let rules = DispatchRules {
            key: key_window::KeyRules {
                limits,
                ordered: form.take("ordered")?,
                delay_bound: bound.given(),
                learns_pace: !is_unlimited,
                ..key_window::KeyRules::default()
            },
            learns_delay_bound: matches!(bound, DelayBound::Learnt),
            max_in_flight: number_in("max_concurrency", form.take("max_concurrency")?, 1, MAX_CONCURRENCY)? as usize,
            order: order.0,
            attempt_timeout: timeout,
            retry: RetryPolicy { max_retries: retries, backoff, ..defaults.retry.clone() },
            give_up_after: form.time("give_up_after")?.map(Nanos::from),
            max_pause,
            delivery: if form.take("at_most_once")? {
                DeliveryGuarantee::AtMostOnce
            } else {
                DeliveryGuarantee::AtLeastOnce
            },
            ..defaults
        };
        let ttl_ms = form.take::<Option<TtlMsArg>>("ttl")?.map(|TtlMsArg(ms)| ms);
        let renews: bool = form.take("renew_expired")?;
        let renew = match ttl_ms {
            Some(ttl_ms) if renews => Some(TtlExtensionOptions { max_times: retries, ttl_ms }),
            None if renews => return Err(errors::usage("renew_expired: no ttl to renew; give ttl")),
            _ => None,
        };
        let success: Bound<'_, PyAny> = form.take("success")?;
        let success = status_ranges(&success)
            .map_err(|error| errors::argument(success.py(), "success", &success, &error))?
            .unwrap_or_else(|| vec![100..=999]);
        let path = form.take::<Option<PathBuf>>("store")?.unwrap_or_else(|| "memory".into());
        let place = StoreUrl::read(&path).map_err(|error| errors::usage(&error.to_string()))?;
        let in_memory = matches!(place, StoreUrl::Memory);
        let judge = ResponseRules { success, unauthorized_blames_key: !keys.is_empty(), ..ResponseRules::default() };
        let common = SenderJobContext { job_defaults: job_defaults(&form, ttl_ms)?, keys: keys.clone() };
        let bounds = bounds(&form, in_memory)?;
        let keepalive = form.take("keepalive")?;
        let tls =
            TlsOptions { cacert: form.take("cacert")?, insecure: form.take("insecure")?, ..TlsOptions::default() };
        form.is_empty()?;
        if keys.is_empty() && common.job_defaults.uses_key() {
            return Err(errors::usage("keys: '{key}' is used, but there are no keys; give keys"));
        }
        let options = Options {
            rules,
            host_limits,
            key_hosts: common.job_defaults.key_hosts.clone(),
            response_rules: judge,
            keys: if keys.is_empty() { vec![ApiKey::none()] } else { keys },
            keepalive,
            connect_timeout: timeout.min(Nanos::from_secs(5)),
            tls: (tls != TlsOptions::default())
                .then(|| Tls::shared(&tls))
                .transpose()
                .map_err(|why| errors::tls(&why))?,
            // A job that is submitted again returns the first one's result.
            keep_responses: !in_memory,
            ttl_extension: renew,
            ..Options::default()
        };
        Ok(Self { common, options, store_url: place, order: order.1, bounds })
    }

    /// Opens the job store.
    pub(crate) fn open_store(&self) -> Result<Arc<dyn Store>, store::StoreError> {
        if !matches!(self.store_url, StoreUrl::Memory) {
            return self.store_url.open(true, self.bounds, self.order);
        }
        // Ended jobs are dropped, to bound memory; expired ones stay while they may be renewed.
        let forgets: &[State] = match self.options.ttl_extension {
            None => &[State::Done, State::DeadLettered, State::Expired],
            Some(_) => &[State::Done, State::DeadLettered],
        };
        Ok(Arc::new(MemoryStore::new(self.bounds, self.order).discarding(forgets)))
    }
}

fn bounds(form: &Arguments<'_>, in_memory: bool) -> PyResult<QueueBounds> {
    let bound = |name: &str| {
        let given = form.take::<Option<i64>>(name)?;
        let wrong = |given: i64| errors::usage(&format!("invalid {name} {given}; give 1 or more, or None"));
        given.map(|given| u64::try_from(given).ok().filter(|most| *most > 0).ok_or_else(|| wrong(given))).transpose()
    };
    let default = if in_memory { DEFAULT_MEMORY_BOUNDS } else { QueueBounds::default() };
    let (jobs, bytes) = (bound("max_queue")?, bound("max_queue_bytes")?);
    Ok(QueueBounds { jobs: jobs.unwrap_or(default.jobs), bytes: bytes.unwrap_or(default.bytes) })
}

fn job_defaults(arguments: &Arguments<'_>, ttl_ms: Option<u64>) -> PyResult<JobDefaults> {
    let method = arguments.take::<Option<String>>("method")?.as_deref().map(method).transpose()?;
    let given: Bound<'_, PyAny> = arguments.take("headers")?;
    let headers = if given.is_none() { Vec::new() } else { headers(&given)? };
    let url: Option<String> = arguments.take("url")?;
    let StringsArg(names) = arguments.take("key_hosts")?;
    let key_hosts = KeyHosts::new(url.as_deref(), &names).map_err(|why| errors::job(&why))?.with_defaults(&headers);
    let (url_fields, body_fields) = (arguments.take("url_fields")?, arguments.take("body_fields")?);
    let form = JobDefaults { url, method, headers, body: None, ttl_ms, url_fields, body_fields, key_hosts };
    form.check().and_then(|()| form.check_credentials()).map_err(|why| errors::job(&why))?;
    Ok(form)
}

fn check_keys(keys: &[ApiKey]) -> PyResult<()> {
    let (mut names, mut secrets) = (HashSet::new(), HashSet::new());
    for key in keys {
        if key.secret().is_empty() || key.name().is_empty() {
            return Err(errors::usage("keys: an empty key; leave it out"));
        }
        if !secrets.insert(key.secret()) || !names.insert(key.name()) {
            let why = format!("keys: {} is given twice; remove one", key.name());
            return Err(errors::usage(&why));
        }
    }
    Ok(())
}

/// Backoff from the first and the longest wait before a retry.
fn backoff((TimeArg(first), TimeArg(longest)): (TimeArg, TimeArg)) -> PyResult<Backoff> {
    if first.is_zero() || longest < first {
        let why = "invalid backoff: the first wait is above 0, the longest not below it; give e.g. (0.5, 60)";
        return Err(errors::usage(why));
    }
    Ok(Backoff { min: first.into(), max: longest.into() })
}

pub(crate) fn limits(name: &str, given: &[String], unit: LimitUnit) -> PyResult<Vec<HostLimit>> {
    let limits = given.iter().map(|text| HostLimit::read(text, unit)).collect::<Result<_, _>>();
    limits.map_err(|why| errors::usage(&format!("{name}: {why}")))
}

/// Text or an iterable of texts.
pub(crate) struct StringsArg(pub(crate) Vec<String>);

impl FromPyObject<'_, '_> for StringsArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self(Vec::new()));
        }
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self(vec![text.to_cow()?.into_owned()]));
        }
        let text = |item: PyResult<Bound<'_, PyAny>>| {
            let item = item?;
            let kind = item.get_type();
            item.extract().map_err(|_| PyTypeError::new_err(format!("text or an iterable of texts, not {kind} in it")))
        };
        value.try_iter()?.map(text).collect::<PyResult<_>>().map(Self)
    }
}

/// API key, an iterable of keys, or a mapping of names to keys.
struct KeysArg(Vec<ApiKey>);

impl FromPyObject<'_, '_> for KeysArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(named) = value.cast::<PyDict>() {
            let key = |(name, secret): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                Ok(ApiKey::named(name.extract::<String>()?, secret.extract::<String>()?))
            };
            return named.iter().map(key).collect::<PyResult<_>>().map(Self);
        }
        let StringsArg(secrets) = StringsArg::extract(value)?;
        Ok(Self(secrets.into_iter().map(ApiKey::new).collect()))
    }
}

/// Delay bound: a time, `"learn"`, or None if only a response shows that a request has arrived.
pub(crate) enum DelayBound {
    Learnt,
    Unknown,
    Given(Nanos),
}

impl DelayBound {
    pub(crate) fn given(&self) -> Option<Nanos> {
        if let Self::Given(bound) = self { Some(*bound) } else { None }
    }
}

impl FromPyObject<'_, '_> for DelayBound {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self::Unknown);
        }
        let word = value.cast::<PyString>().ok().map(|text| text.to_string());
        match word.as_deref() {
            Some("learn") => Ok(Self::Learnt),
            Some("none") => Ok(Self::Unknown),
            _ => {
                let TimeArg(bound) = value.extract()?;
                Ok(Self::Given(bound.into()))
            }
        }
    }
}
