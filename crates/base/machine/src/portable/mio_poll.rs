//! Readiness of connections: mio, edge-triggered, which is kqueue on macOS and the BSDs and epoll on Linux.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::super::readiness_event::{MAX_EVENTS_PER_WAIT, ReadinessEvent};
use weir_base::Nanos;

/// Readiness of connections, by mio.
#[derive(Debug)]
pub struct MioPoll {
    poll: RefCell<(Poll, Events)>,
}

impl MioPoll {
    /// One without connections.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { poll: RefCell::new((Poll::new()?, Events::with_capacity(MAX_EVENTS_PER_WAIT))) })
    }

    /// Registers a socket, whose events have `key` until it is closed.
    ///
    /// # Errors
    /// The system's limit of registrations is reached.
    pub fn add(&self, socket: impl AsFd, key: u64) -> io::Result<()> {
        let token = Token(usize::try_from(key).map_err(io::Error::other)?);
        let fd = socket.as_fd().as_raw_fd();
        self.poll.borrow().0.registry().register(&mut SourceFd(&fd), token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Waits up to `most` for events and appends them to `ready`.
    ///
    /// # Errors
    /// None while it is open; a signal ends the wait.
    pub fn wait(&self, most: Nanos, ready: &mut Vec<ReadinessEvent>) -> io::Result<()> {
        let (poll, events) = &mut *self.poll.borrow_mut();
        match poll.poll(events, Some(rounded_down(most).as_duration())) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            polled => polled?,
        }
        ready.extend(events.iter().map(|event| {
            let hung_up = event.is_read_closed() || event.is_write_closed() || event.is_error();
            ReadinessEvent {
                key: event.token().0 as u64,
                readable: hung_up || event.is_readable(),
                writable: hung_up || event.is_writable(),
                hung_up,
            }
        }));
        Ok(())
    }
}

/// mio waits for whole milliseconds on Linux, and would be late; the caller polls for the rest of its time.
fn rounded_down(most: Nanos) -> Nanos {
    if cfg!(target_os = "linux") { Nanos::from_millis(most.as_millis()) } else { most }
}
