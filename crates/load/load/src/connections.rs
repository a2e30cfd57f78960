//! A worker's connections: open, idle, and those still allowed.

use std::collections::VecDeque;
use std::io;

use super::connection::{ConnectionPhase, LoadConnection};
use super::exchange::FlowExchange;
use super::origin_addresses::{ConnectAttempts, OriginAddresses};
use weir_base::Nanos;
use weir_machine::readiness_event::ReadinessEvent;
use weir_machine::system::Poller;

/// The connections of one worker, by index. An index is reused after its connection has ended; a generation
/// distinguishes the events.
#[derive(Debug)]
pub(super) struct ConnectionTable<X> {
    poller: Poller,
    connections: Vec<Option<LoadConnection<X>>>,
    generations: Vec<u32>,
    vacant: Vec<u32>,
    idle: Vec<u32>,
    /// Connections with streams that take requests of any user, in turn. Some may have ended meanwhile.
    listed: VecDeque<u32>,
    /// Connections that are not open yet.
    connecting: usize,
    /// Connections that take no further requests and still have some: others replace them.
    retired: usize,
    max_connecting: usize,
    max_connections: usize,
}

/// Maximum number of connections that all workers make at a time: a service's accept queue is short (100 is usual in
/// Python), and the kernel silently retries one that does not fit a second later.
const MAX_CONNECTING: u64 = 64;

impl<X: FlowExchange> ConnectionTable<X> {
    /// A table for `most` connections, for one of `workers` workers.
    pub(super) fn new(most: usize, workers: u64) -> io::Result<Self> {
        Ok(Self {
            poller: Poller::new()?,
            connections: Vec::new(),
            generations: Vec::new(),
            vacant: Vec::new(),
            idle: Vec::new(),
            listed: VecDeque::new(),
            connecting: 0,
            retired: 0,
            max_connecting: (MAX_CONNECTING / workers).max(1) as usize,
            max_connections: most,
        })
    }

    #[inline]
    pub(super) fn get(&mut self, index: u32) -> Option<&mut LoadConnection<X>> {
        self.connections.get_mut(index as usize)?.as_mut()
    }

    pub(super) fn indices(&self) -> std::ops::Range<u32> {
        0..self.connections.len() as u32
    }

    /// Number of connections, without those that are replaced.
    pub(super) fn in_use(&self) -> usize {
        self.connections.len() - self.vacant.len() - self.retired
    }

    pub(super) fn connecting(&self) -> usize {
        self.connecting
    }

    /// Whether another connection may be made now.
    pub(super) fn can_open(&self) -> bool {
        self.connecting < self.max_connecting && self.in_use() < self.max_connections
    }

    /// Maximum number of connections.
    pub(super) fn max(&self) -> usize {
        self.max_connections
    }

    /// Allows another number of connections; more than these are not closed.
    pub(super) fn set_max(&mut self, most: usize) {
        self.max_connections = most;
    }

    /// Whether there is an idle connection.
    pub(super) fn has_idle(&self) -> bool {
        !self.idle.is_empty() || !self.listed.is_empty()
    }

    /// Whether a request can be started now.
    pub(super) fn can_start(&self) -> bool {
        self.has_idle() || self.can_open()
    }

    /// Whether a request would have to wait because all allowed connections are busy.
    pub(super) fn is_exhausted(&self) -> bool {
        !self.has_idle() && self.in_use() >= self.max_connections
    }

    /// Starts a connection for `user`.
    pub(super) fn open(
        &mut self,
        addresses: &OriginAddresses,
        stamped: bool,
        user: u32,
        now: Nanos,
    ) -> io::Result<u32> {
        let (stream, attempts) = ConnectAttempts::begin(addresses, stamped, now)?;
        let index = self.vacant.last().copied().unwrap_or(self.connections.len() as u32);
        if index as usize == self.connections.len() {
            self.connections.push(None);
            self.generations.push(0);
            self.vacant.push(index);
        }
        self.poller.add(&stream, self.key(index))?;
        self.vacant.pop();
        self.connections[index as usize] = Some(LoadConnection::new((stream, attempts), user, now));
        self.connecting += 1;
        Ok(index)
    }

