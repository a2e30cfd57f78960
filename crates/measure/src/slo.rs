//! Objectives such as `p99<200ms`, `errors<1%`, `rate>1000`: met or missed.
//!
//! Times are response times (from the intended start) of successes, as in reports, unless the name begins with
//! `service.`. Without a success all objectives on times are missed. Failures are judged by `errors`. A capacity search
//! always judges them ([`Slo::implied_error_slo`]): otherwise a service that rejects nearly all of a load would pass.

use std::fmt;
use std::str::FromStr;

use super::histogram::Percentiles;
use super::run::{Run, SloResult};
use weir_decide::Nanos;

#[cfg(test)]
mod tests;

/// Maximum fraction of failed requests in a search with objectives on times alone.
pub const DEFAULT_ERROR_FRACTION: f64 = 0.01;

/// Objective on a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    text: String,
    metric: SloMetric,
    below: bool,
    or_equal: bool,
    /// Limit in the unit of the metric: ms, a fraction, or requests per second.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SloMetric {
    Quantile(TimeKind, f64),
    Mean(TimeKind),
    Max(TimeKind),
    Errors,
    Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeKind {
    Response,
    Service,
}

/// Criterion of an objective that a load can be too high for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SloCriterion {
    /// At most the fraction `allowed` of successes has a longer response time than `limit`.
    InTime {
        /// Maximum response time.
        limit: Nanos,
        /// Fraction of successes that may take longer, in [0, 1).
        allowed: f64,
    },
    /// At most the fraction `allowed` of requests fails.
    Ok {
        /// Fraction of requests that may fail, in [0, 1].
        allowed: f64,
    },
    /// The mean response time is below `limit`.
    Mean {
        /// Upper bound of the mean.
        limit: Nanos,
    },
}

impl Slo {
    /// Criterion of an upper bound on response times or failures; none for other objectives.
    pub fn criterion(&self) -> Option<SloCriterion> {
        let limit = Nanos::from_secs_f64(self.limit / 1e3);
        match self.metric {
            _ if !self.below => None,
            SloMetric::Quantile(TimeKind::Response, q) => Some(SloCriterion::InTime { limit, allowed: 1.0 - q }),
            SloMetric::Max(TimeKind::Response) => Some(SloCriterion::InTime { limit, allowed: 0.0 }),
            SloMetric::Mean(TimeKind::Response) => Some(SloCriterion::Mean { limit }),
            SloMetric::Errors => Some(SloCriterion::Ok { allowed: self.limit }),
            _ => None,
        }
    }

    /// Minimum rate of successes per second, of an objective on the rate.
    pub fn min_rate(&self) -> Option<f64> {
        (self.metric == SloMetric::Rate && !self.below).then_some(self.limit)
    }

    /// Outcome of the objective for a run.
    pub fn check(&self, run: &Run) -> SloResult {
        let value = self.value(run);
        SloResult { objective: self.text.clone(), ok: self.is_met(value), measured: self.describe(run, value) }
    }

    /// Objective on errors that a capacity search adds to objectives on times alone.
    pub fn implied_error_slo(all: &[Self]) -> Option<Self> {
        let judges_times =
            all.iter().any(|slo| slo.below && !matches!(slo.metric, SloMetric::Errors | SloMetric::Rate));
        let judges_errors = all.iter().any(|slo| slo.metric == SloMetric::Errors);
        (judges_times && !judges_errors).then(|| Self {
            text: format!("errors<{}%", format_trimmed(DEFAULT_ERROR_FRACTION * 100.0)),
            metric: SloMetric::Errors,
            below: true,
            or_equal: false,
            limit: DEFAULT_ERROR_FRACTION,
        })
    }

    fn is_met(&self, value: f64) -> bool {
        match (self.below, self.or_equal) {
            (true, false) => value < self.limit,
            (true, true) => value <= self.limit,
            (false, false) => value > self.limit,
            (false, true) => value >= self.limit,
        }
    }

    /// Figure of the run, in the unit of the limit; infinite for times without a success.
    fn value(&self, run: &Run) -> f64 {
        let of_successes = |value: &dyn Fn() -> f64| if run.requests.ok == 0 { f64::INFINITY } else { value() };
        match self.metric {
            SloMetric::Quantile(clock, q) => of_successes(&|| clock.quantile(run, q)),
            SloMetric::Mean(clock) => of_successes(&|| clock.spread(run).mean),
            SloMetric::Max(clock) => of_successes(&|| clock.spread(run).max),
            // Without requests nothing was shown to work.
            SloMetric::Errors if run.requests.total == 0 => 1.0,
            SloMetric::Errors => run.error_fraction(),
            SloMetric::Rate => {
                let successes = run.requests.ok as f64 / run.response_count().max(1) as f64;
                run.rate_per_s.achieved * successes
            }
        }
    }

