//! What a key has behind it, host by host; and keys that are not always ours: several senders share them
//! ([`super::super::ownership`]).

use super::lanes::Key;
use super::{Dispatch, HostId, Nanos};
use crate::decide::nonce::Nonces;
use crate::decide::window::History;

impl Dispatch {
    /// Goes on with a key: nonces are above the mark. To be called before any event.
    pub fn resume(&mut self, key: u32, high_water: u64) {
        if let Some(key) = self.keys.get_mut(key as usize) {
            key.nonces = Nonces::above(high_water);
        }
    }

    /// Goes on with a key at a host, `since` after its history was written
    /// ([`Windows::resume`](crate::decide::window::Windows::resume)). To be called before anything is sent there.
    pub fn resume_lane(&mut self, now: Nanos, host: HostId, key: u32, history: &History, since: Nanos) {
        if let Some(host) = self.host(host) {
            host.lanes.with(key, |lane| lane.windows.resume(now, history, since));
        }
    }

    /// What a key leaves at a host to whoever goes on with it.
    pub fn history(&mut self, now: Nanos, host: HostId, key: u32) -> Option<History> {
        self.host(host)?.lanes.with(key, |lane| lane.windows.history(now))
    }

    /// Sends by a key, or does not any more; what is out of it goes on. To be followed by an
    /// [`Event::Tick`](super::Event::Tick).
    pub fn hold(&mut self, key: u32, held: bool) {
        self.with_key(key, |key| key.held = held);
    }

    /// A key is ours that somebody else had; nonces are above the mark. What was out of it before means nothing any more,
    /// and nothing is known of its past ([`Self::resume_lane`]).
    pub fn take_over(&mut self, key: u32, high_water: u64) {
        for host in &mut self.hosts {
            let rules = host.lanes.rules.clone();
            host.lanes.with(key, |lane| lane.windows = lane.windows.anew(&rules));
        }
        self.with_key(key, |key| (key.nonces, key.held) = (Nonces::above(high_water), true));
    }

    /// Whether a key may send, as far as is known here.
    pub fn is_held(&self, key: u32) -> bool {
        self.keys.get(key as usize).is_some_and(Key::is_open)
    }

    /// The highest nonce that was sent by a key, or that it was to begin above.
    pub fn last_nonce(&self, key: u32) -> u64 {
        self.keys.get(key as usize).map_or(0, |key| key.nonces.last())
    }
}
