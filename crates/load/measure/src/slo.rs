//! Objectives such as `p99<200ms`, `errors<1%`, `rate>1000`: met or missed.
//!
//! Times are response times (from the intended start) of successes, as in reports, unless the name begins with
//! `service.`. Without a success all objectives on times are missed. Failures are judged by `errors`. A capacity search
//! always judges them ([`Slo::implied_error_slo`]): otherwise a service that rejects nearly all of a load would pass.
//!
//! In a load of scenarios, a name before a colon says what an objective is about: `shop: p99<300ms` (a scenario or a
//! step), `iterations: time p95<10s`. `checks>99.5%` is about evaluations of checks.
//!
//! Of streams: `first_event.p99<500ms`, `gap.p99<50ms`; of language models `ttft.`, `tpot.`, `chunk_gap.` and `e2e.`,
//! and `goodput>99%`, the fraction of requests that met the objectives of each.

use std::fmt;
use std::str::FromStr;

use self::figures::{SloFigures, SloScope};
pub use self::time_kind::TimeKind;
use super::recorder::Interval;
use super::run::{Run, SloResult};
use super::step_counts::CheckCounts;
use weir_base::Nanos;
use weir_base::units;

mod figures;
#[cfg(test)]
mod tests;
mod time_kind;

/// Maximum fraction of failed requests in a search with objectives on times alone.
pub const DEFAULT_ERROR_FRACTION: f64 = 0.01;

/// Objective on a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    text: String,
    scope: SloScope,
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
    Checks,
    /// Fraction of requests to a language model that met the objectives of each request.
    Goodput,
}

impl SloMetric {
    /// Time that it is about, if it is one.
    fn time_kind(self) -> Option<TimeKind> {
        match self {
            Self::Quantile(kind, _) | Self::Mean(kind) | Self::Max(kind) => Some(kind),
            Self::Errors | Self::Rate | Self::Checks | Self::Goodput => None,
        }
    }
}

/// Criterion of an objective that a load can be too high for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SloCriterion {
    /// At most the fraction `allowed` of times is longer than `limit`.
    InTime {
        /// Times that are judged.
        kind: TimeKind,
        /// Maximum time.
        limit: Nanos,
        /// Fraction of them that may be longer, in [0, 1).
        allowed: f64,
    },
    /// At most the fraction `allowed` of requests fails.
    Ok {
        /// Fraction of requests that may fail, in [0, 1].
        allowed: f64,
    },
    /// The mean time is below `limit`.
    Mean {
        /// Times that are judged.
        kind: TimeKind,
        /// Upper bound of the mean.
        limit: Nanos,
    },
    /// At most the fraction `allowed` of requests to a language model fails or misses the objectives of each request.
    Goodput {
        /// Fraction of requests that may miss, in [0, 1].
        allowed: f64,
    },
}

impl Slo {
    /// Criterion of an upper bound on times or failures, or of a lower one on goodput; none for other objectives.
    pub fn criterion(&self) -> Option<SloCriterion> {
        let limit = Nanos::from_secs_f64(self.limit / 1e3);
        if !self.is_known_from_intervals() || self.below == (self.metric == SloMetric::Goodput) {
            return None;
        }
        match self.metric {
            SloMetric::Quantile(kind, q) => Some(SloCriterion::InTime { kind, limit, allowed: 1.0 - q }),
            SloMetric::Max(kind) => Some(SloCriterion::InTime { kind, limit, allowed: 0.0 }),
            SloMetric::Mean(kind) => Some(SloCriterion::Mean { kind, limit }),
            SloMetric::Errors => Some(SloCriterion::Ok { allowed: self.limit }),
            SloMetric::Goodput => Some(SloCriterion::Goodput { allowed: 1.0 - self.limit }),
            SloMetric::Rate | SloMetric::Checks => None,
        }
    }

    /// Minimum rate of successes per second, of an objective on the rate.
    pub fn min_rate(&self) -> Option<f64> {
        (self.metric == SloMetric::Rate && !self.below && self.scope == SloScope::Run).then_some(self.limit)
    }

    /// Outcome of the objective for a run.
    pub fn check(&self, run: &Run) -> SloResult {
        let figures = SloFigures::of(run, &self.scope);
        let value = self.value(&figures);
        let name = if let SloScope::Named(name) = &self.scope { format!("{name}: ") } else { String::new() };
        let measured = format!("{name}{}", self.describe(&figures, value));
        SloResult { objective: self.text.clone(), ok: self.is_met(value), measured }
    }

    /// Name of the scenario or step that the objective is about.
    pub fn scope_name(&self) -> Option<&str> {
        if let SloScope::Named(name) = &self.scope { Some(name) } else { None }
    }

