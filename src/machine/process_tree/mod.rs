//! What a service costs: the processes that it consists of, sampled from /proc while they run.
//!
//! A sample has to cost next to nothing, as service and sampler share the machine. What is cheap (CPU time, resident
//! memory, threads: one read of a file that stays open per process) is in every sample; what is dear (who has been
//! born, shared memory, open files, switches of each thread) is in as many as a small share of a core pays for.

mod process;
mod ration;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::process::Process;
use self::ration::SamplingBudget;
use super::processes::{self, ProcessStat};
use crate::decide::Nanos;

/// What a tree of processes used, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessTreeSample {
    /// On the clock of whoever asked.
    pub t_s: f64,
    /// Processes alive.
    pub processes: u64,
    /// Their threads.
    pub threads: u64,
    /// User and system time so far, of those that have ended, too, in seconds; in steps of a tick, mostly 10 ms.
    pub cpu_s: f64,
    /// Resident memory: what processes share counts in each of them.
    pub rss_bytes: u64,
    /// The proportional share of memory: what n processes share counts as an n-th in each. None if not looked at now.
    pub pss_bytes: Option<u64>,
    /// Open files, sockets among them. None if not looked at now.
    pub open_files: Option<u64>,
    /// Times that threads gave up their core so far, to wait. None if not looked at now.
    pub voluntary_switches: Option<u64>,
    /// Times that threads lost their core so far. None if not looked at now.
    pub involuntary_switches: Option<u64>,
}

/// A process and all that descend from it.
#[derive(Debug)]
pub struct ProcessTree {
    /// Its children belong to the tree, itself does not.
    reaper: Option<u32>,
    members: BTreeMap<u32, Process>,
    /// What is known not to belong to it.
    non_members: BTreeSet<u32>,
    /// Looks at the list of processes since all strangers were looked at anew.
    scans: u32,
    /// What `cpu_ticks` said last, and what it has lost since by processes that nobody waited for.
    cpu_ticks: u64,
    unreaped_ticks: u64,
    scan_budget: SamplingBudget,
    pss_budget: SamplingBudget,
    open_files_budget: SamplingBudget,
    switches_budget: SamplingBudget,
}

/// After so many looks a number may belong to another process.
const MAX_SCANS: u32 = 50;

impl ProcessTree {
    /// The process `root` and its descendants. One that loses its parent stays a member if it was seen before.
    pub fn of(root: u32) -> Self {
        let mut tree = Self::new(None);
        tree.members.extend(Process::of(root).map(|process| (root, process)));
        tree
    }

    /// All descendants of `reaper`, without itself. If that process is a subreaper
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

    /// Looks at all of it; None once nothing of it is alive.
    pub fn sample(&mut self, now: Nanos) -> Option<ProcessTreeSample> {
        if self.scan_budget.is_due(now) {
            let cost = ration::measure_cost(|| self.scan_processes());
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

    /// Its processes, as of the last sample.
    pub fn members(&self) -> impl Iterator<Item = ProcessStat> {
        self.members.values().map(Process::stat)
    }

    /// Looks who is there that was not.
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
        // A child may come before its parent in the list.
        loop {
            let before = unknown.len();
            for process in std::mem::take(&mut unknown) {
                let ProcessStat { pid, parent, .. } = process.stat();
                if self.members.contains_key(&parent) || self.reaper == Some(parent) {
                    self.members.insert(pid, process);
                } else if parent == 0 || self.non_members.contains(&parent) {
                    self.non_members.insert(pid);
                } else {
                    // The parent was born below the place in the list where the reading was; it is known next time.
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
    use super::super::shell::{Shell, until};
    use super::*;
    use crate::machine::clock::Clock;

    /// The script, and its tree; looked at until a sample is as it should be.
    fn sampled(script: &str, holds: impl Fn(ProcessTreeSample) -> bool) -> (Shell, ProcessTree) {
        let shell = Shell::run(script, &[]);
        let (mut tree, clock) = (ProcessTree::of(shell.id()), Clock::started_ago(Nanos::ZERO));
        until(script, || tree.sample(clock.now()).is_some_and(&holds));
        (shell, tree)
    }

    #[test]
    fn children_are_part_of_the_tree_until_all_are_gone() {
        let (shell, mut tree) = sampled("(cat <&3 & wait) & while :; do :; done", |sample| {
            sample.processes == 3 && sample.threads == 3 && sample.cpu_s > 0.05 && sample.rss_bytes > 100_000
        });
        drop(shell);
        until("all to be gone", || tree.sample(Nanos::from_secs(1000)).is_none());
    }

    #[test]
    fn the_time_of_children_that_have_ended_counts() {
        let busy = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; read x <&3";
        // The one that is left has done nothing yet.
        drop(sampled(busy, |sample| sample.processes == 1 && sample.cpu_s > 0.02));
    }

    #[test]
    fn a_sample_has_all_that_is_dear_if_it_was_long_ago() {
        drop(sampled("cat <&3 & wait", |sample| {
            sample.pss_bytes.is_some_and(|pss| pss > 0 && pss <= sample.rss_bytes + 1_000_000)
                && sample.open_files.is_some_and(|files| files >= 4)
                && sample.voluntary_switches.is_some_and(|switches| switches > 0)
        }));
    }

    #[test]
    fn the_first_sample_has_all_that_is_dear() {
        let own = ProcessTree::of(std::process::id()).sample(Nanos::ZERO).expect("alive");
        assert!(own.pss_bytes.is_some() && own.open_files.is_some() && own.voluntary_switches.is_some(), "{own:?}");
    }

    #[test]
    fn a_process_that_is_not_there_is_an_empty_tree() {
        assert_eq!(ProcessTree::of(u32::MAX >> 1).sample(Nanos::ZERO), None);
    }
}
