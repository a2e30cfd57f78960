//! The hosts that jobs go to: a number for each, how many of its jobs are to be in hand, and what becomes of them while it is
//! down.

use std::collections::{HashMap, HashSet};

use super::super::store::JobLane;
use super::{DispatchAction, SenderRuntime, SenderState, claims};
use crate::decide::dispatch::{HostId, HostStatus, JobId};
use crate::decide::window::{self, KeyHistory};
use crate::decide::{Nanos, dispatch::DispatchFailure};

/// So many jobs that have not been sent are in hand for a host that is down: the next probes.
const MAX_PROBE_JOBS: usize = 2;
/// No more are taken in hand once so many wait for a host to answer.
const MAX_JOBS_WAITING_FOR_HOST: usize = 512;

/// The hosts that are known, by the dispatch's numbers.
#[derive(Debug, Default)]
pub(super) struct SenderHosts {
    numbers: HashMap<String, HostId>,
    all: Vec<HostEntry>,
    /// By key: what is known of its past at hosts that are not named, and when that was.
    pub(super) key_histories: Vec<Option<(KeyHistory, Nanos)>>,
}

#[derive(Debug)]
struct HostEntry {
    name: String,
    /// How many jobs are to be in hand and not yet sent.
    ready_target: usize,
}

/// How a host is, by its name.
#[derive(Clone, Debug)]
pub struct HostProgress {
    /// The host, with its port if that is not the scheme's own.
    pub name: String,
    /// How it is.
    pub status: HostStatus,
    /// What its last failure was, in a few words.
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

    /// How many jobs of a host are to be in hand, among so many hosts.
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
    /// The number of a host, which may be new.
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

    /// A host of whose past nothing is known yet.
    pub(super) fn add_host(&self, hand: &mut SenderState, name: &str) -> HostId {
        let number = hand.dispatch.add_host(self.rules_of(name));
        hand.hosts.numbers.insert(name.to_owned(), number);
        hand.hosts.all.push(HostEntry { name: name.to_owned(), ready_target: claims::min_ready_jobs(&self.options) });
        number
    }

    /// The limits of a host that has its own.
    pub(super) fn rules_of(&self, name: &str) -> Option<window::KeyRules> {
        let bare = name.rsplit_once(':').map_or(name, |(bare, _)| bare);
        let own = self.options.host_limits.iter().filter(|(host, _)| host == name || host == bare);
        let limits: Vec<_> = own.map(|(_, limit)| *limit).collect();
        (!limits.is_empty()).then(|| window::KeyRules { limits, ..self.options.rules.key.clone() })
    }

    /// Whether there is room for jobs that the store has; of many lanes only some are looked at, as it is asked with each
    /// event. Whoever records asks for more jobs in any case.
    pub(super) fn wants_jobs(&self, hand: &SenderState) -> bool {
        hand.lanes
            .iter()
            .take(MAX_EMPTY_LANES)
            .any(|known| known.has_jobs && self.has_room(hand, known.host, known.key))
    }

    /// How many jobs of a host are to be in hand that any key may send, or only this one.
    pub(super) fn ready_target(&self, hand: &SenderState, host: HostId, key: Option<u32>) -> usize {
        let Some(standing) = hand.dispatch.host_status(host) else { return 0 };
        let ahead = hand.hosts.ready_target(host);
        match (standing.down_for, self.options.rules.give_up_after) {
            _ if standing.waiting_for_host >= MAX_JOBS_WAITING_FOR_HOST => 0,
            // They are to come to their end.
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

    /// Nothing is sent to a host that is down: what was never sent goes back, so that a crash leaves no doubt about it.
    pub(super) fn host_down(&self, hand: &mut SenderState, host: HostId, actions: &mut Vec<DispatchAction>) {
        let waits: Vec<JobId> = hand.dispatch.queued_jobs(host).collect();
        let unsent = |held: &super::LeasedJob| held.attempts_since_claim == 0 && waits.contains(&held.entry.number);
        if self.options.rules.give_up_after.is_none() {
            self.release_jobs(hand, actions, "the host is down", unsent);
        }
    }

    /// The hosts that answer nobody.
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

/// Lanes of the store that have jobs, or had.
#[derive(Debug, Default)]
pub(super) struct StoreLanes {
    all: Vec<LaneEntry>,
}

/// One of them, and whose it is.
#[derive(Clone, Debug)]
pub(super) struct LaneEntry {
    pub(super) lane: JobLane,
    pub(super) host: HostId,
    pub(super) key: Option<u32>,
    /// There are jobs in it, as far as is known.
    pub(super) has_jobs: bool,
}

/// So many lanes are remembered that have no jobs now.
const MAX_EMPTY_LANES: usize = 64;

impl StoreLanes {
    pub(super) fn iter(&self) -> impl Iterator<Item = &LaneEntry> {
        self.all.iter()
    }

    pub(super) fn retain(&mut self, keeps: impl Fn(Option<u32>) -> bool) {
        self.all.retain(|lane| keeps(lane.key));
    }

    /// These have jobs, and no others if they are all. Says which of them were not known to.
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
