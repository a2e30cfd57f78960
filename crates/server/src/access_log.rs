//! Access log: one JSON line per request, written by its own thread, so that a slow disk does not delay responses.

use std::cell::{Cell, RefCell};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use serde::Serialize;
use serde_json::value::RawValue;

use super::Logger;

/// One line of the access log.
#[derive(Debug, Serialize)]
pub(super) struct AccessLogEntry<'a> {
    /// End of the response, in seconds since 1970.
    pub(super) time: f64,
    pub(super) client: &'a str,
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) version: &'a str,
    /// None if there was no response: the connection was reset, or the client disconnected.
    pub(super) status: Option<u16>,
    /// Bytes of the body.
    pub(super) bytes: u64,
    pub(super) duration_ms: f64,
    /// Whether the client disconnected before its response began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) client_closed: bool,
    /// Attempt log of the service, as JSON.
    #[serde(rename = "attempt_log", skip_serializing_if = "Option::is_none")]
    pub(super) attempts: Option<&'a RawValue>,
}

/// Bytes that one event loop buffers before a flush.
const FLUSH_BYTES: usize = 32 * 1024;
/// Maximum batches that wait for the disk; lines beyond are dropped and counted.
const MAX_QUEUED_BATCHES: usize = 64;

/// The writer thread; it ends when all [`AccessLogWriter`]s are dropped.
#[derive(Debug)]
pub(super) struct AccessLog {
    batches: SyncSender<Vec<u8>>,
    thread: JoinHandle<()>,
}

/// One event loop's buffer of the access log.
#[derive(Debug)]
pub(super) struct AccessLogWriter {
    batches: SyncSender<Vec<u8>>,
    buffer: RefCell<Vec<u8>>,
    dropped: Cell<u64>,
    logger: Logger,
}

impl AccessLog {
    /// Appends to the file, or writes to stderr for `-`.
    pub(super) fn open(path: &Path, logger: &Logger) -> io::Result<Self> {
        let out: Box<dyn Write + Send> = if path == Path::new("-") {
            Box::new(io::stderr())
        } else {
            Box::new(OpenOptions::new().append(true).create(true).open(path)?)
        };
        let (batches, received) = sync_channel(MAX_QUEUED_BATCHES);
        let (path, logger) = (path.display().to_string(), logger.clone());
        let writer = thread::Builder::new().name("access-log".to_owned()).spawn(move || {
            if let Err(error) = write_batches(out, &received) {
                logger.log(&format!("access log {path} stopped: {error}"));
            }
        })?;
        Ok(Self { batches, thread: writer })
    }

    pub(super) fn writer(&self, logger: &Logger) -> AccessLogWriter {
        AccessLogWriter {
            batches: self.batches.clone(),
            buffer: RefCell::default(),
            dropped: Cell::new(0),
            logger: logger.clone(),
        }
    }

    /// Waits until all lines are written. All writers must have been dropped.
    pub(super) fn close(self) {
        drop(self.batches);
        let _ = self.thread.join();
    }
}

fn write_batches(mut out: impl Write, batches: &Receiver<Vec<u8>>) -> io::Result<()> {
    for batch in batches {
        out.write_all(&batch)?;
    }
    out.flush()
}

impl AccessLogWriter {
    pub(super) fn write(&self, line: &AccessLogEntry<'_>) {
        let mut buffer = self.buffer.borrow_mut();
        // Plain fields always serialize, and writes to a Vec do not fail.
        let _ = serde_json::to_writer(&mut *buffer, line);
        buffer.push(b'\n');
        let full = buffer.len() >= FLUSH_BYTES;
        drop(buffer);
        if full {
            self.flush();
        }
    }

    /// Hands the buffered lines to the writer thread.
    pub(super) fn flush(&self) {
        let batch = self.buffer.take();
        if batch.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(batch)) = self.batches.try_send(batch) {
            if self.dropped.get() == 0 {
                self.logger.log("access log: the disk is too slow, lines are dropped");
            }
            self.dropped.set(self.dropped.get() + batch.iter().filter(|byte| **byte == b'\n').count() as u64);
        }
    }
}

impl Drop for AccessLogWriter {
    fn drop(&mut self) {
        self.flush();
        let dropped = self.dropped.get();
        if dropped > 0 {
            self.logger.log(&format!("access log: {dropped} lines dropped"));
        }
    }
}
