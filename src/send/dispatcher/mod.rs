//! The edge of [`Dispatch`]: one event loop that claims jobs, sends what it is told to, and keeps what came of it.
//!
//! ```text
//!             claims ──► Submitted ┐                       ┌ Send ──► attempt ──► Left, Answered, Failed
//!   store ◄──┤                     ├─► Dispatch ──► actions ┤ WakeAt ─► an exact timer ──► Tick
//!             records ◄────────────┘                       └ Done, Dead, Expire, Bury ──► records
//! ```
//!
//! - Jobs are claimed a little ahead of need: one commit for many. How far ahead follows from how fast they go ([`claims`]).
//!   Jobs that name a key are claimed for that key: they fill nobody else's place.
//! - Each job is marked as sent before its first byte leaves, and not earlier ([`marks`]): after a crash no other job counts
//!   as one that may have been sent.
//! - A dead letter goes back to the store, which keeps its time and its tries over a crash, and hands it out again.
//! - Where several senders share keys, leases of keys come and go ([`owning`]): nothing is sent by a key whose lease is over.
//! - What happened is told to the listener, then recorded, in groups: one commit while the next group gathers
//!   ([`records`]).

mod attempt;
mod claims;
mod crash;
mod ending;
mod hosts;
mod marks;
mod outcome;
mod owning;
mod records;
mod stranded;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::AbortHandle;

use self::attempt::Sending;
pub use self::hosts::HostProgress;
use self::hosts::{Hosts, Lanes};
use self::marks::Mark;
use super::job::{Entry, UnixMs};
use super::news::{Listener, News, Try};
use super::note::{Moment, Note};
use super::options::Options;
use super::sender::{SendFailed, Until, lock, wall_ms};
use super::store::{Change, Lease, Step, Store};
use crate::decide::Nanos;
use crate::decide::dispatch::{Action, Asked, Dispatch, Event, HostId, JobId, Why};
use crate::decide::marking::Ahead;
use crate::decide::ownership::Ownership;
use crate::decide::window::Windows;
use crate::http::client::{Client, Options as ClientOptions, Origin};
use crate::machine::clock::Clock;
use crate::machine::timer::Timer;

/// Where a sender is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Jobs in its hands that are not sent yet.
    pub ready: usize,
    /// Requests without an answer.
    pub out: usize,
    /// Keys that can be used.
    pub usable_keys: usize,
    /// The bound on the way in, if there is one.
    pub way_in: Option<Nanos>,
    /// By key: how many requests per second its limits let through at the hosts that have something to do, as far as they
    /// are believed; 0 if it is used no more.
    pub allowed_per_s: Vec<f64>,
    /// The hosts that answer nobody.
    pub hosts_down: Vec<HostProgress>,
}

/// A job in hand.
#[derive(Debug)]
struct Held {
    lease: Lease,
    entry: Entry,
    /// The one key that may send it.
    key: Option<u32>,
    tries: u32,
    /// How often it was sent since it was taken in hand.
    sent: u32,
    /// What is out.
    flying: Option<Flying>,
    /// What was out last.
    last: Option<Last>,
    /// Whether the store has it as sent.
    mark: Mark,
}

#[derive(Debug)]
struct Flying {
    task: AbortHandle,
    key: usize,
    attempt: u32,
    at: Nanos,
    sent: UnixMs,
    due: Nanos,
    left: Option<Nanos>,
}

#[derive(Debug)]
struct Last {
    tried: Try,
    headers: Vec<(String, String)>,
    body: Bytes,
}

#[derive(Debug)]
struct Hand {
    dispatch: Dispatch,
    actions: Vec<Action>,
    jobs: HashMap<JobId, Held>,
    /// When the dispatch wants a tick.
    wake_at: Nanos,
    changes: Vec<Change>,
    news: Vec<News>,
    /// Jobs that expired and go on: with which end of their time.
    renewed: Vec<(JobId, UnixMs)>,
    /// So often a job was given more time.
    renewals: HashMap<JobId, u32>,
    /// By key: the mark that is durable, and the one that is to be.
    marks: Vec<(u64, u64)>,
    /// What waits for a mark to be durable, its key's or its own.
    unmarked: Vec<Sending>,
    /// How many jobs are marked before they are sent.
    ahead: Ahead,
    hosts: Hosts,
    /// Where there are jobs in the store: for which host, and which key if they name one.
    lanes: Lanes,
    /// There are jobs in the store for keys that cannot be used.
    has_stranded: bool,
    /// Keys that are used no more.
    lost: Vec<u32>,
    /// Which keys are ours, if other senders share them.
    owned: Option<Ownership>,
    failed: Option<SendFailed>,
    /// There is no room for what is to be told.
    untold: bool,
    origins: HashMap<(bool, String, u16), Arc<Origin>>,
}

