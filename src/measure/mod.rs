//! PURE. What was seen, and what it says.
//!
//! - [`outcome`]: one request's record: three clocks, how it ended, how many bytes
//! - [`histogram`]: times in fixed memory, merged without loss
//! - [`times`]: those of whole responses, by all three clocks
//! - [`recorder`]: outcomes -> totals and the current second; one per thread, never shared
//! - [`counted`]: totals, and all else that is counted; adds up over threads, agents and stretches
//! - [`gathering`]: what several tell of the same stretches, put together
//! - [`parcel`]: what was counted as bytes for another machine, and back
//! - [`agent`]: one agent's part of a run
//! - [`series`]: the run second by second, in bounded memory
//! - [`progress`]: how far a run is, for whoever looks on
//! - [`run`]: the result of a plan, as people's tools read it
//! - `kept`: a run as JSON, and back
//! - [`steady`]: has a service warmed up? change points
//! - [`trust`]: may the run be believed, and if not, why
//! - [`slo`]: objectives such as `p99<200ms`, held or not
//! - [`capacity`]: the highest load that keeps the objectives: search, steps, the scalability law
//! - [`compare`]: variants that were run several times: which is better, and is the difference real

pub mod agent;
pub mod capacity;
pub mod compare;
pub mod counted;
pub mod gathering;
pub mod histogram;
mod kept;
pub mod outcome;
pub mod parcel;
pub mod progress;
pub mod recorder;
pub mod run;
pub mod series;
pub mod slo;
pub mod steady;
pub mod times;
pub mod trust;

pub use counted::RunCounts;
pub use histogram::Histogram;
pub use outcome::{Outcome, TransportFailure};
pub use progress::RunProgress;
pub use recorder::{Recorder, Totals};
pub use run::Run;
pub use times::ResponseTimes;
