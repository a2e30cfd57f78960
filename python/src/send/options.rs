//! What Python was asked for -> how to send, and where jobs are kept.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use weir::decide::Nanos;
use weir::decide::dispatch::{self, MaybeSent, Rules};
use weir::decide::policy::{Backoff, Retry};
use weir::decide::window::{self, Unit};
use weir::http::tls::{Tls, TlsOptions};
use weir::send::store::{self, Bounds, Memory, Place, Store};
use weir::send::template::has_field;
use weir::send::{Credential, Form, HostLimit, Judge, Options, Renewal, State};

use super::job::{Common, Ttl, headers, method};
use crate::client::policy::{number_in, ranges};
use crate::errors;
use crate::form::{Form as Arguments, Time};

/// A sender as asked for.
pub(crate) struct Asked {
    pub(crate) common: Common,
    pub(crate) options: Options,
    pub(crate) place: Place,
    order: store::Order,
    bounds: Bounds,
}

/// Jobs in memory wait there, and not with whoever submits them.
const IN_MEMORY: Bounds = Bounds { jobs: 100_000, bytes: 256 << 20 };
/// As on the command line.
const MOST_OUT: u32 = 60_000;
const MOST_RETRIES: u32 = 1000;

impl Asked {
    /// Reads the whole form.
    pub(crate) fn read(form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let form = Arguments(form.copy()?);
        let Keys(keys) = form.take("keys")?;
        check_keys(&keys)?;
        let Several(stated) = form.take("limits")?;
        let is_unlimited = HostLimit::is_unlimited(&stated);
        let mut limits = limits("limits", if is_unlimited { &[] } else { &stated }, Unit::Requests)?;
        limits.extend(self::limits("weight_limits", &form.take::<Several>("weight_limits")?.0, Unit::Weight)?);
        let (limits, host_limits) = HostLimit::sort(limits).map_err(|why| errors::usage(&format!("limits: {why}")))?;
        let backoff = backoff(form.time("backoff")?, form.time("longest_backoff")?)?;
        let bound: DelayBound = form.take("delay_bound")?;
        let retries = number_in("retries", form.take("retries")?, 0, MOST_RETRIES)?;
        let timeout = match form.time("timeout")? {
            Some(timeout) if !timeout.is_zero() => Nanos::from(timeout),
            _ => return Err(errors::usage("timeout: an answer needs a time above 0; give e.g. 30 or '500ms'")),
        };
        let order = match form.take::<String>("order")?.as_str() {
            "deadline" => (dispatch::Order::Deadline, store::Order::Deadline),
            "arrival" => (dispatch::Order::FirstIn, store::Order::FirstIn),
            other => return Err(errors::usage(&format!("order: '{other}' is none; choose deadline or arrival"))),
        };
        let defaults = Rules::default();
        let rules = Rules {
            key: window::Rules {
                limits,
                ordered: form.take("ordered")?,
                way_in: bound.given(),
                learns: !is_unlimited,
                ..window::Rules::default()
            },
            learns_way_in: matches!(bound, DelayBound::Learnt),
            in_flight: number_in("concurrency", form.take("concurrency")?, 1, MOST_OUT)? as usize,
            order: order.0,
            attempt_timeout: timeout,
            retry: Retry { times: retries, backoff, ..defaults.retry.clone() },
            give_up_after: form.time("give_up_after")?.map(Nanos::from),
            maybe_sent: if form.take("at_most_once")? { MaybeSent::Bury } else { MaybeSent::Again },
            ..defaults
        };
        let ttl_ms = form.take::<Option<Ttl>>("ttl")?.map(|Ttl(ms)| ms);
        let renews: bool = form.take("renew_expired")?;
        let renew = match ttl_ms {
            Some(ttl_ms) if renews => Some(Renewal { times: retries, ttl_ms }),
            None if renews => return Err(errors::usage("renew_expired: there is no ttl to give once more; give ttl")),
            _ => None,
        };
        let success: Bound<'_, PyAny> = form.take("success")?;
        let success = ranges(&success)
            .map_err(|error| errors::argument(success.py(), "success", &success, &error))?
            .unwrap_or_else(|| vec![(100, 999)]);
        let path = form.take::<Option<PathBuf>>("store")?.unwrap_or_else(|| "memory".into());
        let place = Place::read(&path).map_err(|error| errors::usage(&error.to_string()))?;
        let in_memory = matches!(place, Place::Memory);
        let judge = Judge { success, keyed: !keys.is_empty(), ..Judge::default() };
        let common = Common { form: common(&form, ttl_ms)?, keys: keys.clone() };
        let bounds = bounds(&form, in_memory)?;
        let fresh = form.take("fresh")?;
        let tls =
            TlsOptions { cacert: form.take("cacert")?, insecure: form.take("insecure")?, ..TlsOptions::default() };
        form.is_empty()?;
        let has_key = |text: &String| has_field(text, "key");
        let needs_key =
            common.form.url.iter().any(has_key) || common.form.headers.iter().any(|(_, value)| has_key(value));
        if keys.is_empty() && needs_key {
            return Err(errors::usage("keys: there is a field '{key}' and no key; give keys"));
        }
        let options = Options {
            rules,
            host_limits,
            judge,
            keys: if keys.is_empty() { vec![Credential::none()] } else { keys },
            fresh,
            connect_timeout: timeout.min(Nanos::from_secs(5)),
            tls: (tls != TlsOptions::default())
                .then(|| Tls::shared(&tls))
                .transpose()
                .map_err(|why| errors::tls(&why))?,
            // Who submits a job again is told what came of it.
            keep_answers: !in_memory,
            renew,
            ..Options::default()
        };
        Ok(Self { common, options, place, order: order.1, bounds })
    }

