//! Readiness of connections: edge-triggered epoll, registered once per connection, so a request needs no further call
//! here.

use std::io;
use std::mem::MaybeUninit;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use weir_decide::Nanos;
use weir_http::stream::Stream;
use weir_machine::clock::timespec;

/// Event of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadinessEvent {
    /// Key, as given to [`Poller::add`].
    pub key: u64,
    /// Whether data can be read, or the peer has closed.
    pub readable: bool,
    /// Whether data can be written.
    pub writable: bool,
    /// Whether the peer has closed or the connection failed: the next read shows which.
    pub hung_up: bool,
}

#[derive(Debug)]
pub(super) struct Poller {
    epoll: rustix::fd::OwnedFd,
}

/// Maximum number of events at a time: a batch is processed in well under a millisecond, so that sends due meanwhile
/// are not later than that.
const MAX_EVENTS_PER_WAIT: usize = 128;

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    /// Registers `stream`, whose events have `key` until it is closed.
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
