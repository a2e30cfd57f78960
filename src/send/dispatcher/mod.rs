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
mod leased_job;
mod marks;
mod nonces;
mod outcome;
mod owning;
mod progress;
mod records;
mod stranded;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, oneshot, watch};

use self::attempt::QueuedAttempt;
pub use self::hosts::HostProgress;
use self::hosts::{SenderHosts, StoreLanes};
use self::leased_job::{InFlightAttempt, LastAttempt, LeasedJob};
pub use self::progress::SenderProgress;
use super::job::{JobEntry, UnixMs};
use super::news::{Listener, SenderEvent};
use super::note::{ClockSample, KeyState};
use super::options::Options;
use super::sender::{SenderError, StopMode, wall_ms};
use super::store::{JobChange, JobStep, Store};
use crate::decide::Nanos;
use crate::decide::dispatch::{Dispatch, DispatchAction, DispatchFailure, Event, HostId, JobId, JobSubmission};
use crate::decide::marking::MarkAhead;
use crate::decide::ownership::KeyLeases;
use crate::http::client::{Client, Options as ClientOptions, Origin};
use crate::machine::clock::Clock;
use crate::machine::timer::Timer;

#[derive(Debug)]
struct SenderState {
    dispatch: Dispatch,
    actions: Vec<DispatchAction>,
    jobs: HashMap<JobId, LeasedJob>,
    /// When the dispatch wants a tick.
    wake_at: Nanos,
    changes: Vec<JobChange>,
    events: Vec<SenderEvent>,
    /// Jobs that expired and go on: with which end of their time.
    extended_jobs: Vec<(JobId, UnixMs)>,
    /// So often a job was given more time.
    extension_counts: HashMap<JobId, u32>,
    /// By key: the mark that is durable, and the one that is to be.
    high_water_marks: Vec<(u64, u64)>,
    /// What waits for a mark to be durable, its key's or its own.
    awaiting_mark: Vec<QueuedAttempt>,
    /// How many jobs are marked before they are sent.
    mark_ahead: MarkAhead,
    hosts: SenderHosts,
    /// Where there are jobs in the store: for which host, and which key if they name one.
    lanes: StoreLanes,
    /// There are jobs in the store for keys that cannot be used.
    has_unsendable: bool,
    /// Keys that are used no more.
    unusable_keys: Vec<u32>,
    /// Which keys are ours, if other senders share them.
    key_leases: Option<KeyLeases>,
    failure: Option<SenderError>,
    /// There is no room for what is to be told.
    listener_full: bool,
    origins: HashMap<(bool, String, u16), Arc<Origin>>,
}

struct SenderRuntime {
    store: Arc<dyn Store>,
    options: Options,
    /// Keys by the names that jobs may give them.
    key_numbers: HashMap<String, u32>,
    client: Client,
    timer: Timer,
    state: RefCell<SenderState>,
    listener: RefCell<Box<dyn Listener>>,
    progress: Arc<Mutex<SenderProgress>>,
    stop_mode: watch::Receiver<StopMode>,
    /// There is another time to wake at.
    wake_time_changed: Notify,
    /// There is something to tell.
    events_pending: Notify,
    /// There is something to record.
    changes_pending: Notify,
    /// There may be room for more jobs.
    jobs_wanted: Notify,
    /// A job in the store is due at another time than when it was asked last.
    retry_scheduled: Notify,
    /// Something has been recorded, or ended.
    end_check_due: Notify,
    /// Something is to be asked of the store about keys.
    key_leases_changed: Notify,
    /// Held while the store is asked for jobs, and while it records.
    claim_lock: tokio::sync::Mutex<()>,
    record_lock: tokio::sync::Mutex<()>,
}

