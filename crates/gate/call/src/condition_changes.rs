//! Changes of the conditions of an upstream's hosts and of its circuit, on their way to a log.

use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::Notify;

use weir_base::Nanos;
use weir_machine::lock::lock;

/// Maximum number of changes that wait; the reader is a moment behind at most.
const MAX_WAITING: usize = 1024;

/// A change of the condition of a host, or of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamEvent {
    /// Time of the change.
    pub at: Nanos,
    /// Kind of the change: `host`, `hosts`, `panic`, `circuit` or `throttle`.
    pub kind: &'static str,
    /// Name of the host; None for the upstream as a whole.
    pub host: Option<String>,
    /// Line of the change, with its cause.
    pub line: String,
}

/// Changes that wait for their reader. Without a reader nothing is kept.
#[derive(Debug, Default)]
pub(super) struct ChangeQueue {
    waiting: Mutex<Vec<UpstreamEvent>>,
    reader: OnceLock<Arc<Notify>>,
}

impl ChangeQueue {
    /// Sets the reader, which is woken by each change; the first one stays.
    pub(super) fn set_reader(&self, reader: &Arc<Notify>) {
        self.reader.get_or_init(|| Arc::clone(reader));
    }

    /// Whether there is a reader.
    pub(super) fn is_read(&self) -> bool {
        self.reader.get().is_some()
    }

    pub(super) fn push(&self, change: UpstreamEvent) {
        let Some(reader) = self.reader.get() else { return };
        let mut waiting = lock(&self.waiting);
        if waiting.len() < MAX_WAITING {
            waiting.push(change);
        }
        drop(waiting);
        reader.notify_one();
    }

    pub(super) fn take(&self) -> Vec<UpstreamEvent> {
        std::mem::take(&mut lock(&self.waiting))
    }
}
