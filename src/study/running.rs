//! A program that runs under a guard: is it there, what did it say, and end it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::trouble::Trouble;
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::machine::guard::{Ending, News, Order, Start};

/// How this process starts itself anew: the program and what stands before a command of ours.
pub type Launcher = [std::ffi::OsString];

/// The hidden command that is a guard's life.
pub const GUARD: &str = "guard-program";

/// Of what a program says, so much is kept: the end of it.
const TAIL: usize = 16 * 1024;
/// A guard that has been told to end all, and has killed all, needs no more than this.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// The longest wait for what somebody has said who is gone.
const LAST_WORDS: Nanos = Nanos::SECOND;
/// How often it is asked whether to go on.
const LOOK: Nanos = Nanos::from_millis(50);

/// A program that runs, or ran.
#[derive(Debug)]
pub(super) struct Running {
    guard: Child,
    orders: UnixStream,
    state: Arc<(Mutex<State>, Condvar)>,
    stdout: Arc<Tail>,
    stderr: Arc<Tail>,
}

#[derive(Debug, Default)]
struct State {
    started: Option<Result<u32, String>>,
    ended: Option<Ending>,
    /// Nothing of it is left.
    gone: bool,
}

/// The end of what was said on a stream.
#[derive(Debug, Default)]
pub(super) struct Tail {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// A line to wait for, and whether it came.
    wanted: Option<(String, bool)>,
    /// The line that is being said.
    line: Vec<u8>,
    /// Nobody is left to say anything.
    ended: bool,
}

impl Running {
    /// Starts a program under a guard.
    ///
    /// # Errors
    /// Why it cannot be started, in one line.
    pub(super) fn start(launcher: &Launcher, start: Start, wanted_line: Option<&str>) -> Result<Self, String> {
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
        let (stdout, stderr) = (Arc::new(Tail::default()), Arc::new(Tail::default()));
        stdout.lock().wanted = wanted_line.map(|line| (line.to_owned(), false));
        if let Some(stream) = guard.stdout.take() {
            stdout.follow(stream);
        }
        if let Some(stream) = guard.stderr.take() {
            stderr.follow(stream);
        }
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let mut running = Self { guard, orders: ours, state, stdout, stderr };
        running.listen().map_err(refused)?;
        running.order(&Order::Start(start));
        let started = running.wait_until(PATIENCE, |state| state.started.is_some() || state.gone);
        match started.started.clone() {
            Some(Ok(_)) => {}
            Some(Err(why)) => return Err(why),
            None => return Err("its guard has ended".to_owned()),
        }
        drop(started);
        Ok(running)
    }

    /// Takes in what the guard says.
    fn listen(&self) -> std::io::Result<()> {
        let news = BufReader::new(self.orders.try_clone()?);
        let state = Arc::clone(&self.state);
        thread::spawn(move || {
            let told = news.lines().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
            for news in told {
                let mut of = lock(&state.0);
                match news {
                    News::Started(pid) => of.started = Some(Ok(pid)),
                    News::Failed(why) => of.started = Some(Err(why)),
                    News::Ended(ending) => of.ended = Some(ending),
                }
                state.1.notify_all();
            }
            lock(&state.0).gone = true;
            state.1.notify_all();
        });
        Ok(())
    }

    fn order(&mut self, order: &Order) {
        // A guard that is gone needs no orders.
        if let Ok(line) = serde_json::to_string(order) {
            let _ = writeln!(self.orders, "{line}");
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
    pub(super) fn is_gone(&self) -> bool {
        lock(&self.state.0).gone
    }

    /// Waits a little for all of it to end; whether it has.
    pub(super) fn ends_within(&self, time: Nanos) -> bool {
        self.wait_until(time, |state| state.gone).gone
    }

    /// Waits for all of it to end.
    ///
    /// # Errors
    /// It takes longer, or somebody has had enough.
    pub(super) fn end(&self, patience: Nanos, go_on: &(dyn Fn() -> bool + Sync)) -> Result<(), Trouble> {
        let clock = Clock::started(Nanos::ZERO);
        while !self.ends_within(LOOK) {
            if !go_on() {
                return Err(Trouble::Interrupted);
            }
            if clock.now() > patience {
                return Err(Trouble::of(format!("it did not end within {patience}"), self));
            }
        }
        Ok(())
    }

    /// How its first process ended, if it has.
    pub(super) fn ending(&self) -> Option<Ending> {
        lock(&self.state.0).ended
    }

    /// What it said last.
    pub(super) fn stdout(&self) -> &Tail {
        self.settle(&self.stdout);
        &self.stdout
    }

    /// What it complained about last.
    pub(super) fn stderr(&self) -> &Tail {
        self.settle(&self.stderr);
        &self.stderr
    }

    /// The last words of what is gone may still be on their way.
    fn settle(&self, tail: &Tail) {
        let clock = Clock::started(Nanos::ZERO);
        while self.is_gone() && !tail.lock().ended && clock.now() < LAST_WORDS {
            clock.sleep_until(clock.now() + Nanos::MILLI);
        }
    }

    /// Ends all of it: SIGTERM, and SIGKILL if it has not ended within `grace`.
    pub(super) fn stop(&mut self, grace: Nanos) {
        self.order(&Order::Stop(grace.0 / 1_000_000));
        if !self.ends_within(grace + PATIENCE) {
            // What cannot be killed hangs in the kernel; its guard is not the one to wait for.
            let _ = self.guard.kill();
        }
        let _ = self.guard.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_gone() {
            self.stop(Nanos::ZERO);
        }
        let _ = self.guard.wait();
    }
}

impl Tail {
    fn follow(self: &Arc<Self>, mut stream: impl Read + Send + 'static) {
        let tail = Arc::clone(self);
        thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                tail.lock().add(&buffer[..length]);
            }
            tail.lock().ended = true;
        });
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }

    /// Whether the line that was waited for has come.
    pub(super) fn has_wanted(&self) -> bool {
        self.lock().wanted.as_ref().is_some_and(|(_, came)| *came)
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

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(TAIL);
        self.bytes.drain(..surplus);
        let Some((words, came @ false)) = &mut self.wanted else { return };
        for byte in bytes {
            if *byte != b'\n' && self.line.len() < TAIL {
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
