//! PURE. The object `options` of a script.
//!
//! - [`scenarios`]: scenarios and their executors; [`thresholds`]: limits of metrics
//! - [`transport`]: lookups of names, and TLS
//! - [`consolidated`]: the options as the script reads them while it runs; [`described`]: the load of options alone
//! - [`reader`]: values of the object, by their places; [`duration`]: `1m30s`

pub(crate) mod consolidated;
pub(crate) mod described;
pub(crate) mod duration;
mod reader;
pub(crate) mod scenarios;
pub(crate) mod thresholds;
mod transport;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde_json::Value;
use weir_base::Nanos;
use weir_load::address_rules::AddressRules;
use weir_net::tls::{PemTexts, TlsOffer};

use self::reader::OptionReader;
use self::scenarios::{ScenarioOptions, read_scenarios};
use self::thresholds::{Threshold, read_thresholds, statistic};
use self::transport::{read_dns, read_tls};
use crate::http_debug::HttpDebug;
use crate::metrics::MetricPlan;
use crate::metrics::registry::{MetricFacts, ScriptMetricKind};
use crate::metrics::sink::Sink;
use crate::shared_channels::check;

/// Options of a script, as weir uses them.
#[derive(Clone, Debug, Default)]
pub(crate) struct K6Options {
    /// Scenarios in the order of their names; none: the load is that of the command line.
    pub(crate) scenarios: Vec<ScenarioOptions>,
    pub(crate) thresholds: Vec<Threshold>,
    /// Maximum number of redirects of a request.
    pub(crate) max_redirects: u32,
    /// Whether bodies of responses are not kept.
    pub(crate) discards_bodies: bool,
    /// Whether a failed request is an exception.
    pub(crate) throws: bool,
    pub(crate) user_agent: Option<String>,
    /// Whether each iteration makes its connections anew.
    pub(crate) no_connection_reuse: bool,
    pub(crate) keeps_cookies: bool,
    pub(crate) skips_tls_verification: bool,
    /// Versions and cipher suites of TLS.
    pub(crate) tls: TlsOffer,
    /// Choice among the addresses of names, in place of a race among all of them.
    pub(crate) address_rules: Option<AddressRules>,
    /// Maximum number of requests per second of all users together.
    pub(crate) requests_per_s: Option<f64>,
    /// What is written of requests and responses into the log.
    pub(crate) http_debug: Option<HttpDebug>,
    /// Addresses in place of those of hosts, as `host` or `host:port`, and `ip` or `ip:port`.
    pub(crate) hosts: Vec<(String, String)>,
    /// Hosts that nothing is sent to, as `host` or `*.domain`.
    pub(crate) blocked_hosts: Vec<String>,
    /// Certificates by hosts, as `host` or `*.domain`; those of no host are for all.
    pub(crate) tls_auth: Vec<ClientCertificate>,
    /// Most requests of `http.batch` at a time.
    pub(crate) batch: usize,
    /// Tags of all values.
    pub(crate) tags: Vec<(String, String)>,
    /// Shortest duration of an iteration.
    pub(crate) min_iteration: Nanos,
    pub(crate) setup_timeout: Nanos,
    pub(crate) teardown_timeout: Nanos,
    /// Longest time of `handleSummary`.
    pub(crate) summary_timeout: Nanos,
    /// Columns of trends in the summary.
    pub(crate) trend_stats: Vec<String>,
}

/// Columns of trends in k6's summary.
const TREND_STATS: [&str; 6] = ["avg", "min", "med", "max", "p(90)", "p(95)"];
/// Default of `setupTimeout` and `teardownTimeout`.
const HOOK_TIMEOUT: Nanos = Nanos(60_000_000_000);
/// Default of `handleSummaryTimeout`.
const SUMMARY_TIMEOUT: Nanos = Nanos(120_000_000_000);

