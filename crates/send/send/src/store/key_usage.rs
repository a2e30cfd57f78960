//! Use of API keys by jobs.

use std::collections::BTreeMap;

use crate::job::UnixMs;

/// Use of an API key by the last attempts of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUsage {
    /// Name of the key, never the secret.
    pub key: String,
    /// Time of the last use.
    pub last_used: UnixMs,
    /// Number of jobs whose last attempt used it.
    pub jobs: u64,
    /// Number of those that are done.
    pub done: u64,
}

/// Counter of jobs by the key of their last attempt.
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
