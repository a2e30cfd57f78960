//! What a key has behind it, host by host; and keys that are not always ours: several senders share them
//! ([`crate::decide::delivery::key_lease`]).

use super::lanes::DispatchKey;
use super::{Dispatch, HostId, Nanos};
use crate::decide::delivery::key_window::KeyHistory;
use crate::decide::delivery::nonce::Nonces;

impl Dispatch {
    /// Goes on with a key: nonces are above the mark. To be called before any event.
    pub fn resume(&mut self, key: u32, high_water: u64) {
        if let Some(key) = self.keys.get_mut(key as usize) {
            key.nonces = Nonces::above(high_water);
        }
    }

    /// Goes on with a key at a host, `since` after its history was written
    /// ([`KeyWindows::resume`](crate::decide::window::KeyWindows::resume)). To be called before anything is sent there.
    pub fn resume_lane(&mut self, now: Nanos, host: HostId, key: u32, history: &KeyHistory, since: Nanos) {
        if let Some(host) = self.host_mut(host) {
            host.lanes.update(key, |lane| lane.windows.resume(now, history, since));
        }
    }

    /// What a key leaves at a host to whoever goes on with it.
    pub fn history(&mut self, now: Nanos, host: HostId, key: u32) -> Option<KeyHistory> {
        self.host_mut(host)?.lanes.update(key, |lane| lane.windows.history(now))
    }

    /// Sends by a key, or does not any more; what is out of it goes on. To be followed by an
    /// [`Event::Tick`](super::Event::Tick).
    pub fn set_leased(&mut self, key: u32, held: bool) {
        self.update_key(key, |key| key.is_leased = held);
    }

    /// A key is ours that somebody else had; nonces are above the mark. What was out of it before means nothing any more,
    /// and nothing is known of its past ([`Self::resume_lane`]).
    pub fn take_over(&mut self, key: u32, high_water: u64) {
        for host in &mut self.hosts {
            let rules = host.lanes.rules.clone();
            host.lanes.update(key, |lane| lane.windows = lane.windows.without_history(&rules));
        }
        self.update_key(key, |key| (key.nonces, key.is_leased) = (Nonces::above(high_water), true));
    }

    /// Whether a key may send, as far as is known here.
    pub fn can_send(&self, key: u32) -> bool {
        self.keys.get(key as usize).is_some_and(DispatchKey::can_send)
    }

    /// The highest nonce that was sent by a key, or that it was to begin above.
    pub fn last_nonce(&self, key: u32) -> u64 {
        self.keys.get(key as usize).map_or(0, |key| key.nonces.last())
    }
}
