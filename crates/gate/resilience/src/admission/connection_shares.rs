//! Shares of connections: how many slots one connection may hold that multiplexes calls (HTTP/2).
//!
//! A connection of HTTP/1 holds one slot at a time; one of HTTP/2 could hold all of them. While it is alone it may. While
//! there are other callers it takes a further slot only if it holds fewer than [`SHARE_FACTOR`] times the free ones
//! (dynamic thresholds, Choudhury and Hahne 1998): so some slots stay free for the others, fewer the more connections
//! there are, and no number of callers has to be known. Its calls beyond that wait behind all others of their priority.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use weir_base::Nanos;

/// Slots that a connection may hold per free slot while there are others. With 16, one connection leaves every 17th slot,
/// and limits of up to 16 slots can be used whole by one. Chosen: enough for the callers of HTTP/1, which hold one each
/// for as long as a call takes.
const SHARE_FACTOR: u32 = 16;
/// Counters; connections beyond that number share one, by their numbers.
const COUNTERS: usize = 1024;
/// Time after the last sign of another caller for which a connection is not alone.
const PRESENCE: Nanos = Nanos::from_secs(60);
/// Time after a call that got no slot for which a connection with many slots crowds others out.
const CROWDED: Nanos = Nanos::from_secs(1);
/// A connection that holds fewer slots than every N-th does not crowd others out, nor does one with fewer than [`MIN_CROWD`].
const CROWD_DIVISOR: u32 = 16;
const MIN_CROWD: u32 = 4;

/// Number of a connection that multiplexes calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionNumber(pub u32);

impl ConnectionNumber {
    fn index(self) -> usize {
        self.0 as usize % COUNTERS
    }
}

/// Slots of each connection, and its ended calls. Lock-free; no memory without such connections.
#[derive(Debug, Default)]
pub(super) struct ConnectionShares(OnceLock<Box<[ConnectionCount]>>);

#[derive(Debug, Default)]
struct ConnectionCount {
    held: AtomicU32,
    departed: AtomicU32,
}

impl ConnectionShares {
    fn count(&self, connection: ConnectionNumber) -> &ConnectionCount {
        let counts = self.0.get_or_init(|| (0..COUNTERS).map(|_| ConnectionCount::default()).collect());
        &counts[connection.index()]
    }

    pub(super) fn held(&self, connection: ConnectionNumber) -> u32 {
        self.count(connection).held.load(Relaxed)
    }

    pub(super) fn departed(&self, connection: ConnectionNumber) -> u32 {
        self.count(connection).departed.load(Relaxed)
    }

    pub(super) fn hold(&self, connection: ConnectionNumber) {
        self.count(connection).held.fetch_add(1, Relaxed);
    }

    pub(super) fn depart(&self, connection: ConnectionNumber) {
        self.count(connection).departed.fetch_add(1, Relaxed);
    }

    pub(super) fn release(&self, connection: ConnectionNumber) {
        self.count(connection).held.fetch_sub(1, Relaxed);
    }
}

/// Whether a connection that holds `held` slots may take another one beside other callers; without a free one, whether it
/// may wait among them.
pub(super) fn is_within_share(held: u32, free: u32, limit: u32) -> bool {
    if free > 0 { held < SHARE_FACTOR.saturating_mul(free) } else { held <= (limit / (SHARE_FACTOR + 1)).max(1) }
}

/// Signs of callers other than a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct OtherCallers {
    /// The last two callers whose call got no slot at once, and when; None is one of HTTP/1.
    unserved: [Option<(Option<usize>, Nanos)>; 2],
    /// By connection: ended calls of others when that number last grew, and when.
    seen: Vec<(u32, Option<Nanos>)>,
}

impl OtherCallers {
    /// Records a call that got no slot at once.
    pub(super) fn record_unserved(&mut self, now: Nanos, caller: Option<ConnectionNumber>) {
        let caller = caller.map(ConnectionNumber::index);
        if self.unserved[0].is_none_or(|(last, _)| last != caller) {
            self.unserved[1] = self.unserved[0];
        }
        self.unserved[0] = Some((caller, now));
    }

    /// Last time when a call of another caller than this connection got no slot at once.
    fn unserved_at(&self, connection: ConnectionNumber) -> Option<Nanos> {
        let others = self.unserved.iter().flatten().filter(|(caller, _)| *caller != Some(connection.index()));
        others.map(|(_, at)| *at).max()
    }

    /// Whether there have been other callers lately, by their ended calls so far and those in flight.
    pub(super) fn are_present(
        &mut self,
        now: Nanos,
        connection: ConnectionNumber,
        departed: u32,
        in_flight: u32,
    ) -> bool {
        if self.seen.is_empty() {
            self.seen.resize(COUNTERS, (0, None));
        }
        let unserved_at = self.unserved_at(connection);
        let (count, seen_at) = &mut self.seen[connection.index()];
        let has_grown = departed.wrapping_sub(*count).cast_signed() > 0;
        if has_grown {
            *count = departed;
        }
        if has_grown || in_flight > 0 {
            *seen_at = Some(now);
        }
        (*seen_at).max(unserved_at).is_some_and(|at| now - at < PRESENCE)
    }

    /// Whether a connection that holds `held` of `limit` slots crowds others out now.
    pub(super) fn are_crowded_out(&self, now: Nanos, connection: ConnectionNumber, held: u32, limit: u32) -> bool {
        held >= MIN_CROWD.max(limit / CROWD_DIVISOR)
            && self.unserved_at(connection).is_some_and(|at| now - at < CROWDED)
    }
}
