//! Load of a language model's server: how many conversations, and what they have to meet.

use std::path::PathBuf;
use std::time::Duration;

use super::searched_load::SearchedLoad;
use super::sweep_values::SweepValues;
use super::token_counter::TokenCounter;
use weir_load::Options;
use weir_measure::goodput::GoodputObjectives;
use weir_measure::slo::Slo;
use weir_pace::schedule::{Arrivals, LoadStage};

/// Default number of conversations at a time.
const DEFAULT_CONCURRENCY: u64 = 8;
/// Default duration.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);

/// Load of a language model's server. `None` and empty lists mean "not given".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LlmLoadOptions {
    /// Closed loop: conversations at a time, by default 8; open loop: maximum, by default 1000.
    pub concurrency: Option<u64>,
    /// Closed loop: time over which conversations start, evenly.
    pub ramp_up: Option<Duration>,
    /// Open loop: conversations per second.
    pub rate: Option<f64>,
    /// Arrival process of the open loop; by default Poisson.
    pub arrivals: Option<Arrivals>,
    /// Rate of the open loop over time.
    pub stages: Vec<LoadStage>,
    /// Values of several loads, one after the other.
    pub sweep: Option<SweepValues>,
    /// Load that a search for the highest one changes.
    pub capacity: Option<SearchedLoad>,
    /// Number of conversations.
    pub num_prompts: Option<u64>,
    /// Duration; by default 30 s, unless the load has another end.
    pub duration: Option<Duration>,
    /// Initial time excluded from the result.
    pub warmup: Option<Duration>,
    /// Generator threads; by default 1.
    pub threads: Option<u64>,
    /// Seed of all random choices; by default 0.
    pub seed: Option<u64>,
    /// Objectives of each request, such as `ttft:500ms tpot:50ms`.
    pub goodput: Vec<String>,
    /// Objectives of the run.
    pub slos: Vec<Slo>,
    /// The model's `tokenizer.json`, for tokens that the server does not report.
    pub tokenizer: Option<PathBuf>,
}

impl LlmLoadOptions {
    /// Seed of all random choices.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Counter of tokens that the server does not report; none without a tokenizer.
    ///
    /// # Errors
    /// One line, if the file cannot be read.
    pub(super) fn token_counter(&self) -> Result<Option<TokenCounter>, String> {
        self.tokenizer.as_deref().map(TokenCounter::open).transpose()
    }

    /// Checks that nothing else has what a sweep or a search changes, and that conversations that start over a time are
    /// those of a closed loop.
    ///
    /// # Errors
    /// One line with the option.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_sweep()?;
        self.check_search()?;
        if self.ramp_up.is_some() && self.is_open() {
            return Err("--ramp-up is for a closed loop; write a rising rate as --stages 0-8/1m".to_owned());
        }
        Ok(())
    }

    fn check_sweep(&self) -> Result<(), String> {
        let Some(sweep) = &self.sweep else { return Ok(()) };
        let given = [
            ("--stages", !self.stages.is_empty()),
            ("--rate", sweep.is_of_rate() && self.rate.is_some()),
            ("--concurrency", !sweep.is_of_rate() && self.concurrency.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} and --sweep cannot be combined; the sweep has the values")),
            None => Ok(()),
        }
    }

    fn check_search(&self) -> Result<(), String> {
        let Some(searched) = self.capacity else { return Ok(()) };
        let given = [
            ("--sweep", self.sweep.is_some()),
            ("--stages", !self.stages.is_empty()),
            ("--rate", self.rate.is_some()),
            ("--concurrency", self.concurrency.is_some() && !searched.is_of_rate()),
            ("--ramp-up", self.ramp_up.is_some()),
            ("--num-prompts", self.num_prompts.is_some()),
            ("--duration", self.duration.is_some()),
        ];
        if self.tokenizer.is_some() {
            return Err("--tokenizer counts after a run, and --capacity judges each second; leave one out".to_owned());
        }
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} and --capacity cannot be combined; see --from, --to, --step-time")),
            None => Ok(()),
        }
    }

    /// Whether the load is an open loop.
    fn is_open(&self) -> bool {
        self.rate.is_some()
            || !self.stages.is_empty()
            || self.sweep.as_ref().is_some_and(SweepValues::is_of_rate)
            || self.capacity.is_some_and(SearchedLoad::is_of_rate)
    }

    /// Objectives of each request; none if none is given.
    ///
    /// # Errors
    /// One line with the invalid objective.
    pub(super) fn goodput(&self) -> Result<GoodputObjectives, String> {
        if self.goodput.is_empty() {
            return Ok(GoodputObjectives::default());
        }
        GoodputObjectives::parse(&self.goodput.join(" ")).map_err(|why| format!("--goodput: {why}"))
    }

    /// Options of a load to an endpoint whose arrivals a trace has; `--num-prompts` bounds its sessions.
    pub(super) fn trace_options(&self, endpoint: Options) -> Options {
        Options {
            connections: self.concurrency,
            threads: Some(self.threads.unwrap_or(1)),
            requests: self.num_prompts,
            duration: self.duration,
            warmup: self.warmup,
            seed: Some(self.seed()),
            ..endpoint
        }
    }

    /// Options of a load to an endpoint.
    pub(super) fn options(&self, endpoint: Options) -> Options {
        let default_concurrency = (!self.is_open()).then_some(DEFAULT_CONCURRENCY);
        let concurrency = self.concurrency.or(default_concurrency);
        // Only users start over a time.
        let (connections, users) = if self.ramp_up.is_some() { (None, concurrency) } else { (concurrency, None) };
        let has_end = self.duration.is_some() || self.num_prompts.is_some() || !self.stages.is_empty();
        Options {
            connections,
            users,
            ramp_up: self.ramp_up,
            threads: Some(self.threads.unwrap_or(1)),
            requests: self.num_prompts,
            duration: self.duration.or((!has_end).then_some(DEFAULT_DURATION)),
            rate: self.rate,
            arrivals: self.arrivals.unwrap_or(Arrivals::Poisson),
            stages: self.stages.clone(),
            warmup: self.warmup,
            seed: Some(self.seed()),
            ..endpoint
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sweep_or_a_search_changes_is_not_given_otherwise() {
        let given = LlmLoadOptions { rate: Some(2.0), ..LlmLoadOptions::default() };
        let sweep = LlmLoadOptions { sweep: "rate=1,2".parse().ok(), ..given.clone() };
        assert_eq!(sweep.check(), Err("--rate and --sweep cannot be combined; the sweep has the values".to_owned()));
        let search = LlmLoadOptions { capacity: "rate".parse().ok(), ..given.clone() };
        let why = "--rate and --capacity cannot be combined; see --from, --to, --step-time";
        assert_eq!(search.check(), Err(why.to_owned()));
        let ramp = LlmLoadOptions { ramp_up: Some(Duration::from_secs(1)), ..given.clone() };
        assert!(ramp.check().is_err_and(|why| why.starts_with("--ramp-up is for a closed loop")));
        assert_eq!(given.check(), Ok(()));
    }
}
