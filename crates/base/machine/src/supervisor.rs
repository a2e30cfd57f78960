//! Supervisor process between this program and one that it starts: it ends all processes of the program, even if this
//! program is killed.
//!
//! All descendants stay below it where the system has that ([`descendants`]), and it exits when none is left. It holds
//! one end of a socket; on a command, or when the other end is closed, it ends the program.
//!
//! [`run`] is the supervisor's side, a hidden command; the other side is in the study.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use rustix::process::{Pid, Signal, WaitOptions, wait};
use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::system::{cpu_affinity, descendants};
use crate::lock::lock;
use weir_base::Nanos;

/// Command to a supervisor, one line of JSON each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorCommand {
    /// Start a program; the first command, sent once.
    Start(ProgramSpec),
    /// End the program: SIGTERM, and SIGKILL after this number of milliseconds.
    Stop(u64),
}

/// Program to start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// Command and arguments.
    pub command: Vec<String>,
    /// Additional environment variables.
    pub environment: BTreeMap<String, String>,
    /// Working directory.
    pub folder: PathBuf,
    /// Cores that it may use; empty: all.
    pub cpus: Vec<usize>,
}

/// Event of a supervisor, one line of JSON each. The socket is closed after the last process has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorEvent {
    /// Program started, with this process ID.
    Started(u32),
    /// Program cannot be started, for this reason.
    Failed(String),
    /// First process of the program has ended; its descendants may still run.
    Ended(ProgramExit),
}

/// How a child process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramExit {
    /// Exit code.
    Code(i32),
    /// Terminating signal.
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

/// Time from SIGTERM to SIGKILL if the socket is closed without a command.
const GRACE_PERIOD_MS: u64 = 1000;
/// Interval of SIGKILLs until no process is left.
const KILL_INTERVAL: Nanos = Nanos::from_millis(5);

/// Runs a supervisor; stdin is the socket.
///
/// # Errors
/// stdin is not a socket of weir.
pub fn run() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut commands = BufReader::new(socket.try_clone()?);
    let Some(SupervisorCommand::Start(start)) = next_command(&mut commands) else { return Ok(()) };
    descendants::adopt()?;
    let news = Mutex::new(socket);
    let child = match spawn(&start) {
        Ok(child) => child,
        Err(why) => return send_event(&news, &SupervisorEvent::Failed(why)),
    };
    send_event(&news, &SupervisorEvent::Started(child))?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let grace = match next_command(&mut commands) {
                Some(SupervisorCommand::Stop(grace)) => grace,
                _ => GRACE_PERIOD_MS,
            };
            end_all(child, grace);
        });
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if Pid::as_raw(Some(pid)) == child as i32 => {
                    let signal = status.terminating_signal().map(ProgramExit::Signal);
                    let ending = status.exit_status().map(ProgramExit::Code).or(signal).unwrap_or(ProgramExit::Code(0));
                    // The other side may have ended; then only the remaining processes matter.
                    let _ = send_event(&news, &SupervisorEvent::Ended(ending));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // No child is left; the other thread waits for commands that are no longer needed.
                Err(_) => {
                    descendants::wait_for_others(child);
                    std::process::exit(0)
                }
            }
        }
    })
}

fn next_command(commands: &mut impl BufRead) -> Option<SupervisorCommand> {
    let mut line = String::new();
    commands.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn send_event(socket: &Mutex<UnixStream>, news: &SupervisorEvent) -> io::Result<()> {
    let line = serde_json::to_string(news)?;
    let mut socket = lock(socket);
    writeln!(socket, "{line}")
}

fn spawn(start: &ProgramSpec) -> Result<u32, String> {
    // The program inherits this thread's affinity.
    cpu_affinity::pin_to(&start.cpus).map_err(|error| format!("cores {:?}: {error}", start.cpus))?;
    let (name, args) = start.command.split_first().ok_or("no command")?;
    let mut command = Command::new(name);
    command.args(args).envs(&start.environment).current_dir(&start.folder).stdin(Stdio::null());
    // [`run`] waits for all children.
    descendants::prepare(&mut command).spawn().map(|child| child.id()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if !start.folder.is_dir() => format!("no such folder: {}", start.folder.display()),
        io::ErrorKind::NotFound => format!("no such command: '{name}'"),
        io::ErrorKind::PermissionDenied => format!("'{name}' may not be run"),
        _ => format!("cannot run '{name}': {error}"),
    })
}

/// Ends the program and all its descendants: SIGTERM, then SIGKILL repeatedly until this process exits.
fn end_all(child: u32, grace_ms: u64) {
    let clock = Clock::started_ago(Nanos::ZERO);
    if grace_ms > 0 {
        descendants::signal(child, Signal::TERM);
        clock.sleep_until(Nanos::from_millis(grace_ms));
    }
    loop {
        descendants::kill(child);
        clock.sleep_until(clock.now() + KILL_INTERVAL);
    }
}
