//! State shared by the threads of a replay, with the log's feeder.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use crate::log::LogTally;

/// State shared by the threads of a replay.
#[derive(Debug, Default)]
pub(super) struct ReplayShared {
    /// Counts of the log as far as it was read.
    pub(super) tally: Mutex<LogTally>,
    /// Why it could not be read to its end.
    pub(super) failure: Mutex<Option<String>>,
    /// Intended start of the last request.
    pub(super) last_ns: AtomicU64,
    /// Requests that could not be made.
    pub(super) unsendable: AtomicU64,
    /// Responses by classes, added by each thread at its end.
    pub(super) classes: Mutex<BTreeMap<StatusClasses, u64>>,
}

/// Classes of two statuses: 2 of 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StatusClasses {
    /// Of the log.
    pub(super) recorded: u16,
    /// Of the response.
    pub(super) received: u16,
}
