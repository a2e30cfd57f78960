//! Lines to and from a child process: sending never blocks, and the last lines of its stderr are kept.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use super::protocol;
use weir_base::Nanos;
use weir_machine::clock::{self, Clock};
use weir_machine::lock::lock;
use weir_machine::supervisor::ProgramExit;

/// Child process with a line-based channel over stdin and stdout.
#[derive(Debug)]
pub(super) struct ChildChannel {
    child: Child,
    /// Queue of lines for its stdin; dropping it closes the stdin.
    stdin_lines: Option<Sender<String>>,
    stderr_lines: Arc<Mutex<VecDeque<String>>>,
    /// Disconnected when its stderr ends.
    stderr_closed: Receiver<()>,
}

/// Line on a child's stdout, with its time of arrival; None at the end of the stream.
pub(super) type ChildLine = (Nanos, Option<String>);

/// Number of stderr lines that are kept, and the length of each.
const MAX_STDERR_LINES: usize = 20;
const MAX_LINE_CHARS: usize = 500;
/// Timeout for the last lines on stderr after the end of a process.
const STDERR_TIMEOUT: Nanos = Nanos::from_millis(500);
/// Interval of checks whether a process has ended.
const POLL_INTERVAL: Nanos = Nanos::from_millis(2);

impl ChildChannel {
    /// Starts the command; threads pass the lines of its stdout to `on_line`, and those of its stderr to `on_text`.
    pub(super) fn start(
        mut command: Command,
        on_line: impl Fn(ChildLine) + Send + 'static,
        on_text: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let mut child = command
            // A separate process group, so that Ctrl-C reaches this process alone.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut stdin, stdout, stderr) =
            (stdin.ok_or_else(missing)?, stdout.ok_or_else(missing)?, stderr.ok_or_else(missing)?);
        let (lines, to_write) = mpsc::channel::<String>();
        thread::spawn(move || {
            for line in to_write {
                // The end of a process is detected by its stdout.
                if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        });
        thread::spawn(move || {
            let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
            while let Ok(Some(line)) = protocol::next_line(&mut stdout) {
                on_line((clock::monotonic(), Some(line)));
            }
            on_line((clock::monotonic(), None));
        });
        let stderr_lines: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let last_lines = Arc::clone(&stderr_lines);
        let (open_stderr, stderr_closed) = mpsc::channel::<()>();
        thread::spawn(move || {
            let _open_stderr = open_stderr;
            for line in BufReader::new(stderr).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
                on_text(&line);
                let mut last_lines = lock(&last_lines);
                if last_lines.len() == MAX_STDERR_LINES {
                    last_lines.pop_front();
                }
                last_lines.push_back(line.chars().take(MAX_LINE_CHARS).collect());
            }
        });
        Ok(Self { child, stdin_lines: Some(lines), stderr_lines, stderr_closed })
    }

    /// Sends a line, without waiting.
    pub(super) fn send(&self, mut line: String) {
        line.push('\n');
        if let Some(lines) = &self.stdin_lines {
            let _ = lines.send(line);
        }
    }

    /// Last lines of its stderr, oldest first.
    pub(super) fn last_stderr_lines(&self) -> Vec<String> {
        lock(&self.stderr_lines).iter().cloned().collect()
    }

    /// Description of its exit, after the end of its stdout. Afterwards [`Self::last_stderr_lines`] is complete.
    pub(super) fn exit_description(&mut self) -> String {
        match self.wait_exit(Nanos::SECOND) {
            Some(status) => {
                // A process that it has started may hold its stderr open.
                let _ = self.stderr_closed.recv_timeout(STDERR_TIMEOUT.as_duration());
                describe_exit(status)
            }
            None => "it closed its stdout".to_owned(),
        }
    }

    /// Closes its stdin, after the queued lines.
    pub(super) fn close_stdin(&mut self) {
        self.stdin_lines = None;
    }

    /// Waits for its exit, and kills it after the timeout.
    pub(super) fn stop(&mut self, timeout: Nanos) {
        self.close_stdin();
        if self.wait_exit(timeout).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn wait_exit(&mut self, timeout: Nanos) -> Option<ExitStatus> {
        let clock = Clock::started_ago(Nanos::ZERO);
        loop {
            // No other thread waits for this child.
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            let now = clock.now();
            if now >= timeout {
                return None;
            }
            clock.sleep_until(now + POLL_INTERVAL);
        }
    }
}

impl Drop for ChildChannel {
    fn drop(&mut self) {
        self.stop(Nanos::ZERO);
    }
}

fn describe_exit(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().map(ProgramExit::Signal);
    status.code().map(ProgramExit::Code).or(signal).map_or_else(|| "it ended".to_owned(), |ending| ending.to_string())
}
