//! Values of flags of `weir send`.

use std::ops::RangeInclusive;

use clap::ValueEnum;

use weir_base::Nanos;
use weir_base::units;
use weir_retry::backoff::Backoff;
use weir_send_file::ResultsForm;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OrderArg {
    Deadline,
    Arrival,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ResultsArg {
    Weir,
    OpenaiBatch,
    AnthropicBatch,
}

impl ResultsArg {
    pub(super) const fn form(self) -> ResultsForm {
        match self {
            Self::Weir => ResultsForm::Weir,
            Self::OpenaiBatch => ResultsForm::OpenAiBatch,
            Self::AnthropicBatch => ResultsForm::AnthropicBatch,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DelayBoundArg {
    Learnt,
    Unknown,
    Given(Nanos),
}

impl DelayBoundArg {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        match text {
            "learn" => Ok(Self::Learnt),
            "none" => Ok(Self::Unknown),
            _ => units::time(text)
                .map(|time| Self::Given(time.into()))
                .map_err(|why| format!("{why}; or write learn or none")),
        }
    }
}

/// Ranges of statuses. Not a bare `Vec`, which clap reads as a repeatable flag.
#[derive(Clone, Debug)]
pub(super) struct StatusRanges(pub(super) Vec<RangeInclusive<u16>>);

impl StatusRanges {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid statuses '{text}'; write e.g. 200-299,404");
        let status =
            |text: &str| text.trim().parse().ok().filter(|status| (100..=599).contains(status)).ok_or_else(wrong);
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let range = status(low)?..=status(high)?;
            if range.is_empty() { Err(wrong()) } else { Ok(range) }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

/// `500ms..60s`.
pub(super) fn backoff(text: &str) -> Result<Backoff, String> {
    let wrong = || format!("invalid backoff '{text}'; write the first and the longest wait, e.g. 500ms..60s");
    let (first, most) = text.split_once("..").ok_or_else(wrong)?;
    let time = |text: &str| units::time(text.trim()).map(Nanos::from).map_err(|_| wrong());
    let backoff = Backoff { min: time(first)?, max: time(most)? };
    if backoff.min == Nanos::ZERO || backoff.max < backoff.min { Err(wrong()) } else { Ok(backoff) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_a_list_of_ranges() {
        assert_eq!(StatusRanges::read("200-299, 404").unwrap().0, [200..=299, 404..=404]);
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
    fn a_delay_bound_is_a_time_learn_or_none() {
        assert_eq!(DelayBoundArg::read("50ms"), Ok(DelayBoundArg::Given(Nanos::from_millis(50))));
        assert_eq!(DelayBoundArg::read("learn"), Ok(DelayBoundArg::Learnt));
        assert!(DelayBoundArg::read("soon").unwrap_err().contains("learn"));
    }
}