/// Options that change nothing here: of k6's own reports, usage statistics and process.
const WITHOUT_EFFECT: [&str; 9] = [
    "noUsageReport",
    "summaryTimeUnit",
    "systemTags",
    "ext",
    "cloud",
    "linger",
    "consoleOutput",
    "noVUConnectionReuse",
    "vusMax",
];
/// Options that weir does not have, and what to do instead.
const REJECTED: [(&str, &str); 6] = [
    ("blacklistIPs", "leave it out"),
    ("executionSegment", "use --on local --agents N"),
    ("executionSegmentSequence", "use --on local --agents N"),
    ("localIPs", "leave it out"),
    ("paused", "start it with --web"),
    ("tlsAIAFetch", "give the missing certificates by --cacert"),
];

impl K6Options {
    /// Options without a value.
    pub(crate) fn none() -> Self {
        Self {
            max_redirects: 10,
            batch: 20,
            setup_timeout: HOOK_TIMEOUT,
            teardown_timeout: HOOK_TIMEOUT,
            summary_timeout: SUMMARY_TIMEOUT,
            trend_stats: TREND_STATS.map(str::to_owned).to_vec(),
            ..Self::default()
        }
    }

    /// Reads the object.
    ///
    /// # Errors
    /// One line that names the option, and what to write.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        Self::read_all(value).map_err(|why| one_line(&why))
    }

    /// Whether nothing is sent to a host.
    pub(crate) fn blocks(&self, host: &str) -> bool {
        self.blocked_hosts.iter().any(|pattern| is_host(pattern, host))
    }

    /// Certificates of a client for a host, if it has any.
    pub(crate) fn certificates(&self, host: &str) -> Option<Arc<PemTexts>> {
        let is_for = |domains: &[String]| domains.is_empty() || domains.iter().any(|pattern| is_host(pattern, host));
        self.tls_auth.iter().find(|it| is_for(&it.domains)).map(|it| Arc::clone(&it.texts))
    }

    /// Values of metrics that are kept: in all, and for what thresholds select.
    ///
    /// # Errors
    /// One line that names the threshold.
    pub(crate) fn metric_plan(&self, facts: Vec<MetricFacts>) -> Result<MetricPlan, String> {
        let problem = |why: String| one_line(&format!("options.thresholds: {why}"));
        let selectors = self.thresholds.iter().map(|threshold| threshold.selector.clone()).collect();
        let plan = MetricPlan::new(facts, selectors).map_err(problem)?;
        for threshold in &self.thresholds {
            let facts = plan.facts.iter().find(|facts| facts.name == threshold.selector.metric);
            facts.map_or(Ok(()), |facts| threshold.check(facts.kind)).map_err(problem)?;
        }
        Ok(plan)
    }

    fn read_all(value: &Value) -> Result<Self, String> {
        let mut options = Self::none();
        let mut reader = OptionReader::new(value, "options")?;
        options.scenarios = read_scenarios(&mut reader)?;
        if let Some(thresholds) = reader.take("thresholds") {
            options.thresholds = read_thresholds(&thresholds)?;
        }
        let redirects = reader.number("maxRedirects")?.unwrap_or(10.0);
        options.max_redirects = redirects.clamp(0.0, 1000.0) as u32;
        options.discards_bodies = reader.flag("discardResponseBodies")?;
        options.throws = reader.flag("throw")?;
        options.user_agent = reader.text("userAgent")?;
        if options.user_agent.as_deref().is_some_and(|agent| agent.contains(char::is_control)) {
            return Err("invalid options.userAgent; write it on one line".to_owned());
        }
        options.no_connection_reuse = reader.flag("noConnectionReuse")?;
        options.keeps_cookies = reader.flag("noCookiesReset")?;
        options.skips_tls_verification = reader.flag("insecureSkipTLSVerify")?;
        options.hosts = reader.texts("hosts")?;
        if let Some((host, address)) = options.hosts.iter().find(|(_, address)| !is_address(address)) {
            return Err(format!("invalid options.hosts.{host} '{address}'; write an IP address, or one with a port"));
        }
        options.tags = reader.texts("tags")?;
        options.batch = reader.count("batch")?.unwrap_or(20).max(1) as usize;
        // Its module reads it from the options as JSON.
        reader.count("batchPerHost")?;
        options.min_iteration = reader.duration("minIterationDuration")?.unwrap_or(Nanos::ZERO);
        options.setup_timeout = reader.duration("setupTimeout")?.unwrap_or(HOOK_TIMEOUT);
        options.teardown_timeout = reader.duration("teardownTimeout")?.unwrap_or(HOOK_TIMEOUT);
        if let Some(columns) = reader.list("summaryTrendStats")? {
            if let Some(column) = columns.iter().find(|column| !is_trend_statistic(column)) {
                let known = "avg, min, med, max, count or p(N)";
                return Err(format!("invalid options.summaryTrendStats '{column}'; write {known}"));
            }
            options.trend_stats = columns;
        }
        options.summary_timeout = reader.duration("handleSummaryTimeout")?.unwrap_or(SUMMARY_TIMEOUT);
        options.tls = read_tls(&mut reader)?;
        options.address_rules = read_dns(&mut reader)?;
        options.requests_per_s = reader.number("rps")?.filter(|rate| *rate != 0.0);
        if let Some(rate) = options.requests_per_s.filter(|rate| *rate < 0.0) {
            return Err(format!("invalid options.rps {rate}; write a number of requests per second, or 0 for any"));
        }
        options.http_debug = reader.text("httpDebug")?.filter(|text| !text.is_empty()).map(|text| match &text[..] {
            "full" => HttpDebug::Full,
            _ => HttpDebug::Heads,
        });
        options.blocked_hosts = reader.list("blockHostnames")?.unwrap_or_default();
        if let Some(auth) = reader.take("tlsAuth") {
            options.tls_auth = read_tls_auth(&auth).map_err(|why| format!("options.tlsAuth: {why}"))?;
        }
        for (name, remedy) in REJECTED {
            if reader.take(name).is_some_and(|value| !is_empty(&value)) {
                return Err(format!("options.{name} is not supported; {remedy}"));
            }
        }
        for name in WITHOUT_EFFECT {
            let _ = reader.take(name);
        }
        reader.finish()?;
        Ok(options)
    }
}

