//! Ready jobs: leased and not sent yet. How many of each lane of the store are claimed ahead of need.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::context::SenderContext;
use super::hosts::SenderHosts;
use crate::store::{ClaimReply, JobLane, LaneClaim, MAX_CLAIM_LANES};
use weir_delivery::dispatch::{Dispatch, HostId};

/// Maximum leased jobs that are not sent yet.
pub(super) const MAX_READY_JOBS: usize = 2048;
/// Leased unsent jobs of a down host: the next probes.
const MAX_PROBE_JOBS: usize = 2;
/// Retrying jobs of a host at which no more are claimed.
const MAX_JOBS_WAITING_FOR_HOST: usize = 512;
/// Maximum empty lanes that are remembered.
const MAX_EMPTY_LANES: usize = 64;

/// Lanes of the store that have or had jobs, and targets of ready jobs by host.
#[derive(Debug)]
pub(super) struct ReadyJobs {
    context: Rc<SenderContext>,
    lanes: Vec<LaneEntry>,
    /// By host: target of jobs that are leased and not sent yet.
    targets: Vec<usize>,
    /// Whether the store has jobs for unusable keys.
    pub(super) has_unsendable: bool,
}

/// Lane with its host and key.
#[derive(Clone, Debug)]
struct LaneEntry {
    lane: JobLane,
    host: HostId,
    key: Option<u32>,
    /// Whether it has jobs, as far as known.
    has_jobs: bool,
}

/// Host and key of a claim, and their lane of the store.
pub(super) type HostLaneClaim = (HostId, Option<u32>, LaneClaim);

impl ReadyJobs {
    pub(super) fn new(context: Rc<SenderContext>) -> Self {
        Self { context, lanes: Vec::new(), targets: Vec::new(), has_unsendable: false }
    }

    /// Minimum target of a host; with slow sends the other jobs stay in the store, where they can be edited or
    /// overtaken.
    fn min_target(&self) -> usize {
        self.context.options.keys.len().clamp(4, 512)
    }

    fn host_target(&self, host: HostId) -> usize {
        self.targets.get(host as usize).copied().unwrap_or_else(|| self.min_target())
    }

    fn set_host_target(&mut self, host: HostId, target: usize) {
        let host = host as usize;
        if self.targets.len() <= host {
            self.targets.resize(host + 1, self.min_target());
        }
        if let Some(known) = self.targets.get_mut(host) {
            *known = target;
        }
    }

    /// Target of a host's ready jobs for any key, or for this one.
    fn target(&self, dispatch: &Dispatch, host: HostId, key: Option<u32>) -> usize {
        let Some(status) = dispatch.host_status(host) else { return 0 };
        let options = &self.context.options;
        let target = self.host_target(host);
        match (status.down_for, options.rules.give_up_after) {
            _ if status.waiting_for_host >= MAX_JOBS_WAITING_FOR_HOST => 0,
            // All remaining jobs are to reach their end.
            (Some(down_for), Some(longest)) if down_for >= longest => target,
            (Some(_), _) => MAX_PROBE_JOBS,
            _ if key.is_some() => (target / options.keys.len().max(1)).max(2),
            _ => target,
        }
    }

    fn has_room(&self, dispatch: &Dispatch, lane: &LaneEntry) -> bool {
        let target = self.target(dispatch, lane.host, lane.key);
        target > 0 && dispatch.queued(lane.host, lane.key) <= target / 2
    }

    /// Whether there is room for jobs of the store. With many lanes only some are checked, since this runs at each
    /// event; a record asks for jobs in any case.
    pub(super) fn has_any_room(&self, dispatch: &Dispatch) -> bool {
        self.lanes.iter().take(MAX_EMPTY_LANES).any(|lane| lane.has_jobs && self.has_room(dispatch, lane))
    }

