//! Where attempts go: the hosts behind one name, and who of them is next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::counts::UpstreamCounts;
use crate::decide::Nanos;
use crate::decide::hedge::Why;
use crate::decide::hosts::{Balance, Ended, Health, Hosts};
use crate::decide::policy::{Failure, Kind};
use crate::decide::recent::Recent;
use crate::http::client::Origin;
use crate::machine::timer::Timer;

/// One of an upstream's hosts.
#[derive(Clone, Debug)]
pub struct Host {
    /// Where it is.
    pub origin: Arc<Origin>,
    /// Its share of the attempts, compared with the others'.
    pub weight: u32,
}

/// The hosts behind one name. All event loops share it.
#[derive(Debug)]
pub struct Upstream {
    hosts: Vec<Host>,
    choice: Mutex<Hosts>,
    recent: Mutex<Recent>,
    /// Whether anybody asks how long recent attempts took.
    is_watched: AtomicBool,
    places: Option<Places>,
    /// What is counted.
    pub counts: UpstreamCounts,
}

/// How many attempts there may be at once, and how many more may wait.
#[derive(Debug)]
struct Places {
    at_once: usize,
    free: Arc<Semaphore>,
    most_waiting: usize,
}

impl Upstream {
    /// Of 1 to 64 hosts.
    pub fn new(hosts: Vec<Host>, balance: Balance, health: Health) -> Self {
        let weights: Vec<u32> = hosts.iter().map(|host| host.weight).collect();
        Self {
            choice: Mutex::new(Hosts::new(&weights, balance, health)),
            hosts,
            recent: Mutex::new(Recent::default()),
            is_watched: AtomicBool::new(false),
            places: None,
            counts: UpstreamCounts::default(),
        }
    }

    /// With `at_once` attempts (one, if that is 0) at most, while `most_waiting` more may wait, first come first served.
    #[must_use]
    pub fn with_places(mut self, at_once: usize, most_waiting: usize) -> Self {
        let at_once = at_once.clamp(1, Semaphore::MAX_PERMITS);
        self.places = Some(Places { at_once, free: Arc::new(Semaphore::new(at_once)), most_waiting });
        self
    }

    /// Its hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Which hosts are out for their failures.
    pub fn out(&self, now: Nanos) -> Vec<bool> {
        let choice = self.choice();
        (0..self.hosts.len()).map(|host| choice.is_out(now, host)).collect()
    }

    /// A check of a host's health has ended.
    pub fn checked(&self, now: Nanos, host: usize, ok: bool) {
        self.choice().checked(now, host, ok);
    }

    /// How many attempts there may be at once, if that is limited.
    pub fn most_at_once(&self) -> Option<usize> {
        self.places.as_ref().map(|places| places.at_once)
    }

    /// Keeps in mind how long first attempts take, from now on.
    pub(super) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// What this share of recent first attempts took at most; none while too few are known.
    pub fn quantile(&self, now: Nanos, share: f64) -> Option<Nanos> {
        self.recent().quantile(now, share)
    }

    fn choice(&self) -> MutexGuard<'_, Hosts> {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A first attempt has taken so long, at least.
    pub(super) fn took(&self, now: Nanos, took: Nanos) {
        if self.is_watched.load(Ordering::Relaxed) {
            self.recent().record(now, took);
        }
    }

    /// Chooses a host for an attempt that starts now, not one of `avoid` if there is another.
    pub(super) fn occupy(self: &Arc<Self>, timer: &Timer, now: Nanos, term: Term, avoid: u64, why: Why) -> Occupied {
        self.counts.began(why);
        let host = if self.hosts.len() == 1 {
            0
        } else {
            let mut choice = self.choice();
            let host = choice.pick(now, avoid);
            choice.began(host);
            host
        };
        let (upstream, timer) = (Arc::clone(self), timer.clone());
        Occupied { upstream, host, term, timer, ended: None, waits: false, place: None }
    }
}

/// What it means that an attempt is given up, by when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// From then on it has failed: it has had the time of an attempt.
    pub(super) late_at: Nanos,
    /// From then on its host has: it has had all the time that its call's policy gives. Else a host that hangs would
    /// keep its share of the calls for ever, if there is no limit but the deadline.
    pub(super) blamed_at: Nanos,
}

/// An attempt's place at a host, until the last byte of its answer; given up before the end, it was cancelled.
#[derive(Debug)]
pub(super) struct Occupied {
    pub(super) upstream: Arc<Upstream>,
    pub(super) host: usize,
    term: Term,
    timer: Timer,
    ended: Option<Ended>,
    /// For a place; then no host is to blame.
    waits: bool,
    place: Option<OwnedSemaphorePermit>,
}

/// There is no place, and no room to wait.
#[derive(Debug)]
pub(super) struct Full;

impl Occupied {
    pub(super) fn origin(&self) -> &Arc<Origin> {
        &self.upstream.hosts[self.host].origin
    }

    /// Waits until the upstream has room for another attempt.
    pub(super) async fn wait_for_place(&mut self) -> Result<(), Full> {
        let Some(places) = &self.upstream.places else { return Ok(()) };
        if let Ok(place) = Arc::clone(&places.free).try_acquire_owned() {
            self.place = Some(place);
            return Ok(());
        }
        if !self.upstream.counts.waits(places.most_waiting as u64) {
            return Err(Full);
        }
        let wait = Wait { counts: &self.upstream.counts, since: self.timer.now(), timer: &self.timer };
        self.waits = true;
        let place = Arc::clone(&places.free).acquire_owned().await;
        drop(wait);
        self.place = Some(place.map_err(|_| Full)?);
        self.waits = false;
        Ok(())
    }

    /// It was never sent, for want of room.
    pub(super) fn turned_away(&mut self) {
        self.ended = Some(Ended::Cancelled);
        self.upstream.counts.failed(Failure::Kind(Kind::Connect));
    }

    pub(super) fn succeeded(&mut self) {
        self.ended = Some(Ended::Ok);
    }

    /// The rest of a success did not come.
    pub(super) fn broke(&mut self) {
        self.ended = Some(Ended::Failed);
    }

    /// Its answer, if there is one, may be kept until the call's end and needs no place: the call's next attempt may
    /// wait for that.
    pub(super) fn failed(&mut self, failure: Failure) {
        self.place = None;
        let unwell = match failure {
            Failure::Kind(Kind::Body | Kind::Header) => false,
            Failure::Kind(_) => true,
            Failure::Status(status) => (502..=504).contains(&status),
        };
        self.ended = Some(if unwell { Ended::Failed } else { Ended::Ok });
        self.upstream.counts.failed(failure);
    }

    fn given_up(&mut self, now: Nanos) {
        if self.term.late_at <= now {
            self.failed(Failure::Kind(Kind::Timeout));
        } else {
            self.upstream.counts.cancelled();
            self.ended = Some(if self.term.blamed_at <= now { Ended::Failed } else { Ended::Cancelled });
        }
        if self.waits {
            self.ended = Some(Ended::Cancelled);
        }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.upstream.counts.released();
        let several = self.upstream.hosts.len() > 1;
        if self.ended.is_some() && !several {
            return;
        }
        let now = self.timer.now();
        if self.ended.is_none() {
            self.given_up(now);
        }
        if several {
            self.upstream.choice().ended(now, self.host, self.ended.unwrap_or(Ended::Cancelled));
        }
    }
}

/// A wait for a place; it ends when the place is there, or when nobody wants it any more.
struct Wait<'a> {
    counts: &'a UpstreamCounts,
    since: Nanos,
    timer: &'a Timer,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.counts.waited((self.timer.now() - self.since).0);
    }
}
