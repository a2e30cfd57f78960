//! Flags of `weir send`, and the options that follow from them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustls::ClientConfig;

use super::flag_values::{DelayBoundArg, OrderArg, ResultsArg, StatusRanges, backoff};
use super::format::SendFormat;
use super::queue::{QueueCommand, default_store};
use super::request;
use super::response_check::AssertCheck;
use weir_base::Nanos;
use weir_base::units;
use weir_delivery::dispatch;
use weir_delivery::dispatch::{DeliveryGuarantee, DispatchRules};
use weir_delivery::key_window;
use weir_limits::limit_unit::LimitUnit;
use weir_machine::input_file;
use weir_net::tls::{Tls, TlsOptions};
use weir_retry::backoff::Backoff;
use weir_retry::policy::RetryPolicy;
use weir_send::store::{JobOrder, StoreUrl};
use weir_send::{ApiKey, HostLimit, JobDefaults, KeyHosts, Options, ResponseRules, TtlExtensionOptions};
use weir_send_file::{BulkOptions, TokenPrices};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = EXAMPLES)]
pub(crate) struct SendArgs {
    #[command(subcommand)]
    pub(super) queue: Option<QueueCommand>,
    /// jobs, one JSON object per line; - is stdin
    #[arg(required = true, value_name = "JOBS")]
    jobs: Option<PathBuf>,