    /// Whether the objective is about something that only a load of scenarios has.
    pub fn needs_scenarios(&self) -> bool {
        self.scope != SloScope::Run || self.metric == SloMetric::Checks
    }

    /// Whether the objective is about something that only streams of events have.
    pub fn needs_streams(&self) -> bool {
        self.metric.time_kind().is_some_and(TimeKind::is_of_streams) || self.needs_llm()
    }

    /// Whether the objective is about something that only language models have.
    pub fn needs_llm(&self) -> bool {
        self.metric == SloMetric::Goodput || self.metric.time_kind().is_some_and(TimeKind::is_of_llm)
    }

    /// Whether the figures of an interval of a run fulfill it; `None` if they are not known from intervals, or if
    /// nothing has ended.
    pub fn holds_in(&self, interval: &Interval, length_s: f64) -> Option<(bool, String)> {
        if !self.is_known_from_intervals() {
            return None;
        }
        let figures = SloFigures::of_interval(interval, length_s);
        // Responses that ended need not have had an event meanwhile.
        let lacks_times = |kind: TimeKind| kind != TimeKind::Response && kind.times_in(interval).is_none();
        if (figures.total == 0 || self.metric.time_kind().is_some_and(lacks_times)) && self.metric != SloMetric::Rate {
            return None;
        }
        let value = self.value(&figures);
        Some((self.is_met(value), self.describe(&figures, value)))
    }

    /// Whether intervals of a run have its figures: all but those of steps, iterations, checks and service times.
    pub fn is_known_from_intervals(&self) -> bool {
        self.scope == SloScope::Run
            && match self.metric {
                SloMetric::Quantile(kind, _) | SloMetric::Mean(kind) | SloMetric::Max(kind) => {
                    !matches!(kind, TimeKind::Service | TimeKind::Iteration)
                }
                SloMetric::Errors | SloMetric::Rate | SloMetric::Goodput => true,
                SloMetric::Checks => false,
            }
    }

