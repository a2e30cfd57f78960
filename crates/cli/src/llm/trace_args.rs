//! Flags of traces: of one that is replayed, and of a sample of the requests that is traced.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use weir_base::units;
use weir_llm::load::{TraceLoop, TraceOptions};
use weir_llm::trace::TraceFormat;
use weir_replay::log::log_factor;

const TRACE: &str = "Trace";

/// Trace that is replayed, in place of prompts and a rate.
#[derive(Clone, Debug, Args)]
pub(super) struct TraceArgs {
    /// replay this trace; or trace a fraction of requests, e.g. 1%
    #[arg(long = "trace", value_name = "FILE|FRACTION", value_parser = str::parse::<TraceArg>, help_heading = TRACE)]
    traces: Vec<TraceArg>,
    /// start requests by recorded times, by responses, or by free users
    #[arg(long, value_name = "open|sessions|closed", value_parser = str::parse::<TraceLoop>, help_heading = TRACE)]
    trace_loop: Option<TraceLoop>,
    /// read as mooncake, agentic, bailian, dynamo, otel, sharegpt, burstgpt, azure, clients [default: by content]
    #[arg(long, value_name = "NAME", value_parser = str::parse::<TraceFormat>, help_heading = TRACE)]
    trace_format: Option<TraceFormat>,
    /// replay this much of the trace, from its first request [default: all]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = TRACE)]
    trace_duration: Option<Duration>,
    /// take one hash as N tokens [default: the format's]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = TRACE)]
    trace_block: Option<u64>,
    /// replay faster or slower, e.g. 2x, 0.5 [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = log_factor, help_heading = TRACE)]
    speed: Option<f64>,
    /// replay this fraction of the sessions, by seed, e.g. 10% [default: all]
    #[arg(long, value_name = "FRACTION", value_parser = units::fraction, help_heading = TRACE)]
    sample: Option<f64>,
}

/// Value of `--trace`: a file, or a fraction of requests.
#[derive(Clone, Debug, PartialEq)]
enum TraceArg {
    File(PathBuf),
    Fraction(f64),
}

impl FromStr for TraceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match units::fraction(text) {
            Ok(fraction) => Ok(Self::Fraction(fraction)),
            Err(_) if text.is_empty() => Err("write a file, or a fraction such as 1%".to_owned()),
            Err(_) => Ok(Self::File(text.into())),
        }
    }
}

impl TraceArgs {
    /// Fraction of the requests that are traced.
    pub(super) fn fraction(&self) -> Option<f64> {
        self.traces.iter().find_map(|trace| match trace {
            TraceArg::Fraction(fraction) => Some(*fraction),
            TraceArg::File(_) => None,
        })
    }

    /// Trace that is replayed; none without a file.
    ///
    /// # Errors
    /// One line: flags of a trace without one, or two of a kind.
    pub(super) fn options(&self) -> Result<Option<TraceOptions>, String> {
        let is_file = |trace: &&TraceArg| matches!(trace, TraceArg::File(_));
        let files = self.traces.iter().filter(is_file).count();
        if files > 1 || self.traces.len() - files > 1 {
            return Err("--trace: give one file, and one fraction".to_owned());
        }
        let Some(TraceArg::File(file)) = self.traces.iter().find(is_file) else {
            let given = [
                ("--trace-format", self.trace_format.is_some()),
                ("--trace-duration", self.trace_duration.is_some()),
                ("--trace-block", self.trace_block.is_some()),
                ("--trace-loop", self.trace_loop.is_some()),
                ("--speed", self.speed.is_some()),
                ("--sample", self.sample.is_some()),
            ];
            let unused = given.iter().find(|(_, is_given)| *is_given);
            return unused.map_or(Ok(None), |(flag, _)| Err(format!("{flag} needs --trace FILE")));
        };
        Ok(Some(TraceOptions {
            file: file.clone(),
            format: self.trace_format,
            speed: self.speed,
            duration: self.trace_duration,
            sample: self.sample,
            block_tokens: self.trace_block,
            pacing: self.trace_loop.unwrap_or_default(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_told_from_a_file() {
        let of = |text: &str| text.parse::<TraceArg>();
        assert_eq!(of("1%"), Ok(TraceArg::Fraction(0.01)));
        for file in ["trace.jsonl", "-", "a/1%.csv", "./1%"] {
            assert_eq!(of(file), Ok(TraceArg::File(file.into())), "{file}");
        }
        assert!(of("").is_err());
    }
}