    /// use this URL by default; {key}, {nonce} and {id} are filled in
    #[arg(long, value_name = "URL", help_heading = REQUESTS_HEADING)]
    url: Option<String>,
    /// use this method [default: GET, or POST with a body]
    #[arg(short, long, value_name = "METHOD", help_heading = REQUESTS_HEADING)]
    method: Option<String>,
    /// add a request header; repeatable
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'", help_heading = REQUESTS_HEADING)]
    headers: Vec<String>,
    /// send this body, or @FILE
    #[arg(short, long, value_name = "TEXT|@FILE", help_heading = REQUESTS_HEADING)]
    body: Option<String>,
    /// fill in {key}, {nonce} and {id} in URLs of jobs
    #[arg(long, help_heading = REQUESTS_HEADING)]
    url_fields: bool,
    /// fill in {key}, {nonce} and {id} in bodies of jobs
    #[arg(long, help_heading = REQUESTS_HEADING)]
    body_fields: bool,
    /// time out a request after TIME
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::time, help_heading = REQUESTS_HEADING)]
    timeout: Duration,
    /// open a new connection for each request
    #[arg(long, help_heading = REQUESTS_HEADING)]
    no_keepalive: bool,
    /// trust these CA certificates (PEM) instead of the system's
    #[arg(long, value_name = "FILE", help_heading = REQUESTS_HEADING)]
    cacert: Option<PathBuf>,
    /// skip certificate verification
    #[arg(short = 'k', long, help_heading = REQUESTS_HEADING)]
    insecure: bool,
    /// keep at most N requests in flight
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=60_000), help_heading = REQUESTS_HEADING)]
    max_concurrency: u32,
    /// count these statuses as success, e.g. 200-299,404
    #[arg(long, value_name = "LIST", default_value = "200-299", value_parser = StatusRanges::read, help_heading = REQUESTS_HEADING)]
    success: StatusRanges,
    /// retry a response that fails this hurl assert; repeatable
    #[arg(long = "check", value_name = "ASSERT", help_heading = REQUESTS_HEADING)]
    checks: Vec<String>,

    /// use this API key, filled in as {key}; repeatable
    #[arg(long = "key", value_name = "[NAME=]KEY", help_heading = LIMITS_HEADING)]
    keys: Vec<String>,
    /// read API keys from FILE, one [NAME=]KEY per line, # comments
    #[arg(long, value_name = "FILE", help_heading = LIMITS_HEADING)]
    keys_file: Option<PathBuf>,
    /// read API keys from this environment variable, separated by commas or spaces
    #[arg(long, value_name = "NAME", help_heading = LIMITS_HEADING)]
    keys_env: Option<String>,
    /// send keys and credentials to this host, too; repeatable [default: --url's]
    #[arg(long = "key-host", value_name = "HOST[:PORT]", help_heading = LIMITS_HEADING)]
    key_hosts: Vec<String>,
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        help_heading = LIMITS_HEADING,
        help = "limit a key's rate per host, e.g. 500/1m, bucket:100/1s, none; repeatable [default: learned]"
    )]
    limits: Vec<String>,
    /// limit the jobs' weights likewise, e.g. tokens; repeatable
    #[arg(long = "weight-limit", value_name = "LIMIT", help_heading = LIMITS_HEADING)]
    weight_limits: Vec<String>,
    /// assume at most this one-way delay to the service
    #[arg(long, value_name = "TIME|learn|none", default_value = "learn", value_parser = DelayBoundArg::read, help_heading = LIMITS_HEADING)]
    delay_bound: DelayBoundArg,
    /// make each key's requests arrive in nonce order
    #[arg(long, help_heading = LIMITS_HEADING)]
    ordered: bool,

    /// pause a key at most this long for Retry-After or a reset
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = units::time, help_heading = LIMITS_HEADING)]
    max_pause: Duration,

    /// expire a job after TIME [default: unlimited]
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = JOBS_HEADING)]
    ttl: Option<Duration>,
    /// retry a job at most N times
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(..=1000), help_heading = JOBS_HEADING)]
    retries: u32,
    /// wait from the first to the longest time before a retry, doubling
    #[arg(long, value_name = "TIME..TIME", default_value = "500ms..60s", value_parser = backoff, help_heading = JOBS_HEADING)]
    backoff: Backoff,
    /// dead-letter a host's jobs once it has been down this long [default: never]
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = JOBS_HEADING)]
    give_up_after: Option<Duration>,
    /// give expired jobs a new TTL, at most --retries times
    #[arg(long, requires = "ttl", help_heading = JOBS_HEADING)]
    renew_expired: bool,
    /// send jobs with the earliest deadline first, or in order of arrival
    #[arg(long, value_name = "ORDER", default_value = "deadline", help_heading = JOBS_HEADING)]
    order: OrderArg,
    /// dead-letter jobs that a crashed run may have sent
    #[arg(long, help_heading = JOBS_HEADING)]
    at_most_once: bool,
    /// keep jobs in this store [default: JOBS.db; memory for stdin]
    #[arg(long, value_name = "FILE|memory|redis://...", help_heading = JOBS_HEADING)]
    store: Option<PathBuf>,
    /// append results to FILE; invalid lines go to FILE.invalid
    #[arg(short, long, value_name = "FILE", value_parser = results_file, help_heading = JOBS_HEADING)]
    out: Option<PathBuf>,
    /// read lines and write results as a provider's batch does
    #[arg(long, value_name = "FORM", default_value = "weir", requires_if("openai-batch", "out"), requires_if("anthropic-batch", "out"), help_heading = JOBS_HEADING)]
    results: ResultsArg,
    /// add up what tokens cost, by LiteLLM's price file
    #[arg(long, value_name = "FILE", help_heading = JOBS_HEADING)]
    prices: Option<PathBuf>,
    /// send new jobs even if --out already has their results
    #[arg(long, requires = "out", help_heading = JOBS_HEADING)]
    resend: bool,
    /// wait at most this long for requests in flight at shutdown
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::time, help_heading = JOBS_HEADING)]
    grace: Duration,

    /// print the summary in this format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(super) format: SendFormat,
}

const EXAMPLES: &str = r#"Examples:
  weir send jobs.jsonl --url http://localhost:8080 -H "Authorization: Bearer $TOKEN" --limit 500/1m
  weir send - --url http://localhost:9999/jobs --out results.jsonl < jobs.jsonl"#;

const REQUESTS_HEADING: &str = "Requests";
const LIMITS_HEADING: &str = "Keys and limits";
const JOBS_HEADING: &str = "Jobs";

