//! One host: its lines of jobs, its lanes, its circuit, and its share of the places.

use std::collections::HashSet;

use super::circuit::{Circuit, Permit};
use super::lanes::{Key, Lanes};
use super::queue::{Lines, Queue};
use super::share::{Places, Share};
use super::turns::Heads;
use super::{Dispatch, HostId, JobId, Nanos, Rules, Why};
use crate::decide::dice::Dice;
use crate::decide::window;

/// More jobs than this are not remembered as failing of themselves.
const MOST_GUILTY: usize = 4096;
/// Of a host that has answered nobody for a shorter time nothing is said.
const SOME_TIME: Nanos = Nanos::SECOND;

#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) lines: Lines,
    pub(super) heads: Heads,
    pub(super) lanes: Lanes,
    pub(super) circuit: Circuit,
    pub(super) share: Share,
    /// Jobs that failed while others were answered: their failures are their own.
    guilty: HashSet<JobId>,
    /// Who goes next, if anybody can go now.
    pub(super) turn: Option<(JobId, u32)>,
    /// When something may be done that cannot be done now.
    pub(super) wake: Nanos,
    /// When it sent last, in sends.
    pub(super) used: u64,
    /// Its place among the hosts that can send.
    pub(super) place: Option<(usize, u64)>,
    /// What the last failure was.
    pub(super) died: Why,
    /// It is to be looked at.
    pub(super) is_dirty: bool,
}

/// How a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Jobs in hand that have not been sent.
    pub queued: usize,
    /// Jobs in hand that wait for the host to answer anybody.
    pub resting: usize,
    /// Requests without an answer.
    pub out: usize,
    /// So long it has answered nobody; None: it answers, as far as is known.
    pub down_for: Option<Nanos>,
    /// What the last request failed of.
    pub why: Why,
}

impl Host {
    pub(super) fn new(id: HostId, rules: &Rules, own: Option<window::Rules>, keys: &[Key], seed: u64) -> Self {
        Self {
            lines: Lines::new(keys.len()),
            heads: Heads::new(keys.len() as u32),
            lanes: Lanes::new(rules, own, keys),
            circuit: Circuit::new(rules.retry.backoff, Dice::new(seed, !u64::from(id))),
            share: Share::default(),
            guilty: HashSet::new(),
            turn: None,
            wake: Nanos::NEVER,
            used: 0,
            place: None,
            died: Why::Late,
            is_dirty: false,
        }
    }

    pub(super) fn is_guilty(&self, job: JobId) -> bool {
        self.guilty.contains(&job)
    }

    pub(super) fn convict(&mut self, job: JobId) {
        if self.guilty.len() < MOST_GUILTY {
            self.guilty.insert(job);
        }
    }

    pub(super) fn forget(&mut self, job: JobId) {
        self.guilty.remove(&job);
    }

    /// It has been silent for so long; None: it is not known to be down.
    pub(super) fn down_for(&self, now: Nanos) -> Option<Nanos> {
        let silent = now - self.circuit.silent_since()?;
        (self.circuit.is_open() || silent >= SOME_TIME).then_some(silent)
    }

    /// Whether what is sent then may arrive when it is of no use any more.
    pub(super) fn is_late(&self, at: Nanos, expires: Nanos) -> bool {
        expires < at + self.lanes.bound().unwrap_or_default()
    }

    /// Whether nothing is to be sent that has not failed already.
    fn has_nothing_else(&self) -> bool {
        self.lines.standing == 0 && (self.circuit.is_open() || self.share.in_flight == 0)
    }

    /// Finds out who goes next, and when it has to be looked at again.
    fn look(&mut self, now: Nanos, queue: &Queue) {
        let permit = self.circuit.permit(now);
        let (turn, next) = self.turn(now, queue);
        (self.turn, self.wake) = match permit {
            Permit::All | Permit::Probe => (turn, next),
            Permit::Nothing(until) => (None, until),
        };
        if permit == Permit::All && self.has_nothing_else() && !self.lines.resting.is_empty() {
            self.wake = self.wake.min(self.circuit.next_try().max(now + Nanos(1)));
        }
        if let Some((expires, _)) = self.lines.first_expiring() {
            // It can still be sent at the very last instant.
            self.wake = self.wake.min(expires - self.lanes.bound().unwrap_or_default() + Nanos(1));
        }
    }

    /// The job that failed longest ago, if it is time to try it once more.
    fn next_resting(&self, now: Nanos) -> Option<JobId> {
        let is_due = match self.circuit.permit(now) {
            Permit::All => self.circuit.next_try() <= now,
            Permit::Probe => true,
            Permit::Nothing(_) => false,
        };
        self.lines.resting.first().filter(|_| is_due && self.has_nothing_else()).map(|(_, id)| *id)
    }
}

impl Dispatch {
    /// Another host, with these limits in place of those that hold for all; its number.
    pub fn add_host(&mut self, own: Option<window::Rules>) -> HostId {
        let id = self.hosts.len() as HostId;
        self.hosts.push(Host::new(id, &self.rules, own, &self.keys, self.seed));
        id
    }

    /// How a host is.
    pub fn standing(&self, host: HostId) -> Option<Standing> {
        let host = self.hosts.get(host as usize)?;
        Some(Standing {
            queued: host.lines.standing,
            resting: host.lines.resting.len(),
            out: host.share.in_flight,
            down_for: host.down_for(self.latest),
            why: host.died,
        })
    }

