//! Stores of keys: each step loads a key, changes it and stores it, as one.

mod folder;
mod local;
#[cfg(feature = "redis")]
mod redis;
mod stored_key;

use std::fmt::Debug;
use std::sync::Arc;

use weir_base::Nanos;
use weir_delivery::limiter::{HolderId, LimiterKey, LimiterRules};

pub(crate) use self::local::LocalKeys;
use super::place::SharedPlace;
use super::trouble::StoreTrouble;

/// Times of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepTime {
    /// Time by the store's clock; at the holder of a grant it is that or later.
    pub(crate) now: Nanos,
    /// Time by this process's clock that has passed at `now` for certain.
    pub(crate) local: Nanos,
    /// Holder of what is granted in this step.
    pub(crate) holder: HolderId,
}

/// A step: changes the key, and returns whether it did. It may run several times; the last one counts.
pub(crate) type Act<'a> = dyn FnMut(&mut LimiterKey, StepTime) -> bool + 'a;

/// Store of keys.
pub(crate) trait KeyStore: Send + Debug {
    /// Makes a step. With `check`, slots of holders that are gone are forgotten before it.
    ///
    /// # Errors
    /// See [`StoreTrouble`]; then the step did not happen.
    fn step(&mut self, key: &str, check: bool, act: &mut Act<'_>) -> Result<(), StoreTrouble>;

    /// Closes what a child of a fork has of its parent, without a change for the parent.
    fn release_in_child(&mut self) {}
}

/// Opens a store.
///
/// # Errors
/// See [`StoreTrouble`].
pub(crate) fn open(
    place: &SharedPlace,
    rules: &Arc<LimiterRules>,
    holder: HolderId,
) -> Result<Box<dyn KeyStore>, StoreTrouble> {
    match place {
        SharedPlace::Memory => Ok(Box::new(LocalKeys::new(rules, holder))),
        SharedPlace::Folder(path) => Ok(Box::new(folder::FolderKeys::open(path, rules, holder)?)),
        #[cfg(feature = "redis")]
        SharedPlace::Redis(server, name) => Ok(Box::new(redis::RedisKeys::new(server, name, rules, holder))),
        #[cfg(not(feature = "redis"))]
        SharedPlace::Redis(..) => Err(StoreTrouble::Unusable(weir_redis::LEFT_OUT.to_owned())),
    }
}

/// Name of a key in a store: keys may be secrets, so it is their hash.
fn hashed(key: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, key.as_bytes());
    hash.as_ref().iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}
