//! Lines to and from a process: nobody waits for it to listen, and its last complaints are kept.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::speech;
use crate::decide::Nanos;
use crate::machine::clock::{self, Clock};
use crate::machine::guard::ProgramExit;

/// A process that is talked to.
#[derive(Debug)]
pub(super) struct ChildChannel {
    child: Child,
    /// What it is to be told; without it, it hears the end.
    stdin_lines: Option<Sender<String>>,
    stderr_lines: Arc<Mutex<VecDeque<String>>>,
    /// Is cut off when it complains no more.
    stderr_closed: Receiver<()>,
}

/// A line that a process said, and when by our clock; without one it has fallen silent for good.
pub(super) type ChildLine = (Nanos, Option<String>);

/// Complaints that are kept, and how much of each.
const MAX_STDERR_LINES: usize = 20;
const MAX_LINE_CHARS: usize = 500;
/// So long the last complaints may take, once a process has ended.
const STDERR_TIMEOUT: Nanos = Nanos::from_millis(500);
/// How often it is looked whether a process has ended.
const POLL_INTERVAL: Nanos = Nanos::from_millis(2);

impl ChildChannel {
    /// Starts the command; what it says goes to `hear`, from a thread of its own.
    pub(super) fn start(mut command: Command, hear: impl Fn(ChildLine) + Send + 'static) -> io::Result<Self> {
        let mut child = command
            // A group of its own: Ctrl-C is for us alone.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut stdin, stdout, stderr) =
            (stdin.ok_or_else(missing)?, stdout.ok_or_else(missing)?, stderr.ok_or_else(missing)?);
        let (orders, to_tell) = mpsc::channel::<String>();
        thread::spawn(move || {
            for line in to_tell {
                // Who is gone need not be told; that it is gone shows on its stdout.
                if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        });
        thread::spawn(move || {
            let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
            while let Ok(Some(line)) = speech::next_line(&mut stdout) {
                hear((clock::monotonic(), Some(line)));
            }
            hear((clock::monotonic(), None));
        });
        let complaints: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let kept = Arc::clone(&complaints);
        let (complaining, complains) = mpsc::channel::<()>();
        thread::spawn(move || {
            let _complaining = complaining;
            for line in BufReader::new(stderr).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
                let mut kept = lock(&kept);
                if kept.len() == MAX_STDERR_LINES {
                    kept.pop_front();
                }
                kept.push_back(line.chars().take(MAX_LINE_CHARS).collect());
            }
        });
        Ok(Self { child, stdin_lines: Some(orders), stderr_lines: complaints, stderr_closed: complains })
    }

    /// Tells it a line.
    pub(super) fn send(&self, mut line: String) {
        line.push('\n');
        if let Some(orders) = &self.stdin_lines {
            let _ = orders.send(line);
        }
    }

    /// Its last complaints, the oldest first.
    pub(super) fn last_stderr_lines(&self) -> Vec<String> {
        lock(&self.stderr_lines).iter().cloned().collect()
    }

    /// How it ended, in words, once it has fallen silent; then all its complaints are there, too.
    pub(super) fn exit_description(&mut self) -> String {
        match self.wait_exit(Nanos::SECOND) {
            Some(status) => {
                // Something that it has started may hold its stderr open for ever.
                let _ = self.stderr_closed.recv_timeout(STDERR_TIMEOUT.as_duration());
                describe_exit(status)
            }
            None => "it closed its stdout".to_owned(),
        }
    }

    /// Lets it hear the end.
    pub(super) fn close_stdin(&mut self) {
        self.stdin_lines = None;
    }

    /// Waits for its end, and makes sure of it.
    pub(super) fn stop(&mut self, patience: Nanos) {
        self.close_stdin();
        if self.wait_exit(patience).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn wait_exit(&mut self, patience: Nanos) -> Option<ExitStatus> {
        let clock = Clock::started_ago(Nanos::ZERO);
        loop {
            // Nobody else waits for it.
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            let now = clock.now();
            if now >= patience {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
