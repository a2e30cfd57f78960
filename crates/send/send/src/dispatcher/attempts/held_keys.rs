//! Keys that this sender may use: all, or those that it has leased, each until its lease ends.

use weir_base::Nanos;

/// Leases of keys, as announced by their owner.
#[derive(Debug)]
pub(super) struct HeldKeys {
    /// By key; empty if keys are not shared.
    keys: Vec<HeldKey>,
    /// First end of a lease.
    first_end: Nanos,
    /// Number of keys held, or expired and possibly renewed.
    held_count: usize,
    /// Number of keys to release.
    releasing: usize,
}

#[derive(Clone, Debug)]
struct HeldKey {
    token: u64,
    /// End of the lease; NEVER without one.
    until: Nanos,
    /// Whether the dispatch uses it, while the lease lasts.
    is_used: bool,
    /// Whether the lease has expired here before its owner noticed.
    has_expired: bool,
    is_releasing: bool,
}

impl HeldKeys {
    /// No key is held yet, if keys are shared.
    pub(super) fn new(count: usize, are_shared: bool) -> Self {
        let key = HeldKey { token: 0, until: Nanos::NEVER, is_used: false, has_expired: false, is_releasing: false };
        let keys = vec![key; if are_shared { count } else { 0 }];
        Self { keys, first_end: Nanos::NEVER, held_count: 0, releasing: 0 }
    }

    /// Whether other senders have all keys.
    pub(super) fn has_none(&self) -> bool {
        !self.keys.is_empty() && self.held_count == 0
    }

    /// Takes in the leases with their tokens and ends. Returns keys that can be used again, since their leases were
    /// renewed before they had expired.
    pub(super) fn update(&mut self, now: Nanos, leases: &[(usize, u64, Nanos)], held_count: usize) -> Vec<usize> {
        self.held_count = held_count;
        self.keys.iter_mut().for_each(|key| key.until = Nanos::NEVER);
        let mut renewed = Vec::new();
        for (number, token, until) in leases {
            let Some(key) = self.keys.get_mut(*number) else { continue };
            (key.token, key.until) = (*token, *until);
            if now < *until && std::mem::take(&mut key.has_expired) && key.is_used {
                renewed.push(*number);
            }
        }
        self.find_first_end();
        renewed
    }

    /// First end of a lease.
    pub(super) fn first_end(&self) -> Nanos {
        self.first_end
    }

    fn find_first_end(&mut self) {
        self.first_end = self.keys.iter().map(|key| key.until).min().unwrap_or(Nanos::NEVER);
    }

    /// Keys whose leases have expired since the last call.
    pub(super) fn take_expired(&mut self, now: Nanos) -> Vec<usize> {
        let mut expired = Vec::new();
        if now < self.first_end {
            return expired;
        }
        for (number, key) in self.keys.iter_mut().enumerate().filter(|(_, key)| key.until <= now) {
            (key.until, key.has_expired) = (Nanos::NEVER, true);
            expired.push(number);
        }
        self.find_first_end();
        expired
    }

    /// Key acquired or resumed; whether it may be used at once. Otherwise its lease has expired already, and a renewal may
    /// follow.
    pub(super) fn begin_use(&mut self, now: Nanos, key: usize) -> bool {
        let Some(key) = self.keys.get_mut(key) else { return false };
        let is_leased = now < key.until && key.until < Nanos::NEVER;
        (key.is_used, key.has_expired) = (true, !is_leased);
        self.releasing -= usize::from(std::mem::take(&mut key.is_releasing));
        is_leased
    }

    /// Whether the dispatch uses a shared key.
    pub(super) fn is_used(&self, key: usize) -> bool {
        self.keys.get(key).is_some_and(|key| key.is_used)
    }

    /// Key to release.
    pub(super) fn begin_release(&mut self, key: usize) {
        if let Some(key) = self.keys.get_mut(key) {
            self.releasing += usize::from(!std::mem::replace(&mut key.is_releasing, true));
            key.is_used = false;
        }
    }

    /// Key expired, or released.
    pub(super) fn end_use(&mut self, key: usize) {
        if let Some(key) = self.keys.get_mut(key) {
            (key.is_used, key.has_expired) = (false, false);
            self.releasing -= usize::from(std::mem::take(&mut key.is_releasing));
        }
    }

    /// Keys to release, with their tokens.
    pub(super) fn releasing(&self) -> Vec<(usize, u64)> {
        if self.releasing == 0 {
            return Vec::new();
        }
        let keys = self.keys.iter().enumerate().filter(|(_, key)| key.is_releasing);
        keys.map(|(number, key)| (number, key.token)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    /// Two shared keys; the first is used until 100.
    fn held() -> HeldKeys {
        let mut keys = HeldKeys::new(2, true);
        assert!(keys.has_none());
        assert_eq!(keys.update(Nanos(0), &[(0, 7, Nanos(100))], 1), NONE);
        assert!(keys.begin_use(Nanos(0), 0) && keys.is_used(0) && !keys.has_none());
        keys
    }

    #[test]
    fn an_expired_key_is_used_again_when_its_lease_is_renewed() {
        let mut keys = held();
        assert_eq!(keys.take_expired(Nanos(99)), NONE);
        assert_eq!(keys.take_expired(Nanos(100)), [0]);
        assert_eq!(keys.take_expired(Nanos(101)), NONE, "once");
        assert_eq!(keys.update(Nanos(150), &[(0, 7, Nanos(140))], 1), NONE, "the renewal has ended, too");
        assert_eq!(keys.update(Nanos(150), &[(0, 7, Nanos(200))], 1), [0]);
        assert_eq!(keys.update(Nanos(160), &[(0, 7, Nanos(300))], 1), NONE, "it is used");
    }

    #[test]
    fn a_key_that_its_owner_has_given_up_is_not_used_again_by_a_renewal() {
        let mut keys = held();
        assert_eq!(keys.take_expired(Nanos(100)), [0]);
        keys.end_use(0);
        assert_eq!(keys.update(Nanos(150), &[(0, 7, Nanos(200))], 1), NONE);
        assert!(!keys.is_used(0) && keys.begin_use(Nanos(150), 0));
    }

    #[test]
    fn a_key_that_is_acquired_after_its_lease_waits_for_a_renewal() {
        let mut keys = HeldKeys::new(2, true);
        keys.update(Nanos(0), &[(1, 8, Nanos(10))], 1);
        assert_eq!(keys.take_expired(Nanos(20)), [1]);
        assert!(!keys.begin_use(Nanos(20), 1));
        assert_eq!(keys.update(Nanos(30), &[(1, 8, Nanos(90))], 1), [1]);
    }

    #[test]
    fn a_key_to_release_is_announced_with_its_token_until_its_use_ends() {
        let mut keys = held();
        keys.begin_release(0);
        keys.begin_release(0);
        assert_eq!((keys.releasing(), keys.is_used(0)), (vec![(0, 7)], false));
        keys.end_use(0);
        assert_eq!(keys.releasing(), []);
        keys.begin_release(0);
        assert!(keys.begin_use(Nanos(50), 0) && keys.releasing().is_empty(), "acquired anew");
    }

    #[test]
    fn keys_that_are_not_shared_are_always_usable() {
        let mut keys = HeldKeys::new(2, false);
        assert!(!keys.has_none() && keys.take_expired(Nanos::NEVER).is_empty());
    }
}
