//! Options of the replay of a trace.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::load_options::LlmLoadOptions;
use super::prompt_options::PromptOptions;
use crate::trace::TraceFormat;
use weir_base::Nanos;

/// Start rule of a trace's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceLoop {
    /// Their recorded times.
    #[default]
    Open,
    /// Of a session's first request its recorded time, of the others the response before them, and the time that the
    /// user or tool has taken.
    Sessions,
    /// As with `Sessions`, and sessions follow one another: each user begins the next one when it has ended one.
    Closed,
}

impl TraceLoop {
    /// All of them.
    const ALL: [Self; 3] = [Self::Open, Self::Sessions, Self::Closed];

    /// Name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Sessions => "sessions",
            Self::Closed => "closed",
        }
    }
}

impl FromStr for TraceLoop {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| format!("unknown loop '{name}'; choose {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Replay of a trace: when requests arrive, and how many tokens they have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceOptions {
    /// File; `-` is stdin.
    pub file: PathBuf,
    /// Format; told from the first line without one. A composition of clients is one of them.
    pub format: Option<TraceFormat>,
    /// Time of the trace divided by that of the load, by default 1.
    pub speed: Option<f64>,
    /// Length of the part of the trace that is replayed, from its first arrival; by default all.
    pub duration: Option<Duration>,
    /// Fraction of the sessions that are replayed, by seed, above 0 up to 1; by default all.
    pub sample: Option<f64>,
    /// Tokens of a block that identifiers of a trace stand for, >= 1; by default the format's.
    pub block_tokens: Option<u64>,
    /// Start rule of the requests.
    pub pacing: TraceLoop,
}

/// Speeds that are possible.
const SPEEDS: std::ops::RangeInclusive<f64> = 1e-3..=1e6;
/// Maximum tokens of a block.
const MAX_BLOCK_TOKENS: u64 = 1_000_000;

impl TraceOptions {
    /// Time of the trace divided by that of the load.
    pub(super) fn speed(&self) -> f64 {
        self.speed.unwrap_or(1.0)
    }

    /// Length of the part of the trace that is replayed.
    pub(super) fn length(&self) -> Nanos {
        self.duration.map_or(Nanos::NEVER, Nanos::from)
    }

    /// Name of the file.
    pub(super) fn name(&self) -> String {
        self.file.display().to_string()
    }

    /// Checks the values, and that nothing else has what the trace has.
    ///
    /// # Errors
    /// One line with the option, named as a flag.
    pub(super) fn check(&self, prompts: &PromptOptions, load: &LlmLoadOptions) -> Result<(), String> {
        if !SPEEDS.contains(&self.speed()) {
            return Err("--speed: write a factor from 0.001, e.g. 2x or 0.5".to_owned());
        }
        if self.sample.is_some_and(|fraction| !(fraction > 0.0 && fraction <= 1.0)) {
            return Err("--sample: write a fraction above 0%, up to 100%".to_owned());
        }
        if self.block_tokens.is_some_and(|tokens| tokens == 0 || tokens > MAX_BLOCK_TOKENS) {
            return Err(format!("--trace-block: write a number of tokens, 1 to {MAX_BLOCK_TOKENS}"));
        }
        if self.pacing == TraceLoop::Closed && load.concurrency.is_none() {
            return Err("--trace-loop closed needs -c N, the number of users".to_owned());
        }
        let given = [
            ("--dataset", prompts.dataset.is_some()),
            ("--input-tokens", prompts.input_tokens.is_some()),
            ("--output-tokens", prompts.output_tokens.is_some()),
            ("--prefix-tokens", prompts.prefix_tokens.is_some()),
            ("--prefixes", prompts.prefixes.is_some()),
            ("--shuffle", prompts.shuffle),
            ("--turns", prompts.turns.is_some()),
            ("--think", prompts.think.is_some()),
            ("--rate", load.rate.is_some()),
            ("--arrivals", load.arrivals.is_some()),
            ("--stages", !load.stages.is_empty()),
            ("--ramp-up", load.ramp_up.is_some()),
            ("--sweep", load.sweep.is_some()),
            ("--capacity", load.capacity.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} and --trace FILE cannot be combined; the trace has it")),
            None => Ok(()),
        }
    }
}
