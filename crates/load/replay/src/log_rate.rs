//! Rate of an access log as that of a load.

use std::time::Duration;

use crate::log::{LogReader, LogRequest, check_files, log_format};
use crate::log_load::LogLoad;
use crate::{RateProfile, RecordSelection};
use weir_base::Nanos;
use weir_pace::schedule::LoadStage;

/// Rate of a log over time.
#[derive(Clone, Debug)]
pub struct LogRate {
    /// Stages of a load.
    pub stages: Vec<LoadStage>,
    /// Summary of the log, for a person.
    pub summary: String,
}

impl LogLoad {
    /// Reads the log whose rate the load has, if one is given; `length` cuts the load off.
    ///
    /// # Errors
    /// One line, if the log cannot be read or has no request.
    pub fn rate(&self, length: Option<Duration>) -> Result<Option<LogRate>, String> {
        self.check_pattern()?;
        if self.rate_from.is_empty() {
            return Ok(None);
        }
        check_files(&self.rate_from)?;
        let request = LogRequest {
            files: self.rate_from.clone(),
            format: log_format(self.log_pattern.as_deref())?,
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
        if expected < 1.0 {
            return Err(format!(
                "--rate-from: the first {:.1} s of the log have {expected:.1} requests; give a longer -d or a higher --scale",
                lasts.as_secs_f64()
            ));
        }
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
