//! Program that runs under a supervisor process ([`weir_machine::supervisor`]): its state, its output, and its end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use super::failure::MeasurementError;
use super::measurement::MeasurementFailure;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::lock::{lock, wait_timeout_while};
use weir_machine::supervisor::{ProgramExit, ProgramSpec, SupervisorCommand, SupervisorEvent};

/// Command that starts this program again: program and leading arguments.
pub type Launcher = [std::ffi::OsString];

/// Hidden command that runs a supervisor.
pub const GUARD: &str = "guard-program";

/// Bytes of a program's output that are kept, from the end.
const TAIL_BYTES: usize = 16 * 1024;
/// Number of a program's last output lines in a failure.
const MAX_OUTPUT_LINES: usize = 8;
/// Timeout for the exit of a supervisor after it has killed its processes.
const GUARD_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Timeout for the last output of a process that has ended.
const OUTPUT_TIMEOUT: Nanos = Nanos::SECOND;
/// Interval of checks for an interruption.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);

/// Program with its supervisor; it may have ended already.
#[derive(Debug)]
pub(super) struct GuardedProcess {
    guard: Child,
    control: UnixStream,
    state: Arc<(Mutex<State>, Condvar)>,
    stdout: Arc<OutputTail>,
    stderr: Arc<OutputTail>,
}

#[derive(Debug, Default)]
struct State {
    started: Option<Result<u32, String>>,
    ending: Option<ProgramExit>,
    /// Whether no process of it is left.
    terminated: bool,
}

/// Last bytes of an output stream.
#[derive(Debug, Default)]
pub(super) struct OutputTail {
    buffer: Mutex<TailBuffer>,
}

#[derive(Debug, Default)]
struct TailBuffer {
    bytes: VecDeque<u8>,
    /// Text of a line to wait for, and whether the line has come.
    awaited_line: Option<(String, bool)>,
    /// Incomplete line.
    line: Vec<u8>,
    /// Whether the stream has ended.
    closed: bool,
}

