//! Objectives such as `p99<200ms`, `errors<1%`, `rate>1000`: held or not.
//!
//! Times are response times (from the intended start) unless the name begins with `service.`. A request without an
//! answer counts as one that took for ever: an objective is about what users see, and they saw none.

use std::fmt;
use std::str::FromStr;

use super::run::{Held, Run};
use crate::decide::Nanos;

/// One objective.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    text: String,
    figure: Figure,
    below: bool,
    or_equal: bool,
    /// In the figure's unit: ms, a share, or requests per second.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Quantile(Clock, f64),
    Mean(Clock),
    Max(Clock),
    Errors,
    Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Response,
    Service,
}

/// What an objective demands of each request, or of all of them together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// At most the share `allowed`, in [0, 1), may have a longer response time than `limit`, or no answer.
    InTime {
        /// The longest response time that is in time.
        limit: Nanos,
        /// The share that may be late.
        allowed: f64,
    },
    /// At most the share `allowed`, in [0, 1], may fail.
    Ok {
        /// The share that may fail.
        allowed: f64,
    },
    /// The mean response time is below this.
    Mean {
        /// The limit.
        limit: Nanos,
    },
}

impl Slo {
    /// What it demands, if it is an upper bound on response times or failures: something that a load can be too high for.
    pub fn demand(&self) -> Option<Demand> {
        let limit = Nanos::from_secs_f64(self.limit / 1e3);
        match self.figure {
            _ if !self.below => None,
            Figure::Quantile(Clock::Response, q) => Some(Demand::InTime { limit, allowed: 1.0 - q }),
            Figure::Max(Clock::Response) => Some(Demand::InTime { limit, allowed: 0.0 }),
            Figure::Mean(Clock::Response) => Some(Demand::Mean { limit }),
            Figure::Errors => Some(Demand::Ok { allowed: self.limit }),
            _ => None,
        }
    }

    /// The rate of good answers per second that it demands, if it does.
    pub fn least_rate(&self) -> Option<f64> {
        (self.figure == Figure::Rate && !self.below).then_some(self.limit)
    }

    /// Holds the objective against a run.
    pub fn check(&self, run: &Run) -> Held {
        let (value, measured) = self.measure(run);
        let ok = match (self.below, self.or_equal) {
            (true, false) => value < self.limit,
            (true, true) => value <= self.limit,
            (false, false) => value > self.limit,
            (false, true) => value >= self.limit,
        };
        Held { objective: self.text.clone(), ok, measured }
    }

    fn measure(&self, run: &Run) -> (f64, String) {
        let time = |clock: Clock, name: &str, ms: f64| {
            let shown = if ms.is_finite() { Nanos::from_secs_f64(ms / 1e3).to_string() } else { "no answer".into() };
            (ms, format!("{name} {clock} time {shown}"))
        };
        match self.figure {
            Figure::Quantile(clock, q) => {
                time(clock, &format!("p{}", trim(q * 100.0)), quantile_with_unanswered(run, clock, q))
            }
            Figure::Mean(clock) => {
                time(clock, "mean", if run.answers() == 0 { f64::INFINITY } else { clock.spread(run).mean })
            }
            Figure::Max(clock) => {
                let unanswered = run.requests.total - run.answers();
                time(clock, "max", if unanswered > 0 { f64::INFINITY } else { clock.spread(run).max })
            }
            // Nothing asked is nothing shown to work.
            Figure::Errors if run.requests.total == 0 => (1.0, "no requests".into()),
            Figure::Errors => {
                let share = run.error_share();
                (share, format!("errors {} % ({} of {})", trim(share * 100.0), run.requests.failed, run.requests.total))
            }
            Figure::Rate => {
                let good = run.requests.ok as f64 / run.answers().max(1) as f64;
                let rate = run.rate_per_s.achieved * good;
                (rate, format!("rate of good answers {rate:.1}/s"))
            }
        }
    }
}

impl Clock {
    fn spread(self, run: &Run) -> &super::histogram::Spread {
        match self {
            Self::Response => &run.response_ms,
            Self::Service => &run.service_ms,
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Response => "response",
            Self::Service => "service",
        })
    }
}

/// The quantile over all requests, where those without an answer rank last and took for ever; in ms.
fn quantile_with_unanswered(run: &Run, clock: Clock, q: f64) -> f64 {
    let histogram = match clock {
        Clock::Response => run.response_histogram(),
        Clock::Service => run.service_histogram(),
    };
    let Ok(histogram) = histogram else { return f64::INFINITY };
    let (answers, all) = (histogram.count() as f64, run.requests.total as f64);
    let share = q * all / answers;
    if answers == 0.0 || share > 1.0 { f64::INFINITY } else { histogram.quantile(share).as_millis_f64() }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

fn trim(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
        let figure = figure(name).ok_or_else(|| format!("unknown figure '{name}'; {help}"))?;
        let limit = limit_of(figure, limit).ok_or_else(|| format!("bad limit '{limit}' for '{name}'; {help}"))?;
        Ok(Self { text: text.to_owned(), figure, below, or_equal, limit })
    }
}

fn figure(name: &str) -> Option<Figure> {
    let (clock, bare) = match name.split_once('.') {
        Some(("service", bare)) => (Clock::Service, bare),
        Some(("response", bare)) => (Clock::Response, bare),
        _ => (Clock::Response, name),
    };
    match bare {
        "mean" | "avg" => return Some(Figure::Mean(clock)),
        "max" => return Some(Figure::Max(clock)),
        "median" => return Some(Figure::Quantile(clock, 0.5)),
        "errors" if bare == name => return Some(Figure::Errors),
        "rate" if bare == name => return Some(Figure::Rate),
        _ => {}
    }
    let digits = bare.strip_prefix('p')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    // p999 is the habit of the field for p99.9.
    let percentile: f64 = match digits {
        "999" => 99.9,
        "9999" => 99.99,
        _ => digits.parse().ok()?,
    };
    (0.0..=100.0).contains(&percentile).then_some(Figure::Quantile(clock, percentile / 100.0))
}

fn limit_of(figure: Figure, text: &str) -> Option<f64> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
    match figure {
        Figure::Errors => match text.strip_suffix('%') {
            Some(percent) => number(percent).map(|p| p / 100.0),
            None => number(text).filter(|share| *share <= 1.0),
        },
        Figure::Rate => number(text.strip_suffix("/s").unwrap_or(text)),
        _ => {
            let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3), ("m", 60e3), ("h", 3.6e6)];
            let (unit, scale) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
            number(text.strip_suffix(unit)?).map(|v| v * scale)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upper_bound_on_times_or_errors_demands_something_of_a_load() {
        let demand = |text: &str| text.parse::<Slo>().expect("an objective").demand();
        let limit = Nanos::from_millis(200);
        let Some(Demand::InTime { limit: of_p99, allowed }) = demand("p99<200ms") else { panic!("a share in time") };
        assert!(of_p99 == limit && (allowed - 0.01).abs() < 1e-12);
        assert_eq!(demand("max<200ms"), Some(Demand::InTime { limit, allowed: 0.0 }));
        assert_eq!(demand("mean<=200ms"), Some(Demand::Mean { limit }));
        assert_eq!(demand("errors<1%"), Some(Demand::Ok { allowed: 0.01 }));
        for other in ["rate>5", "rate<5", "p99>200ms", "service.p99<200ms", "errors>1%"] {
            assert_eq!(demand(other), None, "{other}");
        }
    }
}