    /// How many jobs for a host are queued that any key may send, or only this one.
    pub fn queued(&self, host: HostId, key: Option<u32>) -> usize {
        self.hosts.get(host as usize).map_or(0, |host| host.lines.length(key))
    }

    /// The jobs for a host that stand in a line.
    pub fn waiting(&self, host: HostId) -> impl Iterator<Item = JobId> {
        self.hosts.get(host as usize).into_iter().flat_map(|host| host.lines.all())
    }

    /// The first `most` of each line: what goes next.
    pub fn next(&self, most: usize) -> impl Iterator<Item = JobId> {
        self.hosts.iter().flat_map(move |host| host.lines.next(most))
    }

    pub(super) fn host(&mut self, id: HostId) -> Option<&mut Host> {
        let host = self.hosts.get_mut(id as usize)?;
        if !std::mem::replace(&mut host.is_dirty, true) {
            self.dirty.push(id);
        }
        Some(host)
    }

    pub(super) fn touch_all(&mut self) {
        for id in 0..self.hosts.len() as HostId {
            self.host(id);
        }
    }

    pub(super) fn places(&self, host: &Host) -> Places {
        let all = self.rules.in_flight.max(1);
        Places {
            all,
            free: all.saturating_sub(self.leased),
            shared: self.hosts.len() > 1,
            silence: host.circuit.patience(),
        }
    }

    /// Sees to all hosts of which something has changed, or whose time has come.
    pub(super) fn look_at_hosts(&mut self, now: Nanos, actions: &mut Vec<super::Action>) {
        while let Some((at, id)) = self.wakes.first().copied()
            && at <= now
        {
            self.wakes.pop_first();
            self.host(id);
        }
        while let Some(id) = self.dirty.pop() {
            self.look_at_host(now, id, actions);
        }
    }

    fn look_at_host(&mut self, now: Nanos, id: HostId, actions: &mut Vec<super::Action>) {
        let Some(host) = self.hosts.get_mut(id as usize) else { return };
        host.lanes.set_way_in(now);
        if host.circuit.pass(now) {
            actions.push(super::Action::Down(id));
        }
        while let Some(host) = self.hosts.get_mut(id as usize)
            && let Some((expires, job)) = host.lines.first_expiring()
            && host.is_late(now, expires)
            && let Some(taken) = self.queue.take(job, &mut host.lines)
        {
            self.expire(now, job, taken, actions);
        }
        self.give_up(now, id, actions);
        if let Some(job) = self.hosts.get(id as usize).and_then(|host| host.next_resting(now)) {
            self.rise(job);
        }
        let Some(host) = self.hosts.get_mut(id as usize) else { return };
        self.wakes.remove(&(host.wake, id));
        if let Some((in_flight, used)) = host.place.take() {
            self.ready.remove(&(in_flight, used, id));
        }
        host.look(now, &self.queue);
        host.is_dirty = false;
        if host.wake != Nanos::NEVER {
            self.wakes.insert((host.wake, id));
        }
        if host.turn.is_some() {
            let place = (host.share.in_flight, host.used);
            host.place = Some(place);
            self.ready.insert((place.0, place.1, id));
        }
    }

    /// A host that has answered nobody for too long: its jobs have come to their end, but for the one that finds out.
    fn give_up(&mut self, now: Nanos, id: HostId, actions: &mut Vec<super::Action>) {
        let Some((longest, host)) = self.rules.give_up_after.zip(self.hosts.get(id as usize)) else { return };
        if host.down_for(now).is_none_or(|down_for| down_for < longest) {
            return;
        }
        let keep = usize::from(host.circuit.permit(now) == Permit::Probe && host.lines.standing > 0);
        let resting = host.lines.resting.iter().map(|(_, job)| *job);
        let jobs: Vec<JobId> = resting.chain(host.lines.all().skip(keep)).collect();
        for job in jobs {
            let why = self.queue.get(job).map_or(Why::Late, |job| job.died);
            let why = if why == Why::Late { Why::Down } else { why };
            self.bury(job, why, actions);
        }
    }

    /// A job that has rested goes back to its line.
    pub(super) fn rise(&mut self, id: JobId) {
        let Some(host) = self.queue.host_of(id).and_then(|host| self.hosts.get_mut(host as usize)) else { return };
        if let Some(mut job) = self.queue.take(id, &mut host.lines) {
            job.state = super::State::Queued;
            self.queue.put(id, job, &mut host.lines);
        }
    }

    /// The host whose turn it is: of those that can send, the one with the fewest requests without an answer.
    pub(super) fn next_host(&self, now: Nanos) -> Option<HostId> {
        let mut ready = self.ready.iter().map(|(.., id)| *id);
        ready.find(|id| {
            let host = self.hosts.get(*id as usize);
            host.is_some_and(|host| host.circuit.is_open() || host.share.has_room(now, self.places(host)))
        })
    }

    /// When a host that can send, and has no place, may have one by time alone.
    pub(super) fn next_place(&self, now: Nanos) -> Nanos {
        if self.leased >= self.rules.in_flight.max(1) {
            return Nanos::NEVER;
        }
        let hosts = self.ready.iter().take(MOST_LOOKED_AT).filter_map(|(.., id)| self.hosts.get(*id as usize));
        hosts.map(|host| host.share.next_step(now)).min().unwrap_or(Nanos::NEVER)
    }
}

/// So many hosts that have no place are asked when they may have one.
const MOST_LOOKED_AT: usize = 16;
