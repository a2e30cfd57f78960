//! Report in the format of ApacheBench (`ab` 2.3), field by field.
//!
//! Figures that differ from those of `ab`:
//!
//! - *Complete requests* are all that were sent and ended, successes and failures, as in `ab`.
//! - *Failed requests* are, as in `ab`, not those with a status of 400 and above (they are in *Non-2xx responses*), but
//!   those without a whole response and those with another length than the first. *Connect* counts connections that
//!   failed or came too late for their request (`connect`, `tls`, `dropped`), *Receive* those that ended in the middle
//!   (`closed`, `reset`), *Length* responses with another body length than the first, and *Exceptions* all else
//!   (`timeout`, `protocol`).
//! - *Requests per second* is weir's rate: responses within the measured window. *Time per request* follows from it
//!   as in `ab`, but in the open loop, where the number of users is not fixed, its mean is the mean response time.
//! - *Connect* is the time to connect, 0 for requests on a connection that was there already; *Processing* is the
//!   service time, *Waiting* the time to the first byte, *Total* the response time, from the intended start on. As in
//!   `ab`, all are over all responses, whatever their status, where weir's own report has them over successes.
//!   The median of *Connect* is that of new connections when most requests had one, else 0.
//! - *Keep-Alive requests* are responses after which the connection stayed open; the line exists if there were any.
//! - The body sent is shown for methods that have one. The size of the certificate's key is unknown: `-`.
//! - `ab`'s warnings that mean and median are apart are left out; [`weir_measure::trust`] judges a run instead.

use super::number_format::{sanitize, zero_if_not_measured};
use weir_histogram::percentiles::Percentiles;
use weir_measure::{LoadModel, Run};

/// Report from `Server Software` on.
pub fn render(run: &Run) -> String {
    [server(run), counts(run), rates(run), times(run), percentiles(run)].concat()
}

fn field(label: &str, value: impl std::fmt::Display) -> String {
    format!("{:<24}{value}\n", format!("{label}:"))
}

fn server(run: &Run) -> String {
    let target = &run.target;
    let mut text = field("Server Software", sanitize(target.server.as_deref().unwrap_or_default()));
    text += &field("Server Hostname", sanitize(&target.host));
    text += &field("Server Port", target.port);
    if let Some(tls) = &target.tls {
        text += &field("SSL/TLS Protocol", protocol(tls));
        // As ab: an IP address is not a TLS server name.
        if target.host.parse::<std::net::IpAddr>().is_err() {
            text += &field("TLS Server Name", sanitize(&target.host));
        }
    }
    text.push('\n');
    text += &field("Document Path", sanitize(&target.path));
    text += &field("Document Length", format_args!("{} bytes", target.body_length.unwrap_or(0)));
    text.push('\n');
    text
}

/// `TLSv1.2,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` in OpenSSL's names and `ab`'s order: version, cipher, bits of the
/// certificate's key, bits of the cipher.
fn protocol(tls: &str) -> String {
    let Some((version, suite)) = tls.split_once(',') else { return sanitize(tls) };
    let bits = if suite.contains("128") { 128 } else { 256 };
    let cipher = if version == "TLSv1.3" {
        format!("TLS_{}", suite.trim_start_matches("TLS_"))
    } else {
        let words = suite.trim_start_matches("TLS_").replace("_WITH_", "_").replace("AES_", "AES");
        words
            .replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
            .replace("CHACHA20_", "CHACHA20-")
            .replace('_', "-")
    };
    sanitize(&format!("{version},{cipher},-,{bits}"))
}

/// Whether a status is one of success, as `ab` counts them: that of replies over WebSocket is 101.
fn is_2xx(run: &Run, status: &str) -> bool {
    status.starts_with('2') || status == "OK" || (status == "101" && run.websocket.is_some())
}

