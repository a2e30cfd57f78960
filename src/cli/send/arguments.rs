//! The flags of `weir send` -> what they mean.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rustls::ClientConfig;

use super::queue::{QueueCommand, default_store};
use super::{StoreHandle, request};
use crate::decide::dispatch::{self, DeliveryGuarantee, DispatchRules};
use crate::decide::policy::{Backoff, RetryPolicy};
use crate::decide::window::{self, LimitUnit};
use crate::decide::{Nanos, words};
use crate::http::tls::{Tls, TlsOptions};
use crate::send::store::{self, QueueBounds, StoreUrl};
use crate::send::template::has_field;
use crate::send::{ApiKey, HostLimit, JobDefaults, Options, ResponseRules, TtlExtensionOptions};

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
    #[arg(long, value_name = "URL", help_heading = REQUESTS_HEADING)]
    url: Option<String>,
    /// [default: GET, or POST with a body]
    #[arg(short, long, value_name = "METHOD", help_heading = REQUESTS_HEADING)]
    method: Option<String>,
    /// 'Name: value'; repeatable
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = REQUESTS_HEADING)]
    headers: Vec<String>,
    /// Text, or @FILE
    #[arg(short, long, value_name = "TEXT", help_heading = REQUESTS_HEADING)]
    body: Option<String>,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = words::time, help_heading = REQUESTS_HEADING)]
    timeout: Duration,
    /// A new connection for each request
    #[arg(long, help_heading = REQUESTS_HEADING)]
    fresh: bool,
    /// Trust the CA certificates in this PEM file only
    #[arg(long, value_name = "FILE", help_heading = REQUESTS_HEADING)]
    cacert: Option<PathBuf>,
    /// Accept any certificate
    #[arg(short = 'k', long, help_heading = REQUESTS_HEADING)]
    insecure: bool,
    /// At most so many requests without an answer
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=60_000), help_heading = REQUESTS_HEADING)]
    concurrency: u32,
    /// Statuses of success, e.g. 200-299,404
    #[arg(long, value_name = "LIST", default_value = "200-299", value_parser = StatusRanges::read, help_heading = REQUESTS_HEADING)]
    success: StatusRanges,

    /// A key, or NAME=KEY: jobs may ask for it by that name; repeatable
    #[arg(long = "key", value_name = "KEY", help_heading = LIMITS_HEADING)]
    keys: Vec<String>,
    /// A file with a key, or NAME=KEY, in each line; lines that begin with # do not count
    #[arg(long, value_name = "FILE", help_heading = LIMITS_HEADING)]
    keys_file: Option<PathBuf>,
    /// The environment's variable with the keys, between commas or blanks
    #[arg(long, value_name = "NAME", help_heading = LIMITS_HEADING)]
    keys_env: Option<String>,
    /// So many requests per time for each key at each host, COUNT/TIME or MODEL:COUNT/TIME, e.g. 20/1s, bucket:100/1m,
    /// aligned:5000/24h; of one host alone: 'host=api.example.com 20/1s'; repeatable: all hold;
    /// 'none': unlimited [default: learnt from responses]
    #[arg(long = "limit", value_name = "LIMIT", help_heading = LIMITS_HEADING)]
    limits: Vec<String>,
    /// So much weight (tokens) per time for each key at each host, in the same words; repeatable
    #[arg(long = "weight-limit", value_name = "LIMIT", help_heading = LIMITS_HEADING)]
    weight_limits: Vec<String>,
    /// The longest way to the service; 'learn' from answers, or 'none': only an answer tells that a request has arrived
    #[arg(long, value_name = "TIME", default_value = "learn", value_parser = DelayBoundArg::read, help_heading = LIMITS_HEADING)]
    delay_bound: DelayBoundArg,
    /// The requests of a key arrive in the order of their nonces
    #[arg(long, help_heading = LIMITS_HEADING)]
    ordered: bool,

    /// A job is of use for so long [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = words::time, help_heading = JOBS_HEADING)]
    ttl: Option<Duration>,
    /// So many tries after the first that failed while others were answered
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(..=1000), help_heading = JOBS_HEADING)]
    retries: u32,
    /// How long a job waits that has failed, from the shortest wait doubling to the longest; and a host that is down is tried
    /// as often
    #[arg(long, value_name = "TIME..TIME", default_value = "500ms..60s", value_parser = backoff, help_heading = JOBS_HEADING)]
    backoff: Backoff,
    /// The jobs of a host that has answered nobody for so long go to the graveyard [default: they wait for it]
    #[arg(long, value_name = "TIME", value_parser = words::time, help_heading = JOBS_HEADING)]
    give_up_after: Option<Duration>,
    /// Jobs that expire get their TTL once more and go on, as often as they may be tried again
    #[arg(long, requires = "ttl", help_heading = JOBS_HEADING)]
    renew_expired: bool,
    /// Which job goes first
    #[arg(long, value_name = "ORDER", default_value = "deadline", help_heading = JOBS_HEADING)]
    order: OrderArg,
    /// Jobs that may have been sent when an earlier run was killed go to the graveyard, and not out again
    #[arg(long, help_heading = JOBS_HEADING)]
    at_most_once: bool,
    /// What keeps the jobs: a file, 'memory', or redis://HOST:PORT[?queue=NAME&strict=1] [default: JOBS.db; memory for stdin]
    #[arg(long, value_name = "STORE", help_heading = JOBS_HEADING)]
    store: Option<PathBuf>,
    /// Append a line of JSON for each job at its end; lines that cannot be read go to FILE.rejects
    #[arg(short, long, value_name = "FILE", help_heading = JOBS_HEADING)]
    pub(super) out: Option<PathBuf>,
    /// How long answers may take after Ctrl-C
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = words::time, help_heading = JOBS_HEADING)]
    grace: Duration,

    /// The form of the summary on stdout
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(super) format: SendFormat,
}

