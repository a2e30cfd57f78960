//! The flags of `weir send` -> what they mean.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rustls::ClientConfig;

use super::queue::{QueueCommand, store_of};
use super::{Queue, request};
use crate::decide::dispatch::{self, MaybeSent, Rules};
use crate::decide::policy::{Backoff, Retry};
use crate::decide::window::{self, Unit};
use crate::decide::{Nanos, words};
use crate::http::tls::{Tls, TlsOptions};
use crate::send::store::{self, Bounds, Place};
use crate::send::template::has_field;
use crate::send::{Credential, Form, HostLimit, Judge, Options, Renewal};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub(in crate::cli) struct SendArgs {
    #[command(subcommand)]
    pub(super) queue: Option<QueueCommand>,
    /// Lines of JSON, one job each: id, method, url, headers, body, ttl, weight, priority, key; '-' is stdin. A file that is
    /// called like one of the commands is written as ./status
    #[arg(required = true)]
    jobs: Option<PathBuf>,

    /// Where jobs go that do not say it; {key}, {nonce} and {id} are filled in, here, in headers, and in bodies
    #[arg(long, value_name = "URL", help_heading = REQUESTS)]
    url: Option<String>,
    /// [default: GET, or POST with a body]
    #[arg(short, long, value_name = "METHOD", help_heading = REQUESTS)]
    method: Option<String>,
    /// 'Name: value'; repeatable
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = REQUESTS)]
    headers: Vec<String>,
    /// Text, or @FILE
    #[arg(short, long, value_name = "TEXT", help_heading = REQUESTS)]
    body: Option<String>,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = words::time, help_heading = REQUESTS)]
    timeout: Duration,
    /// A new connection for each request
    #[arg(long, help_heading = REQUESTS)]
    fresh: bool,
    /// Trust the CA certificates in this PEM file only
    #[arg(long, value_name = "FILE", help_heading = REQUESTS)]
    cacert: Option<PathBuf>,
    /// Accept any certificate
    #[arg(short = 'k', long, help_heading = REQUESTS)]
    insecure: bool,
    /// At most so many requests without an answer
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=60_000), help_heading = REQUESTS)]
    concurrency: u32,
    /// Statuses of success, e.g. 200-299,404
    #[arg(long, value_name = "LIST", default_value = "200-299", value_parser = Statuses::read, help_heading = REQUESTS)]
    success: Statuses,

    /// A key, or NAME=KEY: jobs may ask for it by that name; repeatable
    #[arg(long = "key", value_name = "KEY", help_heading = LIMITS)]
    keys: Vec<String>,
    /// A file with a key, or NAME=KEY, in each line; lines that begin with # do not count
    #[arg(long, value_name = "FILE", help_heading = LIMITS)]
    keys_file: Option<PathBuf>,
    /// The environment's variable with the keys, between commas or blanks
    #[arg(long, value_name = "NAME", help_heading = LIMITS)]
    keys_env: Option<String>,
    /// So many requests per time for each key at each host, COUNT/TIME or MODEL:COUNT/TIME, e.g. 20/1s, bucket:100/1m,
    /// aligned:5000/24h; of one host alone: 'host=api.example.com 20/1s'; repeatable: all hold;
    /// 'none': unlimited [default: learnt from responses]
    #[arg(long = "limit", value_name = "LIMIT", help_heading = LIMITS)]
    limits: Vec<String>,
    /// So much weight (tokens) per time for each key at each host, in the same words; repeatable
    #[arg(long = "weight-limit", value_name = "LIMIT", help_heading = LIMITS)]
    weight_limits: Vec<String>,
    /// The longest way to the service; 'learn' from answers, or 'none': only an answer tells that a request has arrived
    #[arg(long, value_name = "TIME", default_value = "learn", value_parser = Bound::read, help_heading = LIMITS)]
    delay_bound: Bound,
    /// The requests of a key arrive in the order of their nonces
    #[arg(long, help_heading = LIMITS)]
    ordered: bool,

    /// A job is of use for so long [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = words::time, help_heading = JOBS)]
    ttl: Option<Duration>,
    /// So many tries after the first that failed while others were answered
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(..=1000), help_heading = JOBS)]
    retries: u32,
    /// How long a job waits that has failed, from the shortest wait doubling to the longest; and a host that is down is tried
    /// as often
    #[arg(long, value_name = "TIME..TIME", default_value = "500ms..60s", value_parser = backoff, help_heading = JOBS)]
    backoff: Backoff,
    /// The jobs of a host that has answered nobody for so long go to the graveyard [default: they wait for it]
    #[arg(long, value_name = "TIME", value_parser = words::time, help_heading = JOBS)]
    give_up_after: Option<Duration>,
    /// Jobs that expire get their TTL once more and go on, as often as they may be tried again
    #[arg(long, requires = "ttl", help_heading = JOBS)]
    renew_expired: bool,
    /// Which job goes first
    #[arg(long, value_name = "ORDER", default_value = "deadline", help_heading = JOBS)]
    order: Order,
    /// Jobs that may have been sent when an earlier run was killed go to the graveyard, and not out again
    #[arg(long, help_heading = JOBS)]
    at_most_once: bool,
    /// What keeps the jobs: a file, 'memory', or redis://HOST:PORT[?queue=NAME&strict=1] [default: JOBS.db; memory for stdin]
    #[arg(long, value_name = "STORE", help_heading = JOBS)]
    store: Option<PathBuf>,
    /// Append a line of JSON for each job at its end; lines that cannot be read go to FILE.rejects
    #[arg(short, long, value_name = "FILE", help_heading = JOBS)]
    pub(super) out: Option<PathBuf>,
    /// How long answers may take after Ctrl-C
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = words::time, help_heading = JOBS)]
    grace: Duration,

    /// The form of the summary on stdout
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(super) format: Format,
}

