//! Report in the format of `wrk --latency`.
//!
//! Layout and units are those of wrk, the figures those of weir:
//!
//! - *Latency* is the response time, from the intended start on; as in wrk over all responses, whatever their status,
//!   where weir's own report has it over successes.
//! - *Req/Sec* is per thread, as in wrk, but from whole seconds of the measured window where wrk looks every 100 ms.
//! - *Socket errors*: `connect` are connections that failed or came too late (`connect`, `tls`, `dropped`), `read` are
//!   responses that broke off or are not HTTP (`closed`, `reset`, `protocol`); weir has no failure of writing alone.
//! - Without any response the last column reads `0.00%`, where wrk has `-nan%`.

use super::number_format::{sanitize, zero_if_not_measured};
use weir_base::Nanos;
use weir_base::grpc_status::GRPC_STATUS_NAMES;
use weir_histogram::Histogram;
use weir_measure::Run;

/// Report of a run.
pub fn render(run: &Run) -> String {
    let mut text = format!("Running {} test @ {}\n", whole_seconds(run.duration_s), sanitize(&run.target.url));
    text += &format!("  {} threads and {} connections\n", run.manifest.threads, run.connections.max);
    text += &format!("  Thread Stats{:>6}{:>11}{:>8}{:>12}\n", "Avg", "Stdev", "Max", "+/- Stdev");
    let times = run.responses.histogram().unwrap_or_else(|_| Histogram::precise());
    text += &WrkStats::of_times(&times).line("Latency", microseconds);
    text += &WrkStats::of_samples(&rates_per_thread(run)).line("Req/Sec", metric);
    text += "  Latency Distribution\n";
    for percent in [50_u32, 75, 90, 99] {
        let us = whole_us(times.quantile(f64::from(percent) / 100.0));
        text += &format!("{percent:>7}%{}\n", cell(&microseconds(us), 10));
    }
    let (took, read) = (microseconds(run.duration_s * 1e6), binary(run.bytes.read as f64));
    text += &format!("  {} requests in {took}, {read}B read\n", run.response_count());
    text += &errors(run);
    let [per_s, _] = run.traffic_per_s();
    text += &format!("Requests/sec: {:>9.2}\n", run.rate_per_s.achieved);
    text += &format!("Transfer/sec: {:>10}B\n", binary(per_s));
    text
}

fn errors(run: &Run) -> String {
    let of = |kinds: &[&str]| kinds.iter().map(|kind| run.failures_of(kind)).sum::<u64>();
    let connect = of(&["connect", "tls", "dropped"]);
    let read = of(&["closed", "reset", "protocol"]);
    let timeout = of(&["timeout"]);
    let status = of(&["4xx", "5xx"]) + of(&GRPC_STATUS_NAMES[1..]);
    let mut text = String::new();
    if connect + read + timeout > 0 {
        text += &format!("  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}\n");
    }
    if status > 0 {
        text += &format!("  Non-2xx or 3xx responses: {status}\n");
    }
    text
}

/// Requests per second and thread, one sample for each whole interval of the series within the window.
fn rates_per_thread(run: &Run) -> Vec<f64> {
    if run.response_count() == 0 {
        return Vec::new();
    }
    let (from, until) = (run.warmup_s, run.warmup_s + run.duration_s);
    let widest = run.series.iter().map(|point| point.width_s).fold(0.0, f64::max);
    let threads = run.manifest.threads.max(1) as f64;
    let inside = run.series.iter().filter(|point| {
        point.t_s >= from
            && point.t_s + point.width_s <= until + 1e-6
            && point.width_s > 0.0
            && point.width_s >= widest * 0.999
    });
    // As in wrk, responses that broke off do not count.
    let rates: Vec<f64> = inside.map(|point| (point.responses as f64 / point.width_s / threads).floor()).collect();
    // Shorter than a second: a single rate.
    if rates.is_empty() && run.rate_per_s.achieved > 0.0 {
        return vec![(run.rate_per_s.achieved / threads).floor()];
    }
    rates
}

/// Whole microseconds.
fn whole_us(time: Option<Nanos>) -> f64 {
    zero_if_not_measured(time.map(|time| (time.0 / 1000) as f64))
}

/// Line of wrk's table.
struct WrkStats {
    mean: f64,
    sd: f64,
    max: f64,
    /// Fraction of values within one standard deviation of the mean, in [0, 1].
    within_sd_fraction: f64,
}

impl WrkStats {
    /// In microseconds.
    fn of_times(times: &Histogram) -> Self {
        let n = times.count() as f64;
        let [mean_ns, sd_ns] = [times.mean_ns(), times.sd_ns()].map(zero_if_not_measured);
        let sd_ns = if n > 1.0 { sd_ns * (n / (n - 1.0)).sqrt() } else { 0.0 };
        let inside = times.count_between(Nanos((mean_ns - sd_ns).max(0.0) as u64), Nanos((mean_ns + sd_ns) as u64));
        Self {
            mean: mean_ns / 1e3,
            sd: sd_ns / 1e3,
            max: whole_us(times.max()),
            within_sd_fraction: inside as f64 / n.max(1.0),
        }
    }