const REQUESTS_HEADING: &str = "Requests";
const LIMITS_HEADING: &str = "Keys and limits";
const JOBS_HEADING: &str = "Jobs";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SendFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderArg {
    /// The one that expires first
    Deadline,
    /// The one that came first
    Arrival,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DelayBoundArg {
    Learnt,
    Unknown,
    Given(Nanos),
}

impl DelayBoundArg {
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
struct StatusRanges(Vec<(u16, u16)>);

impl StatusRanges {
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
    pub(super) fn job_defaults(&self) -> Result<JobDefaults, String> {
        let form = JobDefaults {
            url: self.url.clone(),
            method: self.method.as_deref().map(request::method).transpose()?,
            headers: self.headers.iter().map(|line| request::header(line)).collect::<Result<_, _>>()?,
            body: self.body.as_deref().map(request::body).transpose()?,
            ttl_ms: self.ttl.map(to_ms),
        };
        form.check()?;
        Ok(form)
    }

    /// How to send.
    pub(super) fn options(&self, form: &JobDefaults) -> Result<Options, String> {
        let keys = self.api_keys()?;
        let needs_key = form.url.iter().any(|url| has_field(url, "key"))
            || form.headers.iter().any(|(_, value)| has_field(value, "key"));
        if keys.is_empty() && needs_key {
            return Err("there is a field '{key}' and no key; give --key, --keys-file or --keys-env".into());
        }
        let read = |flag: &str, texts: &[String], unit: LimitUnit| {
            let limits = texts.iter().map(|text| HostLimit::read(text, unit));
            limits.collect::<Result<Vec<_>, _>>().map_err(|why| format!("{flag}: {why}"))
        };
        let is_unlimited = HostLimit::is_unlimited(&self.limits);
        let stated: &[String] = if is_unlimited { &[] } else { &self.limits };
        let mut all = read("--limit", stated, LimitUnit::Requests)?;
        all.extend(read("--weight-limit", &self.weight_limits, LimitUnit::Weight)?);
        let (limits, host_limits) = HostLimit::split_by_host(all)?;
        let way_in = match self.delay_bound {
            DelayBoundArg::Given(bound) => Some(bound),
            DelayBoundArg::Learnt | DelayBoundArg::Unknown => None,
        };
        let defaults = DispatchRules::default();
        let rules = DispatchRules {
            key: window::KeyRules {
                limits,
                ordered: self.ordered,
                delay_bound: way_in,
                learns_pace: !is_unlimited,
                ..window::KeyRules::default()
            },
            learns_delay_bound: self.delay_bound == DelayBoundArg::Learnt,
            max_in_flight: self.concurrency as usize,
            order: match self.order {
                OrderArg::Deadline => dispatch::DispatchOrder::Deadline,
                OrderArg::Arrival => dispatch::DispatchOrder::Fifo,
            },
            attempt_timeout: self.timeout.into(),
            retry: RetryPolicy { max_retries: self.retries, backoff: self.backoff, ..defaults.retry.clone() },
            give_up_after: self.give_up_after.map(Nanos::from),
            delivery: if self.at_most_once { DeliveryGuarantee::AtMostOnce } else { DeliveryGuarantee::AtLeastOnce },
            ..defaults
        };
        let judge = ResponseRules {
            success: self.success.0.clone(),
            unauthorized_blames_key: !keys.is_empty(),
            ..ResponseRules::default()
        };
        let renew = self
            .ttl
            .filter(|_| self.renew_expired)
            .map(|ttl| TtlExtensionOptions { max_times: self.retries, ttl_ms: to_ms(ttl) });
        Ok(Options {
            rules,
            host_limits,
            response_rules: judge,
            keys: if keys.is_empty() { vec![ApiKey::none()] } else { keys },
            fresh: self.fresh,
            connect_timeout: Nanos::from(self.timeout).min(Nanos::from_secs(5)),
            tls: self.tls()?,
            // What stands in the results need not be kept twice.
            keep_responses: self.out.is_none() && !matches!(self.store_url()?, StoreUrl::Memory),
            ttl_extension: renew,
            ..Options::default()
        })
    }

    /// Whom to trust, unless it is whom the machine trusts.
    fn tls(&self) -> Result<Option<Arc<ClientConfig>>, String> {
        let options = TlsOptions { cacert: self.cacert.clone(), insecure: self.insecure, ..TlsOptions::default() };
        let given = options != TlsOptions::default();
        given.then(|| Tls::shared(&options)).transpose().map_err(|why| why.to_string())
    }

    fn api_keys(&self) -> Result<Vec<ApiKey>, String> {
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
        let keys: Vec<ApiKey> = keys.iter().map(|text| ApiKey::read(text)).collect();
        for (number, key) in keys.iter().enumerate() {
            let before = &keys[..number];
            if before.iter().any(|other| other.secret() == key.secret()) {
                return Err(format!("key {} is given twice; it has one limit", key.default_name()));
            }
            if before.iter().any(|other| other.matches(key.name()) || key.matches(other.name())) {
                return Err(format!("two keys have the name '{}'; each needs its own", key.name()));
            }
        }
        Ok(keys)
    }

    /// Where the jobs are kept.
    fn store_url(&self) -> Result<StoreUrl, String> {
        match &self.store {
            Some(store) => StoreUrl::read(store).map_err(|error| error.to_string()),
            None if self.jobs() == Path::new("-") => Ok(StoreUrl::Memory),
            None => Ok(StoreUrl::File(default_store(self.jobs()))),
        }
    }

    pub(super) fn open_store(&self) -> Result<StoreHandle, String> {
        let order = match self.order {
            OrderArg::Deadline => store::JobOrder::Deadline,
            OrderArg::Arrival => store::JobOrder::Fifo,
        };
        let place = self.store_url()?;
        // What comes from a stream waits there, and not in memory.
        let in_memory = QueueBounds { jobs: 100_000, bytes: 256 << 20 };
        let bounds = if matches!(place, StoreUrl::Memory) { in_memory } else { QueueBounds::default() };
        place.open(true, bounds, order).map_err(|error| error.to_string())
    }
}

/// `500ms..60s`.
fn backoff(text: &str) -> Result<Backoff, String> {
    let wrong = || format!("'{text}' is no back-off; write the shortest and the longest wait, e.g. 500ms..60s");
    let (first, most) = text.split_once("..").ok_or_else(wrong)?;
    let time = |text: &str| words::time(text.trim()).map(Nanos::from).map_err(|_| wrong());
    let backoff = Backoff { min: time(first)?, max: time(most)? };
    if backoff.min == Nanos::ZERO || backoff.max < backoff.min { Err(wrong()) } else { Ok(backoff) }
}

pub(super) fn to_ms(time: Duration) -> u64 {
    Nanos::from(time).0 / Nanos::MILLI.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_as_people_write_them() {
        assert_eq!(StatusRanges::read("200-299, 404").unwrap().0, [(200, 299), (404, 404)]);
        for wrong in ["", "2xx", "300-200", "99", "200-"] {
            assert!(StatusRanges::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_backoff_is_its_shortest_and_its_longest_wait() {
        let (first, most) = (Nanos::from_millis(20), Nanos::from_secs(3));
        assert_eq!(backoff("20ms..3s"), Ok(Backoff { min: first, max: most }));
        for wrong in ["1s", "3s..1s", "0s..1s", "..", "a..b"] {
            assert!(backoff(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bound_is_a_time_or_a_word() {
        assert_eq!(DelayBoundArg::read("50ms"), Ok(DelayBoundArg::Given(Nanos::from_millis(50))));
        assert_eq!(DelayBoundArg::read("learn"), Ok(DelayBoundArg::Learnt));
        assert!(DelayBoundArg::read("soon").unwrap_err().contains("learn"));
    }
}
