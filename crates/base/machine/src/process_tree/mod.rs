//! Use of resources by the processes of a service, sampled from /proc.
//!
//! Samples have to be cheap, since service and sampler share the machine. Cheap values (CPU time, resident memory,
//! threads: one read of an open file per process) are in every sample; expensive ones (new processes, shared memory,
//! open files, context switches of each thread) only as often as a small fraction of a core allows.

mod process;
mod sampling_budget;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::process::Process;
use self::sampling_budget::SamplingBudget;
use super::processes::{self, ProcessStat};
use weir_base::Nanos;

/// Sample of a process tree's use of resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessTreeSample {
    /// Time in seconds, by the caller's clock.
    pub t_s: f64,
    /// Number of running processes.
    pub processes: u64,
    /// Number of their threads.
    pub threads: u64,
    /// User and system time so far, in seconds, including processes that have ended; in ticks of mostly 10 ms.
    pub cpu_s: f64,
    /// Resident memory, in bytes; shared memory counts in each process.
    pub rss_bytes: u64,
    /// Proportional set size, in bytes: memory shared by n processes counts 1/n in each. None if not sampled now.
    pub pss_bytes: Option<u64>,
    /// Number of open files, including sockets. None if not sampled now.
    pub open_files: Option<u64>,
    /// Number of voluntary context switches so far. None if not sampled now.
    pub voluntary_switches: Option<u64>,
    /// Number of involuntary context switches so far. None if not sampled now.
    pub involuntary_switches: Option<u64>,
}

/// Process and its descendants.
#[derive(Debug)]
pub struct ProcessTree {
    /// Process whose descendants belong to the tree, but not itself.
    reaper: Option<u32>,
    members: BTreeMap<u32, Process>,
    /// Processes that do not belong to the tree.
    non_members: BTreeSet<u32>,
    /// Scans of the process list since the others were last forgotten.
    scans: u32,
    /// Last value of `cpu_ticks`, and the ticks lost since by processes that were not waited for.
    cpu_ticks: u64,
    unreaped_ticks: u64,
    scan_budget: SamplingBudget,
    pss_budget: SamplingBudget,
    open_files_budget: SamplingBudget,
    switches_budget: SamplingBudget,
}

/// Scans after which a process ID may belong to another process.
const MAX_SCANS: u32 = 50;

impl ProcessTree {
    /// Tree of `root` and its descendants. A process that loses its parent stays a member if it was seen before.
    pub fn of(root: u32) -> Self {
        let mut tree = Self::new(None);
        tree.members.extend(Process::of(root).map(|process| (root, process)));
        tree
    }

    /// Tree of all descendants of `reaper`, without itself. If that process is a subreaper
    /// (`PR_SET_CHILD_SUBREAPER`), no descendant ever leaves the tree.
    pub fn below(reaper: u32) -> Self {
        Self::new(Some(reaper))
    }

    fn new(reaper: Option<u32>) -> Self {
        Self {
            reaper,
            members: BTreeMap::new(),
            non_members: BTreeSet::new(),
            scans: 0,
            cpu_ticks: 0,
            unreaped_ticks: 0,
            scan_budget: SamplingBudget::default(),
            pss_budget: SamplingBudget::default(),
            open_files_budget: SamplingBudget::default(),
            switches_budget: SamplingBudget::default(),
        }
    }

    /// Takes a sample; None once all processes have ended.
    pub fn sample(&mut self, now: Nanos) -> Option<ProcessTreeSample> {
        if self.scan_budget.is_due(now) {
            let cost = sampling_budget::measure_cost(|| self.scan_processes());
            self.scan_budget.spend(now, cost.1);
        }
        self.members.retain(|_, process| process.refresh());
        let mut sample = ProcessTreeSample { t_s: now.as_secs_f64(), ..ProcessTreeSample::default() };
        let mut ticks = self.reaper.and_then(ProcessStat::of).map_or(0, |stat| stat.children_cpu_ticks);
        for process in self.members.values() {
            let stat = process.stat();
            ticks += stat.cpu_ticks + stat.children_cpu_ticks;
            if !stat.is_zombie {
                sample.processes += 1;
                sample.threads += stat.threads;
                sample.rss_bytes += stat.rss_pages * rustix::param::page_size() as u64;
            }
        }
        if sample.processes == 0 {
            return None;
        }
        self.unreaped_ticks += self.cpu_ticks.saturating_sub(ticks);
        self.cpu_ticks = ticks;
        sample.cpu_s = (ticks + self.unreaped_ticks) as f64 / processes::ticks_per_second() as f64;
        let members = &mut self.members;
        sample.pss_bytes =
            self.pss_budget.run_if_due(now, || members.values_mut().filter_map(Process::pss_bytes).sum());
        sample.open_files =
            self.open_files_budget.run_if_due(now, || members.values().filter_map(Process::open_files).sum());
        let switches = self.switches_budget.run_if_due(now, || {
            members.values_mut().map(Process::switches).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        });
        (sample.voluntary_switches, sample.involuntary_switches) = switches.unzip();
        Some(sample)
    }