/// Certificate of a client, and the hosts that it is for.
#[derive(Clone, Debug)]
pub(crate) struct ClientCertificate {
    /// Names or `*.domain`; for all hosts if there are none.
    domains: Vec<String>,
    texts: Arc<PemTexts>,
}

/// Whether a host is that of a pattern: `host`, or `*.domain`.
pub(crate) fn is_host(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
        None => pattern == host,
    }
}

/// Certificates of clients: `[{ domains: ['*.example.com'], cert: 'PEM', key: 'PEM' }]`.
fn read_tls_auth(value: &Value) -> Result<Vec<ClientCertificate>, String> {
    let entries = match value {
        Value::Null => &[][..],
        Value::Array(entries) => entries,
        _ => return Err("it is not a list".to_owned()),
    };
    let mut all = Vec::new();
    for entry in entries {
        let mut reader = OptionReader::new(entry, "certificate")?;
        let domains = reader.list("domains")?.unwrap_or_default();
        let (cert, key) = (reader.text("cert")?.unwrap_or_default(), reader.text("key")?.unwrap_or_default());
        if reader.text("password")?.is_some_and(|password| !password.is_empty()) {
            return Err("'password' is not supported; give the key without one".to_owned());
        }
        reader.finish()?;
        if cert.is_empty() && key.is_empty() {
            return Err("an entry has neither cert nor key".to_owned());
        }
        let texts = PemTexts { cacerts: Vec::new(), cert, key };
        check(&texts)?;
        all.push(ClientCertificate { domains, texts: Arc::new(texts) });
    }
    Ok(all)
}

/// Whether a text is an address in place of that of a host: `ip` or `ip:port`.
fn is_address(text: &str) -> bool {
    text.parse::<SocketAddr>().is_ok() || text.parse::<IpAddr>().is_ok()
}

