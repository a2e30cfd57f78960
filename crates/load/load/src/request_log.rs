//! Log of all requests, one line each: JMeter's CSV (JTL), as JMeter, Jenkins, Taurus and BlazeMeter read it.
//!
//! `timeStamp` is the intended start and `elapsed` the response time, including the wait for a connection; `Latency` is
//! the time to the first byte, `Connect` the time to connect, both as in JMeter. A request without a response has the
//! code `Non HTTP response code: KIND`. JMeter's columns are whole milliseconds; the same times in microseconds follow
//! as "sample variables", which other readers ignore.
//!
//! Each thread writes lines into its own block and passes full blocks to one writer thread, so that no request waits
//! for the disk. If the disk stays slower than the load, threads wait: a log with gaps would be worse.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use weir_base::grpc_status::status_text;

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::terminal_text::is_steering;
use weir_machine::line_file::{LineFile, LostLines, count_lines};
use weir_measure::Outcome;
use weir_measure::outcome::RequestEnd;

const HEADER: &str = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,\
                      bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect,\"elapsed_us\",\"Latency_us\",\
                      \"Connect_us\"\n";
const BLOCK_BYTES: usize = 64 * 1024;
/// Maximum number of blocks queued for the disk: 16 MiB.
const MAX_QUEUED_BLOCKS: usize = 256;

/// Log of the requests of a run.
#[derive(Debug)]
pub struct RequestLog {
    blocks: SyncSender<Vec<u8>>,
    writer: JoinHandle<RequestLogEnd>,
    samplers: Arc<[LogSampler]>,
}

/// Label and URL of a kind of requests, as fields of CSV.
#[derive(Debug)]
struct LogSampler {
    label: String,
    url: String,
}

impl RequestLog {
    /// Log in `file`; `over` replaces its content. `samplers` are labels and URLs: one, or one for each step.
    pub fn new<'s>(file: File, over: bool, samplers: impl IntoIterator<Item = (&'s str, &'s str)>) -> Self {
        let (blocks, waiting) = sync_channel(MAX_QUEUED_BLOCKS);
        let writer = thread::spawn(move || write_all(file, over, &waiting));
        let quoted = |(label, url)| LogSampler { label: csv_quoted(label), url: csv_quoted(url) };
        Self { blocks, writer, samplers: samplers.into_iter().map(quoted).collect() }
    }

    /// Part of one thread, whose start is set later.
    pub fn thread_log(&self, thread: u64) -> ThreadLog {
        ThreadLog {
            block: Vec::with_capacity(BLOCK_BYTES + 1024),
            blocks: self.blocks.clone(),
            samplers: Arc::clone(&self.samplers),
            thread: thread + 1,
            start_ms: 0,
        }
    }

    /// Waits until all blocks are written.
    pub fn finish(self) -> RequestLogEnd {
        drop(self.blocks);
        let failed = |_| RequestLogEnd { lost_lines: 0, result: Err(io::Error::other("the writing thread failed")) };
        self.writer.join().unwrap_or_else(failed)
    }
}

/// Result of a log of requests.
#[derive(Debug)]
pub struct RequestLogEnd {
    /// Lines that were not written.
    pub lost_lines: u64,
    /// First error of the disk, with the number of lines that it has cost.
    pub result: io::Result<()>,
}

/// Writes all blocks. Those that a full disk has no room for are lost, and the next ones are tried again: the load goes on.
fn write_all(file: File, over: bool, blocks: &Receiver<Vec<u8>>) -> RequestLogEnd {
    let mut log = LineFile::new(file);
    let (mut is_emptied, mut has_header) = (!over, false);
    let (mut lines, mut lost, mut first_error) = (0, 0, None);
    for block in blocks {
        let of_block = count_lines(&block);
        lines += of_block;
        // An earlier log in the file is removed with the first block, when the run has started.
        let mut begun = Ok(());
        if !is_emptied {
            begun = truncate(log.file()).map_err(|error| LostLines { lines: 1, error });
            is_emptied = begun.is_ok();
        }
        if is_emptied && !has_header {
            begun = log.write(HEADER.as_bytes());
            // A part of it is completed with the next block.
            has_header = begun.as_ref().map_or_else(|of| of.lines == 0, |()| true);
        }
        let written = match begun {
            Ok(()) => log.write(&block).map_err(|of| (of.lines, of.error)),
            Err(of) => Err((of_block, of.error)),
        };
        if let Err((count, error)) = written {
            lost += count;
            first_error.get_or_insert(error);
        }
    }
    let synced = log.file().sync_all();
    lost += log.finish();
    let result = match first_error {
        Some(error) if lost > 0 => {
            Err(io::Error::new(error.kind(), format!("{lost} of {lines} lines were lost: {error}")))
        }
        _ => synced.or_else(|e| if e.kind() == io::ErrorKind::InvalidInput { Ok(()) } else { Err(e) }),
    };
    RequestLogEnd { lost_lines: lost, result }
}

/// Truncates a regular file; pipes and devices are left alone.
///
/// # Errors
/// As `ftruncate`.
pub fn truncate(file: &File) -> io::Result<()> {
    file.set_len(0).or_else(|e| if e.kind() == io::ErrorKind::InvalidInput { Ok(()) } else { Err(e) })
}

/// Part of one thread of a log.
#[derive(Debug)]
pub struct ThreadLog {
    block: Vec<u8>,
    blocks: SyncSender<Vec<u8>>,
    samplers: Arc<[LogSampler]>,
    thread: u64,
    /// Start of the run, in milliseconds since 1970.
    start_ms: u64,
}