    /// Objective on errors that a capacity search adds to objectives on times alone.
    pub fn implied_error_slo(all: &[Self]) -> Option<Self> {
        let judges_times = all.iter().any(|slo| slo.below && slo.metric.time_kind().is_some());
        // A failed request is none of the goodput.
        let judges_errors = all.iter().any(|slo| matches!(slo.metric, SloMetric::Errors | SloMetric::Goodput));
        (judges_times && !judges_errors).then(|| Self {
            text: format!("errors<{}%", format_trimmed(DEFAULT_ERROR_FRACTION * 100.0)),
            scope: SloScope::Run,
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

    /// Figure in the unit of the limit; infinite for times without a success.
    fn value(&self, figures: &SloFigures) -> f64 {
        let of_successes = |value: &dyn Fn() -> f64| if figures.ok == 0 { f64::INFINITY } else { value() };
        match self.metric {
            SloMetric::Quantile(clock, q) => of_successes(&|| figures.times(clock).quantile(q)),
            SloMetric::Mean(clock) => of_successes(&|| figures.times(clock).mean),
            SloMetric::Max(clock) => of_successes(&|| figures.times(clock).max),
            // Without requests nothing was shown to work.
            SloMetric::Errors if figures.total == 0 => 1.0,
            SloMetric::Errors => figures.failed as f64 / figures.total as f64,
            SloMetric::Rate => figures.rate_per_s,
            SloMetric::Checks => {
                let CheckCounts { passed, failed } = figures.checks;
                passed as f64 / (passed + failed).max(1) as f64
            }
            SloMetric::Goodput => figures.good as f64 / figures.ended.max(1) as f64,
        }
    }

    fn describe(&self, figures: &SloFigures, value: f64) -> String {
        let time = |clock: TimeKind, name: &str| {
            let shown = if value.is_finite() { format!(" {}", self.format_time(value)) } else { ": none".into() };
            let shown = if figures.ok == 0 { ": no success".into() } else { shown };
            format!("{name} {clock}{shown}")
        };
        let percent = || trim_zeros(&self.format_number(value, 4, 100.0)).to_owned();
        let of = if self.scope == SloScope::Iterations { "iterations, " } else { "" };
        match self.metric {
            SloMetric::Quantile(clock, q) => time(clock, &format!("p{}", format_trimmed(q * 100.0))),
            SloMetric::Mean(clock) => time(clock, "mean"),
            SloMetric::Max(clock) => time(clock, "max"),
            SloMetric::Errors if figures.total == 0 => format!("{of}no requests"),
            SloMetric::Errors => {
                format!("{of}errors {}% ({} of {})", percent(), figures.failed, figures.total)
            }
            SloMetric::Rate => format!("{of}rate of successes {}/s", self.format_number(value, 1, 1.0)),
            SloMetric::Checks if figures.checks == CheckCounts::default() => "no checks".into(),
            SloMetric::Checks => {
                let CheckCounts { passed, failed } = figures.checks;
                format!("checks {}% ({passed} of {})", percent(), passed + failed)
            }
            SloMetric::Goodput => format!("goodput {}% ({} of {})", percent(), figures.good, figures.ended),
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
        let help = "expected e.g. p99<200ms, service.p50<10ms, mean<1s, max<2s, errors<1%, rate>1000 or checks>99%";
        // A name before the figure may have any character; a limit has none of these.
        let at = text.rfind(['<', '>']).ok_or_else(|| format!("no < or > in it; {help}"))?;
        let (before, rest) = text.split_at(at);
        let below = rest.starts_with('<');
        let limit: String = rest[1..].chars().filter(|c| !c.is_whitespace()).collect();
        let (or_equal, limit) = match limit.strip_prefix('=') {
            Some(limit) => (true, limit),
            None => (false, limit.as_str()),
        };
        let (scope, name) = match before.rsplit_once(':').map(|(scope, name)| (scope.trim(), name)) {
            None => (SloScope::Run, before),
            Some(("iterations", name)) => (SloScope::Iterations, name),
            Some((scope, name)) => (SloScope::Named(scope.to_owned()), name),
        };
        let words: Vec<&str> = name.split_whitespace().collect();
        let name = &match words.as_slice() {
            [clock, figure] => format!("{}.{figure}", clock.strip_suffix("_ms").unwrap_or(clock)),
            words => words.concat(),
        };
        let figure = parse_metric(name, &scope).ok_or_else(|| match TimeKind::named(name) {
            Some(kind) if scope.has(kind) => {
                format!("'{name}' has many values; choose one, e.g. {name}.p99{}", &text[at..])
            }
            _ => format!("unknown figure '{}'; {help}", words.join(" ")),
        })?;
        if matches!(figure, SloMetric::Errors | SloMetric::Checks | SloMetric::Goodput)
            && let Ok(bare) = limit.parse::<f64>()
            && (bare > 1.0 || bare == 1.0 && figure == SloMetric::Errors)
        {
            return Err(format!(
                "invalid limit '{limit}' for '{name}', a fraction: write {name}{}{}{bare}%, or a number below 1, e.g. 0.01",
                if below { '<' } else { '>' },
                if or_equal { "=" } else { "" },
            ));
        }
        let limit = parse_limit(figure, limit).ok_or_else(|| match limit.parse::<f64>() {
            Ok(_) if figure.time_kind().is_some() => {
                format!("needs a unit: {}{limit}ms", &text[..text.len() - limit.len()])
            }
            _ => format!("invalid limit '{limit}' for '{name}'; {help}"),
        })?;
        Ok(Self { text: text.to_owned(), scope, metric: figure, below, or_equal, limit })
    }
}

fn parse_metric(name: &str, scope: &SloScope) -> Option<SloMetric> {
    let is_iterations = *scope == SloScope::Iterations;
    let of_name = |(clock, bare)| Some((TimeKind::named(clock).filter(|kind| scope.has(*kind))?, bare));
    let (clock, bare) = match name.split_once('.').and_then(of_name) {
        Some(named) => named,
        None if is_iterations => (TimeKind::Iteration, name),
        None => (TimeKind::Response, name),
    };
    match bare {
        "mean" | "avg" => return Some(SloMetric::Mean(clock)),
        "max" => return Some(SloMetric::Max(clock)),
        "median" => return Some(SloMetric::Quantile(clock, 0.5)),
        "checks" if bare == name => return Some(SloMetric::Checks),
        "errors" if bare == name => return Some(SloMetric::Errors),
        "rate" if bare == name => return Some(SloMetric::Rate),
        "goodput" if bare == name && *scope == SloScope::Run => return Some(SloMetric::Goodput),
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
        SloMetric::Errors | SloMetric::Checks | SloMetric::Goodput => match text.strip_suffix('%') {
            Some(percent) => number(percent).map(|p| p / 100.0),
            None => number(text).filter(|fraction| *fraction <= 1.0),
        },
        SloMetric::Rate => units::rate(text).ok().filter(|rate| *rate >= 0.0),
        _ => {
            let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3), ("m", 60e3), ("h", 3.6e6)];
            let (unit, scale) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
            number(text.strip_suffix(unit)?).map(|v| v * scale)
        }
    }
}
