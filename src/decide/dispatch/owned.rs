//! Keys that are not always ours: several senders share them ([`super::super::ownership`]).

use super::{Dispatch, History, Nanos};
use crate::decide::nonce::Nonces;

impl Dispatch {
    /// Sends by a key, or does not any more; what is out of it goes on. To be followed by an
    /// [`Event::Tick`](super::Event::Tick).
    pub fn hold(&mut self, key: u32, held: bool) {
        self.keys.with(key, |key| key.held = held);
    }

    /// A key is ours that somebody else had: goes on with it, `since` after its history was written; nonces are above the
    /// mark. What was out of it before means nothing any more.
    pub fn take_over(&mut self, now: Nanos, key: u32, high_water: u64, history: &History, since: Nanos) {
        let rules = &self.rules.key;
        self.keys.with(key, |key| {
            key.windows = key.windows.anew(rules);
            key.nonces = Nonces::above(high_water);
            key.windows.resume(now, history, since);
            key.held = true;
        });
    }

    /// Whether a key may send, as far as is known here.
    pub fn is_held(&self, key: u32) -> bool {
        self.keys.get(key).is_some_and(|key| key.usable && key.held)
    }

    /// The highest nonce that was sent by a key, or that it was to begin above.
    pub fn last_nonce(&self, key: u32) -> u64 {
        self.keys.get(key).map_or(0, |key| key.nonces.last())
    }
}
