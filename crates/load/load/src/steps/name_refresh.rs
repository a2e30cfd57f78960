//! Lookups of a name that go on beside the load: one may take longer than users can wait for.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use weir_base::Nanos;

use crate::origin_addresses::OriginAddresses;

/// Shortest time between two lookups of a name.
const MIN_TTL: Nanos = Nanos::from_millis(100);

/// Lookups of a name, again and again.
#[derive(Debug)]
pub(super) struct NameRefresh {
    ttl: Nanos,
    /// Time of the next lookup.
    due: Nanos,
    /// Lookup that goes on.
    pending: Option<Receiver<OriginAddresses>>,
}

impl NameRefresh {
    /// Lookups every `ttl`, of a name that has been looked up `now`.
    pub(super) fn new(ttl: Nanos, now: Nanos) -> Self {
        let ttl = ttl.max(MIN_TTL);
        Self { ttl, due: now + ttl, pending: None }
    }

    /// Addresses that a lookup has found since the last call; one that has failed leaves those that there are.
    pub(super) fn take(&mut self, now: Nanos) -> Option<OriginAddresses> {
        let found = self.pending.as_ref()?.try_recv();
        if matches!(found, Err(TryRecvError::Empty)) {
            return None;
        }
        (self.pending, self.due) = (None, now + self.ttl);
        found.ok()
    }

    /// Whether the next lookup is due: the last one has ended, and its time is over.
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.pending.is_none() && now >= self.due
    }

    /// Begins a lookup.
    pub(super) fn begin(&mut self, look_up: impl FnOnce() -> Option<OriginAddresses> + Send + 'static) {
        let (sender, receiver) = channel();
        // The receiver is gone once the load is over.
        let found = move || look_up().map(|addresses| sender.send(addresses));
        // Without a thread it is tried again.
        let begun = thread::Builder::new().name("weir-lookup".to_owned()).spawn(found);
        self.pending = begun.is_ok().then_some(receiver);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_net::target::SocketAddress;

    fn found(port: u16) -> Option<OriginAddresses> {
        Some(vec![SocketAddress::Inet(([127, 0, 0, 1], port).into())].into())
    }

    /// Addresses of a lookup that goes on, if it finds any.
    fn awaited(refresh: &mut NameRefresh, now: Nanos) -> Option<OriginAddresses> {
        while refresh.pending.is_some() {
            if let Some(addresses) = refresh.take(now) {
                return Some(addresses);
            }
            thread::yield_now();
        }
        None
    }

    #[test]
    fn a_name_is_looked_up_when_its_time_is_over_and_once_at_a_time() {
        let mut refresh = NameRefresh::new(Nanos::SECOND, Nanos::ZERO);
        assert!(!refresh.is_due(Nanos::from_millis(999)) && refresh.is_due(Nanos::SECOND));
        let (go, wait) = channel::<()>();
        refresh.begin(move || wait.recv().ok().and_then(|()| found(2)));
        assert!(refresh.take(Nanos::SECOND).is_none() && !refresh.is_due(Nanos::from_secs(60)), "one goes on");
        go.send(()).unwrap();
        let new = awaited(&mut refresh, Nanos::from_secs(5)).unwrap();
        assert_eq!(new.all(), found(2).unwrap().all());
        assert!(!refresh.is_due(Nanos::from_millis(5999)) && refresh.is_due(Nanos::from_secs(6)));
    }

    #[test]
    fn a_lookup_that_fails_changes_nothing_and_is_followed_by_another() {
        let mut refresh = NameRefresh::new(Nanos::ZERO, Nanos::ZERO);
        assert!(!refresh.is_due(Nanos::ZERO) && refresh.is_due(MIN_TTL));
        refresh.begin(|| None);
        assert!(awaited(&mut refresh, MIN_TTL).is_none());
        assert!(!refresh.is_due(MIN_TTL) && refresh.is_due(MIN_TTL + MIN_TTL));
        refresh.begin(|| found(7));
        assert_eq!(awaited(&mut refresh, MIN_TTL).unwrap().all(), found(7).unwrap().all());
    }
}
