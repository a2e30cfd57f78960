//! Which connections can go on: edge-triggered epoll, registered once per connection, so a request costs no call of
//! its own here.

use std::io;
use std::mem::MaybeUninit;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::decide::Nanos;
use crate::http::stream::Stream;
use crate::machine::clock::timespec;

/// What happened to one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadinessEvent {
    /// Whose: as given to [`Poller::add`].
    pub key: u64,
    /// Something can be read, or the peer has closed.
    pub readable: bool,
    /// Something can be written.
    pub writable: bool,
    /// The peer has closed or the connection broke: reading on will tell.
    pub hung_up: bool,
}

#[derive(Debug)]
pub(super) struct Poller {
    epoll: rustix::fd::OwnedFd,
}

/// Events taken in at a time. Small enough that a batch is worked off in well under a millisecond, so that sends that
/// fall due meanwhile are not late by more.
const MAX_EVENTS_PER_WAIT: usize = 128;

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    /// From now on, events of `stream` bear `key`; until it is closed.
    pub(super) fn add(&self, stream: &Stream, key: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, stream, EventData::new_u64(key), flags)?)
    }

    /// Waits up to `most` for events and appends them to `ready`.
    pub(super) fn wait(&self, most: Nanos, ready: &mut Vec<ReadinessEvent>) -> io::Result<()> {
        let timeout = timespec(i64::try_from(most.0).unwrap_or(i64::MAX));
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS_PER_WAIT];
        let (events, _) = match epoll::wait(&self.epoll, room.as_mut_slice(), Some(&timeout)) {
            Ok(found) => found,
            Err(Errno::INTR) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        ready.extend(events.iter().map(|event| {
            let flags = event.flags;
            let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
            ReadinessEvent {
                key: event.data.u64(),
                readable: hung_up || flags.contains(EventFlags::IN),
                writable: hung_up || flags.contains(EventFlags::OUT),
                hung_up,
            }
        }));
        Ok(())
    }
}