/// Whether a trend has a statistic of this name.
fn is_trend_statistic(name: &str) -> bool {
    let values = Sink::of(ScriptMetricKind::Trend);
    statistic(name).is_some_and(|statistic| statistic.of(&values, 1.0).is_some())
}

/// A message on one line, whatever the names in it are.
fn one_line(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(values) => values.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hosts_are_named_whole_or_by_their_domain() {
        let options = K6Options::read(&json!({ "blockHostnames": ["a.test", "*.b.test"] })).expect("valid");
        let blocked = ["a.test", "x.b.test", "y.x.b.test"];
        assert!(blocked.iter().all(|host| options.blocks(host)));
        assert!(["b.test", "xb.test", "x.a.test", ""].iter().all(|host| !options.blocks(host)));
    }

    #[test]
    fn a_message_has_one_line() {
        let why = K6Options::read(&json!({ "a\nb\u{1b}": 1 })).map(drop).expect_err("invalid");
        assert_eq!(why, "options has no option 'a\\nb\\u{1b}'; leave it out");
    }

    #[test]
    fn options_are_read_and_unknown_ones_are_named() {
        let read = |value: Value| K6Options::read(&value);
        let options =
            read(json!({ "maxRedirects": 2, "throw": true, "tags": { "a": "b" }, "hosts": { "x.test": "1.2.3.4" } }));
        let options = options.expect("valid");
        assert_eq!((options.max_redirects, options.throws, options.batch), (2, true, 20));
        assert_eq!(options.tags, [("a".to_owned(), "b".to_owned())]);
        let rejected = |value: Value| read(value).map(drop).expect_err("invalid");
        assert!(rejected(json!({ "vuss": 1 })).contains("'vuss'"));
        assert!(rejected(json!({ "rps": -5 })).contains("options.rps -5"));
        assert!(rejected(json!({ "localIPs": "127.0.0.1" })).contains("options.localIPs is not supported"));
        assert!(
            rejected(json!({ "hosts": { "a.test": "b.test" } })).contains("options.hosts.a.test 'b.test'; write an IP")
        );
        assert!(rejected(json!({ "hosts": { "a.test": "1.2.3.4:99999" } })).contains("'1.2.3.4:99999'"));
        assert!(read(json!({ "hosts": { "a.test": "1.2.3.4:80", "b.test": "::1", "*.c": "[::1]:8" } })).is_ok());
        assert!(rejected(json!({ "userAgent": "a\r\nX: y" })).contains("write it on one line"));
        assert!(rejected(json!({ "summaryTrendStats": ["avg", "p(999)"] })).contains("summaryTrendStats 'p(999)'"));
        assert!(rejected(json!({ "summaryTrendStats": ["rate"] })).contains("'rate'; write avg, min"));
        let limited = |rate: Value| read(json!({ "rps": rate })).map(|options| options.requests_per_s);
        assert_eq!(
            (limited(json!(5)), limited(json!("2.5")), limited(json!(0))),
            (Ok(Some(5.0)), Ok(Some(2.5)), Ok(None))
        );
        let debug = |text: &str| read(json!({ "httpDebug": text })).map(|options| options.http_debug);
        assert_eq!((debug("full"), debug("")), (Ok(Some(HttpDebug::Full)), Ok(None)));
        assert_eq!(debug("headers"), Ok(Some(HttpDebug::Heads)));
        assert!(rejected(json!({ "throw": 1 })).contains("options.throw"));
        assert!(read(json!({ "rps": null, "noUsageReport": true, "tlsAuth": [] })).is_ok());
        assert!(rejected(json!({ "tlsAuth": [{ "cert": "x", "key": "y" }] })).contains("options.tlsAuth: "));
        assert!(rejected(json!({ "tlsAuth": [{ "password": "x" }] })).contains("'password' is not supported"));
        assert!(rejected(json!(3)).contains("options"));
    }
}