const REQUESTS: &str = "Requests";
const LIMITS: &str = "Keys and limits";
const JOBS: &str = "Jobs";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    /// The one that expires first
    Deadline,
    /// The one that came first
    Arrival,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Learnt,
    Unknown,
    Given(Nanos),
}

impl Bound {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "learn" => Ok(Self::Learnt),
            "none" => Ok(Self::Unknown),
            _ => words::time(text)
                .map(|time| Self::Given(time.into()))
                .map_err(|why| format!("{why}; or learn, or none")),
        }
    }
}

/// Clap takes a `Vec` for a flag that is repeated.
#[derive(Clone, Debug)]
struct Statuses(Vec<(u16, u16)>);

impl Statuses {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no list of statuses; write e.g. 200-299,404");
        let status =
            |text: &str| text.trim().parse().ok().filter(|status| (100..=599).contains(status)).ok_or_else(wrong);
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let range = (status(low)?, status(high)?);
            if range.0 <= range.1 { Ok(range) } else { Err(wrong()) }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

impl SendArgs {
    /// The file of jobs, which is there unless a command is.
    pub(super) fn jobs(&self) -> &Path {
        self.jobs.as_deref().unwrap_or_else(|| Path::new("-"))
    }

    pub(super) fn grace(&self) -> Nanos {
        self.grace.into()
    }

    /// What all jobs have in common.
    pub(super) fn form(&self) -> Result<Form, String> {
        let form = Form {
            url: self.url.clone(),
            method: self.method.as_deref().map(request::method).transpose()?,
            headers: self.headers.iter().map(|line| request::header(line)).collect::<Result<_, _>>()?,
            body: self.body.as_deref().map(request::body).transpose()?,
            ttl_ms: self.ttl.map(ms),
        };
        form.check()?;
        Ok(form)
    }

    /// How to send.
    pub(super) fn options(&self, form: &Form) -> Result<Options, String> {
        let keys = self.credentials()?;
        let needs_key = form.url.iter().any(|url| has_field(url, "key"))
            || form.headers.iter().any(|(_, value)| has_field(value, "key"));
        if keys.is_empty() && needs_key {
            return Err("there is a field '{key}' and no key; give --key, --keys-file or --keys-env".into());
        }
        let read = |flag: &str, texts: &[String], unit: Unit| {
            let limits = texts.iter().map(|text| HostLimit::read(text, unit));
            limits.collect::<Result<Vec<_>, _>>().map_err(|why| format!("{flag}: {why}"))
        };
        let is_unlimited = HostLimit::is_unlimited(&self.limits);
        let stated: &[String] = if is_unlimited { &[] } else { &self.limits };
        let mut all = read("--limit", stated, Unit::Requests)?;
        all.extend(read("--weight-limit", &self.weight_limits, Unit::Weight)?);
        let (limits, host_limits) = HostLimit::sort(all)?;
        let way_in = match self.delay_bound {
            Bound::Given(bound) => Some(bound),
            Bound::Learnt | Bound::Unknown => None,
        };
        let defaults = Rules::default();
        let rules = Rules {
            key: window::Rules {
                limits,
                ordered: self.ordered,
                way_in,
                learns: !is_unlimited,
                ..window::Rules::default()
            },
            learns_way_in: self.delay_bound == Bound::Learnt,
            in_flight: self.concurrency as usize,
            order: match self.order {
                Order::Deadline => dispatch::Order::Deadline,
                Order::Arrival => dispatch::Order::FirstIn,
            },
            attempt_timeout: self.timeout.into(),
            retry: Retry { times: self.retries, backoff: self.backoff, ..defaults.retry.clone() },
            give_up_after: self.give_up_after.map(Nanos::from),
            maybe_sent: if self.at_most_once { MaybeSent::Bury } else { MaybeSent::Again },
            ..defaults
        };
        let judge = Judge { success: self.success.0.clone(), keyed: !keys.is_empty(), ..Judge::default() };
        let renew = self.ttl.filter(|_| self.renew_expired).map(|ttl| Renewal { times: self.retries, ttl_ms: ms(ttl) });
        Ok(Options {
            rules,
            host_limits,
            judge,
            keys: if keys.is_empty() { vec![Credential::none()] } else { keys },
            fresh: self.fresh,
            connect_timeout: Nanos::from(self.timeout).min(Nanos::from_secs(5)),
            tls: self.tls()?,
            // What stands in the results need not be kept twice.
            keep_answers: self.out.is_none() && !matches!(self.place()?, Place::Memory),
            renew,
            ..Options::default()
        })
    }

