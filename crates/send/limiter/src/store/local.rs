//! Keys in memory.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use weir_base::Nanos;
use weir_delivery::limiter::{HolderId, LimiterKey, LimiterRules};
use weir_machine::clock;

use super::{Act, KeyStore, StepTime};
use crate::trouble::StoreTrouble;

/// Keys of one process.
#[derive(Debug)]
pub(crate) struct LocalKeys {
    rules: Arc<LimiterRules>,
    holder: HolderId,
    keys: FxHashMap<Box<str>, LimiterKey>,
    /// Number of keys at which idle ones are dropped.
    prune_at: usize,
}

const MIN_PRUNED_KEYS: usize = 1000;

impl LocalKeys {
    pub(crate) fn new(rules: &Arc<LimiterRules>, holder: HolderId) -> Self {
        Self { rules: Arc::clone(rules), holder, keys: FxHashMap::default(), prune_at: MIN_PRUNED_KEYS }
    }

    /// Makes a step at this time.
    pub(crate) fn step_at(&mut self, key: &str, now: Nanos, act: &mut Act<'_>) {
        if !self.keys.contains_key(key) {
            if self.keys.len() >= self.prune_at {
                self.keys.retain(|_, key| !key.is_idle(now));
                self.prune_at = (2 * self.keys.len()).max(MIN_PRUNED_KEYS);
            }
            self.keys.insert(key.into(), LimiterKey::new(&self.rules));
        }
        if let Some(key) = self.keys.get_mut(key) {
            act(key, StepTime { now, local: now, holder: self.holder });
        }
    }
}

impl KeyStore for LocalKeys {
    fn step(&mut self, key: &str, _: bool, act: &mut Act<'_>) -> Result<(), StoreTrouble> {
        self.step_at(key, clock::monotonic(), act);
        Ok(())
    }
}