struct Edge {
    store: Arc<dyn Store>,
    options: Options,
    /// Keys by the names that jobs may give them.
    names: HashMap<String, u32>,
    client: Client,
    timer: Timer,
    hand: RefCell<Hand>,
    listener: RefCell<Box<dyn Listener>>,
    progress: Arc<Mutex<Progress>>,
    until: watch::Receiver<Until>,
    /// There is another time to wake at.
    rearmed: Notify,
    /// There is something to tell.
    talk: Notify,
    /// There is something to record.
    happened: Notify,
    /// There may be room for more jobs.
    hungry: Notify,
    /// A job in the store is due at another time than when it was asked last.
    put_off: Notify,
    /// Something has been recorded, or ended.
    settled: Notify,
    /// Something is to be asked of the store about keys.
    owning: Notify,
    /// Held while the store is asked for jobs, and while it records.
    claiming: tokio::sync::Mutex<()>,
    recording: tokio::sync::Mutex<()>,
}

/// Runs until it is told to end, or has to.
pub(super) async fn run(
    store: Arc<dyn Store>,
    options: Options,
    listener: Box<dyn Listener>,
    until: watch::Receiver<Until>,
    progress: Arc<Mutex<Progress>>,
    says: oneshot::Sender<Result<(), SendFailed>>,
) -> Result<(), SendFailed> {
    let edge = match Edge::new(store, options, listener, until, progress) {
        Ok((edge, ring)) => {
            tokio::task::spawn_local(ring);
            edge
        }
        Err(why) => {
            let _ = says.send(Err(why));
            return Ok(());
        }
    };
    let _ = says.send(Ok(()));
    let edge = Rc::new(edge);
    let ticks = tokio::task::spawn_local(Rc::clone(&edge).tick());
    let sweeps = tokio::task::spawn_local(Rc::clone(&edge).sweep());
    let claims = tokio::task::spawn_local(Rc::clone(&edge).claim());
    let reports = tokio::task::spawn_local(Rc::clone(&edge).report());
    let records = tokio::task::spawn_local(Rc::clone(&edge).record());
    let owning = tokio::task::spawn_local(Rc::clone(&edge).own());
    edge.end().await;
    // A ticket that is dropped takes its question back: what is asked of the store is waited for.
    let claiming = edge.claiming.lock().await;
    [ticks, sweeps, claims, owning].iter().for_each(tokio::task::JoinHandle::abort);
    drop(claiming);
    let ended = edge.leave().await;
    reports.abort();
    records.abort();
    ended
}

/// The dispatch's clock begins so long before it: what an earlier sender did has a time by it.
const BEFORE: Nanos = Nanos::from_secs(48 * 3600);
/// What the machines at both ends may add to a way in that is given: to wake, to accept, to read.
const MACHINES: Nanos = Nanos::from_millis(2);

