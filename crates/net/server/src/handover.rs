//! Listening sockets that one process passes on to the next, so that a new version takes over and each connection is
//! accepted.
//!
//! The old process starts the new one with copies of its sockets, which are the same to the kernel: both accept
//! connections from the same queue, until the new process has reported that it is ready and the old one stops.
//!
//! `unsafe`, since a descriptor that the environment names by its number has no owner in this process.
#![allow(unsafe_code, reason = "a descriptor named by its number can only be taken without a proof")]

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use serde::{Deserialize, Serialize};

use super::listener_options::ListenerOptions;
use weir_machine::lock::lock;

/// Variable by which a process learns of the sockets that it is passed.
const VARIABLE: &str = "WEIR_HANDOVER";

/// Value of the variable, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct HandoverNote {
    /// The process that passes the sockets on. Another process may inherit the variable, but not the descriptors.
    parent: u32,
    /// Descriptor by which the new process reports that it accepts connections.
    ready: RawFd,
    /// Descriptors of sockets by listener.
    sockets: BTreeMap<String, Vec<RawFd>>,
}

/// Copies of a server's listening sockets, for as long as it listens.
#[derive(Clone, Debug, Default)]
pub struct ListenSockets(Arc<Mutex<Vec<(String, OwnedFd)>>>);

/// Sockets that were passed to this process. What no server takes is closed by [`Self::close_rest`].
#[derive(Clone, Debug, Default)]
pub struct HandedSockets(Arc<Mutex<BTreeMap<String, Vec<OwnedFd>>>>);

/// Start of this process by another one, whose place it takes.
#[derive(Debug)]
pub struct Handover {
    /// None once it has reported.
    ready: Option<File>,
    sockets: HandedSockets,
}

/// Process that is to take this one's place.
#[derive(Debug)]
pub struct NextProcess {
    child: Child,
    ready: PipeReader,
}

/// Reason why the next process has not taken over. It has been ended.
#[derive(Debug)]
pub enum HandoverError {
    /// The new process ended; its own message has the reason.
    Ended,
    /// The new process was not ready in time.
    TimedOut(Duration),
    /// An error of the system.
    System(io::Error),
}

impl std::error::Error for HandoverError {}

impl fmt::Display for HandoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the new process ended before it accepted connections"),
            Self::TimedOut(after) => write!(f, "the new process accepted no connections within {after:?}"),
            Self::System(error) => write!(f, "cannot start the new process: {error}"),
        }
    }
}

impl From<io::Error> for HandoverError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl ListenSockets {
    /// Adds a copy of a listener's socket.
    pub(super) fn add(&self, listener: &ListenerOptions, socket: impl AsFd) -> io::Result<()> {
        let copy = socket.as_fd().try_clone_to_owned()?;
        lock(&self.0).push((listener.key(), copy));
        Ok(())
    }

    /// Closes the copies: from now on connections are refused, unless another process listens.
    pub(super) fn close(&self) {
        lock(&self.0).clear();
    }
}

impl HandedSockets {
    /// The sockets of a listener, if there are any.
    pub(super) fn take(&self, listener: &ListenerOptions) -> Vec<OwnedFd> {
        lock(&self.0).remove(&listener.key()).unwrap_or_default()
    }

    /// Closes what no server has taken. Connections to it would wait for ever.
    pub fn close_rest(&self) {
        lock(&self.0).clear();
    }
}

