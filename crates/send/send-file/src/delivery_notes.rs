//! What a delivery says while it runs, each thing once.

use std::sync::{Arc, Mutex};

use crate::StoreHandle;
use crate::counters::SendStats;
use crate::input::InputCounts;
use weir_machine::lock::lock;

/// Note about jobs that are new to the store, and have results.
const RESULTS_NOTE: &str = "jobs that are new to the store have results in --out: they are not sent again; give --resend to send \
     such jobs, or another --out";

/// Whether the store is reachable, as a note.
fn reachability(unreachable: Option<&str>) -> String {
    match unreachable {
        Some(reason) => {
            format!("the store is unreachable ({reason}); leased jobs go on until the leases of their keys expire")
        }
        None => "the store is reachable again".into(),
    }
}

/// What has been said.
#[derive(Debug)]
pub(super) struct DeliveryNotes {
    stats: Arc<Mutex<SendStats>>,
    counts: Arc<Mutex<InputCounts>>,
    store: StoreHandle,
    has_noted_results: bool,
    is_unreachable: bool,
}

impl DeliveryNotes {
    /// Notes of a delivery that begins.
    pub(super) fn new(stats: Arc<Mutex<SendStats>>, counts: Arc<Mutex<InputCounts>>, store: StoreHandle) -> Self {
        Self { stats, counts, store, has_noted_results: false, is_unreachable: false }
    }

    /// Notes about what has come since the call before.
    pub(super) fn since_last_time(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        let unreachable = self.store.unreachable_reason();
        if unreachable.is_some() != self.is_unreachable {
            self.is_unreachable = unreachable.is_some();
            notes.push(reachability(unreachable.as_deref()));
        }
        notes.append(&mut lock(&self.counts).notes);
        let mut stats = lock(&self.stats);
        if !self.has_noted_results && stats.in_results_unmarked > 0 {
            self.has_noted_results = true;
            notes.push(RESULTS_NOTE.to_owned());
        }
        notes.extend(stats.failures.note());
        notes
    }
}