    /// Whether a connection in the making is connected; with several addresses the next one is attempted if it is due.
    ///
    /// # Errors
    /// Why it has failed.
    pub(super) fn complete(&mut self, index: u32, now: Nanos) -> io::Result<bool> {
        let key = self.key(index);
        let Self { connections, poller, .. } = self;
        let Some(slot) = connections.get_mut(index as usize).and_then(Option::as_mut) else { return Ok(false) };
        let Some(attempts) = &mut slot.attempts else { return slot.stream.connected().map(|()| true) };
        let is_connected = attempts.advance(&mut slot.stream, now, |stream| poller.add(stream, key))?;
        if is_connected {
            slot.attempts = None;
        }
        Ok(is_connected)
    }

    /// Marks the connection as open.
    pub(super) fn set_open(&mut self, index: u32) -> Option<&mut LoadConnection<X>> {
        self.connecting -= 1;
        let slot = self.connections[index as usize].as_mut()?;
        slot.phase = ConnectionPhase::Open;
        Some(slot)
    }

    /// Marks the connection as idle.
    pub(super) fn set_idle(&mut self, index: u32, now: Nanos) {
        if let Some(slot) = self.get(index) {
            slot.idle_since = Some(now);
            self.idle.push(index);
        }
    }

    /// The connection that became idle last, which is the least likely to be closed. One that the service has closed
    /// since the last events is not returned: its next request would fail by weir's own fault.
    pub(super) fn take_idle(&mut self, now: Nanos) -> Option<u32> {
        while let Some(&index) = self.idle.last() {
            let slot = self.get(index)?;
            if slot.is_disturbed(now) {
                self.close(index);
                continue;
            }
            slot.idle_since = None;
            self.idle.pop();
            return Some(index);
        }
        None
    }

    /// Lists a connection with streams that takes requests of any user.
    pub(super) fn list(&mut self, index: u32) {
        let Some(streams) = self.get(index).and_then(|slot| slot.streams.as_mut()) else { return };
        if !streams.is_listed && streams.has_room() {
            streams.is_listed = true;
            self.listed.push_back(index);
        }
    }

    /// Next connection with streams for a request of any user; it is listed again by [`Self::list`].
    pub(super) fn take_listed(&mut self) -> Option<u32> {
        while let Some(index) = self.listed.pop_front() {
            let Some(streams) = self.get(index).and_then(|slot| slot.streams.as_mut()) else { continue };
            // Its place may have been listed twice, if another connection had it before.
            if std::mem::take(&mut streams.is_listed) && streams.has_room() {
                return Some(index);
            }
        }
        None
    }

    /// Marks a connection with streams that takes no further requests.
    pub(super) fn retire(&mut self, index: u32) {
        let Some(streams) = self.get(index).and_then(|slot| slot.streams.as_mut()) else { return };
        if !std::mem::replace(&mut streams.is_retired, true) {
            self.retired += 1;
        }
    }

    /// A connection with streams that has no requests.
    pub(super) fn find_unused(&self) -> Option<u32> {
        let is_unused = |slot: &LoadConnection<X>| {
            slot.streams.is_some() && slot.phase == ConnectionPhase::Open && slot.is_unused()
        };
        let at = self.connections.iter().position(|slot| slot.as_ref().is_some_and(is_unused))?;
        u32::try_from(at).ok()
    }

    /// Ends a connection.
    pub(super) fn close(&mut self, index: u32) {
        let Some(slot) = self.connections.get_mut(index as usize).and_then(Option::take) else { return };
        if slot.phase != ConnectionPhase::Open {
            self.connecting -= 1;
        }
        if slot.idle_since.is_some() {
            self.idle.retain(|i| *i != index);
        }
        if let Some(streams) = &slot.streams {
            self.retired -= usize::from(streams.is_retired);
            if streams.is_listed {
                self.listed.retain(|i| *i != index);
            }
        }
        let generation = &mut self.generations[index as usize];
        *generation = generation.wrapping_add(1);
        self.vacant.push(index);
    }

    /// Waits up to `most` for events and appends them to `ready`.
    pub(super) fn wait(&self, most: Nanos, ready: &mut Vec<ReadinessEvent>) -> io::Result<()> {
        self.poller.wait(most, ready)
    }

    /// Key of a connection's events, which no later connection has.
    #[inline]
    pub(super) fn key(&self, index: u32) -> u64 {
        let generation = self.generations.get(index as usize).copied().unwrap_or_default();
        u64::from(generation) << 32 | u64::from(index)
    }

    /// Connection of the event, if it still exists.
    #[inline]
    pub(super) fn owner(&self, event: &ReadinessEvent) -> Option<u32> {
        let (index, generation) = (event.key as u32, (event.key >> 32) as u32);
        (self.generations.get(index as usize) == Some(&generation)).then_some(index)
    }
}
