//! Outputs of a load while it runs.

use std::env;
use std::path::PathBuf;
use std::str::FromStr;

use crate::output::OutputFile;
use weir_base::percent;
use weir_outputs::{HttpFormat, HttpOutput, METRICS, OutputSpec, ScrapeAddress};
use weir_request::url::HttpUrl;
use weir_request::url_text::UrlText;

/// Variable with headers, one per line.
const HEADERS_VARIABLE: &str = "WEIR_OUT_HEADERS";
/// Variable of OpenTelemetry: `NAME=VALUE,...`, with values as in URLs.
const OTLP_HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// Variable of InfluxDB's command.
const INFLUX_TOKEN_VARIABLE: &str = "INFLUX_TOKEN";

/// Outputs of a load while it runs.
#[derive(Clone, Debug, Default)]
pub struct OutOptions {
    /// File for a JSON line per interval; `-` is stdout.
    pub jsonl: Option<PathBuf>,
    /// Prometheus: addresses to be scraped at, and URLs of remote write.
    pub prometheus: Vec<PrometheusOutput>,
    /// URLs of OpenTelemetry collectors.
    pub otlp: Vec<String>,
    /// URLs of InfluxDB.
    pub influx: Vec<String>,
    /// HOST:PORT of StatsD servers.
    pub statsd: Vec<String>,
    /// Headers for the one receiver that is reached by HTTP.
    pub headers: Vec<(String, String)>,
    /// Labels of all values.
    pub labels: Vec<(String, String)>,
}

/// Pull (scrape) or push (remote write) of metrics for Prometheus.
#[derive(Clone, Debug)]
pub enum PrometheusOutput {
    /// Address to be scraped at.
    Scrape(ScrapeAddress),
    /// URL of remote write.
    RemoteWrite(String),
}

impl FromStr for PrometheusOutput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if UrlText::of(text).scheme.is_some() {
            receiver_url(text).map(Self::RemoteWrite)
        } else {
            text.parse().map(Self::Scrape)
        }
    }
}

/// Collector of traces; the headers may have credentials.
pub(super) struct TraceCollector {
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
}

/// URL of a receiver. The message leaves it out, since it may have a password.
///
/// # Errors
/// What to write instead.
pub fn receiver_url(text: &str) -> Result<String, String> {
    let is_url = UrlText::of(text).scheme.is_some() && HttpUrl::parse_typed(text).is_ok();
    if is_url { Ok(text.to_owned()) } else { Err("write it as http://HOST:PORT or https://HOST:PORT".to_owned()) }
}

/// URL of a collector's traces, of that of its metrics.
fn traces_url(url: &str) -> Result<String, String> {
    let (address, query) = url.split_once('?').map_or((url, None), |(address, query)| (address, Some(query)));
    let base = match UrlText::of(address).after_authority {
        "" | "/" => address.trim_end_matches('/'),
        _ => address.strip_suffix("/v1/metrics").ok_or(
            "--trace: the path of traces is not known; write --out-otlp with the path /v1/metrics, or without one",
        )?,
    };
    Ok(format!("{base}/v1/traces{}", query.map(|query| format!("?{query}")).unwrap_or_default()))
}

/// Address of a StatsD server.
///
/// # Errors
/// What to write instead.
pub fn statsd_address(text: &str) -> Result<String, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or_default();
    let is_whole = !host.is_empty() && !host.contains("://") && port.parse::<u16>().is_ok_and(|port| port > 0);
    if is_whole { Ok(text.to_owned()) } else { Err("write it as HOST:PORT, e.g. 127.0.0.1:8125".to_owned()) }
}