impl Edge {
    fn new(
        store: Arc<dyn Store>,
        mut options: Options,
        listener: Box<dyn Listener>,
        until: watch::Receiver<Until>,
        progress: Arc<Mutex<Progress>>,
    ) -> Result<(Self, impl Future<Output = ()>), SendFailed> {
        let clock = Clock::started(BEFORE);
        let system = |error: std::io::Error| SendFailed::System(format!("cannot begin to send: {error}"));
        let (timer, ring) = Timer::new(clock).map_err(system)?;
        let most_idle = if options.fresh { 0 } else { options.rules.in_flight };
        let client = Client::new(timer.clone(), ClientOptions { most_idle, ..ClientOptions::default() });
        let (now, moment) = (clock.now(), Moment::now());
        let wall = moment.wall;
        options.rules.epoch = Nanos(u64::try_from(wall.0).unwrap_or(0).saturating_mul(Nanos::MILLI.0)) - now;
        options.rules.key.way_in = options.rules.key.way_in.map(|bound| bound + MACHINES);
        let count = u32::try_from(options.keys.len()).unwrap_or(u32::MAX);
        let mut dispatch = Dispatch::new(options.rules.clone(), count, options.seed);
        let owned = store.shared_keys().map(|shared| {
            (0..count).for_each(|key| dispatch.hold(key, false));
            Ownership::new(shared.me(), options.keys.iter().map(|key| key.mark().to_owned()), shared.lease())
        });
        // Of keys that others share it is told with the lease what they have sent.
        let known = if owned.is_some() { Vec::new() } else { store.keys()? };
        let notes: HashMap<String, String> = known.into_iter().map(|note| (note.key, note.note)).collect();
        let mut marks = Vec::with_capacity(options.keys.len());
        let (mut pasts, mut by_host) = (Vec::with_capacity(options.keys.len()), Vec::new());
        for (number, key) in (0..).zip(&options.keys) {
            // It may have had another name, or none.
            let texts = [key.mark(), key.name()].into_iter().filter_map(|name| notes.get(name));
            let note = texts.filter_map(|text| Note::read(text)).max_by_key(Note::written);
            let high_water = note.as_ref().map_or(0, |note| note.high_water);
            let mut past = None;
            if let Some(note) = &note {
                let (history, since) = match note.history(&moment) {
                    Some(known) => known,
                    None => (crash::history(&*store, key, options.memory(), wall)?, Nanos::ZERO),
                };
                dispatch.resume(number, high_water);
                by_host.extend(note.hosts().map(|(host, history)| (host, number, history, since)));
                past = Some((history, now - since));
            }
            pasts.push(past);
            marks.push((high_water, high_water));
        }
        let hand = Hand {
            dispatch,
            actions: Vec::new(),
            jobs: HashMap::new(),
            wake_at: Nanos::NEVER,
            changes: Vec::new(),
            news: Vec::new(),
            renewed: Vec::new(),
            renewals: HashMap::new(),
            marks,
            unmarked: Vec::new(),
            ahead: Ahead::default(),
            hosts: Hosts::new(pasts),
            lanes: Lanes::default(),
            has_stranded: false,
            lost: Vec::new(),
            owned,
            failed: None,
            untold: false,
            origins: HashMap::new(),
        };
        let marks_of = (0..).zip(&options.keys).map(|(number, key)| (key.mark().to_owned(), number));
        let names_of = (0..).zip(&options.keys).map(|(number, key)| (key.name().to_owned(), number));
        let names = marks_of.chain(names_of).collect();
        let edge = Self {
            store,
            options,
            names,
            client,
            timer,
            hand: RefCell::new(hand),
            listener: RefCell::new(listener),
            progress,
            until,
            rearmed: Notify::new(),
            talk: Notify::new(),
            happened: Notify::new(),
            hungry: Notify::new(),
            put_off: Notify::new(),
            settled: Notify::new(),
            owning: Notify::new(),
            claiming: tokio::sync::Mutex::default(),
            recording: tokio::sync::Mutex::default(),
        };
        {
            let mut hand = edge.hand.borrow_mut();
            for (name, key, history, since) in by_host {
                let known = hand.hosts.number(&name);
                let host = known.unwrap_or_else(|| edge.add_host(&mut hand, &name));
                hand.dispatch.resume_lane(now, host, key, &history, since);
            }
        }
        Ok((edge, ring))
    }

    /// Something happened, and is acted upon. What is sent for it could have been sent at `due`.
    fn tell(self: &Rc<Self>, due: Nanos, event: Event<'_>) {
        let mut hand = self.hand.borrow_mut();
        let mut actions = std::mem::take(&mut hand.actions);
        self.see_to_leases(&mut hand, &mut actions);
        hand.dispatch.on(self.timer.now(), event, &mut actions);
        while !actions.is_empty() {
            let mut dead = Vec::new();
            for action in &actions {
                self.act(&mut hand, due, *action, &mut dead);
            }
            let down: Vec<HostId> = actions.iter().filter_map(Action::down).collect();
            actions.clear();
            for (job, until, why) in dead {
                self.put_away(&mut hand, job, until, why, &mut actions);
            }
            for host in down {
                self.host_down(&mut hand, host, &mut actions);
            }
            self.give_back_stranded(&mut hand, &mut actions);
        }
        hand.actions = actions;
        self.see_to_leaving(&mut hand);
        if self.is_hungry(&hand) {
            self.hungry.notify_one();
        }
    }

