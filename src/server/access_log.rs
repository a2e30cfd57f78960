//! A line of JSON for each request, written by a thread of its own: a slow disk must not slow an answer.

use std::cell::{Cell, RefCell};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use serde::Serialize;
use serde_json::value::RawValue;

use super::Tell;

/// One line.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    /// Seconds since 1970, when the answer was complete.
    pub(super) time: f64,
    pub(super) client: &'a str,
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) version: &'a str,
    /// None if there was no answer: reset, or nobody waited for it any more.
    pub(super) status: Option<u16>,
    /// Of the body.
    pub(super) bytes: u64,
    pub(super) duration_ms: f64,
    /// The client left before its answer began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) gone: bool,
    /// What the service tells of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) story: Option<&'a RawValue>,
}

/// Bytes that one event loop gathers before it hands them on.
const HAND_ON: usize = 32 * 1024;
/// Such parcels that may wait for the disk. Beyond that lines are lost, and counted.
const WAITING: usize = 64;

/// The writer; ends when all [`Pen`]s are gone.
#[derive(Debug)]
pub(super) struct AccessLog {
    parcels: SyncSender<Vec<u8>>,
    writer: JoinHandle<()>,
}

/// One event loop's end of it.
#[derive(Debug)]
pub(super) struct Pen {
    parcels: SyncSender<Vec<u8>>,
    gathered: RefCell<Vec<u8>>,
    lost: Cell<u64>,
    tell: Tell,
}

impl AccessLog {
    /// Appends to the file, or writes to stderr for `-`.
    pub(super) fn open(path: &Path, tell: &Tell) -> io::Result<Self> {
        let out: Box<dyn Write + Send> = if path == Path::new("-") {
            Box::new(io::stderr())
        } else {
            Box::new(OpenOptions::new().append(true).create(true).open(path)?)
        };
        let (parcels, received) = sync_channel(WAITING);
        let (path, tell) = (path.display().to_string(), tell.clone());
        let writer = thread::Builder::new().name("access-log".to_owned()).spawn(move || {
            if let Err(error) = write(out, &received) {
                tell.say(&format!("the access log {path} ends here: {error}"));
            }
        })?;
        Ok(Self { parcels, writer })
    }

    pub(super) fn pen(&self, tell: &Tell) -> Pen {
        Pen { parcels: self.parcels.clone(), gathered: RefCell::default(), lost: Cell::new(0), tell: tell.clone() }
    }

    /// Waits until all is written. All pens must be gone.
    pub(super) fn close(self) {
        drop(self.parcels);
        let _ = self.writer.join();
    }
}

fn write(mut out: impl Write, parcels: &Receiver<Vec<u8>>) -> io::Result<()> {
    for parcel in parcels {
        out.write_all(&parcel)?;
    }
    out.flush()
}

impl Pen {
    pub(super) fn write(&self, line: &Line<'_>) {
        let mut gathered = self.gathered.borrow_mut();
        // A line of plain fields is always JSON, and a Vec takes all.
        let _ = serde_json::to_writer(&mut *gathered, line);
        gathered.push(b'\n');
        let full = gathered.len() >= HAND_ON;
        drop(gathered);
        if full {
            self.hand_on();
        }
    }

    /// Hands on what has been gathered.
    pub(super) fn hand_on(&self) {
        let parcel = self.gathered.take();
        if parcel.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(parcel)) = self.parcels.try_send(parcel) {
            if self.lost.get() == 0 {
                self.tell.say("the access log's disk is too slow: lines are lost");
            }
            self.lost.set(self.lost.get() + parcel.iter().filter(|byte| **byte == b'\n').count() as u64);
        }
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        self.hand_on();
        let lost = self.lost.get();
        if lost > 0 {
            self.tell.say(&format!("{lost} lines of the access log were lost"));
        }
    }
}
