//! Length of a run, by time or by number.

use super::{DEFAULT_DURATION, Pacing, PlanError, in_range, positive_time};
use crate::options::Options;
use weir_base::Nanos;
use weir_pace::user_stages::UserStages;

/// End of a run.
pub(super) struct RunLength {
    pub(super) until: Nanos,
    pub(super) requests: Option<u64>,
    pub(super) ends_with_requests: bool,
}

impl RunLength {
    pub(super) fn of(options: &Options) -> Result<Self, PlanError> {
        let requests = options.requests.map(|n| in_range("requests", n, 1, u64::MAX)).transpose()?;
        let until = match options.duration {
            Some(duration) => positive_time("duration", duration)?,
            None if !options.user_stages.is_empty() => UserStages::new(options.user_stages.clone()).length(),
            None if requests.is_some() || options.loops.is_some() => Nanos::NEVER,
            None => DEFAULT_DURATION.into(),
        };
        let ends_with_requests = options.rate.is_some() && requests.is_some() && options.duration.is_none();
        Ok(Self { until, requests, ends_with_requests })
    }

    /// Time of the last possible arrival.
    pub(super) fn of_arrivals(&self, pacing: &Pacing) -> Nanos {
        match pacing {
            Pacing::Closed(_) | Pacing::Recorded => self.until,
            Pacing::Open(schedule) => schedule.length(),
        }
    }

    /// Time at which iterations are cut off. A number of them that no duration bounds is done in full, also those that
    /// arrive last.
    pub(super) fn of_iterations(&self, pacing: &Pacing) -> Nanos {
        if self.until == Nanos::NEVER { self.until } else { self.of_arrivals(pacing) }
    }
}

pub(super) fn check_warmup(warmup: Nanos, until: Nanos) -> Result<(), PlanError> {
    if warmup >= until {
        return Err(PlanError::Value("warmup", format!("{warmup} is not shorter than the run of {until}")));
    }
    Ok(())
}
