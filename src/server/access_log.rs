//! A line of JSON for each request, written by a thread of its own: a slow disk must not slow an answer.

use std::cell::{Cell, RefCell};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use serde::Serialize;
use serde_json::value::RawValue;

use super::Logger;

/// One line.
#[derive(Debug, Serialize)]
pub(super) struct AccessLogEntry<'a> {
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
    pub(super) client_closed: bool,
    /// What the service tells of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempts: Option<&'a RawValue>,
}

/// Bytes that one event loop gathers before it hands them on.
const FLUSH_BYTES: usize = 32 * 1024;
/// Such parcels that may wait for the disk. Beyond that lines are lost, and counted.
const MAX_QUEUED_BATCHES: usize = 64;

/// The writer; ends when all [`AccessLogWriter`]s are gone.
#[derive(Debug)]
pub(super) struct AccessLog {
    batches: SyncSender<Vec<u8>>,
    thread: JoinHandle<()>,
}

/// One event loop's end of it.
#[derive(Debug)]
pub(super) struct AccessLogWriter {
    batches: SyncSender<Vec<u8>>,
    buffer: RefCell<Vec<u8>>,
    dropped: Cell<u64>,
    logger: Logger,
}

impl AccessLog {
    /// Appends to the file, or writes to stderr for `-`.
    pub(super) fn open(path: &Path, tell: &Logger) -> io::Result<Self> {
        let out: Box<dyn Write + Send> = if path == Path::new("-") {
            Box::new(io::stderr())
        } else {
            Box::new(OpenOptions::new().append(true).create(true).open(path)?)
        };
        let (parcels, received) = sync_channel(MAX_QUEUED_BATCHES);
        let (path, tell) = (path.display().to_string(), tell.clone());
        let writer = thread::Builder::new().name("access-log".to_owned()).spawn(move || {
            if let Err(error) = write_batches(out, &received) {
                tell.log(&format!("the access log {path} ends here: {error}"));
            }
        })?;
        Ok(Self { batches: parcels, thread: writer })
    }

    pub(super) fn writer(&self, tell: &Logger) -> AccessLogWriter {
        AccessLogWriter {
            batches: self.batches.clone(),
            buffer: RefCell::default(),
            dropped: Cell::new(0),
            logger: tell.clone(),
        }
    }

    /// Waits until all is written. All pens must be gone.
    pub(super) fn close(self) {
        drop(self.batches);
        let _ = self.thread.join();
    }
}

fn write_batches(mut out: impl Write, parcels: &Receiver<Vec<u8>>) -> io::Result<()> {
    for parcel in parcels {
        out.write_all(&parcel)?;
    }
    out.flush()
}

impl AccessLogWriter {
    pub(super) fn write(&self, line: &AccessLogEntry<'_>) {
        let mut gathered = self.buffer.borrow_mut();
        // A line of plain fields is always JSON, and a Vec takes all.
        let _ = serde_json::to_writer(&mut *gathered, line);
        gathered.push(b'\n');
        let full = gathered.len() >= FLUSH_BYTES;
        drop(gathered);
        if full {
            self.flush();
        }
    }

    /// Hands on what has been gathered.
    pub(super) fn flush(&self) {
        let parcel = self.buffer.take();
        if parcel.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(parcel)) = self.batches.try_send(parcel) {
            if self.dropped.get() == 0 {
                self.logger.log("the access log's disk is too slow: lines are lost");
            }
            self.dropped.set(self.dropped.get() + parcel.iter().filter(|byte| **byte == b'\n').count() as u64);
        }
    }
}

impl Drop for AccessLogWriter {
    fn drop(&mut self) {
        self.flush();
        let lost = self.dropped.get();
        if lost > 0 {
            self.logger.log(&format!("{lost} lines of the access log were lost"));
        }
    }
}