impl ThreadLog {
    /// Sets the start of the run, in nanoseconds since 1970; the same for all parts of a log.
    pub fn set_start(&mut self, start_ns: u64) {
        self.start_ms = (start_ns + 500_000) / 1_000_000;
    }

    /// Appends an outcome. `connections` is the thread's current number of connections; `step` is the index of the
    /// sampler; `message` says why a step failed.
    pub fn push(&mut self, outcome: &Outcome, user: u32, connections: usize, step: u32, message: &str) {
        let ms = |n: Nanos| n.as_millis_f64().round() as u64;
        let us = |n: Nanos| (n.0 + 500) / 1_000;
        let (code, response_message) = match outcome.end {
            RequestEnd::Response(status) | RequestEnd::Checked { status, .. } => {
                (status_text(status).into_owned(), reason(status).to_owned())
            }
            RequestEnd::Failed(kind) => failure_columns(kind),
        };
        let is_answered = outcome.end.status().is_some();
        let latency = if is_answered { outcome.first_byte - outcome.intended } else { Nanos::ZERO };
        // Start and offset are rounded separately, so that offsets of a plan do not depend on the start.
        let timestamp = self.start_ms + ms(outcome.intended);
        let message_field =
            if message.is_empty() { String::new() } else { csv_quoted(&message.replace(is_steering, " ")) };
        let sampler = self.samplers.get(step as usize);
        // Writing to memory cannot fail.
        let _ = writeln!(
            self.block,
            "{timestamp},{},{},{code},{response_message},weir {}-{},text,{},{},{},{},{connections},{connections},{},{},0,{},{},{},{}",
            ms(outcome.response()),
            sampler.map_or("", |sampler| &sampler.label),
            self.thread,
            user + 1,
            outcome.is_ok(),
            message_field,
            outcome.bytes_in,
            outcome.bytes_out,
            sampler.map_or("", |sampler| &sampler.url),
            ms(latency),
            ms(outcome.connect),
            us(outcome.response()),
            us(latency),
            us(outcome.connect),
        );
        if self.block.len() >= BLOCK_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK_BYTES + 1024));
        // The writer ends when all senders are dropped.
        let _ = self.blocks.send(block);
    }
}

impl Drop for ThreadLog {
    fn drop(&mut self) {
        self.flush();
    }
}

fn failure_columns(kind: FailureKind) -> (String, String) {
    (format!("Non HTTP response code: {}", kind.name()), format!("Non HTTP response message: {}", kind.name()))
}

fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()).unwrap_or("")
}

/// Field of CSV (RFC 4180), quoted where needed. What a spreadsheet would take for a formula begins with an apostrophe,
/// as in weir's other tables; JMeter reads it as text.
fn csv_quoted(field: &str) -> String {
    let is_formula = field.starts_with(['=', '+', '-', '@']);
    let field = &*if is_formula { Cow::Owned(format!("'{field}")) } else { Cow::Borrowed(field) };
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn a_line_for_each_request_as_jmeter_writes_it() {
        let mut file = tempfile::tempfile().expect("a file");
        let log = RequestLog::new(file.try_clone().expect("a file"), true, [("/a,b", "http://h/a,b")]);
        let mut lines = log.thread_log(0);
        lines.set_start(1_000_000_600_000);
        let outcome = Outcome {
            sent: Nanos::from_millis(255),
            first_byte: Nanos::from_millis(260),
            connect: Nanos::from_millis(5),
            bytes_in: 186,
            body_in: 38,
            bytes_out: 80,
            ..Outcome::new(RequestEnd::Response(200), Nanos::from_millis(250), Nanos(261_637_000))
        };
        lines.push(&outcome, 6, 3, 0, "");
        lines.push(&Outcome { end: RequestEnd::Failed(FailureKind::Timeout), bytes_in: 0, ..outcome }, 6, 3, 0, "");
        let checked = RequestEnd::Checked { status: 200, passed: false };
        lines.push(&Outcome { end: checked, ..outcome }, 6, 3, 0, "body contains \"ok\":\nnot found");
        drop(lines);
        log.finish().result.expect("written");
        let mut text = String::new();
        file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("readable");
        let expected = "1000251,12,\"/a,b\",200,OK,weir 1-7,text,true,,186,80,3,3,\"http://h/a,b\",10,0,5,11637,10000,5000\n\
            1000251,12,\"/a,b\",Non HTTP response code: timeout,Non HTTP response message: timeout,weir 1-7,text,false,,\
            0,80,3,3,\"http://h/a,b\",0,0,5,11637,0,5000\n\
            1000251,12,\"/a,b\",200,OK,weir 1-7,text,false,\"body contains \"\"ok\"\": not found\",186,80,3,3,\
            \"http://h/a,b\",10,0,5,11637,10000,5000\n";
        assert_eq!(text, format!("{HEADER}{expected}"));
    }

    #[test]
    fn no_field_is_a_formula() {
        assert_eq!(["=1+2", "@x", "a=b"].map(csv_quoted), ["'=1+2", "'@x", "a=b"]);
        assert_eq!(csv_quoted("-a,\"b\""), "\"'-a,\"\"b\"\"\"");
    }

    #[test]
    fn a_full_disk_is_said_at_the_end_and_stops_nobody() {
        let Ok(full) = File::create("/dev/full") else { return };
        let log = RequestLog::new(full, true, [("/", "http://h/")]);
        let mut lines = log.thread_log(0);
        lines.block.extend_from_slice(b"one\ntwo\n");
        drop(lines);
        let RequestLogEnd { lost_lines, result } = log.finish();
        let error = result.expect_err("no space");
        assert_eq!(lost_lines, 2);
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("2 of 2 lines were lost: No space left on device"), "{error}");
    }
}