fn counts(run: &Run) -> String {
    let of = |kinds: &[&str]| kinds.iter().map(|kind| run.failures_of(kind)).sum::<u64>();
    let connect = of(&["connect", "tls", "dropped"]);
    let receive = of(&["closed", "reset"]);
    let exceptions = of(&["timeout", "protocol"]);
    let length = run.target.other_lengths;
    let failed = connect + receive + length + exceptions;
    let other_status: u64 = run.status.iter().filter(|(status, _)| !is_2xx(run, status)).map(|(_, n)| n).sum();
    let kept = kept_alive(run);

    let mut text = field("Concurrency Level", run.connections.max);
    text += &field("Time taken for tests", format_args!("{:.3} seconds", run.duration_s));
    text += &field("Complete requests", complete(run));
    text += &field("Failed requests", failed);
    if failed > 0 {
        text += &format!("   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: {exceptions})\n");
    }
    if other_status > 0 {
        text += &field("Non-2xx responses", other_status);
    }
    if kept > 0 {
        text += &field("Keep-Alive requests", kept);
    }
    text += &field("Total transferred", format_args!("{} bytes", run.bytes.read));
    if sends_body(run) {
        text += &field("Total body sent", run.bytes.written);
    }
    text += &field("HTML transferred", format_args!("{} bytes", run.bytes.body_in));
    text
}

fn rates(run: &Run) -> String {
    let rate = run.rate_per_s.achieved;
    if rate <= 0.0 || run.duration_s <= 0.0 {
        return String::new();
    }
    let across_all = 1000.0 / rate;
    let mean = match run.model {
        LoadModel::Closed => across_all * run.connections.max as f64,
        LoadModel::Open => zero_if_not_measured(run.responses.response_ms.mean),
    };
    let [read, written] = run.traffic_per_s().map(|rate| rate / 1024.0);
    let mut text = field("Requests per second", format_args!("{rate:.2} [#/sec] (mean)"));
    text += &field("Time per request", format_args!("{mean:.3} [ms] (mean)"));
    text += &field("Time per request", format_args!("{across_all:.3} [ms] (mean, across all concurrent requests)"));
    text += &field("Transfer rate", format_args!("{read:.2} [Kbytes/sec] received"));
    if sends_body(run) {
        text += &format!("{:24}{written:.2} kb/s sent\n", "");
        text += &format!("{:24}{:.2} kb/s total\n", "", read + written);
    }
    text
}

fn times(run: &Run) -> String {
    let answers = run.response_count();
    if answers == 0 {
        return String::new();
    }
    let row = |label: &str, times: &AbTimes| {
        let AbTimes { min, mean, sd, median, max } = times;
        format!("{label:<12}{min:>5.0} {mean:>4.0} {sd:>5.1} {median:>6.0} {max:>7.0}\n")
    };
    let of = |spread: &Percentiles| AbTimes::of(spread, answers);
    let mut text = String::from("\nConnection Times (ms)\n              min  mean[+/-sd] median   max\n");
    text += &row("Connect:", &AbTimes::connect(&run.connect_ms, connecting(run), answers));
    let all = &run.responses;
    text += &row("Processing:", &of(&all.service_ms));
    text += &row("Waiting:", &of(&all.first_byte_ms));
    text += &row("Total:", &of(&all.response_ms));
    text
}

fn percentiles(run: &Run) -> String {
    let Ok(histogram) = run.responses.histogram() else { return String::new() };
    if histogram.count() < 2 {
        return String::new();
    }
    let ms = |percent: f64| zero_if_not_measured(histogram.quantile_ms(percent / 100.0));
    let mut text = String::from("\nPercentage of the requests served within a certain time (ms)\n");
    for percent in [50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0] {
        text += &format!("  {percent:.0}%  {:>5.0}\n", ms(percent).round());
    }
    text += &format!(" 100%  {:>5.0} (longest request)\n", ms(100.0).round());
    text
}

/// Row of the table, in ms.
struct AbTimes {
    min: f64,
    mean: f64,
    sd: f64,
    median: f64,
    max: f64,
}

impl AbTimes {
    /// Rounded as `ab` does, halves up; the standard deviation is that of a sample, as `ab` has it.
    fn of(spread: &Percentiles, n: u64) -> Self {
        Self {
            min: zero_if_not_measured(spread.min).round(),
            mean: zero_if_not_measured(spread.mean).round(),
            sd: zero_if_not_measured(spread.sd) * sample_correction(n),
            median: zero_if_not_measured(spread.p50).round(),
            max: zero_if_not_measured(spread.max).round(),
        }
    }