impl Handover {
    /// The sockets that this process was started with; None if it was started in another way. To be called once.
    ///
    /// # Errors
    /// The variable is none of weir's, or names descriptors that are not open.
    pub fn from_environment() -> io::Result<Option<Self>> {
        let Ok(text) = env::var(VARIABLE) else { return Ok(None) };
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{VARIABLE}: {why}"));
        let note: HandoverNote = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        if rustix::process::getppid().is_none_or(|parent| parent.as_raw_nonzero().get().cast_unsigned() != note.parent)
        {
            return Ok(None);
        }
        let own =
            |number: RawFd| take_descriptor(number).ok_or_else(|| invalid(format!("no descriptor {number} is open")));
        let ready = File::from(own(note.ready)?);
        let own_all = |(address, numbers): (String, Vec<RawFd>)| {
            Ok((address, numbers.into_iter().map(own).collect::<io::Result<_>>()?))
        };
        let sockets = note.sockets.into_iter().map(own_all).collect::<io::Result<_>>()?;
        Ok(Some(Self { ready: Some(ready), sockets: HandedSockets(Arc::new(Mutex::new(sockets))) }))
    }

    /// The sockets, for [`super::Options::handed`].
    pub fn sockets(&self) -> HandedSockets {
        self.sockets.clone()
    }

    /// Closes sockets that are not used, and reports to the old process that this one accepts connections, so that it
    /// stops.
    pub fn report_ready(mut self) {
        self.sockets.close_rest();
        if let Some(mut ready) = self.ready.take() {
            // If the old process is gone nothing reads it.
            let _ = ready.write_all(b"r");
        }
    }
}

impl Drop for Handover {
    /// Without a report the old process waits for the end of this one: its messages come first.
    fn drop(&mut self) {
        std::mem::forget(self.ready.take());
    }
}

/// The descriptor of a number, which is closed in programs that this process starts.
fn take_descriptor(number: RawFd) -> Option<OwnedFd> {
    // Input, output and errors are others'.
    if number <= 2 {
        return None;
    }
    // SAFETY: the descriptor is only asked whether it is open.
    let flags = fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) }).ok()?;
    // SAFETY: it is open, and the process that has started this one has opened it for this purpose alone.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&owned, flags | FdFlags::CLOEXEC).ok()?;
    Some(owned)
}

impl NextProcess {
    /// Starts a process with these sockets.
    ///
    /// # Errors
    /// The program does not start, or the system has no descriptor left.
    pub fn start(mut command: Command, sockets: &[ListenSockets]) -> io::Result<Self> {
        let (ready, reports) = io::pipe()?;
        // What the new process inherits. Closed here once it has started.
        let mut inherited = Vec::new();
        let mut pass_on = |descriptor: BorrowedFd<'_>| -> io::Result<RawFd> {
            // Dropped on an error, so that nothing is inherited by accident.
            let copy = descriptor.try_clone_to_owned()?;
            fcntl_setfd(&copy, FdFlags::empty())?;
            let number = copy.as_raw_fd();
            inherited.push(copy);
            Ok(number)
        };
        let mut note =
            HandoverNote { parent: std::process::id(), ready: pass_on(reports.as_fd())?, sockets: BTreeMap::default() };
        for group in sockets {
            for (address, socket) in &*lock(&group.0) {
                note.sockets.entry(address.clone()).or_default().push(pass_on(socket.as_fd())?);
            }
        }
        let child = command.env(VARIABLE, serde_json::to_string(&note)?).spawn()?;
        Ok(Self { child, ready })
    }

    /// Process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the process accepts connections. From then on it is on its own.
    ///
    /// # Errors
    /// It does not within this time, and was ended.
    pub fn wait_ready(mut self, timeout: Duration) -> Result<(), HandoverError> {
        let ended = self.read_report(timeout);
        if ended.is_err() {
            // It may have ended by itself.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        ended
    }

    fn read_report(&mut self, timeout: Duration) -> Result<(), HandoverError> {
        let limit = Timespec::try_from(timeout).ok();
        let mut waited = [PollFd::new(&self.ready, PollFlags::IN)];
        loop {
            match poll(&mut waited, limit.as_ref()) {
                Ok(0) => return Err(HandoverError::TimedOut(timeout)),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(HandoverError::System(error.into())),
            }
        }
        match self.ready.read(&mut [0; 1])? {
            0 => Err(HandoverError::Ended),
            _ => Ok(()),
        }
    }
}