    /// Where jobs are kept.
    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, store::StoreError> {
        if !matches!(self.place, Place::Memory) {
            return self.place.open(true, self.bounds, self.order);
        }
        // A process may go on for ever; expired jobs are asked for once more.
        let forgets: &[State] = match self.options.renew {
            None => &[State::Done, State::Graveyard, State::Expired],
            Some(_) => &[State::Done, State::Graveyard],
        };
        Ok(Arc::new(Memory::new(self.bounds, self.order).forgetting(forgets)))
    }
}

fn bounds(form: &Arguments<'_>, in_memory: bool) -> PyResult<Bounds> {
    let bound = |name: &str| {
        let given = form.take::<Option<i64>>(name)?;
        let wrong = |given: i64| errors::usage(&format!("{name}: {given} holds no job; give 1 or more, or None"));
        given.map(|given| u64::try_from(given).ok().filter(|most| *most > 0).ok_or_else(|| wrong(given))).transpose()
    };
    let unless_said = if in_memory { IN_MEMORY } else { Bounds::default() };
    let (jobs, bytes) = (bound("queue")?, bound("queue_bytes")?);
    Ok(Bounds { jobs: jobs.unwrap_or(unless_said.jobs), bytes: bytes.unwrap_or(unless_said.bytes) })
}

fn common(arguments: &Arguments<'_>, ttl_ms: Option<u64>) -> PyResult<Form> {
    let method = arguments.take::<Option<String>>("method")?.as_deref().map(method).transpose()?;
    let given: Bound<'_, PyAny> = arguments.take("headers")?;
    let headers = if given.is_none() { Vec::new() } else { headers(&given)? };
    let form = Form { url: arguments.take("url")?, method, headers, body: None, ttl_ms };
    form.check().map_err(|why| errors::usage(&why.replace("--", "")))?;
    Ok(form)
}

fn check_keys(keys: &[Credential]) -> PyResult<()> {
    let (mut names, mut secrets) = (HashSet::new(), HashSet::new());
    for key in keys {
        if key.secret().is_empty() || key.name().is_empty() {
            return Err(errors::usage("keys: one is empty; leave it out"));
        }
        if !secrets.insert(key.secret()) || !names.insert(key.name()) {
            let why = format!("keys: {} is given twice; it has one limit, give it once", key.name());
            return Err(errors::usage(&why));
        }
    }
    Ok(())
}

/// The shortest and the longest wait of jobs that have failed.
fn backoff(first: Option<Duration>, most: Option<Duration>) -> PyResult<Backoff> {
    let default = Rules::default().retry.backoff;
    let (first, most) = (first.map_or(default.first, Nanos::from), most.map_or(default.most, Nanos::from));
    if first == Nanos::ZERO || most < first {
        let why = "backoff: it needs a time above 0, and longest_backoff one that is as long at least";
        return Err(errors::usage(why));
    }
    Ok(Backoff { first, most })
}

fn limits(name: &str, given: &[String], unit: Unit) -> PyResult<Vec<HostLimit>> {
    let limits = given.iter().map(|text| HostLimit::read(text, unit)).collect::<Result<_, _>>();
    limits.map_err(|why| errors::usage(&format!("{name}: {why}")))
}

/// One text or several.
struct Several(Vec<String>);

impl FromPyObject<'_, '_> for Several {
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
            item.extract().map_err(|_| PyTypeError::new_err(format!("text or several texts, not {kind} in them")))
        };
        value.try_iter()?.map(text).collect::<PyResult<_>>().map(Self)
    }
}

/// One key or several; with names of their own in a dict.
struct Keys(Vec<Credential>);

impl FromPyObject<'_, '_> for Keys {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(named) = value.cast::<PyDict>() {
            let key = |(name, secret): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                Ok(Credential::named(name.extract::<String>()?, secret.extract::<String>()?))
            };
            return named.iter().map(key).collect::<PyResult<_>>().map(Self);
        }
        let Several(secrets) = Several::extract(value)?;
        Ok(Self(secrets.into_iter().map(Credential::new).collect()))
    }
}

/// A time, `"learn"`, or None: only an answer tells that a request has arrived.
enum DelayBound {
    Learnt,
    Unknown,
    Given(Nanos),
}

impl DelayBound {
    fn given(&self) -> Option<Nanos> {
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
                let Time(bound) = value.extract()?;
                Ok(Self::Given(bound.into()))
            }
        }
    }
}
