//! Limit of a delivery in words, with the rate that it allows.

use weir_base::Nanos;
use weir_base::duration_text::duration_text;
use weir_base::number_text::short_rate as rate;
use weir_delivery::dispatch::SendLimit;
use weir_limits::limit_unit::LimitUnit;
use weir_send::Options;

/// Facts about a delivery that the words depend on.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitFacts {
    /// Given one-way delay bound; None: learned, or none.
    pub(super) given_bound: Option<Nanos>,
    /// Delay bound in use, with what is added for the machines.
    pub(super) delay_bound: Option<Nanos>,
    /// Maximum requests in flight.
    pub(super) max_in_flight: usize,
    /// Requests per second that the limits of all keys allow together; infinite without a limit.
    pub(super) allowed_per_s: f64,
    /// Keys that may send.
    pub(super) usable_keys: usize,
    /// Mean time from a send to its response; zero without responses.
    pub(super) service_time: Nanos,
    /// Whether all jobs are in the store.
    pub(super) is_input_complete: bool,
    /// Queued jobs in the store.
    pub(super) queued: u64,
    /// Pauses of keys and hosts that are down, in words; empty without.
    pub(super) held: String,
}

/// Fraction of a declared limit below which its estimate was lowered, and not only kept safe by the delay bound.
const MIN_KEPT_FRACTION: f64 = 0.5;

impl LimitFacts {
    pub(super) fn of_options(options: &Options) -> Self {
        Self {
            given_bound: options.rules.key.delay_bound,
            max_in_flight: options.rules.max_in_flight,
            allowed_per_s: f64::INFINITY,
            ..Self::default()
        }
    }

    /// The limit in words, and what it allows: `--ordered with a delay bound of 50ms allows 19.2/s per key`.
    pub(super) fn text(&self, limit: SendLimit) -> String {
        let allows = match self.allowed_per_s {
            allowed if allowed.is_finite() => format!(" allows {}/s", rate(allowed)),
            _ => String::new(),
        };
        match limit {
            SendLimit::Jobs if !self.is_input_complete => "waits for more jobs".into(),
            SendLimit::Jobs if self.queued > 0 => "the job store hands out jobs no faster".into(),
            SendLimit::Jobs => "nothing left to send; waits for responses".into(),
            SendLimit::Retries => "all jobs left wait for their retry".into(),
            SendLimit::Keys => "no key may send: disabled, or leased by other senders".into(),
            SendLimit::Declared(limit) => {
                let flag = if limit.unit == LimitUnit::Weight { "--weight-limit" } else { "--limit" };
                let allows = if limit.unit == LimitUnit::Weight { String::new() } else { allows };
                let per = limit.window.per() + self.delay_bound.unwrap_or_default();
                let declared = limit.window.limit() as f64 / per.as_secs_f64();
                let is_lowered = self.allowed_per_s < declared * self.usable_keys as f64 * MIN_KEPT_FRACTION;
                let allows =
                    if is_lowered { allows.replace(" allows", ", lowered by rejections, allows") } else { allows };
                format!("{flag} {}{allows}", limit.window)
            }
            SendLimit::LearnedRate => format!("the rate learned from rejections{allows}"),
            SendLimit::LearnedConcurrency => "the requests in flight, as learned from rejections".into(),
            SendLimit::ReportedQuota => "the quota that the host reports".into(),
            SendLimit::Ordered => self.ordered_text(),
            SendLimit::Pause if !self.held.is_empty() => self.held.clone(),
            SendLimit::Pause => "a pause after rejections".into(),
            SendLimit::MaxConcurrency => {
                let most = self.max_in_flight;
                format!("--max-concurrency {most}{}", self.per_response(most as f64))
            }
            SendLimit::HostSpeed => format!("the host's own speed{}", self.responses_text()),
            SendLimit::HostDown if !self.held.is_empty() => self.held.clone(),
            SendLimit::HostDown => "the host is down".into(),
        }
    }

    /// The next request waits for the arrival of the one before: for the bound, or the response if that is earlier.
    fn ordered_text(&self) -> String {
        let (response, bound) = (self.service_time, self.delay_bound);
        match bound {
            Some(bound) if response == Nanos::ZERO || response >= bound => {
                let shown = self.given_bound.unwrap_or(bound);
                let allowed = rate(1.0 / bound.as_secs_f64().max(1e-9));
                format!("--ordered with a delay bound of {} allows {allowed}/s per key", duration_text(shown))
            }
            Some(_) => format!("--ordered{} per key", self.per_response(1.0)),
            None => format!("--ordered without a delay bound{} per key", self.per_response(1.0)),
        }
    }

    /// Rate that N requests in flight allow: ` with responses after 2.10s allows 122/s`.
    fn per_response(&self, in_flight: f64) -> String {
        match self.service_time {
            Nanos::ZERO => String::new(),
            time => format!("{} allows {}/s", self.responses_text(), rate(in_flight / time.as_secs_f64())),
        }
    }

    fn responses_text(&self) -> String {
        match self.service_time {
            Nanos::ZERO => String::new(),
            time => format!(" with responses after {}", duration_text(time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_delivery::key_window::KeyLimit;
    use weir_limits::models::{LimitModel, LimitWindow};

    fn declared(text: &str, unit: LimitUnit) -> SendLimit {
        let window = LimitWindow::read(text, LimitModel::SlidingLog).unwrap();
        SendLimit::Declared(KeyLimit { window, unit })
    }

    #[test]
    fn a_limit_has_the_rate_that_it_allows() {
        let ms = Nanos::from_millis;
        let facts = LimitFacts {
            given_bound: Some(ms(50)),
            delay_bound: Some(ms(52)),
            max_in_flight: 256,
            allowed_per_s: 38.05,
            usable_keys: 2,
            service_time: ms(2_100),
            is_input_complete: true,
            ..LimitFacts::default()
        };
        assert_eq!(facts.text(SendLimit::Ordered), "--ordered with a delay bound of 50ms allows 19.2/s per key");
        let quick = LimitFacts { service_time: ms(12), ..facts.clone() };
        assert_eq!(quick.text(SendLimit::Ordered), "--ordered with responses after 12ms allows 83.3/s per key");
        let unbounded = LimitFacts { delay_bound: None, ..quick.clone() };
        assert!(unbounded.text(SendLimit::Ordered).starts_with("--ordered without a delay bound with responses"));
        assert_eq!(
            facts.text(SendLimit::MaxConcurrency),
            "--max-concurrency 256 with responses after 2.10s allows 122/s"
        );
        assert_eq!(facts.text(declared("20/1s", LimitUnit::Requests)), "--limit 20/1s allows 38/s");
        let lowered = "--limit 400/1s, lowered by rejections, allows 38/s";
        assert_eq!(facts.text(declared("400/1s", LimitUnit::Requests)), lowered);
        assert_eq!(facts.text(declared("9000/1m", LimitUnit::Weight)), "--weight-limit 9000/1m");
        assert_eq!(facts.text(SendLimit::Jobs), "nothing left to send; waits for responses");
        let held = LimitFacts { held: "key a paused until 14:03:07 UTC".into(), ..facts };
        assert_eq!(held.text(SendLimit::Pause), "key a paused until 14:03:07 UTC");
    }
}