    /// Row of connection times: of `n` requests, `connecting` have the times of `spread`, all others 0.
    fn connect(spread: &Percentiles, connecting: u64, n: u64) -> Self {
        let share = connecting as f64 / n as f64;
        let [own, sd, max] = [spread.mean, spread.sd, spread.max].map(zero_if_not_measured);
        let mean = own * share;
        let square = (sd.powi(2) + own.powi(2)) * share;
        Self {
            min: if connecting < n { 0.0 } else { zero_if_not_measured(spread.min).round() },
            mean: mean.round(),
            sd: (square - mean.powi(2)).max(0.0).sqrt() * sample_correction(n),
            median: if connecting * 2 > n { zero_if_not_measured(spread.p50).round() } else { 0.0 },
            max: max.round(),
        }
    }
}

/// Factor from the standard deviation of a population to that of a sample.
fn sample_correction(n: u64) -> f64 {
    if n > 1 { (n as f64 / (n - 1) as f64).sqrt() } else { 0.0 }
}

/// Number of requests that were sent and ended.
fn complete(run: &Run) -> u64 {
    run.requests.total.saturating_sub(run.requests.dropped)
}

/// Number of responses to requests that waited for a connection to be opened.
fn connecting(run: &Run) -> u64 {
    // Connections are counted over the whole run; those of the warm-up have no recorded time.
    if run.connect_ms.max.is_some() { run.connections.opened.min(run.response_count()) } else { 0 }
}

/// Number of responses after which the connection stayed open; 0 with a new connection for each request.
fn kept_alive(run: &Run) -> u64 {
    let opened = run.connections.opened;
    if opened >= complete(run) {
        return 0;
    }
    // Connections still open at the end were not closed; a failure closes one without a response.
    let failures = ["tls", "timeout", "closed", "reset", "protocol"].iter().map(|kind| run.failures_of(kind)).sum();
    let closed = opened.saturating_sub(run.connections.max).saturating_sub(failures);
    run.response_count().saturating_sub(closed)
}

fn sends_body(run: &Run) -> bool {
    matches!(run.target.method.as_str(), "POST" | "PUT" | "PATCH")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;

    #[test]
    fn the_report_is_laid_out_as_ab_does() {
        fixtures::same(&render(&fixtures::closed()), include_str!("golden/closed.ab.txt"), "closed.ab.txt");
        fixtures::same(&render(&fixtures::open()), include_str!("golden/open.ab.txt"), "open.ab.txt");
        fixtures::same(&render(&fixtures::wide()), include_str!("golden/wide.ab.txt"), "wide.ab.txt");
        fixtures::same(&render(&fixtures::empty()), include_str!("golden/empty.ab.txt"), "empty.ab.txt");
    }

    #[test]
    fn ciphers_have_the_names_that_openssl_gives_them() {
        assert_eq!(protocol("TLSv1.3,AES_256_GCM_SHA384"), "TLSv1.3,TLS_AES_256_GCM_SHA384,-,256");
        assert_eq!(
            protocol("TLSv1.2,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
            "TLSv1.2,ECDHE-RSA-AES128-GCM-SHA256,-,128"
        );
        assert_eq!(
            protocol("TLSv1.2,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
            "TLSv1.2,ECDHE-ECDSA-CHACHA20-POLY1305,-,256"
        );
    }

    #[test]
    fn a_request_on_an_open_connection_took_no_time_to_connect() {
        let spread = Percentiles {
            mean: Some(10.0),
            sd: Some(0.0),
            min: Some(10.0),
            p50: Some(10.0),
            max: Some(10.0),
            ..Percentiles::default()
        };
        let few = AbTimes::connect(&spread, 1, 4);
        assert_eq!((few.min, few.mean, few.median, few.max), (0.0, 3.0, 0.0, 10.0));
        // Of 10, 0, 0, 0: squares 100 - 4 * 2.5^2 = 75, over n - 1 = 3.
        assert!((few.sd - 5.0).abs() < 1e-9);
        let all = AbTimes::connect(&spread, 4, 4);
        assert_eq!((all.min, all.mean, all.sd, all.median), (10.0, 10.0, 0.0, 10.0));
    }
}
