//! Rate of an access log as that of a load.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::stages_flag::LoadStagesFlag;
use super::{LoadArgs, OPEN};
use crate::access_log::{LogReader, LogRequest, check_files, log_factor};
use crate::messages::Messages;
use crate::mix_from::MixFromArgs;
use weir_accesslog::{RateProfile, RecordSelection};
use weir_base::Nanos;
use weir_pace::live_load::LevelKind;
use weir_pace::schedule::LoadStage;

/// Rate of an access log as that of a load.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RateFromArgs {
    /// access log whose rate over time this has; repeatable, in order
    #[arg(long, value_name = "LOG", conflicts_with_all = ["rate", "stages", "users"], help_heading = OPEN)]
    rate_from: Vec<PathBuf>,
    /// with --rate-from: factor of the rate, e.g. 2x [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = log_factor, requires = "rate_from", help_heading = OPEN)]
    scale: Option<f64>,
    /// with --rate-from: speed, e.g. 60x [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = log_factor, requires = "rate_from", help_heading = OPEN)]
    speed: Option<f64>,
}

/// Rate of a log over time.
#[derive(Clone, Debug)]
pub(crate) struct LogRate {
    pub(crate) stages: Vec<LoadStage>,
    /// Summary of the log for a person, in one line.
    summary: String,
}

impl RateFromArgs {
    /// Arguments of these logs, with factors of the rate and the speed.
    pub(crate) fn new(rate_from: Vec<PathBuf>, scale: Option<f64>, speed: Option<f64>) -> Self {
        Self { rate_from, scale, speed }
    }

    /// Whether a log is given.
    #[cfg(all(feature = "history", feature = "web"))]
    pub(super) fn is_given(&self) -> bool {
        !self.rate_from.is_empty()
    }

    /// Reads the log, if one is given, in the format of `log`; `length` cuts the load off.
    ///
    /// # Errors
    /// One line, if the log cannot be read or has no request.
    pub(crate) fn read(&self, log: &MixFromArgs, length: Option<Duration>) -> Result<Option<LogRate>, String> {
        log.check(!self.rate_from.is_empty())?;
        if self.rate_from.is_empty() {
            return Ok(None);
        }
        check_files(&self.rate_from)?;
        let request = LogRequest {
            files: self.rate_from.clone(),
            format: log.format()?,
            // What is counted is not sent.
            selection: RecordSelection { allows_unsafe: true, ..RecordSelection::default() },
            from: None,
            to: None,
            seed: 0,
        };
        let mut reader = LogReader::open(request)?;
        reader.peek()?;
        let mut profile = RateProfile::default();
        while let Some(timed) = reader.next()? {
            profile.add(timed.start_ns);
            reader.count(&timed);
        }
        let (scale, speed) = (self.scale.unwrap_or(1.0), self.speed.unwrap_or(1.0));
        let stages = cut(profile.stages(scale, speed), length.map(Nanos::from));
        let expected: f64 = stages.iter().map(LoadStage::expected).sum();
        let lasts = stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.length);
        let replay = reader.tally().to_replay();
        let summary = format!(
            "--rate-from: {} requests in {:.1} s of the log ({}, {} of {} lines left out); {expected:.0} in {:.1} s",
            replay.requests,
            replay.log_s(),
            reader.format_name(),
            replay.left_out_lines(),
            replay.lines,
            lasts.as_secs_f64(),
        );
        Ok(Some(LogRate { stages, summary }))
    }
}

impl LoadArgs {
    /// Takes the rate of a log as stages, if one is given.
    ///
    /// # Errors
    /// One line, if the log cannot be read or has no request.
    pub(super) fn read_rate(&mut self, messages: &Messages) -> Result<(), String> {
        if let Some(rate) = self.rate_from_args.read(&self.request_args.mix_from_args, self.duration)? {
            messages.note(&rate.summary);
            (self.stages, self.duration) = (Some(LoadStagesFlag(LevelKind::Rate, rate.stages)), None);
        }
        Ok(())
    }
}

/// The first part of stages, of this length.
fn cut(stages: Vec<LoadStage>, length: Option<Nanos>) -> Vec<LoadStage> {
    let Some(mut left) = length else { return stages };
    let mut kept = Vec::new();
    for stage in stages {
        if left == Nanos::ZERO {
            break;
        }
        let length = stage.length.min(left);
        kept.push(LoadStage { length, ..stage });
        left = left - length;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_cuts_the_stages() {
        let stage = |per_s: f64, s: u64| LoadStage { from_per_s: per_s, to_per_s: per_s, length: Nanos::from_secs(s) };
        let all = vec![stage(1.0, 2), stage(3.0, 4)];
        assert_eq!(cut(all.clone(), None), all);
        assert_eq!(cut(all.clone(), Some(Nanos::from_secs(3))), [stage(1.0, 2), stage(3.0, 1)]);
        assert_eq!(cut(all.clone(), Some(Nanos::from_secs(2))), [stage(1.0, 2)]);
        assert_eq!(cut(all.clone(), Some(Nanos::from_secs(9))), all);
    }
}