    fn of_samples(samples: &[f64]) -> Self {
        let n = samples.len().max(1) as f64;
        let mean = samples.iter().fold(0.0, |sum, s| sum + s) / n;
        let square = samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>();
        let sd = if n > 1.0 { (square / (n - 1.0)).sqrt() } else { 0.0 };
        let within_sd_fraction = samples.iter().filter(|s| (**s - mean).abs() <= sd).count() as f64 / n;
        Self { mean, sd, max: samples.iter().copied().fold(0.0, f64::max), within_sd_fraction }
    }

    fn line(&self, name: &str, show: fn(f64) -> String) -> String {
        let (mean, sd, max) = (cell(&show(self.mean), 8), cell(&show(self.sd), 10), cell(&show(self.max), 9));
        format!("    {name:<10}{mean}{sd}{max}{:>8.2}%\n", self.within_sd_fraction * 100.0)
    }
}

/// Right-aligned value with aligned digits: two blanks after no unit, one after a unit of one letter.
fn cell(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2).filter(char::is_ascii_alphabetic).count();
    let blanks = 2 - letters;
    format!("{text:>0$}{1:blanks$}", width - blanks, "")
}

/// Unit of a value as in wrk: the next one from 85% of it on, never the last of the list.
fn scaled(value: f64, step: f64, decimals: usize, units: &[&'static str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while unit + 2 < units.len() && value >= step * 0.85 {
        value /= step;
        unit += 1;
    }
    format!("{value:.decimals$}{}", units[unit])
}

fn microseconds(us: f64) -> String {
    if us >= 1e6 { scaled(us / 1e6, 60.0, 2, &["s", "m", "h"]) } else { scaled(us, 1000.0, 2, &["us", "ms", "s"]) }
}

fn whole_seconds(s: f64) -> String {
    scaled(s.round(), 60.0, 0, &["s", "m", "h"])
}

fn metric(value: f64) -> String {
    scaled(value, 1000.0, 2, &["", "k", "M", "G", "T", "P"])
}

fn binary(value: f64) -> String {
    scaled(value, 1024.0, 2, &["", "K", "M", "G", "T", "P"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;

    #[test]
    fn the_report_is_laid_out_as_wrk_does() {
        fixtures::same(&render(&fixtures::closed()), include_str!("golden/closed.wrk.txt"), "closed.wrk.txt");
        fixtures::same(&render(&fixtures::open()), include_str!("golden/open.wrk.txt"), "open.wrk.txt");
        fixtures::same(&render(&fixtures::wide()), include_str!("golden/wide.wrk.txt"), "wide.wrk.txt");
        fixtures::same(&render(&fixtures::empty()), include_str!("golden/empty.wrk.txt"), "empty.wrk.txt");
    }

    #[test]
    fn units_are_wrks_own() {
        assert_eq!(
            [0.0, 36.0, 849.0, 900.0, 301_470.0, 950_000.0, 1_204_000.0, 55e6].map(microseconds),
            ["0.00us", "36.00us", "849.00us", "0.90ms", "301.47ms", "950.00ms", "1.20s", "0.92m"]
        );
        assert_eq!([10.5, 849.0, 35_050.0].map(metric), ["10.50", "849.00", "35.05k"]);
        assert_eq!([0.0, 1034.24, 11_041_505.0].map(binary), ["0.00", "1.01K", "10.53M"]);
        assert_eq!([2.01, 60.0, 0.2].map(whole_seconds), ["2s", "1m", "0s"]);
    }

    /// Lines that wrk 4.1.0 printed.
    #[test]
    fn cells_stand_where_wrk_puts_them() {
        let stats = WrkStats { mean: 287_110.0, sd: 321_800.0, max: 1_204_000.0, within_sd_fraction: 0.8378 };
        assert_eq!(stats.line("Latency", microseconds), "    Latency   287.11ms  321.80ms   1.20s    83.78%\n");
        let stats = WrkStats { mean: 10.5, sd: 8.18, max: 30.0, within_sd_fraction: 0.7 };
        assert_eq!(stats.line("Req/Sec", metric), "    Req/Sec    10.50      8.18    30.00     70.00%\n");
        let stats = WrkStats { mean: 12_530.0, sd: 3610.0, max: 20_160.0, within_sd_fraction: 0.7 };
        assert_eq!(stats.line("Req/Sec", metric), "    Req/Sec    12.53k     3.61k   20.16k    70.00%\n");
    }
}
