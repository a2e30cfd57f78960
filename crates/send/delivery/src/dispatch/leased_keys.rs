//! History of keys, by host; and leased keys, which several senders share ([`crate::key_lease`]).

use super::lanes::DispatchKey;
use super::{Dispatch, HostId, Nanos};
use crate::key_window::KeyHistory;
use crate::nonce::Nonces;

impl Dispatch {
    /// Restores a key: its nonces begin above the high-water mark. To be called before any event.
    pub fn resume(&mut self, key: u32, high_water: u64) {
        if let Some(key) = self.keys.get_mut(key as usize) {
            key.nonces = Nonces::above(high_water);
        }
    }

    /// Restores the history of a key at a host, written `since` ago
    /// ([`KeyWindows::resume`](crate::key_window::KeyWindows::resume)). To be called before anything
    /// is sent there.
    pub fn resume_lane(&mut self, now: Nanos, host: HostId, key: u32, history: &KeyHistory, since: Nanos) {
        if let Some(host) = self.host_mut(host) {
            host.lanes.update(key, |lane| lane.windows.resume(now, history, since));
        }
    }

    /// History of a key at a host, for the next process or sender.
    pub fn history(&mut self, now: Nanos, host: HostId, key: u32) -> Option<KeyHistory> {
        self.host_mut(host)?.lanes.update(key, |lane| lane.windows.history(now))
    }

    /// Starts or stops sending by a key; its requests in flight go on. To be followed by an
    /// [`Event::Tick`](super::Event::Tick).
    pub fn set_leased(&mut self, key: u32, is_leased: bool) {
        self.update_key(key, |key| key.is_leased = is_leased);
    }

    /// Takes over a key from another sender: its nonces begin above the high-water mark, earlier requests in flight do
    /// not count, and it has no history until [`Self::resume_lane`].
    pub fn take_over(&mut self, key: u32, high_water: u64) {
        for host in &mut self.hosts {
            let rules = host.lanes.rules.clone();
            host.lanes.update(key, |lane| lane.windows = lane.windows.without_history(&rules));
        }
        self.update_key(key, |key| (key.nonces, key.is_leased) = (Nonces::above(high_water), true));
    }

    /// Whether a key is usable and leased.
    pub fn can_send(&self, key: u32) -> bool {
        self.keys.get(key as usize).is_some_and(DispatchKey::can_send)
    }

    /// Highest nonce of a key so far, or the mark above which it begins.
    pub fn last_nonce(&self, key: u32) -> u64 {
        self.keys.get(key as usize).map_or(0, |key| key.nonces.last())
    }
}