    fn act(self: &Rc<Self>, hand: &mut Hand, due: Nanos, action: Action, dead: &mut Vec<(JobId, Nanos, Why)>) {
        match action {
            Action::Keep { key, high_water } => self.keep(hand, key, high_water),
            Action::Send { job, key, attempt, nonce, .. } => {
                self.send(hand, Sending { job, key: key as usize, attempt, nonce, due });
            }
            Action::Cancel { job, .. } => self.cancel(hand, job, "no answer in time"),
            Action::Done(job) => self.end_job(hand, job, Step::Done, "delivered".into()),
            Action::Dead { job, until, why } => dead.push((job, until, why)),
            Action::Requeue(job) => dead.retain(|(other, ..)| *other != job),
            // The store keeps how long jobs live.
            Action::Renew { .. } => {}
            Action::Expire { job, why } => {
                let reason = match why {
                    Why::Late => "its time was over before it could be sent".to_owned(),
                    other => format!("its time was over after: {}", attempt::words(other)),
                };
                self.end_job(hand, job, Step::Expired, reason);
            }
            Action::Bury { job, why } => self.end_job(hand, job, Step::Graveyard, attempt::words(why)),
            Action::Unusable { key, why } => {
                let why = attempt::words(why);
                hand.lost.push(key);
                if let Some(owned) = &mut hand.owned {
                    owned.refused(key as usize);
                }
                if hand.dispatch.usable_keys() == 0 {
                    hand.failed = Some(SendFailed::NoKeys(why.clone()));
                    self.settled.notify_one();
                }
                hand.news.push(News::KeyLost(key as usize, why));
                self.talk.notify_one();
            }
            Action::Down(_) | Action::Up(_) => self.hungry.notify_one(),
            Action::WakeAt(at) => {
                hand.wake_at = at;
                self.rearmed.notify_one();
            }
        }
    }

    /// A new mark for a key. It is set higher than it has to be, so that nobody has to wait for the next one.
    fn keep(&self, hand: &mut Hand, key: u32, high_water: u64) {
        if let Some((_, wanted)) = hand.marks.get_mut(key as usize)
            && high_water + MARK_MARGIN > *wanted
        {
            *wanted = high_water + MARK_AHEAD;
            self.happened.notify_one();
        }
    }

    /// Ticks when the dispatch wants it.
    async fn tick(self: Rc<Self>) {
        loop {
            let at = self.hand.borrow().wake_at;
            if at == Nanos::NEVER {
                self.rearmed.notified().await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.rearmed.notified() => {}
                () = self.timer.sleep_until(at) => {
                    self.hand.borrow_mut().wake_at = Nanos::NEVER;
                    self.tell(at, Event::Tick);
                }
            }
        }
    }

    /// Closes connections that nobody needs any more.
    async fn sweep(self: Rc<Self>) {
        let every = tokio::time::Duration::from_secs(5);
        loop {
            tokio::time::sleep(every).await;
            self.client.sweep(self.timer.now());
        }
    }

    fn show(&self) {
        let hand = self.hand.borrow();
        let (ready, _, out) = hand.dispatch.sizes();
        let keys = 0..u32::try_from(self.options.keys.len()).unwrap_or(u32::MAX);
        *lock(&self.progress) = Progress {
            ready,
            out,
            usable_keys: hand.dispatch.usable_keys(),
            way_in: hand.dispatch.way_in(),
            allowed_per_s: keys.map(|key| self.allowed_per_s(&hand, key)).collect(),
            hosts_down: Self::hosts_down(&hand),
        };
    }

    /// How many requests per second a key may send to all hosts that have something to do, or that had.
    fn allowed_per_s(&self, hand: &Hand, key: u32) -> f64 {
        let hosts = || hand.hosts.names().map(|(host, _)| host).take(MOST_SUMMED);
        let is_busy = |host: &HostId| {
            hand.dispatch.standing(*host).is_some_and(|host| host.queued + host.out > 0 && host.down_for.is_none())
        };
        let allowed = |host: HostId| hand.dispatch.allowed_per_s(host, key);
        if hosts().any(|host| is_busy(&host)) {
            hosts().filter(is_busy).map(allowed).sum()
        } else {
            hosts().map(allowed).reduce(f64::max).unwrap_or_else(|| Windows::new(&self.options.rules.key).rate_per_s())
        }
    }

    /// What is asked of the dispatch for a job.
    fn asked(&self, entry: &Entry, host: HostId, key: Option<u32>) -> Asked {
        let wall = wall_ms();
        let expires = entry.job.expires.map_or(Nanos::NEVER, |at| {
            let left_ms = u64::try_from(at.0.saturating_sub(wall.0)).unwrap_or(0);
            self.timer.now() + Nanos(left_ms.saturating_mul(Nanos::MILLI.0))
        });
        Asked {
            host,
            expires,
            weight: u64::from(entry.job.weight.max(1)),
            priority: entry.job.priority,
            tries: entry.status.tries,
            maybe_sent: entry.status.maybe_sent,
            key,
        }
    }
}

/// What is allowed is summed up over so many hosts.
const MOST_SUMMED: usize = 256;
/// A mark is set so far above what is asked for, in nonces: milliseconds, mostly.
const MARK_AHEAD: u64 = 10_000;
/// And anew when so little of it is left.
const MARK_MARGIN: u64 = 3_000;
