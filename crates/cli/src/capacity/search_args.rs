//! Flags of a search for capacity, shared by `capacity` and `llm`.

use std::time::Duration;

use clap::Args;

use weir_base::units;
use weir_capacity::SearchOptions;

/// Heading of these flags in the help.
pub(super) const SEARCH: &str = "Search";

/// Range, precision and length of a search.
#[derive(Clone, Debug, Args)]
pub(crate) struct SearchArgs {
    /// start the search at this load [default: 100/s, or 1 user]
    #[arg(long, value_name = "LOAD", value_parser = units::rate, help_heading = SEARCH)]
    from: Option<f64>,
    /// search up to this load [default: 1,000,000/s, or 10,000 users]
    #[arg(long = "to", value_name = "LOAD", value_parser = units::rate, help_heading = SEARCH)]
    max_load: Option<f64>,
    /// stop when the bounds are this close [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = units::fraction, help_heading = SEARCH)]
    precision: Option<f64>,
    /// spend at most TIME per load level [default: 30s, for llm 1m]
    #[arg(long = "step-time", value_name = "TIME", value_parser = units::seconds, help_heading = SEARCH)]
    step_length: Option<Duration>,
    /// end the search after TIME [default: 30 x --step-time, at least 5m]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = SEARCH)]
    max_time: Option<Duration>,
}

impl SearchArgs {
    /// Flag that is given, if one is.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--from", self.from.is_some()),
            ("--to", self.max_load.is_some()),
            ("--precision", self.precision.is_some()),
            ("--step-time", self.step_length.is_some()),
            ("--max-time", self.max_time.is_some()),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// Search of the flags.
    pub(crate) fn options(&self) -> SearchOptions {
        SearchOptions {
            from: self.from,
            max_load: self.max_load,
            precision: self.precision,
            step_length: self.step_length,
            max_time: self.max_time,
        }
    }
}
