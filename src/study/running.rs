//! A program that runs under a guard: is it there, what did it say, and end it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::trouble::MeasurementError;
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::machine::guard::{ProgramExit, ProgramSpec, SupervisorCommand, SupervisorEvent};

/// How this process starts itself anew: the program and what stands before a command of ours.
pub type Launcher = [std::ffi::OsString];

/// The hidden command that is a guard's life.
pub const GUARD: &str = "guard-program";

/// Of what a program says, so much is kept: the end of it.
const TAIL_BYTES: usize = 16 * 1024;
/// A guard that has been told to end all, and has killed all, needs no more than this.
const GUARD_TIMEOUT: Nanos = Nanos::from_secs(10);
/// The longest wait for what somebody has said who is gone.
const OUTPUT_TIMEOUT: Nanos = Nanos::SECOND;
/// How often it is asked whether to go on.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);

/// A program that runs, or ran.
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
    /// Nothing of it is left.
    terminated: bool,
}

/// The end of what was said on a stream.
#[derive(Debug, Default)]
pub(super) struct OutputTail {
    buffer: Mutex<TailBuffer>,
}

#[derive(Debug, Default)]
struct TailBuffer {
    bytes: VecDeque<u8>,
    /// A line to wait for, and whether it came.
    awaited_line: Option<(String, bool)>,
    /// The line that is being said.
    line: Vec<u8>,
    /// Nobody is left to say anything.
    closed: bool,
}

impl GuardedProcess {
    /// Starts a program under a guard.
    ///
    /// # Errors
    /// Why it cannot be started, in one line.
    pub(super) fn start(launcher: &Launcher, start: ProgramSpec, wanted_line: Option<&str>) -> Result<Self, String> {
        let refused = |error: std::io::Error| format!("the system refuses to start a program: {error}");
        let (ours, theirs) = UnixStream::pair().map_err(refused)?;
        let (own, args) = launcher.split_first().ok_or("it is not known how to start a guard")?;
        let mut guard = Command::new(own)
            .args(args)
            .arg(GUARD)
            // A group of its own: Ctrl-C is for us alone.
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(refused)?;
        let (stdout, stderr) = (Arc::new(OutputTail::default()), Arc::new(OutputTail::default()));
        stdout.lock().awaited_line = wanted_line.map(|line| (line.to_owned(), false));
        if let Some(stream) = guard.stdout.take() {
            stdout.follow(stream);
        }
        if let Some(stream) = guard.stderr.take() {
            stderr.follow(stream);
        }
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let mut running = Self { guard, control: ours, state, stdout, stderr };
        running.read_events().map_err(refused)?;
        running.send_command(&SupervisorCommand::Start(start));
        let started = running.wait_until(GUARD_TIMEOUT, |state| state.started.is_some() || state.terminated);
        match started.started.clone() {
            Some(Ok(_)) => {}
            Some(Err(why)) => return Err(why),
            None => return Err("its guard has ended".to_owned()),
        }
        drop(started);
        Ok(running)
    }

    /// Takes in what the guard says.
    fn read_events(&self) -> std::io::Result<()> {
        let news = BufReader::new(self.control.try_clone()?);
        let state = Arc::clone(&self.state);
        thread::spawn(move || {
            let told = news.lines().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
            for news in told {
                let mut of = lock(&state.0);
                match news {
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

    fn send_command(&mut self, order: &SupervisorCommand) {
        // A guard that is gone needs no orders.
        if let Ok(line) = serde_json::to_string(order) {
            let _ = writeln!(self.control, "{line}");
        }
    }

    /// Waits for the condition, or as long as the time says.
    fn wait_until(&self, patience: Nanos, mut holds: impl FnMut(&State) -> bool) -> MutexGuard<'_, State> {
        let state = lock(&self.state.0);
        let waited = self.state.1.wait_timeout_while(state, patience.as_duration(), |state| !holds(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The number of its guard, below which all of it is.
    pub(super) fn guard(&self) -> u32 {
        self.guard.id()
    }

    /// Whether nothing of it is left.
    pub(super) fn has_terminated(&self) -> bool {
        lock(&self.state.0).terminated
    }

    /// Waits a little for all of it to end; whether it has.
    pub(super) fn ends_within(&self, time: Nanos) -> bool {
        self.wait_until(time, |state| state.terminated).terminated
    }

    /// Waits for all of it to end.
    ///
    /// # Errors
    /// It takes longer, or somebody has had enough.
    pub(super) fn wait_for_end(
        &self,
        patience: Nanos,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), MeasurementError> {
        let clock = Clock::started_ago(Nanos::ZERO);
        while !self.ends_within(POLL_INTERVAL) {
            if !go_on() {
                return Err(MeasurementError::Interrupted);
            }
            if clock.now() > patience {
                return Err(MeasurementError::from_program(format!("it did not end within {patience}"), self));
            }
        }
        Ok(())
    }

    /// How its first process ended, if it has.
    pub(super) fn ending(&self) -> Option<ProgramExit> {
        lock(&self.state.0).ending
    }

    /// What it said last.
    pub(super) fn stdout(&self) -> &OutputTail {
        self.wait_for_output(&self.stdout);
        &self.stdout
    }

    /// What it complained about last.
    pub(super) fn stderr(&self) -> &OutputTail {
        self.wait_for_output(&self.stderr);
        &self.stderr
    }

    /// The last words of what is gone may still be on their way.
    fn wait_for_output(&self, tail: &OutputTail) {
        let clock = Clock::started_ago(Nanos::ZERO);
        while self.has_terminated() && !tail.lock().closed && clock.now() < OUTPUT_TIMEOUT {
            clock.sleep_until(clock.now() + Nanos::MILLI);
        }
    }

    /// Ends all of it: SIGTERM, and SIGKILL if it has not ended within `grace`.
    pub(super) fn stop(&mut self, grace: Nanos) {
        self.send_command(&SupervisorCommand::Stop(grace.0 / 1_000_000));
        if !self.ends_within(grace + GUARD_TIMEOUT) {
            // What cannot be killed hangs in the kernel; its guard is not the one to wait for.
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
                tail.lock().append(&buffer[..length]);
            }
            tail.lock().closed = true;
        });
    }

    fn lock(&self) -> MutexGuard<'_, TailBuffer> {
        lock(&self.buffer)
    }

    /// Whether the line that was waited for has come.
    pub(super) fn has_awaited_line(&self) -> bool {
        self.lock().awaited_line.as_ref().is_some_and(|(_, came)| *came)
    }

    /// All that is kept.
    pub(super) fn text(&self) -> String {
        let mut kept = self.lock();
        String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned()
    }

    /// The last lines that say something.
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
        let Some((words, came @ false)) = &mut self.awaited_line else { return };
        for byte in bytes {
            if *byte != b'\n' && self.line.len() < TAIL_BYTES {
                self.line.push(*byte);
                continue;
            }
            *came |= String::from_utf8_lossy(&self.line).contains(words.as_str());
            self.line.clear();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
