//! A load, a search or an iteration as a command runs it, for a person, a script or a CI job.
//!
//! - [`LoadSession`]: files, what shows and changes the load, progress, run, judgement, report, exit code
//! - [`run_plan()`]: one run of a plan within it, also of several
//! - [`search`]: the same of a search for the highest load; [`play`]: of one iteration
//! - [`live`]: keys, page, full-screen view and outputs while a load runs; [`run_files`]: files of its result
//! - [`output`]: files that are written; [`exit_code()`]: exit code of a run

mod exit_code;
pub mod live;
mod load_session;
pub mod output;
pub mod play;
pub mod run_files;
mod run_plan;
mod samplers;
pub mod search;

pub use self::exit_code::{exit_code, not_begun};
pub use self::load_session::{LoadSession, MeasuredLoad, SessionLoad, SessionOptions};
pub use self::run_plan::{PlanRun, run_plan};
