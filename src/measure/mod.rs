//! PURE. Records of requests, and the figures derived from them.
//!
//! - [`outcome`]: record of one request: three clocks, outcome, bytes
//! - [`histogram`]: times in fixed memory, merged without loss
//! - [`times`]: histograms of whole responses, by all three clocks
//! - [`recorder`]: outcomes -> totals and the current second; one per thread, not shared
//! - [`counts`]: totals and all other counts; sums over threads, agents and intervals
//! - [`interval_merger`]: merger of the intervals of several threads or agents
//! - [`wire_form`]: wire format of counts between agents and coordinator
//! - [`agent_counts`]: figures of one agent of a run
//! - [`series`]: time series of a run, in bounded memory
//! - [`progress`]: progress of a run, for callbacks
//! - [`run`]: result of a load test; [`run_input`]: its assembly; `kept`: reading and writing it as JSON
//! - [`steady`]: detection of the end of a warm-up by change points
//! - [`trust`]: validity of a run, and reasons against it
//! - [`slo`]: objectives such as `p99<200ms`, met or missed
//! - [`capacity`]: highest load that meets the objectives: search, steps, scalability law
//! - [`compare`]: verdicts on variants that were each run several times

pub mod agent_counts;
pub mod capacity;
pub mod compare;
pub mod counts;
pub mod histogram;
pub mod interval_merger;
pub mod outcome;
pub mod progress;
pub mod recorder;
pub mod run;
pub mod run_input;
mod saved;
pub mod series;
pub mod slo;
pub mod steady;
pub mod times;
pub mod trust;
pub mod wire_form;

pub use counts::RunCounts;
pub use histogram::Histogram;
pub use outcome::Outcome;
pub use progress::RunProgress;
pub use recorder::{Recorder, Totals};
pub use run::Run;
pub use times::ResponseTimes;
