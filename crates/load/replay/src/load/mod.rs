//! Replay of access logs: their requests at their recorded times.
//!
//! - [`ReplayOptions`], [`LogOptions`]: options; [`ReplayLoad`]: the same, checked and ready to run
//! - [`read_log`]: counts of a log, without sending anything
//! - [`ArrivalBatches`], [`FeederThread`]: arrivals that a thread reads ahead, of any file
//! - `replayed_request`, `replay_feeder`: requests as they are sent, and the thread that reads them ahead
//! - `replay_program`, `replay_shared`: requests as the program of a load
//!
//! ```no_run
//! use weir_load::Options;
//! use weir_replay::load::{LogOptions, ReplayLoad, ReplayOptions};
//!
//! let log = LogOptions { files: vec!["access.log".into()], ..LogOptions::default() };
//! let load = Options { url: "http://localhost:8080".to_owned(), ..Options::default() };
//! let (load, mut log) = ReplayLoad::open(&ReplayOptions { log, load, ..ReplayOptions::default() })?;
//! log.start()?;
//! let mut run = weir_load::run(&load.plan, &[], &mut |_| true, None).map_err(|error| error.to_string())?;
//! let end = load.plan.end();
//! drop(load);
//! log.finish(&mut run, end)?;
//! println!("{:?}", run.replay);
//! # Ok::<(), String>(())
//! ```

mod arrival_batches;
mod feeder_thread;
mod replay_feeder;
mod replay_load;
mod replay_options;
mod replay_program;
mod replay_shared;
mod replayed_request;

pub use self::arrival_batches::{ArrivalBatches, ArrivalInbox, LoadEnded};
pub use self::feeder_thread::FeederThread;
pub use self::replay_load::{ReplayLoad, ReplayedLog, read_log};
pub use self::replay_options::{LogOptions, ReplayOptions};
