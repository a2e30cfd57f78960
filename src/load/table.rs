//! A worker's connections: which there are, which are idle, and how many may still be made.

use std::io;

use super::poller::{Poller, Ready};
use super::slot::{Phase, Slot};
use crate::decide::Nanos;
use crate::http::stream::Stream;
use crate::http::target::Address;

/// The connections of one worker, by index. An index is used again after its connection has gone; a generation tells
/// events of the former one apart.
#[derive(Debug)]
pub(super) struct Table {
    poller: Poller,
    slots: Vec<Option<Slot>>,
    generations: Vec<u32>,
    vacant: Vec<u32>,
    idle: Vec<u32>,
    /// Connections that are not open yet.
    connecting: usize,
    most: usize,
}

/// Connections that one worker makes at a time: a service's queue of new connections is short, and what does not fit
/// is silently tried again a second later.
const MOST_CONNECTING: usize = 128;

impl Table {
    pub(super) fn new(most: usize) -> io::Result<Self> {
        Ok(Self {
            poller: Poller::new()?,
            slots: Vec::new(),
            generations: Vec::new(),
            vacant: Vec::new(),
            idle: Vec::new(),
            connecting: 0,
            most,
        })
    }

    #[inline]
    pub(super) fn get(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    pub(super) fn indices(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    /// How many connections there may be.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// How many connections there are.
    pub(super) fn in_use(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    pub(super) fn connecting(&self) -> usize {
        self.connecting
    }

    /// Whether another connection may be made now.
    pub(super) fn can_open(&self) -> bool {
        self.connecting < MOST_CONNECTING && self.in_use() < self.most
    }

    /// Whether a connection has nothing to do.
    pub(super) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Whether a request can be started now.
    pub(super) fn can_start(&self) -> bool {
        !self.idle.is_empty() || self.can_open()
    }

    /// Whether a request would have to wait because every connection that may be had is busy.
    pub(super) fn is_exhausted(&self) -> bool {
        self.idle.is_empty() && self.in_use() >= self.most
    }

    /// Begins to make a connection for `user`.
    pub(super) fn open(&mut self, address: &Address, stamped: bool, user: u32, now: Nanos) -> io::Result<u32> {
        let stream = Stream::connect(address, stamped)?;
        let index = self.vacant.last().copied().unwrap_or(self.slots.len() as u32);
        if index as usize == self.slots.len() {
            self.slots.push(None);
            self.generations.push(0);
            self.vacant.push(index);
        }
        self.poller.add(&stream, u64::from(self.generations[index as usize]) << 32 | u64::from(index))?;
        self.vacant.pop();
        self.slots[index as usize] = Some(Slot::new(stream, user, now));
        self.connecting += 1;
        Ok(index)
    }

    /// The connection can be used from now on.
    pub(super) fn set_open(&mut self, index: u32) -> Option<&mut Slot> {
        self.connecting -= 1;
        let slot = self.slots[index as usize].as_mut()?;
        slot.phase = Phase::Open;
        Some(slot)
    }

    /// The connection has nothing to do.
    pub(super) fn set_idle(&mut self, index: u32) {
        if let Some(slot) = self.get(index) {
            slot.idle = true;
            self.idle.push(index);
        }
    }

    /// The connection that became idle last: the likeliest to be alive still.
    pub(super) fn take_idle(&mut self) -> Option<u32> {
        let index = self.idle.pop()?;
        if let Some(slot) = self.get(index) {
            slot.idle = false;
        }
        Some(index)
    }

    /// Ends a connection.
    pub(super) fn close(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::take) else { return };
        if slot.phase != Phase::Open {
            self.connecting -= 1;
        }
        if slot.idle {
            self.idle.retain(|i| *i != index);
        }
        let generation = &mut self.generations[index as usize];
        *generation = generation.wrapping_add(1);
        self.vacant.push(index);
    }

    /// Waits up to `most` for events and appends them to `ready`.
    pub(super) fn wait(&self, most: Nanos, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.poller.wait(most, ready)
    }

    /// Whose event it is, if that connection is still there.
    #[inline]
    pub(super) fn owner(&self, event: &Ready) -> Option<u32> {
        let (index, generation) = (event.key as u32, (event.key >> 32) as u32);
        (self.generations.get(index as usize) == Some(&generation)).then_some(index)
    }
}
