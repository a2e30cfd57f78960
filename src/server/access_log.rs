//! Access log: a line of JSON for each request, written by its own thread, so that a slow disk does not delay
//! responses.

use std::cell::{Cell, RefCell};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use serde::Serialize;
use serde_json::value::RawValue;

use super::Logger;

/// A line of the log.
#[derive(Debug, Serialize)]
pub(super) struct AccessLogEntry<'a> {
    /// Time when the response was complete, in seconds since 1970.
    pub(super) time: f64,
    pub(super) client: &'a str,
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) version: &'a str,
    /// Status; None without a response: reset, or closed by the client.
    pub(super) status: Option<u16>,
    /// Size of the body, in bytes.
    pub(super) bytes: u64,
    pub(super) duration_ms: f64,
    /// Whether the client closed the connection before its response began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) client_closed: bool,
    /// Text of the service about the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempts: Option<&'a RawValue>,
}

/// Size of an event loop's batch, in bytes.
const FLUSH_BYTES: usize = 32 * 1024;
/// Maximum number of batches that wait for the disk. Beyond it lines are lost, and counted.
const MAX_QUEUED_BATCHES: usize = 64;

/// The writer; ends when all [`AccessLogWriter`]s are gone.
#[derive(Debug)]
pub(super) struct AccessLog {
    batches: SyncSender<Vec<u8>>,
    thread: JoinHandle<()>,
}

/// One event loop's part of the log.
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
                tell.log(&format!("access log {path} stopped: {error}"));
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

    /// Waits until all lines are written. All [`AccessLogWriter`]s must be dropped.
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
        // Plain fields always serialize, and a Vec accepts all bytes.
        let _ = serde_json::to_writer(&mut *gathered, line);
        gathered.push(b'\n');
        let full = gathered.len() >= FLUSH_BYTES;
        drop(gathered);
        if full {
            self.flush();
        }
    }

    /// Hands the batch to the writer.
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
