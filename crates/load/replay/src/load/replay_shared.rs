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
    /// Responses by the class of the log's status and their own, added by each thread at its end.
    pub(super) classes: Mutex<BTreeMap<(u16, u16), u64>>,
}