    fn describe(&self, run: &Run, value: f64) -> String {
        let time = |clock: TimeKind, name: &str| {
            let shown = if value.is_finite() { format!(" {}", self.format_time(value)) } else { ": no success".into() };
            format!("{name} {clock} time{shown}")
        };
        match self.metric {
            SloMetric::Quantile(clock, q) => time(clock, &format!("p{}", format_trimmed(q * 100.0))),
            SloMetric::Mean(clock) => time(clock, "mean"),
            SloMetric::Max(clock) => time(clock, "max"),
            SloMetric::Errors if run.requests.total == 0 => "no requests".into(),
            SloMetric::Errors => {
                let shown = trim_zeros(&self.format_number(value, 4, 100.0)).to_owned();
                format!("errors {shown}% ({} of {})", run.requests.failed, run.requests.total)
            }
            SloMetric::Rate => format!("rate of successes {}/s", self.format_number(value, 1, 1.0)),
        }
    }

    /// Time in ms as reports show it; with more digits where rounding would contradict the outcome.
    fn format_time(&self, ms: f64) -> String {
        let short = Nanos::from_secs_f64(ms / 1e3).to_string();
        let back = parse_limit(self.metric, &short);
        let agrees = |shown: f64| self.is_met(shown) == self.is_met(ms);
        if back.is_some_and(agrees) { short } else { format!("{}ms", trim_zeros(&self.format_number(ms, 3, 1.0))) }
    }

    /// Number with at least `decimals` decimals, and more where rounding would contradict the outcome.
    fn format_number(&self, value: f64, decimals: usize, scale: f64) -> String {
        let shown = |decimals: usize| format!("{:.decimals$}", value * scale);
        let agrees =
            |text: &String| text.parse::<f64>().is_ok_and(|shown| self.is_met(shown / scale) == self.is_met(value));
        (decimals..12).map(shown).find(agrees).unwrap_or_else(|| format!("{}", value * scale))
    }
}

impl TimeKind {
    fn spread(self, run: &Run) -> &Percentiles {
        match self {
            Self::Response => &run.response_ms,
            Self::Service => &run.service_ms,
        }
    }

    /// Quantile in ms; infinite for a damaged histogram.
    fn quantile(self, run: &Run, q: f64) -> f64 {
        let histogram = match self {
            Self::Response => run.response_histogram(),
            Self::Service => run.service_histogram(),
        };
        histogram.map_or(f64::INFINITY, |histogram| histogram.quantile(q).as_millis_f64())
    }
}

impl fmt::Display for TimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Response => "response",
            Self::Service => "service",
        })
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

fn format_trimmed(value: f64) -> String {
    trim_zeros(&format!("{value:.4}")).to_owned()
}

/// Decimal number without trailing zeros.
fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

impl FromStr for Slo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let help = "expected e.g. p99<200ms, service.p50<10ms, mean<1s, max<2s, errors<1% or rate>1000";
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let at = compact.find(['<', '>']).ok_or_else(|| format!("no < or > in it; {help}"))?;
        let (name, rest) = compact.split_at(at);
        let below = rest.starts_with('<');
        let (or_equal, limit) = match rest[1..].strip_prefix('=') {
            Some(limit) => (true, limit),
            None => (false, &rest[1..]),
        };
        let figure = parse_metric(name).ok_or_else(|| format!("unknown figure '{name}'; {help}"))?;
        if figure == SloMetric::Errors
            && let Ok(bare) = limit.parse::<f64>()
            && bare >= 1.0
        {
            return Err(format!(
                "invalid limit '{limit}' for 'errors', a fraction: write {name}{}{bare}%, or a number below 1, e.g. 0.01",
                &compact[at..compact.len() - limit.len()]
            ));
        }
        let limit =
            parse_limit(figure, limit).ok_or_else(|| format!("invalid limit '{limit}' for '{name}'; {help}"))?;
        Ok(Self { text: text.to_owned(), metric: figure, below, or_equal, limit })
    }
}

fn parse_metric(name: &str) -> Option<SloMetric> {
    let (clock, bare) = match name.split_once('.') {
        Some(("service", bare)) => (TimeKind::Service, bare),
        Some(("response", bare)) => (TimeKind::Response, bare),
        _ => (TimeKind::Response, name),
    };
    match bare {
        "mean" | "avg" => return Some(SloMetric::Mean(clock)),
        "max" => return Some(SloMetric::Max(clock)),
        "median" => return Some(SloMetric::Quantile(clock, 0.5)),
        "errors" if bare == name => return Some(SloMetric::Errors),
        "rate" if bare == name => return Some(SloMetric::Rate),
        _ => {}
    }
    let digits = bare.strip_prefix('p')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    // p999 is a common name of p99.9.
    let percentile: f64 = match digits {
        "999" => 99.9,
        "9999" => 99.99,
        _ => digits.parse().ok()?,
    };
    (0.0..=100.0).contains(&percentile).then_some(SloMetric::Quantile(clock, percentile / 100.0))
}

fn parse_limit(figure: SloMetric, text: &str) -> Option<f64> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
    match figure {
        SloMetric::Errors => match text.strip_suffix('%') {
            Some(percent) => number(percent).map(|p| p / 100.0),
            None => number(text).filter(|fraction| *fraction <= 1.0),
        },
        SloMetric::Rate => number(text.strip_suffix("/s").unwrap_or(text)),
        _ => {
            let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3), ("m", 60e3), ("h", 3.6e6)];
            let (unit, scale) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
            number(text.strip_suffix(unit)?).map(|v| v * scale)
        }
    }
}