/// Results file, which the next run reads, unlike a stream.
fn results_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("results are appended to a file that the next run reads; write e.g. results.jsonl".to_owned()),
        path => Ok(PathBuf::from(path)),
    }
}

impl SendArgs {
    /// File of jobs; required without a subcommand.
    fn jobs(&self) -> &Path {
        self.jobs.as_deref().unwrap_or_else(|| Path::new("-"))
    }

    /// Options of the delivery.
    pub(super) fn bulk_options(&self, shows_progress: bool) -> Result<BulkOptions, String> {
        let job_defaults = self.job_defaults()?;
        Ok(BulkOptions {
            sender: self.sender_options(&job_defaults)?,
            jobs: self.jobs().to_owned(),
            out: self.out.clone(),
            form: self.results.form(),
            prices: self.token_prices()?,
            resends: self.resend()?,
            store: self.store_url()?,
            order: match self.order {
                OrderArg::Deadline => JobOrder::Deadline,
                OrderArg::Arrival => JobOrder::Fifo,
            },
            job_defaults,
            grace: self.grace.into(),
            shows_progress,
        })
    }

    /// Whether jobs are sent although they have results.
    fn resend(&self) -> Result<bool, String> {
        match self.results {
            ResultsArg::OpenaiBatch | ResultsArg::AnthropicBatch if self.resend => {
                Err("--resend needs the times of the results, which batches do not have; give another --out".into())
            }
            _ => Ok(self.resend),
        }
    }

    /// Prices of tokens.
    fn token_prices(&self) -> Result<Option<TokenPrices>, String> {
        let Some(path) = &self.prices else { return Ok(None) };
        let cannot = |why: &dyn std::fmt::Display| format!("cannot read --prices {}: {why}", path.display());
        let text = input_file::read_to_string(path).map_err(|error| cannot(&error))?;
        TokenPrices::read(&text).map(Some).map_err(|why| cannot(&why))
    }

    /// URL, method, headers, body and time to live for jobs that do not set their own.
    fn job_defaults(&self) -> Result<JobDefaults, String> {
        let headers = self.headers.iter().map(|line| request::header(line)).collect::<Result<Vec<_>, _>>()?;
        let key_hosts = KeyHosts::new(self.url.as_deref(), &self.key_hosts)?.with_defaults(&headers);
        let job_defaults = JobDefaults {
            url: self.url.clone(),
            method: self.method.as_deref().map(request::method).transpose()?,
            headers,
            body: self.body.as_deref().map(request::body).transpose()?,
            ttl_ms: self.ttl.map(|ttl| Nanos::from(ttl).as_millis()),
            url_fields: self.url_fields,
            body_fields: self.body_fields,
            key_hosts,
        };
        job_defaults.check()?;
        job_defaults.check_credentials()?;
        Ok(job_defaults)
    }

