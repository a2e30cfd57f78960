//! Limits of the number of connections: of all callers, of a listener and of one address. Without them callers could
//! take all descriptors of the process, also those of upstreams and the admin listener.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::network::Proxies;
use weir_base::Nanos;
use weir_machine::lock::lock;

/// Interval of log lines about a limit that is reached.
const LOG_INTERVAL: Nanos = Nanos::from_secs(3);

/// Limits of the connections of a server, or of one of its listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections.
    pub max: Option<usize>,
    /// Maximum number of connections of one address (of IPv6 its /64).
    pub max_per_address: Option<usize>,
    /// Networks without a maximum per address: proxies, which have the connections of many callers.
    pub exempt: Proxies,
}

/// Limit that a connection would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    Total,
    /// That of this address.
    Address(IpAddr),
}

impl ExceededLimit {
    /// Cause in metrics.
    pub(super) fn cause(self) -> &'static str {
        match self {
            Self::Total => "max_connections",
            Self::Address(_) => "max_connections_per_address",
        }
    }
}

/// Open connections, shared by all event loops.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounts {
    limits: ConnectionLimits,
    open: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    /// Time of the last log line, in ns, and connections that were closed since.
    logged_at: AtomicU64,
    closed: AtomicU64,
}

impl ConnectionCounts {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Counts a connection from this address; None for a Unix socket.
    ///
    /// # Errors
    /// The limit that it would exceed.
    pub(super) fn open(self: &Arc<Self>, address: Option<IpAddr>) -> Result<ConnectionPlace, ExceededLimit> {
        if self.limits.max.is_some_and(|max| self.open.load(Relaxed) >= max) {
            return Err(ExceededLimit::Total);
        }
        let counted = address.filter(|address| self.counts_address(*address)).map(caller_address);
        if let (Some(address), Some(max)) = (counted, self.limits.max_per_address)
            && lock(&self.by_address).get(&address).is_some_and(|open| *open >= max)
        {
            return Err(ExceededLimit::Address(address));
        }
        Ok(self.open_beyond(address))
    }

    /// Counts a connection in the place of another one, which is about to end.
    pub(super) fn open_beyond(self: &Arc<Self>, address: Option<IpAddr>) -> ConnectionPlace {
        self.open.fetch_add(1, Relaxed);
        let address = address.filter(|address| self.counts_address(*address)).map(caller_address);
        if let Some(address) = address {
            *lock(&self.by_address).entry(address).or_default() += 1;
        }
        ConnectionPlace { counts: Arc::clone(self), address }
    }

    fn counts_address(&self, address: IpAddr) -> bool {
        self.limits.max_per_address.is_some() && !self.limits.exempt.contains(address)
    }

    /// Counts a connection that was closed for a limit; a line for the log, once in a while.
    pub(super) fn record_closed(&self, now: Nanos, limit: ExceededLimit) -> Option<String> {
        self.closed.fetch_add(1, Relaxed);
        let last = self.logged_at.load(Relaxed);
        let is_due = last == 0 || now - Nanos(last) >= LOG_INTERVAL;
        if !is_due || self.logged_at.compare_exchange(last, now.0.max(1), Relaxed, Relaxed).is_err() {
            return None;
        }
        let closed = self.closed.swap(0, Relaxed);
        let (ConnectionLimits { max, max_per_address, .. }, cause) = (&self.limits, limit.cause());
        Some(match limit {
            ExceededLimit::Total => {
                format!("{closed} new connections closed: {} are open ({cause})", max.unwrap_or_default())
            }
            ExceededLimit::Address(address) => format!(
                "{closed} new connections closed: {} are open from {address} ({cause})",
                max_per_address.unwrap_or_default()
            ),
        })
    }
}

/// Address by which a caller is counted: a network of IPv6 has one /64 at least.
pub(super) fn caller_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// Places of a connection in the counts of its server and its listener.
pub(super) type ConnectionPlaces = (ConnectionPlace, ConnectionPlace);

/// A counted connection, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    counts: Arc<ConnectionCounts>,
    address: Option<IpAddr>,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Relaxed);
        let Some(address) = self.address else { return };
        let mut by_address = lock(&self.counts.by_address);
        if let Some(open) = by_address.get_mut(&address) {
            *open -= 1;
            if *open == 0 {
                by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(max: usize, max_per_address: usize) -> Arc<ConnectionCounts> {
        let exempt = Proxies::default();
        let limits = ConnectionLimits { max: Some(max), max_per_address: Some(max_per_address), exempt };
        Arc::new(ConnectionCounts::new(limits))
    }

    fn address(text: &str) -> Option<IpAddr> {
        text.parse().ok()
    }

    #[test]
    fn a_connection_beyond_a_limit_gets_a_place_once_another_one_has_ended() {
        let counts = counts(3, 2);
        let mut held: Vec<_> = ["10.0.0.1", "10.0.0.1"].map(|text| counts.open(address(text))).into_iter().collect();
        let full = counts.open(address("::ffff:10.0.0.1"));
        assert_eq!(full.err().map(ExceededLimit::cause), Some("max_connections_per_address"));
        held.push(counts.open(address("2001:db8::1")));
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(counts.open(None).err(), Some(ExceededLimit::Total));
        drop(held.remove(0));
        assert!(counts.open(address("10.0.0.1")).is_ok());
        held.clear();
        assert!(lock(&counts.by_address).is_empty());
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_count_together() {
        let counts = counts(9, 1);
        let held = counts.open(address("2001:db8::1"));
        assert!(counts.open(address("2001:db8::2")).is_err() && counts.open(address("2001:db8:0:1::2")).is_ok());
        drop(held);
    }

    #[test]
    fn the_log_has_a_line_every_few_seconds() {
        let counts = counts(0, 1);
        let line = |s| counts.record_closed(Nanos::from_secs(s), ExceededLimit::Total);
        assert_eq!(line(1).as_deref(), Some("1 new connections closed: 0 are open (max_connections)"));
        assert_eq!((line(2), line(3)), (None, None));
        assert_eq!(line(4).as_deref(), Some("3 new connections closed: 0 are open (max_connections)"));
    }
}
