//! Flags of access logs that give a load its rate, or its requests.

use std::path::PathBuf;

use clap::Args;

use weir_replay::LogLoad;
use weir_replay::log::log_factor;

const OPEN: &str = "Open loop";
const SCENARIO: &str = "Scenario";

/// Rate of an access log as that of a load.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct RateFromArgs {
    /// follow the request rate of this access log; repeatable, in order
    #[arg(long, value_name = "LOG", conflicts_with_all = ["rate", "stages", "users"], help_heading = OPEN)]
    rate_from: Vec<PathBuf>,
    /// multiply the rate of --rate-from, e.g. 2x [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = log_factor, requires = "rate_from", help_heading = OPEN)]
    scale: Option<f64>,
    /// speed up --rate-from, e.g. 60x [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = log_factor, requires = "rate_from", help_heading = OPEN)]
    speed: Option<f64>,
}

/// Requests of an access log, by how often it has them.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct MixFromArgs {
    /// send the requests of this access log, in its mix; repeatable
    #[arg(long, value_name = "LOG", conflicts_with = "scenarios", help_heading = SCENARIO)]
    mix_from: Vec<PathBuf>,
    /// read access logs in this format [default: detected from the lines]
    #[arg(long, value_name = "PATTERN", help_heading = SCENARIO)]
    log_pattern: Option<String>,
}

impl RateFromArgs {
    /// Whether a log is given.
    pub(super) fn is_given(&self) -> bool {
        !self.rate_from.is_empty()
    }

    /// Logs of the flags, in the format of `mix`.
    pub(super) fn log_load(&self, mix: &MixFromArgs) -> LogLoad {
        LogLoad { rate_from: self.rate_from.clone(), scale: self.scale, speed: self.speed, ..mix.log_load() }
    }
}

impl MixFromArgs {
    /// Whether a log is given.
    pub(super) fn is_given(&self) -> bool {
        !self.mix_from.is_empty()
    }

    /// Logs of the flags.
    pub(super) fn log_load(&self) -> LogLoad {
        LogLoad { mix_from: self.mix_from.clone(), log_pattern: self.log_pattern.clone(), ..LogLoad::default() }
    }
}
