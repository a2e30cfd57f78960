//! Hosts: numbers, targets of leased jobs, and handling while they are down.

use std::collections::{HashMap, HashSet};

use super::super::store::JobLane;
use super::{DispatchAction, SenderRuntime, SenderState, claims};
use weir_decide::Nanos;
use weir_decide::delivery::dispatch::DispatchFailure;
use weir_decide::delivery::dispatch::{HostId, HostStatus, JobId};
use weir_decide::delivery::key_window::{self, KeyHistory};

/// Leased unsent jobs of a down host: the next probes.
const MAX_PROBE_JOBS: usize = 2;
/// Retrying jobs of a host at which no more are claimed.
const MAX_JOBS_WAITING_FOR_HOST: usize = 512;

/// Hosts by the dispatch's numbers.
#[derive(Debug, Default)]
pub(super) struct SenderHosts {
    numbers: HashMap<String, HostId>,
    all: Vec<HostEntry>,
    /// By key: history at unnamed hosts, and its time.
    pub(super) key_histories: Vec<Option<(KeyHistory, Nanos)>>,
}

#[derive(Debug)]
struct HostEntry {
    name: String,
    /// Target of leased jobs that are not sent yet.
    ready_target: usize,
}

/// Status of a host, by its name.
#[derive(Clone, Debug)]
pub struct HostProgress {
    /// Host, with a non-default port.
    pub name: String,
    /// Status.
    pub status: HostStatus,
    /// Last failure, in prose.
    pub last_failure: String,
}

impl SenderHosts {
    pub(super) fn new(key_histories: Vec<Option<(KeyHistory, Nanos)>>) -> Self {
        Self { key_histories, ..Self::default() }
    }

    pub(super) fn number(&self, name: &str) -> Option<HostId> {
        self.numbers.get(name).copied()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (HostId, &str)> {
        (0..).zip(&self.all).map(|(number, host)| (number, host.name.as_str()))
    }

    /// Initial target of a host among this number of hosts.
    pub(super) fn ready_target(&self, host: HostId) -> usize {
        self.all.get(host as usize).map_or(0, |host| host.ready_target)
    }

    pub(super) fn set_ready_target(&mut self, host: HostId, ahead: usize) {
        if let Some(host) = self.all.get_mut(host as usize) {
            host.ready_target = ahead;
        }
    }
}

impl SenderRuntime {
    /// Number of a host; a new one is added.
    pub(super) fn host_number(&self, hand: &mut SenderState, name: &str) -> HostId {
        if let Some(number) = hand.hosts.number(name) {
            return number;
        }
        let number = self.add_host(hand, name);
        let now = self.timer.now();
        for (key, past) in (0..).zip(&hand.hosts.key_histories) {
            if let Some((history, at)) = past {
                hand.dispatch.resume_lane(now, number, key, history, now - *at);
            }
        }
        number
    }

    /// Adds a host without a history.
    pub(super) fn add_host(&self, hand: &mut SenderState, name: &str) -> HostId {
        let number = hand.dispatch.add_host(self.rules_of(name));
        hand.hosts.numbers.insert(name.to_owned(), number);
        hand.hosts.all.push(HostEntry { name: name.to_owned(), ready_target: claims::min_ready_jobs(&self.options) });
        number
    }

    /// Limits of a host that has its own, else the general ones.
    pub(super) fn rules_of(&self, name: &str) -> Option<key_window::KeyRules> {
        let bare = name.rsplit_once(':').map_or(name, |(bare, _)| bare);
        let own = self.options.host_limits.iter().filter(|(host, _)| host == name || host == bare);
        let limits: Vec<_> = own.map(|(_, limit)| *limit).collect();
        (!limits.is_empty()).then(|| key_window::KeyRules { limits, ..self.options.rules.key.clone() })
    }

    /// Whether there is room for jobs of the store. With many lanes only some are checked, since this runs at each
    /// event; a record asks for jobs in any case.
    pub(super) fn wants_jobs(&self, hand: &SenderState) -> bool {
        hand.lanes
            .iter()
            .take(MAX_EMPTY_LANES)
            .any(|known| known.has_jobs && self.has_room(hand, known.host, known.key))
    }

