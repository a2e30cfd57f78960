//! Access log: one line per request, written by its own thread, so that a slow disk does not delay responses.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use prometheus_client::metrics::counter::Counter;
use serde::Serialize;
use serde_json::value::RawValue;

use super::access_log_file::AccessLogFile;
use super::access_log_format::{AccessLogFormat, LogValues, LoggedRequest};
use weir_base::rng::SeededRng;
use weir_machine::line_file::count_lines;
use weir_machine::logger::Logger;

/// One line of the access log.
#[derive(Debug, Serialize)]
pub(super) struct AccessLogEntry<'a> {
    /// End of the response, in seconds since 1970.
    pub(super) time: f64,
    #[serde(flatten)]
    pub(super) request: LoggedRequest<'a>,
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

/// An access log: its file and lines.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessLogOptions {
    /// The file, to which lines are appended; `-` is stderr.
    pub path: PathBuf,
    /// Format of its lines.
    pub format: AccessLogFormat,
    /// Fraction of requests that have a line, 0 to 1. Requests without a response and those with 5xx always have one.
    pub sample_fraction: f64,
}

impl AccessLogOptions {
    /// A line of JSON for each request.
    pub fn json(path: PathBuf) -> Self {
        Self { path, format: AccessLogFormat::default(), sample_fraction: 1.0 }
    }
}

/// Message to the writer thread.
#[derive(Debug)]
enum LogMessage {
    /// Whole lines.
    Lines(Vec<u8>),
    /// Open the file again, which was moved away.
    Reopen,
}

/// The writer thread; it ends when all [`AccessLogWriter`]s are dropped.
#[derive(Debug)]
pub(super) struct AccessLog {
    messages: SyncSender<LogMessage>,
    thread: JoinHandle<()>,
    dropped: Counter,
    logger: Logger,
}

/// One event loop's buffer of the access log.
#[derive(Debug)]
pub(super) struct AccessLogWriter {
    messages: SyncSender<LogMessage>,
    options: AccessLogOptions,
    /// Requests so far, for samples.
    count: Cell<u64>,
    buffer: RefCell<Vec<u8>>,
    dropped: Counter,
    is_slow: Cell<bool>,
    logger: Logger,
}

impl AccessLog {
    /// Appends to the file, or writes to stderr for `-`. `dropped` counts lines that are lost.
    pub(super) fn open(options: &AccessLogOptions, logger: &Logger, dropped: &Counter) -> io::Result<Self> {
        let mut file = AccessLogFile::open(&options.path, logger, dropped.clone())?;
        let (messages, received) = sync_channel(MAX_QUEUED_BATCHES);
        let writer = thread::Builder::new().name("access-log".to_owned()).spawn(move || {
            for message in received {
                match message {
                    LogMessage::Lines(lines) => file.write(&lines),
                    LogMessage::Reopen => file.reopen(),
                }
            }
            file.finish();
        })?;
        Ok(Self { messages, thread: writer, dropped: dropped.clone(), logger: logger.clone() })
    }

    pub(super) fn writer(&self, options: &AccessLogOptions, logger: &Logger) -> AccessLogWriter {
        AccessLogWriter {
            messages: self.messages.clone(),
            options: options.clone(),
            count: Cell::new(0),
            buffer: RefCell::default(),
            dropped: self.dropped.clone(),
            is_slow: Cell::new(false),
            logger: logger.clone(),
        }
    }

    /// Opens the file again, after the lines that were written before.
    pub(super) fn reopen(&self) {
        // Without its thread there is no log.
        let _ = self.messages.send(LogMessage::Reopen);
    }

    /// Waits until all lines are written. All writers must have been dropped.
    pub(super) fn close(self) {
        drop(self.messages);
        let _ = self.thread.join();
        let dropped = self.dropped.get();
        if dropped > 0 {
            self.logger.log(&format!("access log: {dropped} lines dropped"));
        }
    }
}

impl AccessLogWriter {
    /// Format of the lines.
    pub(super) fn format(&self) -> &AccessLogFormat {
        &self.options.format
    }

    /// Whether a request has a line, by its status.
    pub(super) fn is_sampled(&self, status: Option<u16>) -> bool {
        let number = self.count.replace(self.count.get().wrapping_add(1));
        let is_failure = status.is_none_or(|status| status >= 500);
        is_failure || self.options.sample_fraction >= 1.0 || {
            SeededRng::new(0, number).unit() < self.options.sample_fraction
        }
    }

    pub(super) fn write_json(&self, line: &AccessLogEntry<'_>) {
        self.write(|buffer| {
            // Plain fields always serialize, and writes to a Vec do not fail.
            let _ = serde_json::to_writer(&mut *buffer, line);
            buffer.push(b'\n');
        });
    }

    pub(super) fn write_values(&self, values: &LogValues<'_>) {
        if let AccessLogFormat::Template(template) = &self.options.format {
            self.write(|buffer| template.write(values, buffer));
        }
    }

    fn write(&self, line: impl FnOnce(&mut Vec<u8>)) {
        let mut buffer = self.buffer.borrow_mut();
        line(&mut buffer);
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
        if let Err(TrySendError::Full(LogMessage::Lines(batch))) = self.messages.try_send(LogMessage::Lines(batch)) {
            if !self.is_slow.replace(true) {
                self.logger.log("access log: the disk is too slow, lines are dropped");
            }
            self.dropped.inc_by(count_lines(&batch));
        }
    }
}

impl Drop for AccessLogWriter {
    fn drop(&mut self) {
        self.flush();
    }
}
