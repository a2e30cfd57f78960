//! What a store's jobs say of its keys.

use std::collections::BTreeMap;

use crate::send::job::UnixMs;

/// What a store's jobs say of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUsage {
    /// The key's name, never the credential.
    pub key: String,
    /// When it was used last.
    pub last_used: UnixMs,
    /// So many jobs were sent by it last.
    pub jobs: u64,
    /// So many of them are done.
    pub done: u64,
}

/// Counts jobs by the key that sent them last.
#[derive(Debug, Default)]
pub(super) struct KeyUsageCounter(BTreeMap<String, KeyUsage>);

impl KeyUsageCounter {
    pub(super) fn add(&mut self, key: &str, sent: UnixMs, is_done: bool) {
        let used = self.0.entry(key.to_owned()).or_insert_with(|| KeyUsage {
            key: key.to_owned(),
            last_used: sent,
            jobs: 0,
            done: 0,
        });
        used.last_used = used.last_used.max(sent);
        used.jobs += 1;
        used.done += u64::from(is_done);
    }

    pub(super) fn into_usage(self) -> Vec<KeyUsage> {
        self.0.into_values().collect()
    }
}