    /// Target of a host's leased jobs for any key, or for this one.
    pub(super) fn ready_target(&self, hand: &SenderState, host: HostId, key: Option<u32>) -> usize {
        let Some(standing) = hand.dispatch.host_status(host) else { return 0 };
        let ahead = hand.hosts.ready_target(host);
        match (standing.down_for, self.options.rules.give_up_after) {
            _ if standing.waiting_for_host >= MAX_JOBS_WAITING_FOR_HOST => 0,
            // All remaining jobs are to reach their end.
            (Some(down_for), Some(longest)) if down_for >= longest => ahead,
            (Some(_), _) => MAX_PROBE_JOBS,
            _ if key.is_some() => (ahead / self.options.keys.len().max(1)).max(2),
            _ => ahead,
        }
    }

    pub(super) fn has_room(&self, hand: &SenderState, host: HostId, key: Option<u32>) -> bool {
        let ahead = self.ready_target(hand, host, key);
        ahead > 0 && hand.dispatch.queued(host, key) <= ahead / 2
    }

    /// Releases jobs of a down host that were never sent, so that a crash leaves no doubt about them.
    pub(super) fn host_down(&self, hand: &mut SenderState, host: HostId, actions: &mut Vec<DispatchAction>) {
        let waits: Vec<JobId> = hand.dispatch.queued_jobs(host).collect();
        let unsent = |held: &super::LeasedJob| held.attempts_since_claim == 0 && waits.contains(&held.entry.number);
        if self.options.rules.give_up_after.is_none() {
            self.release_jobs(hand, actions, "the host is down", unsent);
        }
    }

    /// Hosts that are down.
    pub(super) fn hosts_down(hand: &SenderState) -> Vec<HostProgress> {
        let hosts = hand.hosts.names().filter_map(|(number, name)| {
            let standing = hand.dispatch.host_status(number).filter(|standing| standing.down_for.is_some())?;
            let why = if standing.last_failure == DispatchFailure::Expired {
                String::new()
            } else {
                super::attempt::reason_text(standing.last_failure)
            };
            Some(HostProgress { name: name.to_owned(), status: standing, last_failure: why })
        });
        hosts.collect()
    }
}

/// Lanes of the store that have or had jobs.
#[derive(Debug, Default)]
pub(super) struct StoreLanes {
    all: Vec<LaneEntry>,
}

/// Lane with its host and key.
#[derive(Clone, Debug)]
pub(super) struct LaneEntry {
    pub(super) lane: JobLane,
    pub(super) host: HostId,
    pub(super) key: Option<u32>,
    /// Whether it has jobs, as far as known.
    pub(super) has_jobs: bool,
}

/// Maximum empty lanes that are remembered.
const MAX_EMPTY_LANES: usize = 64;

impl StoreLanes {
    pub(super) fn iter(&self) -> impl Iterator<Item = &LaneEntry> {
        self.all.iter()
    }

    pub(super) fn retain(&mut self, keeps: impl Fn(Option<u32>) -> bool) {
        self.all.retain(|lane| keeps(lane.key));
    }

    /// Updates the lanes with jobs, which are all of them with `are_all`. Returns those that had none.
    pub(super) fn update(&mut self, found: Vec<LaneEntry>, are_all: bool) -> Vec<LaneEntry> {
        let before: HashMap<&JobLane, bool> = self.all.iter().map(|known| (&known.lane, known.has_jobs)).collect();
        let is_new = |known: &&LaneEntry| before.get(&known.lane) != Some(&true);
        let new: Vec<LaneEntry> = found.iter().filter(is_new).cloned().collect();
        let mut left = std::mem::replace(&mut self.all, found);
        let names: HashSet<&JobLane> = self.all.iter().map(|known| &known.lane).collect();
        left.retain(|known| !names.contains(&known.lane));
        if are_all {
            left.iter_mut().for_each(|known| known.has_jobs = false);
            left.truncate(MAX_EMPTY_LANES);
        }
        self.all.append(&mut left);
        new
    }
}
