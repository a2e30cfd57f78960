//! Processes of this machine, from /proc.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsFd;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::system;

/// Fields of a process's `stat` file. Times are in clock ticks, see [`ticks_per_second`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Process ID.
    pub pid: u32,
    /// Process ID of its parent.
    pub parent: u32,
    /// Whether it has ended, and its parent has not waited for it.
    pub is_zombie: bool,
    /// User and system time of its threads, including those that have ended.
    pub cpu_ticks: u64,
    /// User and system time of all descendants that have ended and been waited for.
    pub children_cpu_ticks: u64,
    /// Number of threads.
    pub threads: u64,
    /// Start, in ticks since boot; together with the process ID it is unique.
    pub start_ticks: u64,
    /// Resident memory, in pages.
    pub rss_pages: u64,
}

/// Length of the line that is read; the fields above are within it.
const STAT_LINE_BYTES: usize = 1024;

impl ProcessStat {
    /// Fields of the process `pid`; None if there is none.
    pub fn of(pid: u32) -> Option<Self> {
        let file = open(pid, "stat").ok()?;
        Self::read(pid, &file)
    }

    /// Fields from an open file; None if the process has ended.
    pub(super) fn read(pid: u32, file: impl AsFd) -> Option<Self> {
        let mut line = [0; STAT_LINE_BYTES];
        let length = rustix::io::pread(file, &mut line[..], 0).ok()?;
        Self::parse(pid, line.get(..length)?)
    }

    fn parse(pid: u32, line: &[u8]) -> Option<Self> {
        // The name is in parentheses, and may contain parentheses and blanks.
        let after = line.iter().rposition(|b| *b == b')')? + 1;
        let rest = String::from_utf8_lossy(line.get(after..)?);
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            pid,
            parent: u32::try_from(number(1)?).ok()?,
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            cpu_ticks: number(11)? + number(12)?,
            children_cpu_ticks: number(13)? + number(14)?,
            threads: number(17)?,
            start_ticks: number(19)?,
            rss_pages: number(21)?,
        })
    }
}

/// Clock ticks per second, the unit of CPU time in /proc.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// File of a process in /proc; none where processes are not sampled.
pub(super) fn open(pid: u32, name: &str) -> io::Result<fs::File> {
    if !system::SAMPLES_PROCESSES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    fs::File::open(format!("/proc/{pid}/{name}"))
}

/// Process IDs of all processes; empty where they are not sampled.
pub fn pids() -> Vec<u32> {
    let folder = system::SAMPLES_PROCESSES.then(|| fs::read_dir("/proc"));
    let entries = folder.into_iter().flatten().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// All descendants of `root`, without itself.
pub fn descendants(root: u32) -> Vec<ProcessStat> {
    with_descendants(BTreeSet::from([root]), pids().into_iter().filter_map(ProcessStat::of).collect())
}

/// Processes of `others` that descend from one in `found`.
fn with_descendants(mut found: BTreeSet<u32>, mut others: Vec<ProcessStat>) -> Vec<ProcessStat> {
    let mut family = Vec::new();
    loop {
        let (children, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|stat| found.contains(&stat.parent));
        if children.is_empty() {
            return family;
        }
        found.extend(children.iter().map(|stat| stat.pid));
        family.extend(children);
        others = rest;
    }
}

/// All processes that were started with `NAME=VALUE` in their environment, if it is readable, and their descendants:
/// a process in `exec` has no environment for a moment, and some give their children another one.
pub fn started_with(name: &str, value: &str) -> Vec<ProcessStat> {
    let wanted = format!("{name}={value}");
    let has = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|entry| entry == wanted.as_bytes())
    };
    let (mut found, others): (Vec<_>, Vec<_>) =
        pids().into_iter().filter_map(ProcessStat::of).partition(|stat| has(&stat.pid));
    found.extend(with_descendants(found.iter().map(|stat| stat.pid).collect(), others));
    found
}

/// Sends a signal; without effect if the process has ended or is not permitted.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Kills all processes that `family` finds. They are stopped first, so that none can start another one.
pub fn kill_all(family: impl Fn() -> Vec<ProcessStat>) {
    let mut halted = BTreeSet::new();
    loop {
        let fresh: Vec<u32> = family()
            .iter()
            .filter(|stat| !stat.is_zombie)
            .map(|stat| stat.pid)
            .filter(|pid| halted.insert(*pid))
            .collect();
        if fresh.is_empty() {
            break;
        }
        fresh.into_iter().for_each(|pid| signal(pid, Signal::STOP));
    }
    halted.into_iter().for_each(|pid| signal(pid, Signal::KILL));
}

/// Kills a program that leads a process group, with that group and, where they can be found, its other descendants.
pub fn kill_tree(program: u32) {
    kill_all(|| descendants(program));
    if let Some(group) = i32::try_from(program).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::shell::{Shell, until};

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let line = b"42 (a) b) (c) S 7 42 42 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 9 0 12345 1000000 250 1844 1 1";
        let stat = ProcessStat::parse(42, line).expect("a line");
        assert_eq!((stat.parent, stat.cpu_ticks, stat.children_cpu_ticks), (7, 110, 150));
        assert_eq!((stat.threads, stat.start_ticks, stat.rss_pages, stat.is_zombie), (9, 12345, 250, false));
        assert_eq!(ProcessStat::parse(42, b"42 (cut"), None);
        assert_eq!(ProcessStat::parse(42, b"42 (cut) S 1 2"), None);
    }

    #[test]
    #[cfg_attr(weir_portable, ignore = "processes are sampled by Linux's build")]
    fn children_of_children_are_found_by_family_and_by_what_they_were_started_with_and_all_are_ended() {
        let mark = format!("a family of {}", std::process::id());
        let command = "sh -c 'env -i cat <&3 & wait' & wait";
        let mut shell = Shell::run(command, &[("WEIR_TEST_MARK", &mark)]);
        let marked = || started_with("WEIR_TEST_MARK", &mark);
        // The last one has another environment, and each has none for a moment.
        let numbers = |found: Vec<ProcessStat>| found.iter().map(|stat| stat.pid).collect::<BTreeSet<_>>();
        until("the family to be complete", || {
            let mut family = numbers(descendants(shell.id()));
            let found = family.len();
            family.insert(shell.id());
            found == 2 && numbers(marked()) == family
        });
        kill_all(marked);
        assert!(!shell.wait().success());
        until("its end", || marked().is_empty());
    }
}
