//! A process between us and a program that we start: it sees to it that nothing of the program is left, whatever becomes
//! of us.
//!
//! Programs fork, double-fork and change their sessions; killing a process group misses some of them. The guard is a
//! *subreaper*: whatever descends from it stays below it, so it finds all of it, and it ends when nothing is left. It
//! holds one end of a socket; when ours closes, because we told it so or because we were killed, it ends the program.
//!
//! [`run`] is the guard's own side, a hidden command of ours; the study has the other one.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, wait};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::processes;
use crate::decide::Nanos;

/// What a guard is told; a line of JSON each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorCommand {
    /// To start a program; the first one, and once.
    Start(ProgramSpec),
    /// To end it: SIGTERM, and SIGKILL so many milliseconds later.
    Stop(u64),
}

/// What to start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Added to our own environment.
    pub environment: BTreeMap<String, String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// The cores that it may use; all if there are none.
    pub cpus: Vec<usize>,
}

/// What a guard says; a line of JSON each. When all is ended, the socket is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorEvent {
    /// The program runs, under this number.
    Started(u32),
    /// It cannot be started, and why.
    Failed(String),
    /// The program itself has ended; what it started may go on.
    Ended(ProgramExit),
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramExit {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl std::fmt::Display for ProgramExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(9) => f.write_str("killed (signal 9)"),
            Self::Signal(11) => f.write_str("it crashed (signal 11)"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What is left of a program when we are gone has so long to end in good order.
const GRACE_PERIOD_MS: u64 = 1000;
/// How often it is looked whether all is gone.
const KILL_INTERVAL: Nanos = Nanos::from_millis(5);

/// The guard's own life; stdin is the socket.
///
/// # Errors
/// When stdin is no socket of ours.
pub fn run() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut orders = BufReader::new(socket.try_clone()?);
    let Some(SupervisorCommand::Start(start)) = next_command(&mut orders) else { return Ok(()) };
    // From now on nothing that is started here can leave.
    set_child_subreaper(Some(getpid()))?;
    let news = Mutex::new(socket);
    let child = match spawn(&start) {
        Ok(child) => child,
        Err(why) => return send_event(&news, &SupervisorEvent::Failed(why)),
    };
    send_event(&news, &SupervisorEvent::Started(child))?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let grace = match next_command(&mut orders) {
                Some(SupervisorCommand::Stop(grace)) => grace,
                _ => GRACE_PERIOD_MS,
            };
            end_all(grace);
        });
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if Pid::as_raw(Some(pid)) == child as i32 => {
                    let signal = status.terminating_signal().map(ProgramExit::Signal);
                    let ending = status.exit_status().map(ProgramExit::Code).or(signal).unwrap_or(ProgramExit::Code(0));
                    // Whoever asked may be gone; then there is only the rest to end.
                    let _ = send_event(&news, &SupervisorEvent::Ended(ending));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // Nobody is left. The other thread waits for orders that do not matter any more.
                Err(_) => std::process::exit(0),
            }
        }
    })
}

fn next_command(orders: &mut impl BufRead) -> Option<SupervisorCommand> {
    let mut line = String::new();
    orders.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn send_event(socket: &Mutex<UnixStream>, news: &SupervisorEvent) -> io::Result<()> {
    let line = serde_json::to_string(news)?;
    let mut socket = socket.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    writeln!(socket, "{line}")
}

fn spawn(start: &ProgramSpec) -> Result<u32, String> {
    if !start.cpus.is_empty() {
        let mut set = CpuSet::new();
        start.cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
        // For this thread, and so for all that it starts.
        sched_setaffinity(None, &set).map_err(|error| format!("cores {:?}: {error}", start.cpus))?;
    }
    let (name, args) = start.command.split_first().ok_or("there is no command")?;
    let mut command = Command::new(name);
    command.args(args).envs(&start.environment).current_dir(&start.folder).stdin(Stdio::null());
    // Not waited for here: [`run`] waits for all children at once.
    command.spawn().map(|child| child.id()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if !start.folder.is_dir() => format!("there is no folder {}", start.folder.display()),
        io::ErrorKind::NotFound => format!("there is no command '{name}'"),
        io::ErrorKind::PermissionDenied => format!("'{name}' may not be run"),
        _ => format!("cannot run '{name}': {error}"),
    })
}

/// Ends all that is below this process: asks, and after a time does not ask any more. Goes on until the process ends.
fn end_all(grace_ms: u64) {
    let family = || processes::descendants(getpid().as_raw_nonzero().get().unsigned_abs());
    let clock = Clock::started_ago(Nanos::ZERO);
    if grace_ms > 0 {
        family().iter().for_each(|stat| processes::signal(stat.pid, Signal::TERM));
        clock.sleep_until(Nanos::from_millis(grace_ms));
    }
    loop {
        processes::kill_all(family);
        clock.sleep_until(clock.now() + KILL_INTERVAL);
    }
}