    /// Whom to trust, unless it is whom the machine trusts.
    fn tls(&self) -> Result<Option<Arc<ClientConfig>>, String> {
        let options = TlsOptions { cacert: self.cacert.clone(), insecure: self.insecure, ..TlsOptions::default() };
        let given = options != TlsOptions::default();
        given.then(|| Tls::shared(&options)).transpose().map_err(|why| why.to_string())
    }

    fn credentials(&self) -> Result<Vec<Credential>, String> {
        let mut keys = self.keys.clone();
        if let Some(path) = &self.keys_file {
            let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            keys.extend(lines.map(str::to_owned));
        }
        if let Some(name) = &self.keys_env {
            let text =
                std::env::var(name).map_err(|_| format!("there is no variable {name}; set it, or give --key"))?;
            let parts = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|part| !part.is_empty());
            keys.extend(parts.map(str::to_owned));
        }
        if keys.is_empty() && (self.keys_file.is_some() || self.keys_env.is_some()) {
            return Err("there is no key where keys should be; write one a line".into());
        }
        let keys: Vec<Credential> = keys.iter().map(|text| Credential::read(text)).collect();
        for (number, key) in keys.iter().enumerate() {
            let before = &keys[..number];
            if before.iter().any(|other| other.secret() == key.secret()) {
                return Err(format!("key {} is given twice; it has one limit", key.mark()));
            }
            if before.iter().any(|other| other.is(key.name()) || key.is(other.name())) {
                return Err(format!("two keys have the name '{}'; each needs its own", key.name()));
            }
        }
        Ok(keys)
    }

    /// Where the jobs are kept.
    fn place(&self) -> Result<Place, String> {
        match &self.store {
            Some(store) => Place::read(store).map_err(|error| error.to_string()),
            None if self.jobs() == Path::new("-") => Ok(Place::Memory),
            None => Ok(Place::File(store_of(self.jobs()))),
        }
    }

    pub(super) fn store(&self) -> Result<Queue, String> {
        let order = match self.order {
            Order::Deadline => store::Order::Deadline,
            Order::Arrival => store::Order::FirstIn,
        };
        let place = self.place()?;
        // What comes from a stream waits there, and not in memory.
        let in_memory = Bounds { jobs: 100_000, bytes: 256 << 20 };
        let bounds = if matches!(place, Place::Memory) { in_memory } else { Bounds::default() };
        place.open(true, bounds, order).map_err(|error| error.to_string())
    }
}

/// `500ms..60s`.
fn backoff(text: &str) -> Result<Backoff, String> {
    let wrong = || format!("'{text}' is no back-off; write the shortest and the longest wait, e.g. 500ms..60s");
    let (first, most) = text.split_once("..").ok_or_else(wrong)?;
    let time = |text: &str| words::time(text.trim()).map(Nanos::from).map_err(|_| wrong());
    let backoff = Backoff { first: time(first)?, most: time(most)? };
    if backoff.first == Nanos::ZERO || backoff.most < backoff.first { Err(wrong()) } else { Ok(backoff) }
}

pub(super) fn ms(time: Duration) -> u64 {
    Nanos::from(time).0 / Nanos::MILLI.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_as_people_write_them() {
        assert_eq!(Statuses::read("200-299, 404").unwrap().0, [(200, 299), (404, 404)]);
        for wrong in ["", "2xx", "300-200", "99", "200-"] {
            assert!(Statuses::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_backoff_is_its_shortest_and_its_longest_wait() {
        let (first, most) = (Nanos::from_millis(20), Nanos::from_secs(3));
        assert_eq!(backoff("20ms..3s"), Ok(Backoff { first, most }));
        for wrong in ["1s", "3s..1s", "0s..1s", "..", "a..b"] {
            assert!(backoff(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bound_is_a_time_or_a_word() {
        assert_eq!(Bound::read("50ms"), Ok(Bound::Given(Nanos::from_millis(50))));
        assert_eq!(Bound::read("learn"), Ok(Bound::Learnt));
        assert!(Bound::read("soon").unwrap_err().contains("learn"));
    }
}