impl GuardedProcess {
    /// Starts a program under a supervisor.
    ///
    /// # Errors
    /// The reason why it cannot be started, in one line.
    pub(super) fn start(launcher: &Launcher, start: ProgramSpec, wanted_line: Option<&str>) -> Result<Self, String> {
        let cannot_start = |error: std::io::Error| format!("cannot start a program: {error}");
        let (ours, theirs) = UnixStream::pair().map_err(cannot_start)?;
        let (own, args) = launcher.split_first().ok_or("no command to start a supervisor")?;
        let mut guard = Command::new(own)
            .args(args)
            .arg(GUARD)
            // A separate process group, so that Ctrl-C reaches this process alone.
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot_start)?;
        let (stdout, stderr) = (Arc::new(OutputTail::default()), Arc::new(OutputTail::default()));
        lock(&stdout.buffer).awaited_line = wanted_line.map(|line| (line.to_owned(), false));
        if let Some(stream) = guard.stdout.take() {
            stdout.follow(stream);
        }
        if let Some(stream) = guard.stderr.take() {
            stderr.follow(stream);
        }
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let mut running = Self { guard, control: ours, state, stdout, stderr };
        running.read_events().map_err(cannot_start)?;
        running.send_command(&SupervisorCommand::Start(start));
        let started = running.wait_until(GUARD_TIMEOUT, |state| state.started.is_some() || state.terminated);
        match started.started.clone() {
            Some(Ok(_)) => {}
            Some(Err(why)) => return Err(why),
            None => return Err("its supervisor has ended".to_owned()),
        }
        drop(started);
        Ok(running)
    }

    /// Starts a thread that handles the supervisor's events.
    fn read_events(&self) -> std::io::Result<()> {
        let lines = BufReader::new(self.control.try_clone()?);
        let state = Arc::clone(&self.state);
        thread::spawn(move || {
            let events = lines.lines().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
            for event in events {
                let mut of = lock(&state.0);
                match event {
                    SupervisorEvent::Started(pid) => of.started = Some(Ok(pid)),
                    SupervisorEvent::Failed(why) => of.started = Some(Err(why)),
                    SupervisorEvent::Ended(ending) => of.ending = Some(ending),
                }
                state.1.notify_all();
            }
            lock(&state.0).terminated = true;
            state.1.notify_all();
        });
        Ok(())
    }

    fn send_command(&mut self, command: &SupervisorCommand) {
        // A supervisor that has ended needs no command.
        if let Ok(line) = serde_json::to_string(command) {
            let _ = writeln!(self.control, "{line}");
        }
    }

    /// Waits until the condition holds, or for the timeout.
    fn wait_until(&self, timeout: Nanos, mut holds: impl FnMut(&State) -> bool) -> MutexGuard<'_, State> {
        let state = lock(&self.state.0);
        wait_timeout_while(&self.state.1, state, timeout.as_duration(), |state| !holds(state))
    }

    /// Process ID of its supervisor, the ancestor of all its processes.
    pub(super) fn guard(&self) -> u32 {
        self.guard.id()
    }

    /// Whether no process of it is left.
    pub(super) fn has_terminated(&self) -> bool {
        lock(&self.state.0).terminated
    }

    /// Whether all its processes end within this time.
    pub(super) fn ends_within(&self, time: Nanos) -> bool {
        self.wait_until(time, |state| state.terminated).terminated
    }

    /// Waits for the end of all its processes.
    ///
    /// # Errors
    /// The timeout has passed, or it was interrupted.
    pub(super) fn wait_for_end(
        &self,
        timeout: Nanos,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), MeasurementError> {
        let clock = Clock::started_ago(Nanos::ZERO);
        while !self.ends_within(POLL_INTERVAL) {
            if !go_on() {
                return Err(MeasurementError::Interrupted);
            }
            if clock.now() > timeout {
                return Err(self.failure(format!("it did not end within {timeout}")));
            }
        }
        Ok(())
    }

    /// Failure of the program, with its last lines of output.
    pub(super) fn failure(&self, reason: impl Into<String>) -> MeasurementError {
        let mut last_lines = self.stderr().last_lines(MAX_OUTPUT_LINES);
        if last_lines.is_empty() {
            last_lines = self.stdout().last_lines(MAX_OUTPUT_LINES);
        }
        MeasurementError::Failed(MeasurementFailure { reason: reason.into(), last_lines })
    }

    /// Exit of its first process, if it has ended.
    pub(super) fn ending(&self) -> Option<ProgramExit> {
        lock(&self.state.0).ending
    }

    /// Last bytes of its stdout; complete once it has ended.
    pub(super) fn stdout(&self) -> &OutputTail {
        self.wait_for_output(&self.stdout);
        &self.stdout
    }

    /// Last bytes of its stderr; complete once it has ended.
    pub(super) fn stderr(&self) -> &OutputTail {
        self.wait_for_output(&self.stderr);
        &self.stderr
    }

    /// Waits for the remaining output of a program that has ended.
    fn wait_for_output(&self, tail: &OutputTail) {
        let clock = Clock::started_ago(Nanos::ZERO);
        while self.has_terminated() && !lock(&tail.buffer).closed && clock.now() < OUTPUT_TIMEOUT {
            clock.sleep_until(clock.now() + Nanos::MILLI);
        }
    }

    /// Ends all its processes: SIGTERM, then SIGKILL after `grace`.
    pub(super) fn stop(&mut self, grace: Nanos) {
        self.send_command(&SupervisorCommand::Stop(grace.as_millis()));
        if !self.ends_within(grace + GUARD_TIMEOUT) {
            // A process that survives SIGKILL hangs in the kernel; its supervisor is not waited for.
            let _ = self.guard.kill();
        }
        let _ = self.guard.wait();
    }
}

impl Drop for GuardedProcess {
    fn drop(&mut self) {
        if !self.has_terminated() {
            self.stop(Nanos::ZERO);
        }
        let _ = self.guard.wait();
    }
}

impl OutputTail {
    fn follow(self: &Arc<Self>, mut stream: impl Read + Send + 'static) {
        let tail = Arc::clone(self);
        thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                lock(&tail.buffer).append(&buffer[..length]);
            }
            lock(&tail.buffer).closed = true;
        });
    }

    /// Whether the awaited line has come.
    pub(super) fn has_awaited_line(&self) -> bool {
        lock(&self.buffer).awaited_line.as_ref().is_some_and(|(_, came)| *came)
    }

    /// The kept bytes as text.
    pub(super) fn text(&self) -> String {
        let mut buffer = lock(&self.buffer);
        String::from_utf8_lossy(buffer.bytes.make_contiguous()).into_owned()
    }

    /// Last lines that are not blank.
    pub(super) fn last_lines(&self, count: usize) -> Vec<String> {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = |line: &&str| line.chars().take(500).collect();
        lines[lines.len().saturating_sub(count)..].iter().map(shown).collect()
    }
}

impl TailBuffer {
    fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(TAIL_BYTES);
        self.bytes.drain(..surplus);
        let Some((text, came @ false)) = &mut self.awaited_line else { return };
        for byte in bytes {
            if *byte != b'\n' && self.line.len() < TAIL_BYTES {
                self.line.push(*byte);
                continue;
            }
            *came |= String::from_utf8_lossy(&self.line).contains(text.as_str());
            self.line.clear();
        }
    }
}
