//! Store of saved runs, in a SQLite file: what was measured, when, of which commit, on which machine.
//!
//! - [`RunStore`]: the file; [`HistoryError`]: what is wrong with it
//! - [`StoredRun`]: what a list shows of a run; [`RunNote`]: label and commit that a user gives one
//! - [`LikeRuns`], [`Trend`]: where a figure of like runs has changed its level
//! - [`RunLibrary`]: runs of a store or of a folder of results
//! - [`run_list()`], [`run_object`], [`run_row`]: runs as text, as JSON, and for the page of `weir ui`; [`TrendReport`],
//!   [`trend_text()`], [`trend_reports`]: the same of trends
//! - [`RunReference`]: a run by its number, or by how many came after it
//! - [`RunSaver`]: saves a run that has ended; `commit`: of which code it is
//! - [`CompareOptions`]: comparison of saved runs, of files or of a store ([`stored_run()`])
//!
//! The whole run is kept as the JSON that `weir load --out` writes, compressed; the figures that lists and trends need
//! are beside it, so that a thousand runs are read without taking apart any.

#[cfg(not(feature = "sqlite"))]
mod absent_store;
mod commit;
mod compare_options;
mod error;
mod library_document;
mod reference;
mod run_filter;
mod run_library;
mod run_list;
mod run_saver;
#[cfg(feature = "sqlite")]
mod run_store;
mod start_time;
mod stored_result;
mod stored_run;
mod trend;
mod trend_page;
mod trend_report;
mod trend_text;

#[cfg(not(feature = "sqlite"))]
pub use self::absent_store::AbsentStore as RunStore;
pub use self::compare_options::{CompareOptions, ComparisonResult};
pub use self::error::HistoryError;
pub use self::reference::RunReference;
pub use self::run_filter::RunFilter;
pub use self::run_library::{NO_LABEL, RunLibrary};
pub use self::run_list::{run_list, run_object, run_row};
pub use self::run_saver::{RunSaver, SaveOptions, figures_of};
#[cfg(feature = "sqlite")]
pub use self::run_store::RunStore;
pub use self::stored_result::stored_run;
pub use self::stored_run::{RunNote, StoredRun};
pub use self::trend::{ChangedRuns, LikeRuns, Trend};
pub use self::trend_page::trend_reports;
pub use self::trend_report::{TrendReport, default_metrics};
pub use self::trend_text::trend_text;

/// Store where no other is named.
pub const DEFAULT_STORE: &str = ".weir/runs.db";