/// Header as `NAME: VALUE`.
///
/// # Errors
/// What to write instead.
pub fn header_line(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as 'NAME: VALUE'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Name and value of a label. Names are those that all receivers take.
///
/// # Errors
/// What to write instead.
pub fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name = name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit());
    if !is_name || name.starts_with("__") {
        return Err("a name has letters, digits and _, and no digit first".to_owned());
    }
    if name == "le" || METRICS.iter().any(|metric| metric.labels.contains(&name)) {
        return Err(format!("'{name}' is a label of weir's own; choose another name"));
    }
    if value.is_empty() || value.contains(char::is_control) {
        return Err("a value is text on one line".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Headers of OpenTelemetry's variable.
fn otlp_headers(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let decoded = |value: &str| String::from_utf8_lossy(&percent::decoded(value.as_bytes())).into_owned();
    pairs.map(|(name, value)| (name.trim().to_owned(), decoded(value.trim()))).collect()
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

impl OutOptions {
    /// Whether there is an output.
    pub fn has_any(&self) -> bool {
        self.jsonl.is_some() || !(self.prometheus.is_empty() && self.statsd.is_empty()) || self.has_http()
    }

    fn has_http(&self) -> bool {
        !self.urls().is_empty()
    }

    /// URLs of receivers, with what they read.
    fn urls(&self) -> Vec<(&String, HttpFormat)> {
        let prometheus = self.prometheus.iter().filter_map(|output| match output {
            PrometheusOutput::RemoteWrite(url) => Some((url, HttpFormat::RemoteWrite)),
            PrometheusOutput::Scrape(_) => None,
        });
        let otlp = self.otlp.iter().map(|url| (url, HttpFormat::Otlp));
        prometheus.chain(otlp).chain(self.influx.iter().map(|url| (url, HttpFormat::Influx))).collect()
    }

    /// URLs of collectors of traces, beside those of metrics, with their headers.
    ///
    /// # Errors
    /// One line: there is none, or a path of which that of traces is not known.
    pub(super) fn trace_collectors(&self) -> Result<Vec<TraceCollector>, String> {
        let headers = self.http_headers()?;
        let with_headers = |url: &String| {
            let of_variable = otlp_headers(&variable(OTLP_HEADERS_VARIABLE).unwrap_or_default());
            let headers = of_variable.into_iter().chain(headers.iter().cloned()).collect();
            Ok(TraceCollector { url: traces_url(url)?, headers })
        };
        self.otlp.iter().map(with_headers).collect()
    }

    /// Credentials in the flags, which messages and results leave out.
    pub fn secrets(&self) -> Vec<String> {
        let headers = self.headers.iter().map(|(_, value)| value.clone());
        let http = |(url, format): (&String, _)| HttpOutput { url: url.clone(), headers: Vec::new(), format }.secrets();
        headers.chain(self.urls().into_iter().flat_map(http)).collect()
    }

    /// Headers for the one receiver that is reached by HTTP.
    fn http_headers(&self) -> Result<Vec<(String, String)>, String> {
        let urls = self.urls();
        let lines = variable(HEADERS_VARIABLE).unwrap_or_default();
        let lines = lines.lines().filter(|line| !line.trim().is_empty()).map(header_line);
        let lines = lines.collect::<Result<Vec<_>, _>>().map_err(|why| format!("{HEADERS_VARIABLE}: {why}"))?;
        let given: Vec<(String, String)> = lines.into_iter().chain(self.headers.iter().cloned()).collect();
        if !given.is_empty() && urls.len() != 1 {
            // Credentials of one must not go to another.
            return Err(format!(
                "--out-header and {HEADERS_VARIABLE} are for one receiver by HTTP, and there are {}; \
                 write user:password@ in each URL in their place",
                urls.len()
            ));
        }
        Ok(given)
    }

    /// Outputs; `file` is that of `--out-jsonl`.
    ///
    /// # Errors
    /// One line: headers of more than one receiver, or of none; a label that is given twice; a file that cannot be
    /// used.
    pub(super) fn specs(&self, file: Option<&OutputFile>) -> Result<Vec<OutputSpec>, String> {
        let mut names: Vec<&str> = self.labels.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("--out-label: '{}' is given twice", pair[0]));
        }
        let urls = self.urls();
        let given = self.http_headers()?;
        let mut specs = Vec::new();
        if let Some(file) = file {
            let copy = file.file.try_clone().map_err(|error| format!("--out-jsonl: {error}"))?;
            specs.push(OutputSpec::JsonLines(copy, file.name(), file.is_stdout()));
        }
        specs.extend(self.prometheus.iter().filter_map(|output| match output {
            PrometheusOutput::Scrape(address) => Some(OutputSpec::Scrape(address.clone())),
            PrometheusOutput::RemoteWrite(_) => None,
        }));
        for (url, format) in urls {
            let of_variable = match format {
                HttpFormat::RemoteWrite => Vec::new(),
                HttpFormat::Otlp => otlp_headers(&variable(OTLP_HEADERS_VARIABLE).unwrap_or_default()),
                HttpFormat::Influx => variable(INFLUX_TOKEN_VARIABLE)
                    .map(|token| ("Authorization".to_owned(), format!("Token {token}")))
                    .into_iter()
                    .collect(),
            };
            let headers = of_variable.into_iter().chain(given.iter().cloned()).collect();
            specs.push(OutputSpec::Http(HttpOutput { url: url.clone(), headers, format }));
        }
        specs.extend(self.statsd.iter().cloned().map(OutputSpec::Statsd));
        Ok(specs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_variable_are_as_in_urls() {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            otlp_headers("Authorization=Basic%20YTpi+w==, x=1%,,y, z=%+f"),
            [own("Authorization", "Basic YTpi+w=="), own("x", "1%"), own("z", "%+f")]
        );
    }

    #[test]
    fn traces_go_beside_metrics() {
        for (metrics, traces) in [
            ("http://h:4318", "http://h:4318/v1/traces"),
            ("http://h:4318/", "http://h:4318/v1/traces"),
            ("https://me:pw@h/otlp/v1/metrics?a=b", "https://me:pw@h/otlp/v1/traces?a=b"),
        ] {
            assert_eq!(traces_url(metrics), Ok(traces.to_owned()));
        }
        assert!(traces_url("http://h/metrics").is_err());
    }

    #[test]
    fn labels_are_those_that_all_receivers_take() {
        assert_eq!(label("run_1=a b"), Ok(("run_1".to_owned(), "a b".to_owned())));
        for wrong in ["run", "=x", "1a=x", "__a=x", "a-b=x", "status=x", "le=x", "a=", "a=x\ny"] {
            assert!(label(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_and_urls_are_told_apart() {
        assert!(matches!("9095".parse(), Ok(PrometheusOutput::Scrape(_))));
        assert!(matches!("http://h:9090/api/v1/write".parse(), Ok(PrometheusOutput::RemoteWrite(_))));
        for wrong in ["http://", "ftp://h", "h"] {
            assert!(wrong.parse::<PrometheusOutput>().is_err(), "{wrong}");
        }
        assert!(receiver_url("localhost:4318").is_err() && statsd_address("http://h:1").is_err());
    }
}
