//! Where attempts go: the hosts behind one name, and who of them is next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;

use super::counts::UpstreamCounts;
use super::guard::{Guard, Told};
use super::places::{Fate, Place, Places};
use super::success::grpc_failure;
use super::upload::Owes;
use crate::decide::Nanos;
use crate::decide::admit::{End, GivenUp, Terms};
use crate::decide::breaker::{BreakerRule, Pass, State};
use crate::decide::grpc::Codes;
use crate::decide::hedge::Why;
use crate::decide::hosts::{Balance, Ended, Health, Hosts};
use crate::decide::policy::{Failure, Fault, Kind};
use crate::decide::recent::Recent;
use crate::decide::throttle::ThrottleRule;
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
    places: Option<Arc<Places>>,
    pub(super) guard: Guard,
    /// What is counted.
    pub counts: UpstreamCounts,
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
            guard: Guard::default(),
            counts: UpstreamCounts::default(),
        }
    }

    /// With `at_once` attempts (one, if that is 0) at most, while `most_waiting` calls more may wait as long as their
    /// deadlines let them, first come first served.
    #[must_use]
    pub fn with_places(self, at_once: usize, most_waiting: usize) -> Self {
        self.with_admission(&Places::fixed(at_once, most_waiting), Nanos::ZERO)
    }

    /// With as many attempts at once as these terms allow, from `now` on.
    ///
    /// A call waits for the place of its first attempt, or is refused. Further attempts take one that is free at once,
    /// or are not sent.
    #[must_use]
    pub fn with_admission(mut self, terms: &Terms, now: Nanos) -> Self {
        self.places = Some(Arc::new(Places::new(terms, now)));
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

    /// With calls refused while it is down (`breaker`), or while it says that it has too many (`throttle`).
    #[must_use]
    pub fn with_guard(mut self, breaker: Option<BreakerRule>, throttle: Option<ThrottleRule>) -> Self {
        self.guard = Guard::new(breaker, throttle);
        self
    }

    /// What its breaker does with calls, if it has one.
    pub fn breaker(&self, now: Nanos) -> Option<State> {
        self.guard.state(now)
    }

    /// The share of calls that are refused for its answers of 429 and 503, if that may be.
    pub fn share_throttled(&self, now: Nanos) -> Option<f64> {
        self.guard.share_dropped(now)
    }

    /// The places of its attempts, if they are limited.
    pub fn places(&self) -> Option<&Arc<Places>> {
        self.places.as_ref()
    }

    /// How many attempts there may be at once now, if that is limited.
    pub fn most_at_once(&self) -> Option<usize> {
        self.places.as_ref().map(|places| places.room().limit() as usize)
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
    pub(super) fn occupy(
        self: &Arc<Self>,
        timer: &Timer,
        now: Nanos,
        term: Term,
        avoid: u64,
        why: Why,
        (place, pass): (Option<Place>, Option<Pass>),
    ) -> Occupied {
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
        Occupied {
            upstream,
            host,
            term,
            timer,
            ended: None,
            heard: Fate::Ended(End::Failed),
            is_complete: false,
            idle_since: None,
            idle: Nanos::ZERO,
            place,
            route: None,
            pass,
            upload: None,
            grpc: Codes::NONE,
        }
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
    /// From then on nobody wants an answer any more.
    pub(super) deadline: Nanos,
}

/// An attempt's place at a host, until the last byte of its answer; given up before the end, it was cancelled.
#[derive(Debug)]
pub(super) struct Occupied {
    pub(super) upstream: Arc<Upstream>,
    pub(super) host: usize,
    term: Term,
    timer: Timer,
    ended: Option<Ended>,
    /// What its answer says of the upstream's load, if it comes whole.
    heard: Fate,
    is_complete: bool,
    /// When its caller was given all that had come; none while the caller waits for more.
    idle_since: Option<Nanos>,
    /// How long the caller has left what had come unread: no time of the upstream's.
    idle: Nanos,
    place: Option<Place>,
    /// Its route's, once nothing else holds it.
    pub(super) route: Option<Place>,
    pass: Option<Pass>,
    /// Of a request whose body its caller still sends.
    upload: Option<Owes>,
    /// With what in its trailers a gRPC answer has failed.
    grpc: Codes,
}

impl Occupied {
    pub(super) fn origin(&self) -> &Arc<Origin> {
        &self.upstream.hosts[self.host].origin
    }

    /// Its request's body comes from the caller meanwhile.
    pub(super) fn uploads(&mut self, upload: Owes) {
        self.upload = Some(upload);
    }

    /// Whether nothing can happen before the caller has sent more.
    fn waits_for_its_caller(&self) -> bool {
        self.upload.as_ref().is_some_and(Owes::more)
    }

    /// An answer with this status has begun.
    pub(super) fn answered(&mut self, status: u16) {
        self.heard = Fate::Ended(if matches!(status, 429 | 503) { End::Overloaded } else { End::Answered });
    }

    /// The caller has what has come so far, and reads it.
    pub(super) fn given(&mut self) {
        self.idle_since = Some(self.timer.now());
    }

    /// The caller asks for more of the answer.
    pub(super) fn wanted(&mut self) {
        if let Some(since) = self.idle_since.take() {
            self.idle += self.timer.now() - since;
        }
    }

    /// The answer has come to its end, or to the end of the time that there was for it.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
        for place in self.place.iter_mut().chain(&mut self.route) {
            place.ends(self.heard, self.idle);
        }
    }

    pub(super) fn succeeded(&mut self) {
        self.ended = Some(Ended::Ok);
    }

    /// The rest of a success did not come.
    pub(super) fn broke(&mut self, fault: Fault) {
        match fault {
            Fault::Upstream => self.ended = Some(Ended::Failed),
            Fault::Caller => (self.heard, self.ended) = (Fate::GivenUp(GivenUp::Unwanted), Some(Ended::Cancelled)),
        }
    }

    /// With these codes in its trailers the answer that is passed on is a failure all the same.
    pub(super) fn fails_with(&mut self, codes: Codes) {
        self.grpc = codes;
    }

    /// The trailers of an answer that is passed on.
    pub(super) fn ended_with(&mut self, trailers: &HeaderMap) {
        if let Some(failure) = grpc_failure(self.grpc, trailers) {
            self.judged(failure);
            self.upstream.counts.seen(failure);
        }
    }

    /// Its answer, if there is one, may be kept until the call's end and needs no place: the call's next attempt may
    /// wait for that.
    pub(super) fn failed(&mut self, failure: Failure) {
        self.judged(failure);
        self.complete();
        self.place = None;
        self.upstream.counts.failed(failure);
    }

    /// What a failure says of the upstream's load, and of the host's health.
    fn judged(&mut self, failure: Failure) {
        let unwell = |status| if (502..=504).contains(&status) { Ended::Failed } else { Ended::Ok };
        let (heard, ended) = match failure {
            // Nothing at all.
            _ if failure.fault() == Fault::Caller => (Fate::GivenUp(GivenUp::Unwanted), Ended::Cancelled),
            Failure::Kind(Kind::Timeout) => (Fate::GivenUp(GivenUp::Late), Ended::Failed),
            Failure::Kind(Kind::Body | Kind::Header) => (self.heard, Ended::Ok),
            Failure::Kind(_) => (Fate::Ended(End::Failed), Ended::Failed),
            Failure::Status(status) => (self.heard, unwell(status)),
            Failure::Grpc(code) => match code.as_http() {
                Some(status) => {
                    self.answered(status);
                    (self.heard, unwell(status))
                }
                None => (self.heard, Ended::Ok),
            },
        };
        (self.heard, self.ended) = (heard, Some(ended));
    }

    fn given_up(&mut self, now: Nanos) {
        let owed = self.waits_for_its_caller();
        if self.term.late_at <= now {
            self.failed(Failure::Kind(if owed { Kind::Request } else { Kind::Timeout }));
        } else {
            self.upstream.counts.cancelled();
            let blamed = self.term.blamed_at <= now && !owed;
            self.ended = Some(if blamed { Ended::Failed } else { Ended::Cancelled });
        }
    }
}

impl Occupied {
    /// What it says of its upstream.
    fn told(&self) -> Told {
        match (self.heard, self.ended) {
            (Fate::Ended(End::Overloaded), _) => Told::Overloaded,
            (Fate::Ended(End::Answered), ended) => Told::Answered(ended != Some(Ended::Failed)),
            (_, Some(Ended::Failed)) => Told::Failed,
            // Its head was there, and nobody wanted the rest.
            (_, Some(Ended::Ok)) => Told::Answered(true),
            (_, Some(Ended::Cancelled) | None) => Told::GivenUp,
        }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.upstream.counts.released();
        let now = self.timer.now();
        if self.ended.is_none() {
            self.given_up(now);
        }
        if !self.is_complete {
            let waits = self.waits_for_its_caller() || self.idle_since.is_some();
            self.wanted();
            let late = self.term.deadline <= now && !waits;
            self.heard = Fate::GivenUp(if late { GivenUp::Late } else { GivenUp::Unwanted });
            self.complete();
        }
        self.upstream.guard.ended(now, self.pass.take(), self.told());
        if self.upstream.hosts.len() > 1 {
            self.upstream.choice().ended(now, self.host, self.ended.unwrap_or(Ended::Cancelled));
        }
    }
}