    /// Processes of the tree, as of the last sample.
    pub fn members(&self) -> impl Iterator<Item = ProcessStat> {
        self.members.values().map(Process::stat)
    }

    /// Finds new processes.
    fn scan_processes(&mut self) {
        let numbers = processes::pids();
        self.scans += 1;
        if self.scans > MAX_SCANS {
            self.scans = 0;
            self.non_members.clear();
        }
        let alive: BTreeSet<u32> = numbers.iter().copied().collect();
        self.non_members.retain(|pid| alive.contains(pid));
        let is_new = |pid: &u32| !self.members.contains_key(pid) && !self.non_members.contains(pid);
        let mut unknown: Vec<Process> = numbers.into_iter().filter(is_new).filter_map(Process::of).collect();
        // A child may precede its parent in the list.
        loop {
            let before = unknown.len();
            for process in std::mem::take(&mut unknown) {
                let ProcessStat { pid, parent, .. } = process.stat();
                if self.members.contains_key(&parent) || self.reaper == Some(parent) {
                    self.members.insert(pid, process);
                } else if parent == 0 || self.non_members.contains(&parent) {
                    self.non_members.insert(pid);
                } else {
                    // The parent started behind the reading position in the list; the next scan finds it.
                    unknown.push(process);
                }
            }
            if unknown.len() == before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::clock::Clock;
    use crate::tests::shell::{Shell, until};

    /// Runs a script, and samples its tree until a sample satisfies the condition.
    fn sampled(script: &str, holds: impl Fn(ProcessTreeSample) -> bool) -> (Shell, ProcessTree) {
        let shell = Shell::run(script, &[]);
        let (mut tree, clock) = (ProcessTree::of(shell.id()), Clock::started_ago(Nanos::ZERO));
        until(script, || tree.sample(clock.now()).is_some_and(&holds));
        (shell, tree)
    }

    #[test]
    #[cfg_attr(weir_portable, ignore = "processes are sampled by Linux's build")]
    fn children_are_part_of_the_tree_until_all_are_gone() {
        let (shell, mut tree) = sampled("(cat <&3 & wait) & while :; do :; done", |sample| {
            sample.processes == 3 && sample.threads == 3 && sample.cpu_s > 0.05 && sample.rss_bytes > 100_000
        });
        drop(shell);
        until("all to be gone", || tree.sample(Nanos::from_secs(1000)).is_none());
    }

    #[test]
    #[cfg_attr(weir_portable, ignore = "processes are sampled by Linux's build")]
    fn the_time_of_children_that_have_ended_counts() {
        let busy = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; read x <&3";
        // The remaining process has used no CPU time yet.
        drop(sampled(busy, |sample| sample.processes == 1 && sample.cpu_s > 0.02));
    }

    #[test]
    #[cfg_attr(weir_portable, ignore = "processes are sampled by Linux's build")]
    fn a_sample_has_all_that_is_dear_if_it_was_long_ago() {
        // Each has a budget of its own, so on a busy machine no sample may have all of them.
        let (memory, files, switches) = (Cell::new(false), Cell::new(false), Cell::new(false));
        let set = |seen: &Cell<bool>, is_right: bool| seen.set(seen.get() || is_right);
        drop(sampled("cat <&3 & wait", |sample| {
            set(&memory, sample.pss_bytes.is_some_and(|pss| pss > 0 && pss <= sample.rss_bytes + 1_000_000));
            set(&files, sample.open_files.is_some_and(|files| files >= 4));
            set(&switches, sample.voluntary_switches.is_some_and(|switches| switches > 0));
            memory.get() && files.get() && switches.get()
        }));
    }

    #[test]
    #[cfg_attr(weir_portable, ignore = "processes are sampled by Linux's build")]
    fn the_first_sample_has_all_that_is_dear() {
        let own = ProcessTree::of(std::process::id()).sample(Nanos::ZERO).expect("alive");
        assert!(own.pss_bytes.is_some() && own.open_files.is_some() && own.voluntary_switches.is_some(), "{own:?}");
    }

    #[test]
    fn a_process_that_is_not_there_is_an_empty_tree() {
        assert_eq!(ProcessTree::of(u32::MAX >> 1).sample(Nanos::ZERO), None);
    }
}
