//! Runtime of [`Dispatch`]: an event loop that claims jobs, executes the dispatch's actions, and records outcomes.
//!
//! ```text
//!             claims ──► Submitted ┐                        ┌ Send ──► attempt ──► Departed, Responded, Failed
//!   store ◄──┤                     ├─► Dispatch ──► actions ┤ WakeAt ──► exact timer ──► Tick
//!             records ◄────────────┘                        └ Done, ScheduleRetry, Expire, DeadLetter ──► records
//! ```
//!
//! - Jobs are claimed a little ahead of need, many per commit; how far depends on the send rate ([`claims`]). Pinned
//!   jobs are claimed for their key, and so take no slots of other keys.
//! - Each job is marked as sent just before its first byte leaves ([`marks`]): after a crash no other job counts as
//!   maybe sent.
//! - A retrying job goes back to the store, which has its time and attempts across crashes, and is claimed again.
//! - Where several senders share keys, leases of keys come and go ([`key_leases`]): nothing is sent under an expired
//!   lease.
//! - Events go to the listener, and are then recorded, in groups: one commit while the next group collects
//!   ([`records`]).

mod attempt;
mod claims;
mod crash;
mod hosts;
mod key_leases;
mod leased_job;
mod marks;
mod nonces;
mod outcome;
mod progress;
mod records;
mod shutdown;
mod unsendable;

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
use super::events::{Listener, SenderEvent};
use super::job::{JobEntry, UnixMs};
use super::key_state::{ClockSample, KeyState};
use super::options::Options;
use super::sender::{SenderError, StopMode, wall_ms};
use super::store::{JobChange, JobStep, Store};
use weir_decide::Nanos;
use weir_decide::delivery::dispatch::{Dispatch, DispatchAction, DispatchFailure, Event, HostId, JobId, JobSubmission};
use weir_decide::delivery::key_lease::KeyLeases;
use weir_decide::delivery::mark_ahead::MarkAhead;
use weir_http::client::{Client, Options as ClientOptions, Origin};
use weir_machine::clock::Clock;
use weir_machine::timer::Timer;

#[derive(Debug)]
struct SenderState {
    dispatch: Dispatch,
    actions: Vec<DispatchAction>,
    jobs: HashMap<JobId, LeasedJob>,
    /// Time at which the dispatch wants a tick.
    wake_at: Nanos,
    changes: Vec<JobChange>,
    events: Vec<SenderEvent>,
    /// Expired jobs that continue, with the new ends of their TTLs.
    extended_jobs: Vec<(JobId, UnixMs)>,
    /// Number of TTL extensions by job.
    extension_counts: HashMap<JobId, u32>,
    /// By key: the durable mark of nonces, and the wanted one.
    high_water_marks: Vec<(u64, u64)>,
    /// Attempts that wait for a durable mark, of the key or the job.
    awaiting_mark: Vec<QueuedAttempt>,
    /// Number of jobs to mark ahead.
    mark_ahead: MarkAhead,
    hosts: SenderHosts,
    /// Lanes of the store with jobs.
    lanes: StoreLanes,
    /// Whether the store has jobs for unusable keys.
    has_unsendable: bool,
    /// Disabled keys.
    unusable_keys: Vec<u32>,
    /// Leases of keys, if other senders share them.
    key_leases: Option<KeyLeases>,
    failure: Option<SenderError>,
    /// The listener has no space for events.
    listener_full: bool,
    origins: HashMap<(bool, String, u16), Arc<Origin>>,
}

struct SenderRuntime {
    store: Arc<dyn Store>,
    options: Options,
    /// Keys by the names that jobs may use.
    key_numbers: HashMap<String, u32>,
    client: Client,
    timer: Timer,
    state: RefCell<SenderState>,
    listener: RefCell<Box<dyn Listener>>,
    progress: Arc<Mutex<SenderProgress>>,
    stop_mode: watch::Receiver<StopMode>,
    /// `wake_at` has changed.
    wake_time_changed: Notify,
    /// Events are pending for the listener.
    events_pending: Notify,
    /// Changes are pending for the store.
    changes_pending: Notify,
    /// There may be room for more jobs.
    jobs_wanted: Notify,
    /// The store has a job that is due earlier than known.
    retry_scheduled: Notify,
    /// Something was recorded or has ended.
    end_check_due: Notify,
    /// The leases of keys need a call to the store.
    key_leases_changed: Notify,
    /// Locked during a claim, and during a record.
    claim_lock: tokio::sync::Mutex<()>,
    record_lock: tokio::sync::Mutex<()>,
}

/// Runs until a stop mode is reached, or an error.
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
    // Waits for a claim in progress: aborting would withdraw the call.
    let claiming = edge.claim_lock.lock().await;
    [ticks, sweeps, claims, owning].iter().for_each(tokio::task::JoinHandle::abort);
    drop(claiming);
    let ended = edge.shut_down().await;
    reports.abort();
    records.abort();
    ended
}

/// Offset of the dispatch's clock, so that sends of earlier senders have times on it.
const CLOCK_HEAD_START: Nanos = Nanos::from_secs(48 * 3600);
/// Allowance added to a given delay bound, for wake-up, accept and read on both machines.
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
        // The state of a shared key comes with its lease.
        let known = if owned.is_some() { Vec::new() } else { store.key_states()? };
        let notes: HashMap<String, String> = known.into_iter().map(|note| (note.key, note.state)).collect();
        let mut marks = Vec::with_capacity(options.keys.len());
        let (mut pasts, mut by_host) = (Vec::with_capacity(options.keys.len()), Vec::new());
        for (number, key) in (0..).zip(&options.keys) {
            // The key may have had another name, or none.
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

    /// Handles an event and executes the actions that follow. `due` is the time at which these sends were possible.
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
            // The store has the TTLs.
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

    /// Ticks at the dispatch's times.
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

    /// Closes idle connections.
    async fn sweep(self: Rc<Self>) {
        let every = tokio::time::Duration::from_secs(5);
        loop {
            tokio::time::sleep(every).await;
            self.client.sweep(self.timer.now());
        }
    }

    /// Submission of a job to the dispatch.
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