    /// Options of the sender.
    fn sender_options(&self, job_defaults: &JobDefaults) -> Result<Options, String> {
        let keys = self.api_keys()?;
        if keys.is_empty() && job_defaults.uses_key() {
            return Err("'{key}' is used, but there is no API key; give --key, --keys-file or --keys-env".into());
        }
        if !keys.is_empty() && job_defaults.key_hosts.is_empty() {
            return Err("no host may have the API keys; give --url, or --key-host HOST".into());
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
        let key_rules = key_window::KeyRules { limits, learns_pace: !is_unlimited, ..self.key_rules() };
        let response_rules = ResponseRules {
            success: self.success.0.clone(),
            unauthorized_blames_key: !keys.is_empty(),
            ..ResponseRules::default()
        };
        let ttl_extension = self
            .ttl
            .filter(|_| self.renew_expired)
            .map(|ttl| TtlExtensionOptions { max_times: self.retries, ttl_ms: Nanos::from(ttl).as_millis() });
        Ok(Options {
            rules: self.dispatch_rules(key_rules),
            host_limits,
            key_hosts: job_defaults.key_hosts.clone(),
            response_rules,
            response_check: AssertCheck::of_flags(&self.checks)?,
            keys: if keys.is_empty() { vec![ApiKey::none()] } else { keys },
            keepalive: !self.no_keepalive,
            connect_timeout: Nanos::from(self.timeout).min(Nanos::from_secs(5)),
            tls: self.tls()?,
            // Responses are stored once: in the results file if there is one.
            keep_responses: self.out.is_none() && !matches!(self.store_url()?, StoreUrl::Memory),
            ttl_extension,
            ..Options::default()
        })
    }

    /// Rules of a key, without its limits.
    fn key_rules(&self) -> key_window::KeyRules {
        key_window::KeyRules {
            ordered: self.ordered,
            delay_bound: match self.delay_bound {
                DelayBoundArg::Given(bound) => Some(bound),
                DelayBoundArg::Learnt | DelayBoundArg::Unknown => None,
            },
            ..key_window::KeyRules::default()
        }
    }

    fn dispatch_rules(&self, key: key_window::KeyRules) -> DispatchRules {
        let defaults = DispatchRules::default();
        DispatchRules {
            key,
            learns_delay_bound: self.delay_bound == DelayBoundArg::Learnt,
            max_in_flight: self.max_concurrency as usize,
            order: match self.order {
                OrderArg::Deadline => dispatch::DispatchOrder::Deadline,
                OrderArg::Arrival => dispatch::DispatchOrder::Fifo,
            },
            attempt_timeout: self.timeout.into(),
            retry: RetryPolicy { max_retries: self.retries, backoff: self.backoff, ..defaults.retry.clone() },
            give_up_after: self.give_up_after.map(Nanos::from),
            max_pause: self.max_pause.into(),
            delivery: if self.at_most_once { DeliveryGuarantee::AtMostOnce } else { DeliveryGuarantee::AtLeastOnce },
            ..defaults
        }
    }

    /// TLS configuration; None for the system's certificates.
    fn tls(&self) -> Result<Option<Arc<ClientConfig>>, String> {
        let options = TlsOptions { cacert: self.cacert.clone(), insecure: self.insecure, ..TlsOptions::default() };
        let given = options != TlsOptions::default();
        given.then(|| Tls::shared(&options)).transpose().map_err(|why| why.to_string())
    }

    fn api_keys(&self) -> Result<Vec<ApiKey>, String> {
        let mut keys = self.keys.clone();
        if let Some(path) = &self.keys_file {
            let text =
                input_file::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            keys.extend(lines.map(str::to_owned));
        }
        if let Some(name) = &self.keys_env {
            let text = std::env::var(name)
                .map_err(|_| format!("environment variable {name} is not set; set it, or give --key"))?;
            let parts = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|part| !part.is_empty());
            keys.extend(parts.map(str::to_owned));
        }
        if keys.is_empty() && (self.keys_file.is_some() || self.keys_env.is_some()) {
            return Err("no API keys in --keys-file or --keys-env; write one per line".into());
        }
        let keys: Vec<ApiKey> = keys.iter().map(|text| ApiKey::read(text)).collect();
        for (number, key) in keys.iter().enumerate() {
            let before = &keys[..number];
            if before.iter().any(|other| other.secret() == key.secret()) {
                return Err(format!("key {} is given twice; remove one", key.default_name()));
            }
            if before.iter().any(|other| other.matches(key.name()) || key.matches(other.name())) {
                return Err(format!("two keys have the name '{}'; each needs its own", key.name()));
            }
        }
        Ok(keys)
    }

    /// Address of the job store.
    fn store_url(&self) -> Result<StoreUrl, String> {
        match &self.store {
            Some(store) => StoreUrl::read(store).map_err(|error| error.to_string()),
            None if self.jobs() == Path::new("-") => Ok(StoreUrl::Memory),
            None => Ok(StoreUrl::File(default_store(self.jobs()))),
        }
    }
}
