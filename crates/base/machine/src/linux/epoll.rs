//! Readiness of connections: edge-triggered epoll, registered once per connection, so a request needs no further call
//! here.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::super::clock::timespec;
use super::super::readiness_event::{MAX_EVENTS_PER_WAIT, ReadinessEvent};
use weir_base::Nanos;

/// Readiness of connections, by epoll.
#[derive(Debug)]
pub struct Epoll {
    epoll: OwnedFd,
}

impl Epoll {
    /// One without connections.
    ///
    /// # Errors
    /// The system has no descriptor left, or is too old.
    pub fn new() -> io::Result<Self> {
        let poller = Self { epoll: epoll::create(CreateFlags::CLOEXEC)? };
        // Told before the first connection: in a run, it would be an end without a cause.
        match poller.wait(Nanos::ZERO, &mut Vec::new()) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOSYS) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "no epoll_pwait2: weir needs Linux 5.11 or later"))
            }
            waited => waited.map(|()| poller),
        }
    }

    /// Registers a socket, whose events have `key` until it is closed.
    ///
    /// # Errors
    /// The system's limit of registrations is reached.
    pub fn add(&self, socket: impl AsFd, key: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(key), flags)?)
    }

    /// Waits up to `most` for events and appends them to `ready`.
    ///
    /// # Errors
    /// None once it was created; a signal ends the wait.
    pub fn wait(&self, most: Nanos, ready: &mut Vec<ReadinessEvent>) -> io::Result<()> {
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