/// Runs until it is told to end, or has to.
pub(super) async fn run(
    store: Arc<dyn Store>,
    options: Options,
    listener: Box<dyn Listener>,
    until: watch::Receiver<StopMode>,
    progress: Arc<Mutex<SenderProgress>>,
    says: oneshot::Sender<Result<(), SenderError>>,
) -> Result<(), SenderError> {
    let edge = match SenderRuntime::new(store, options, listener, until, progress) {
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
    let owning = tokio::task::spawn_local(Rc::clone(&edge).manage_key_leases());
    edge.wait_for_end().await;
    // A ticket that is dropped takes its question back: what is asked of the store is waited for.
    let claiming = edge.claim_lock.lock().await;
    [ticks, sweeps, claims, owning].iter().for_each(tokio::task::JoinHandle::abort);
    drop(claiming);
    let ended = edge.shut_down().await;
    reports.abort();
    records.abort();
    ended
}

/// The dispatch's clock begins so long before it: what an earlier sender did has a time by it.
const CLOCK_HEAD_START: Nanos = Nanos::from_secs(48 * 3600);
/// What the machines at both ends may add to a way in that is given: to wake, to accept, to read.
const MACHINE_DELAY: Nanos = Nanos::from_millis(2);

impl SenderRuntime {
    fn new(
        store: Arc<dyn Store>,
        mut options: Options,
        listener: Box<dyn Listener>,
        until: watch::Receiver<StopMode>,
        progress: Arc<Mutex<SenderProgress>>,
    ) -> Result<(Self, impl Future<Output = ()>), SenderError> {
        let clock = Clock::started_ago(CLOCK_HEAD_START);
        let system = |error: std::io::Error| SenderError::System(format!("cannot start the sender: {error}"));
        let (timer, ring) = Timer::new(clock).map_err(system)?;
        let most_idle = if options.keepalive { options.rules.max_in_flight } else { 0 };
        let client = Client::new(timer.clone(), ClientOptions { max_idle: most_idle, ..ClientOptions::default() });
        let (now, moment) = (clock.now(), ClockSample::now());
        let wall = moment.wall;
        options.rules.epoch = Nanos(u64::try_from(wall.0).unwrap_or(0).saturating_mul(Nanos::MILLI.0)) - now;
        options.rules.key.delay_bound = options.rules.key.delay_bound.map(|bound| bound + MACHINE_DELAY);
        let count = u32::try_from(options.keys.len()).unwrap_or(u32::MAX);
        let mut dispatch = Dispatch::new(options.rules.clone(), count, options.seed);
        let owned = store.shared_keys().map(|shared| {
            (0..count).for_each(|key| dispatch.set_leased(key, false));
            KeyLeases::new(
                shared.sender_name(),
                options.keys.iter().map(|key| key.default_name().to_owned()),
                shared.lease(),
            )
        });
        // Of keys that others share it is told with the lease what they have sent.
        let known = if owned.is_some() { Vec::new() } else { store.key_states()? };
        let notes: HashMap<String, String> = known.into_iter().map(|note| (note.key, note.state)).collect();
        let mut marks = Vec::with_capacity(options.keys.len());
        let (mut pasts, mut by_host) = (Vec::with_capacity(options.keys.len()), Vec::new());
        for (number, key) in (0..).zip(&options.keys) {
            // It may have had another name, or none.
            let texts = [key.default_name(), key.name()].into_iter().filter_map(|name| notes.get(name));
            let note = texts.filter_map(|text| KeyState::read(text)).max_by_key(KeyState::written_at_ms);
            let high_water = note.as_ref().map_or(0, |note| note.high_water);
            let mut past = None;
            if let Some(note) = &note {
                let (history, since) = match note.history_and_age(&moment) {
                    Some(known) => known,
                    None => (crash::history_after_crash(&*store, key, options.history_span(), wall)?, Nanos::ZERO),
                };
                dispatch.resume(number, high_water);
                by_host.extend(note.hosts().map(|(host, history)| (host, number, history, since)));
                past = Some((history, now - since));
            }
            pasts.push(past);
            marks.push((high_water, high_water));
        }
        let hand = SenderState {
            dispatch,
            actions: Vec::new(),
            jobs: HashMap::new(),
            wake_at: Nanos::NEVER,
            changes: Vec::new(),
            events: Vec::new(),
            extended_jobs: Vec::new(),
            extension_counts: HashMap::new(),
            high_water_marks: marks,
            awaiting_mark: Vec::new(),
            mark_ahead: MarkAhead::default(),
            hosts: SenderHosts::new(pasts),
            lanes: StoreLanes::default(),
            has_unsendable: false,
            unusable_keys: Vec::new(),
            key_leases: owned,
            failure: None,
            listener_full: false,
            origins: HashMap::new(),
        };
        let marks_of = (0..).zip(&options.keys).map(|(number, key)| (key.default_name().to_owned(), number));
        let names_of = (0..).zip(&options.keys).map(|(number, key)| (key.name().to_owned(), number));
        let names = marks_of.chain(names_of).collect();
        let edge = Self {
            store,
            options,
            key_numbers: names,
            client,
            timer,
            state: RefCell::new(hand),
            listener: RefCell::new(listener),
            progress,
            stop_mode: until,
            wake_time_changed: Notify::new(),
            events_pending: Notify::new(),
            changes_pending: Notify::new(),
            jobs_wanted: Notify::new(),
            retry_scheduled: Notify::new(),
            end_check_due: Notify::new(),
            key_leases_changed: Notify::new(),
            claim_lock: tokio::sync::Mutex::default(),
            record_lock: tokio::sync::Mutex::default(),
        };
        {
            let mut hand = edge.state.borrow_mut();
            for (name, key, history, since) in by_host {
                let known = hand.hosts.number(&name);
                let host = known.unwrap_or_else(|| edge.add_host(&mut hand, &name));
                hand.dispatch.resume_lane(now, host, key, &history, since);
            }
        }
        Ok((edge, ring))
    }

    /// Something happened, and is acted upon. What is sent for it could have been sent at `due`.
    fn handle_event(self: &Rc<Self>, due: Nanos, event: Event<'_>) {
        let mut hand = self.state.borrow_mut();
        let mut actions = std::mem::take(&mut hand.actions);
        self.check_leases(&mut hand, &mut actions);
        hand.dispatch.on(self.timer.now(), event, &mut actions);
        while !actions.is_empty() {
            let mut dead = Vec::new();
            for action in &actions {
                self.apply_action(&mut hand, due, *action, &mut dead);
            }
            let down: Vec<HostId> = actions.iter().filter_map(DispatchAction::host_down).collect();
            actions.clear();
            for (job, until, why) in dead {
                self.schedule_retry(&mut hand, job, until, why, &mut actions);
            }
            for host in down {
                self.host_down(&mut hand, host, &mut actions);
            }
            self.release_unsendable(&mut hand, &mut actions);
        }
        hand.actions = actions;
        self.release_idle_keys(&mut hand);
        if self.wants_jobs(&hand) {
            self.jobs_wanted.notify_one();
        }
    }

    fn apply_action(
        self: &Rc<Self>,
        hand: &mut SenderState,
        due: Nanos,
        action: DispatchAction,
        dead: &mut Vec<(JobId, Nanos, DispatchFailure)>,
    ) {
        match action {
            DispatchAction::SaveHighWater { key, high_water } => self.raise_mark(hand, key, high_water),
            DispatchAction::Send { job, key, attempt, nonce, .. } => {
                self.send(hand, QueuedAttempt { job, key: key as usize, attempt, nonce, due });
            }
            DispatchAction::Cancel { job, .. } => self.cancel(hand, job, "timed out"),
            DispatchAction::Done(job) => self.end_job(hand, job, JobStep::Done, "delivered".into()),
            DispatchAction::ScheduleRetry { job, until, reason: why } => dead.push((job, until, why)),
            DispatchAction::Requeue(job) => dead.retain(|(other, ..)| *other != job),
            // The store keeps how long jobs live.
            DispatchAction::ExtendTtl { .. } => {}
            DispatchAction::Expire { job, reason: why } => {
                let reason = match why {
                    DispatchFailure::Expired => "expired before it could be sent".to_owned(),
                    other => format!("expired after: {}", attempt::reason_text(other)),
                };
                self.end_job(hand, job, JobStep::Expired, reason);
            }
            DispatchAction::DeadLetter { job, reason: why } => {
                self.end_job(hand, job, JobStep::DeadLettered, attempt::reason_text(why));
            }
            DispatchAction::KeyUnusable { key, reason: why } => {
                let why = attempt::reason_text(why);
                hand.unusable_keys.push(key);
                if let Some(owned) = &mut hand.key_leases {
                    owned.key_rejected(key as usize);
                }
                if hand.dispatch.usable_keys() == 0 {
                    hand.failure = Some(SenderError::NoKeys(why.clone()));
                    self.end_check_due.notify_one();
                }
                hand.events.push(SenderEvent::KeyUnusable(key as usize, why));
                self.events_pending.notify_one();
            }
            DispatchAction::HostDown(_) | DispatchAction::HostUp(_) => self.jobs_wanted.notify_one(),
            DispatchAction::WakeAt(at) => {
                hand.wake_at = at;
                self.wake_time_changed.notify_one();
            }
        }
    }

    /// Ticks when the dispatch wants it.
    async fn tick(self: Rc<Self>) {
        loop {
            let at = self.state.borrow().wake_at;
            if at == Nanos::NEVER {
                self.wake_time_changed.notified().await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.wake_time_changed.notified() => {}
                () = self.timer.sleep_until(at) => {
                    self.state.borrow_mut().wake_at = Nanos::NEVER;
                    self.handle_event(at, Event::Tick);
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

    /// What is asked of the dispatch for a job.
    fn dispatch_request(&self, entry: &JobEntry, host: HostId, key: Option<u32>) -> JobSubmission {
        let wall = wall_ms();
        let expires = entry.job.expires_at.map_or(Nanos::NEVER, |at| {
            let left_ms = u64::try_from(at.0.saturating_sub(wall.0)).unwrap_or(0);
            self.timer.now() + Nanos(left_ms.saturating_mul(Nanos::MILLI.0))
        });
        JobSubmission {
            host,
            expires_at: expires,
            weight: u64::from(entry.job.weight.max(1)),
            priority: entry.job.priority,
            attempts_used: entry.status.attempts,
            maybe_sent: entry.status.maybe_sent,
            key,
        }
    }
}
