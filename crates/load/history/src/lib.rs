//! Store of saved runs, in a SQLite file: what was measured, when, of which commit, on which machine.
//!
//! - [`RunStore`]: the file; [`HistoryError`]: what is wrong with it
//! - [`StoredRun`]: what a list shows of a run; [`RunNote`]: label and commit that a user gives one
//! - [`LikeRuns`], [`Trend`]: where a figure of like runs has changed its level
//! - [`RunReference`]: a run by its number, or by how many came after it
//!
//! The whole run is kept as the JSON that `weir load --out` writes, compressed; the figures that lists and trends need
//! are beside it, so that a thousand runs are read without taking apart any.

mod error;
mod reference;
mod run_store;
mod stored_run;
mod trend;

pub use self::error::HistoryError;
pub use self::reference::RunReference;
pub use self::run_store::{RunFilter, RunStore};
pub use self::stored_run::{RunNote, StoredRun};
pub use self::trend::{LikeRuns, Trend};