    /// Jobs wanted by host and key; after arrivals, also of lanes that were empty.
    pub(super) fn claims(&self, dispatch: &Dispatch, arrived: bool) -> Vec<HostLaneClaim> {
        let lanes = self.lanes.iter().filter(|lane| arrived || lane.has_jobs);
        let lanes = lanes.filter(|lane| self.has_room(dispatch, lane));
        let claim = |LaneEntry { lane, host, key, .. }: &LaneEntry| {
            let max_jobs = self.target(dispatch, *host, *key) - dispatch.queued(*host, *key);
            (*host, *key, LaneClaim { lane: lane.clone(), max_jobs })
        };
        lanes.map(claim).collect()
    }

    /// Raises the target of a host whose jobs were sent while others were fetched, and lowers it if most of them wait.
    pub(super) fn adjust_targets(&mut self, dispatch: &Dispatch, claims: &[HostLaneClaim], claimed: &ClaimReply) {
        // Lane by lane, as they were requested.
        let mut jobs = claimed.jobs.iter().peekable();
        // Total over all hosts; the part of a host is bounded by their number.
        let max_target = (MAX_READY_JOBS * 4 / claims.len().max(1)).clamp(2, MAX_READY_JOBS);
        for (host, key, claim) in claims {
            let (target, queued) = (self.host_target(*host), dispatch.queued(*host, *key));
            let got = std::iter::from_fn(|| jobs.next_if(|(_, entry)| claim.lane.has(&entry.job))).count();
            let has_gone = queued == 0 && got == claim.max_jobs;
            if has_gone {
                self.set_host_target(*host, (target * 2).min(max_target));
            } else if queued > self.target(dispatch, *host, *key) / 4 {
                self.set_host_target(*host, (target - target.div_ceil(16)).max(self.min_target()));
            }
        }
    }

    /// Updates the lanes of the store; returns whether there are jobs to claim at once.
    pub(super) fn update_lanes(
        &mut self,
        dispatch: &mut Dispatch,
        hosts: &mut SenderHosts,
        unusable_keys: &[u32],
        lanes: &[JobLane],
    ) -> bool {
        let mut found = Vec::with_capacity(lanes.len());
        self.has_unsendable = false;
        for lane in lanes {
            let key = match lane.key_hint.as_ref().map(|hint| self.context.key_numbers.get(hint)) {
                None => None,
                Some(Some(key)) if !unusable_keys.contains(key) => {
                    // Other senders send with the other keys.
                    if !dispatch.can_send(*key) {
                        continue;
                    }
                    Some(*key)
                }
                Some(_) => {
                    self.has_unsendable = true;
                    continue;
                }
            };
            let host = hosts.number(dispatch, &lane.host);
            found.push(LaneEntry { lane: lane.clone(), host, key, has_jobs: true });
        }
        let new = self.replace_lanes(found, lanes.len() < MAX_CLAIM_LANES);
        new.iter().any(|lane| self.has_room(dispatch, lane))
    }

    /// Replaces the lanes with jobs, which are all of them with `are_all`. Returns those that had none.
    fn replace_lanes(&mut self, found: Vec<LaneEntry>, are_all: bool) -> Vec<LaneEntry> {
        let before: HashMap<&JobLane, bool> = self.lanes.iter().map(|known| (&known.lane, known.has_jobs)).collect();
        let is_new = |known: &&LaneEntry| before.get(&known.lane) != Some(&true);
        let new: Vec<LaneEntry> = found.iter().filter(is_new).cloned().collect();
        let mut left = std::mem::replace(&mut self.lanes, found);
        let names: HashSet<&JobLane> = self.lanes.iter().map(|known| &known.lane).collect();
        left.retain(|known| !names.contains(&known.lane));
        if are_all {
            left.iter_mut().for_each(|known| known.has_jobs = false);
            left.truncate(MAX_EMPTY_LANES);
        }
        self.lanes.append(&mut left);
        new
    }

    /// Forgets the lanes of unusable keys, whose jobs stay in the store.
    pub(super) fn forget_keys(&mut self, unusable: &[u32]) {
        self.lanes.retain(|lane| lane.key.is_none_or(|key| !unusable.contains(&key)));
        self.has_unsendable = true;
    }
}
