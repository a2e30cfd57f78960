//! The real binary, in a fresh folder.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, str};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use weir_measure::Run;

use super::tied::{kill_in, running_in, spawn_tied, tied_command};

/// Path of the binary under test. Cargo builds it beside the folder of test programs when it builds those of the
/// package `weir-cli`, and tells its path to them alone.
pub fn weir_path() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let path = program.parent().and_then(Path::parent).unwrap().join("weir");
    assert!(path.exists(), "{} is not built; tests of the binary belong to the package weir-cli", path.display());
    path
}

/// A folder, and `weir` in it.
pub struct Weir {
    folder: TempDir,
    /// Whether a command was started in it that may leave processes of its own behind.
    may_leave: AtomicBool,
}

/// Commands that start no process of their own.
const ALONE: [&str; 14] = [
    "capacity", "compare", "doctor", "gate", "import", "llm", "load", "record", "replay", "report", "run", "send",
    "serve", "simulate",
];

/// Whether a command with these arguments starts no other process: no agents, no script in Python.
fn is_alone(args: &[&str]) -> bool {
    let starts = |arg: &&str| arg.starts_with("--on") || arg.starts_with("--processes") || arg.ends_with(".py");
    args.first().is_some_and(|name| ALONE.contains(name)) && !args.iter().any(starts)
}

/// Result of a command.
#[derive(Debug)]
pub struct Output {
    /// Exit code; -1 if a signal ended it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A command that is on its way.
pub struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// No command takes longer than this.
const PATIENCE: Duration = Duration::from_secs(300);

impl Weir {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), may_leave: AtomicBool::new(false) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// Writes over a text in one step: its reader never sees a file that is empty, nor a part. It keeps its length, by empty
    /// lines at the end.
    pub fn write_over(&self, name: &str, text: &str) {
        let path = self.path(name);
        let length = fs::metadata(&path).unwrap().len() as usize;
        let all = format!("{text}{}", "\n".repeat(length.saturating_sub(text.len())));
        fs::OpenOptions::new().write(true).open(path).unwrap().write_all(all.as_bytes()).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A command to which more may be added.
    pub fn command(&self, args: &[&str]) -> Command {
        self.may_leave.store(true, Relaxed);
        self.built(args)
    }

    /// A command of these arguments and no others.
    pub(crate) fn whole_command(&self, args: &[&str]) -> Command {
        if !is_alone(args) {
            self.may_leave.store(true, Relaxed);
        }
        self.built(args)
    }

    fn built(&self, args: &[&str]) -> Command {
        let mut command = tied_command(&weir_path());
        command.args(args).current_dir(self.folder.path()).env_remove("NO_COLOR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running::new(&mut self.whole_command(args))
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.start(args).finish()
    }

    /// `weir load URL ... --format json`, which is expected to end with code 0.
    pub fn load(&self, url: &str, args: &[&str]) -> Run {
        let output = self.run(&[&["load", url, "--format", "json"], args].concat());
        // On a busy machine a load may take so long that it shows its progress.
        let said: Vec<_> = output.stderr.lines().filter(|line| !is_progress(line)).collect();
        assert_eq!((output.code, said), (0, Vec::new()), "{args:?}: {}", output.stdout);
        output.json()
    }
}

/// Whether a line on stderr is about the progress of a load: `weir: 10s 2437/3000  278/s  p50 13.8ms ...`, without times where
/// nothing has come yet.
fn is_progress(line: &str) -> bool {
    let seconds = line.strip_prefix("weir: ").and_then(|line| line.split_once('s')).map(|(seconds, _)| seconds);
    seconds.is_some_and(|seconds| seconds.parse::<u32>().is_ok()) && line.contains("/s")
}

impl Drop for Weir {
    /// All that was started here has ended by now; after a failed test the processes are killed.
    fn drop(&mut self) {
        let folder = self.folder.path().to_owned();
        if thread::panicking() {
            kill_in(&folder);
            return;
        }
        // A look at all processes makes the end of each of them slower, by what the system keeps of the look.
        if !*self.may_leave.get_mut() {
            return;
        }
        let left = move || running_in(&folder).is_empty();
        until("all that ran in the folder to end", PATIENCE, left);
    }
}

/// `weir load URL ... --format json` in a folder of its own; code 0.
pub fn load(url: &str, args: &[&str]) -> Run {
    Weir::new().load(url, args)
}

impl Output {
    /// The run on stdout, whatever the exit code.
    pub fn json(&self) -> Run {
        Run::from_json(&self.stdout).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// The only line on stderr, without the program's name.
    pub fn one_line(&self) -> &str {
        let line = self.stderr.strip_suffix('\n').unwrap_or_else(|| panic!("no line on stderr: {self:?}"));
        assert!(!line.contains('\n'), "more than one line: {self:?}");
        line.strip_prefix("weir: ").unwrap_or_else(|| panic!("not a message of weir's: {self:?}"))
    }

    /// The line on stderr with these words, without the program's name. A busy machine may add doubts of its own.
    pub fn line_with(&self, words: &str) -> &str {
        let line = self.stderr.lines().find(|line| line.contains(words));
        line.and_then(|line| line.strip_prefix("weir: ")).unwrap_or_else(|| panic!("no line with {words:?}: {self:?}"))
    }
}

impl Running {
    pub fn new(command: &mut Command) -> Self {
        Self::of(spawn_tied(command).unwrap())
    }

    pub fn of(mut child: Child) -> Self {
        let stdout = child.stdout.take().map(drain);
        let stderr = child.stderr.take().map(drain);
        Self { child, stdout, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid() as i32).unwrap(), signal).unwrap();
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// A figure from /proc/PID/status, in KiB.
    pub fn status_kib(&self, name: &str) -> u64 {
        let status = fs::read_to_string(Path::new("/proc").join(self.pid().to_string()).join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub fn finish(mut self) -> Output {
        let begun = Instant::now();
        until("the command to end", PATIENCE, || {
            let ended = !self.is_alive();
            if !ended && begun.elapsed() > PATIENCE - Duration::from_secs(1) {
                self.child.kill().unwrap();
            }
            ended
        });
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let text = |reader: Option<JoinHandle<Vec<u8>>>| {
            reader.map_or_else(String::new, |reader| String::from_utf8(reader.join().unwrap()).unwrap())
        };
        let (stdout, stderr) = (text(self.stdout.take()), text(self.stderr.take()));
        assert!(!stderr.contains("panicked"), "{stderr}");
        Output { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only a test that failed half-way leaves a command running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn drain(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all).unwrap();
        all
    })
}

/// Looks again and again until `condition` holds; fails after `patience`.
pub fn until(what: &str, patience: Duration, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < patience, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
