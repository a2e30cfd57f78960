//! Range, precision and length of a search.

use std::time::Duration;

use super::CapacityOptions;
use weir_load::Options;
use weir_measure::LoadModel;
use weir_measure::capacity::search::SearchRange;
use weir_measure::capacity::step::StepLength;
use weir_measure::slo::Slo;

/// Minimum of the default of `--max-time`.
const MIN_DEFAULT_SEARCH_TIME: Duration = Duration::from_secs(300);
const DEFAULT_PRECISION: f64 = 0.03;
const DEFAULT_WARMUP: Duration = Duration::from_secs(1);

/// Size of the loads of a kind, for the defaults.
#[derive(Clone, Copy, Debug)]
pub struct SearchScale {
    /// First rate in the open loop, per second.
    pub first_rate: f64,
    /// Maximum time per load level.
    pub step_length: Duration,
}

impl SearchScale {
    /// Requests.
    pub const REQUESTS: Self = Self { first_rate: 100.0, step_length: Duration::from_secs(30) };
    /// Conversations with a language model; a goodput of 99% takes a few hundred responses to be shown.
    pub const CONVERSATIONS: Self = Self { first_rate: 1.0, step_length: Duration::from_secs(60) };
}

/// Range, precision and length of a search, not yet validated. `None` means "not given".
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SearchOptions {
    /// First load level, per second or in users.
    pub from: Option<f64>,
    /// Highest load level.
    pub max_load: Option<f64>,
    /// Final distance between the bounds, as a fraction.
    pub precision: Option<f64>,
    /// Maximum time per load level.
    pub step_length: Option<Duration>,
    /// Maximum time of the search.
    pub max_time: Option<Duration>,
}

impl SearchOptions {
    /// Search with loads of these options.
    ///
    /// # Errors
    /// One line with the first value that is out of range.
    pub fn of_load(
        self,
        options: Options,
        (model, scale): (LoadModel, SearchScale),
        slos: Vec<Slo>,
    ) -> Result<CapacityOptions, String> {
        let SearchScale { first_rate, step_length } = scale;
        let is_closed = model == LoadModel::Closed;
        let (start, least, most) = if is_closed { (1.0, 1.0, 10_000.0) } else { (first_rate, first_rate / 1e3, 1e6) };
        let (start, most) = (self.from.unwrap_or(start), self.max_load.unwrap_or(most));
        if !(start >= least && start <= most && most <= 1e8) {
            return Err(format!("--from: {start} is out of range; give {least} to {most}, the value of --to"));
        }
        let precision = self.precision.unwrap_or(DEFAULT_PRECISION);
        if !(0.005..=1.0).contains(&precision) {
            return Err(format!("--precision: {precision} is out of range; give 0.5% to 100%"));
        }
        let step_length = self.step_length.unwrap_or(step_length);
        if !(3..=3600).contains(&step_length.as_secs()) {
            return Err("--step-time: give 3s to 1h; shorter steps have no outcome".into());
        }
        if self.max_time.is_some_and(|time| time.is_zero()) {
            return Err("--max-time: invalid time 0; write e.g. 10m".into());
        }
        let warmup = options.warmup.unwrap_or(DEFAULT_WARMUP);
        if warmup.as_secs() > 600 {
            return Err("--warmup: give 10m at most".into());
        }
        Ok(CapacityOptions {
            // The single user before the first level has none.
            options: Options { warmup: None, ..options },
            program: None,
            slos,
            model,
            range: SearchRange {
                start,
                min_load: least,
                max_load: most,
                precision,
                integer: is_closed,
                min_gap: if is_closed { 1.0 } else { first_rate / 100.0 },
                step_s: step_length.as_secs_f64(),
            },
            max_time: self.max_time.unwrap_or_else(|| (step_length * 30).max(MIN_DEFAULT_SEARCH_TIME)),
            step_length: StepLength { min_s: 3, max_s: step_length.as_secs() },
            warmup_s: warmup.as_secs_f64().ceil() as u64,
            pid: None,
            agents: None,
            recovery: None,
        })
    }
}
