//! Owner of attempts: leased jobs, the dispatch that decides about them, and their requests in flight.

mod attempt;
mod claimed;
mod end_condition;
mod held_keys;
mod hosts;
mod key_changes;
mod leased_job;
mod marks;
mod outcomes;
mod pending_claim;
mod progress;
mod ready_jobs;
mod shutdown;

use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use http::header::DATE;
use rustc_hash::FxHashMap;
use tokio::sync::mpsc::UnboundedReceiver;

use self::attempt::{AttemptLauncher, classify, header_texts, reason_text, request_id};
use self::end_condition::EndCondition;
use self::held_keys::HeldKeys;
pub use self::hosts::HostProgress;
use self::hosts::SenderHosts;
use self::leased_job::{FinishedResponse, LeasedJob};
use self::marks::{MissingMark, SendMarks};
use self::outcomes::Outcomes;
use self::pending_claim::PendingClaim;
pub use self::progress::SenderProgress;
use self::ready_jobs::ReadyJobs;
use super::channels::{AttemptEvent, RecordEvent, ReportEvent};
use super::context::SenderContext;
use super::queued_attempt::{AttemptResponse, QueuedAttempt};
use crate::sender_error::SenderError;
use crate::store::JobStep;
use crate::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_delivery::dispatch::{
    Dispatch, DispatchAction, DispatchFailure, Event, HostId, JobId, LimitTimes, ResponseClass,
};
use weir_delivery::limit_headers::RateLimitHeaders;
use weir_machine::clock;
use weir_net::client::{Client, SendError};
use weir_retry::retry_after::service_clock;

/// Maximum events handled in one turn before the timers are checked.
const MAX_EVENTS_PER_TURN: usize = 16;
/// Waits shorter than this are not written to the store.
const MIN_STORED_WAIT: Nanos = Nanos::from_millis(100);

/// Owner of attempts.
pub(super) struct AttemptLoop {
    context: Rc<SenderContext>,
    inbox: UnboundedReceiver<AttemptEvent>,
    /// Events that were taken out of the inbox ahead of their turn.
    backlog: VecDeque<AttemptEvent>,
    dispatch: Dispatch,
    /// Actions to execute with the next event.
    actions: Vec<DispatchAction>,
    /// Time at which the dispatch wants a tick.
    wake_at: Nanos,
    /// In boxes, since they are large, and come and go.
    jobs: FxHashMap<JobId, Box<LeasedJob>>,
    hosts: SenderHosts,
    marks: SendMarks,
    ready: ReadyJobs,
    held_keys: HeldKeys,
    launcher: AttemptLauncher,
    outcomes: Outcomes,
    claim: PendingClaim,
    /// Whether the listener has no space for events.
    is_listener_full: bool,
    /// Pauses of keys that were shown and stored.
    noted_pauses: u64,
    /// Disabled keys.
    unusable_keys: Vec<u32>,
    end: EndCondition,
    progress: Arc<Mutex<SenderProgress>>,
    /// Times of the limits a second ago.
    earlier_limits: LimitTimes,
}

impl AttemptLoop {
    pub(super) fn new(
        context: &Rc<SenderContext>,
        inbox: UnboundedReceiver<AttemptEvent>,
        client: Client,
        progress: Arc<Mutex<SenderProgress>>,
    ) -> Result<Self, SenderError> {
        let options = &context.options;
        let key_count = options.keys.len();
        let keys = u32::try_from(key_count).unwrap_or(u32::MAX);
        let mut dispatch = Dispatch::new(options.rules.clone(), keys, options.seed);
        let mut hosts = SenderHosts::new(Rc::clone(context));
        let high_water = if context.shares_keys() {
            // The state of a shared key comes with its lease.
            (0..keys).for_each(|key| dispatch.set_leased(key, false));
            vec![0; key_count]
        } else {
            hosts.restore_keys(&mut dispatch)?
        };
        Ok(Self {
            inbox,
            backlog: VecDeque::new(),
            dispatch,
            actions: Vec::new(),
            wake_at: Nanos::NEVER,
            jobs: FxHashMap::default(),
            hosts,
            marks: SendMarks::new(Rc::clone(context), high_water.into_iter()),
            ready: ReadyJobs::new(Rc::clone(context)),
            held_keys: HeldKeys::new(key_count, context.shares_keys()),
            launcher: AttemptLauncher::new(Rc::clone(context), client),
            outcomes: Outcomes::new(Rc::clone(context)),
            claim: PendingClaim::new(),
            is_listener_full: false,
            noted_pauses: 0,
            unusable_keys: Vec::new(),
            end: EndCondition::new(context.stop_mode.clone(), options.rules.attempt_timeout),
            progress,
            earlier_limits: LimitTimes::default(),
            context: Rc::clone(context),
        })
    }

    /// Runs until the condition of the end holds and no claim is in progress: dropping one would withdraw it.
    pub(super) async fn run(&mut self) {
        self.show_resumed_pauses();
        let timer = self.context.timer.clone();
        let mut armed = Nanos::NEVER;
        let mut alarm = pin!(timer.sleep_until(armed));
        let mut seconds = tokio::time::interval(tokio::time::Duration::from_secs(1));
        seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut taken_in_turn = 0;
        loop {
            self.check_end();
            self.claim_jobs();
            if self.end.is_reached() && !self.claim.is_in_progress() {
                return;
            }
            if let Some(event) = self.backlog.pop_front() {
                self.take(event);
                continue;
            }
            // To look at everything for each event would cost as much as the event.
            if taken_in_turn < MAX_EVENTS_PER_TURN
                && let Ok(event) = self.inbox.try_recv()
            {
                taken_in_turn += 1;
                self.take(event);
                continue;
            }
            taken_in_turn = 0;
            self.send_in_turn();
            let wake_at = self.wake_at.min(self.end.wake_at()).min(self.held_keys.first_end());
            if wake_at != armed {
                armed = wake_at;
                alarm.set(timer.sleep_until(wake_at));
            }
            tokio::select! {
                event = self.inbox.recv() => match event {
                    Some(event) => self.take(event),
                    None => return,
                },
                () = &mut alarm, if armed < Nanos::NEVER => {
                    armed = Nanos::NEVER;
                    self.wake(wake_at);
                }
                () = self.end.mode_changed() => {}
                _ = seconds.tick() => self.on_second(),
                () = tokio::task::yield_now(), if self.claim.has_jobs() => self.add_claimed_jobs(),
            }
        }
    }

    fn now(&self) -> Nanos {
        self.context.timer.now()
    }

    fn wake(&mut self, at: Nanos) {
        if self.end.wake_at() <= at {
            self.end.check();
        }
        if self.wake_at <= at {
            self.wake_at = Nanos::NEVER;
        } else if at < self.held_keys.first_end() {
            return;
        }
        self.handle_event(at, Event::Tick);
    }

    fn take(&mut self, event: AttemptEvent) {
        match event {
            AttemptEvent::Departed(job, serial, at) => self.on_departed(job, serial, at),
            AttemptEvent::Ended(job, serial, Ok(response)) => self.on_response(job, serial, response),
            AttemptEvent::Ended(job, serial, Err(error)) => self.on_failure(job, serial, error),
            AttemptEvent::Unrenderable(queued, why) => self.on_unrenderable(queued, why),
            AttemptEvent::JobsDue => self.claim.jobs_due(),
            AttemptEvent::Claimed(claimed) => self.on_claimed(claimed),
            AttemptEvent::Checked(jobs, expired, reported) => self.on_checked(jobs, expired, reported),
            AttemptEvent::ListenerFull(is_full) => {
                self.is_listener_full = is_full;
                self.update_progress();
            }
            AttemptEvent::GroupBegins => {
                self.marks.mark_ahead(&self.dispatch, &mut self.jobs, &mut self.outcomes);
                self.outcomes.record(RecordEvent::MarksComplete);
            }
            AttemptEvent::Recorded(group) => self.on_recorded(&group),
            AttemptEvent::KeyLeases(update) => self.on_key_leases(update),
            AttemptEvent::Failed(error) => self.end.fail(error),
        }
    }

    /// Handles an event and executes the actions that follow. `due` is the time at which these sends were possible.
    fn handle_event(&mut self, due: Nanos, event: Event<'_>) {
        let mut actions = std::mem::take(&mut self.actions);
        self.expire_leases(&mut actions);
        self.dispatch.on(self.now(), event, &mut actions);
        while !actions.is_empty() {
            let mut retries = Vec::new();
            for action in &actions {
                self.apply_action(due, *action, &mut retries);
            }
            let down: Vec<HostId> = actions.iter().filter_map(DispatchAction::host_down).collect();
            actions.clear();
            for (job, until, why) in retries {
                self.schedule_retry(job, until, why, &mut actions);
            }
            for host in down {
                self.release_unsent(host, &mut actions);
            }
            self.release_unsendable(&mut actions);
        }
        self.actions = actions;
        self.release_drained_keys();
        if self.ready.has_any_room(&self.dispatch) {
            self.claim.want();
        }
    }

    fn apply_action(&mut self, due: Nanos, action: DispatchAction, retries: &mut Vec<(JobId, Nanos, DispatchFailure)>) {
        match action {
            DispatchAction::SaveHighWater { key, high_water } => {
                self.marks.raise_high_water(key, high_water, &self.outcomes);
            }
            DispatchAction::Send { job, key, attempt, nonce, .. } => {
                let missing = self.try_send(QueuedAttempt { job, key: key as usize, attempt, nonce, due });
                if missing != Some(MissingMark::Key) {
                    self.marks.job_due(missing == Some(MissingMark::Job));
                }
            }
            DispatchAction::Cancel { job, .. } => self.cancel(job, "timed out"),
            DispatchAction::Done(job) => self.end_job(job, JobStep::Done, ("delivered".into(), None)),
            DispatchAction::ScheduleRetry { job, until, reason } => retries.push((job, until, reason)),
            DispatchAction::Requeue(job) => retries.retain(|(other, ..)| *other != job),
            // The store has the TTLs.
            DispatchAction::ExtendTtl { .. } => {}
            DispatchAction::Expire { job, reason } => {
                let text = match reason {
                    DispatchFailure::Expired => "expired before it could be sent".to_owned(),
                    other => format!("expired after: {}", reason_text(other)),
                };
                self.end_job(job, JobStep::Expired, (text, Some(reason)));
            }
            DispatchAction::DeadLetter { job, reason } => {
                self.end_job(job, JobStep::DeadLettered, (reason_text(reason), Some(reason)));
            }
            DispatchAction::KeyUnusable { key, reason } => self.disable_key(key, reason_text(reason)),
            DispatchAction::HostDown(_) | DispatchAction::HostUp(_) => self.claim.want(),
            DispatchAction::WakeAt(at) => self.wake_at = at,
        }
    }

    /// Starts an attempt, or lets it wait for the mark that is returned. At the end neither: the job is released.
    fn try_send(&mut self, queued: QueuedAttempt) -> Option<MissingMark> {
        if self.end.is_reached() {
            return None;
        }
        let mut leased = self.jobs.get_mut(&queued.job).map(Box::as_mut);
        let missing = self.marks.missing(queued, leased.as_deref_mut(), &mut self.outcomes);
        if let (None, Some(leased)) = (missing, leased) {
            self.launcher.launch(leased, queued);
        }
        missing
    }

    /// Starts the attempts whose jobs were to be marked in this turn, before any other task of the event loop runs.
    fn send_in_turn(&mut self) {
        if !self.end.is_reached() {
            for queued in self.marks.mark_in_turn(&mut self.jobs, &mut self.outcomes) {
                self.try_send(queued);
            }
        }
    }

    /// Cancels an attempt after a decision of the dispatch.
    fn cancel(&mut self, job: JobId, why: &str) {
        let now = self.now();
        let Some(leased) = self.jobs.get_mut(&job) else { return };
        let Some(attempt) = &leased.in_flight else {
            // It has not started yet, and must not start.
            self.marks.take_awaiting(|queued| queued.job == job);
            return;
        };
        attempt.task.abort();
        let record = leased.fail_attempt(now, why.to_owned());
        record.into_iter().for_each(|record| self.outcomes.report(ReportEvent::AttemptEnded(record)));
    }

    fn end_job(&mut self, job: JobId, step: JobStep, reason: (String, Option<DispatchFailure>)) {
        if let Some(leased) = self.jobs.remove(&job) {
            self.outcomes.end_job(leased, step, reason);
        }
    }

    /// Returns a retrying job to the store, with its time and attempts.
    fn schedule_retry(&mut self, job: JobId, until: Nanos, why: DispatchFailure, actions: &mut Vec<DispatchAction>) {
        // So short a wait is not worth a write.
        if until < self.now() + MIN_STORED_WAIT {
            return;
        }
        let wait_ms = (until - self.now()).0.div_ceil(Nanos::MILLI.0);
        let retry_at = wall_ms().plus_ms(wait_ms);
        let is_free = match why {
            DispatchFailure::NoResponse(kind) => kind.is_unsent(),
            DispatchFailure::Response(class) => matches!(class, ResponseClass::Unauthorized | ResponseClass::Blocked),
            _ => false,
        };
        if let Some(leased) = self.jobs.get_mut(&job).filter(|_| is_free) {
            // A record with an attempt counts it.
            leased.last_attempt = None;
        }
        self.end_job(job, JobStep::Retrying { retry_at }, (reason_text(why), Some(why)));
        self.dispatch.on(self.now(), Event::Withdrawn(job), actions);
    }

    fn on_departed(&mut self, job: JobId, serial: u64, at: Nanos) {
        let Some(attempt) = self.jobs.get_mut(&job).and_then(|leased| leased.in_flight(serial)) else { return };
        attempt.last_byte_at = Some(at);
        let number = attempt.attempt;
        self.handle_event(at, Event::Departed(job, number));
    }

    fn on_response(&mut self, job: JobId, serial: u64, (status, headers, body): AttemptResponse) {
        let now = self.now();
        let Some(leased) = self.jobs.get_mut(&job) else { return };
        let Some(attempt) = leased.in_flight(serial) else { return };
        let (number, key, may_have_key) = (attempt.attempt, attempt.key, attempt.may_have_key);
        let (status, options) = (status.as_u16(), &self.context.options);
        let (class, failed_check) = classify(options, may_have_key, status, &headers, &body);
        let texts = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let limits = RateLimitHeaders::read(texts, service_clock(date, clock::wall()));
        let response = FinishedResponse {
            request_id: request_id(&headers),
            headers: if options.keep_responses { header_texts(&headers) } else { Vec::new() },
            body,
            failed_check,
        };
        let record = leased.finish_attempt(now, Ok(status), class == ResponseClass::Done, response);
        record.into_iter().for_each(|record| self.outcomes.report(ReportEvent::AttemptEnded(record)));
        self.handle_event(now, Event::Responded(job, number, class, &limits));
        self.note_pauses(key);
    }

    fn on_failure(&mut self, job: JobId, serial: u64, error: SendError) {
        let now = self.now();
        let Some(leased) = self.jobs.get_mut(&job) else { return };
        let Some(number) = leased.in_flight(serial).map(|attempt| attempt.attempt) else { return };
        let record = leased.fail_attempt(now, error.text.into_owned());
        record.into_iter().for_each(|record| self.outcomes.report(ReportEvent::AttemptEnded(record)));
        if error.kind.is_unsent() {
            self.uncount_attempt(job);
        }
        self.handle_event(now, Event::Failed(job, number, error.kind));
    }

    /// Dead-letters a job whose rendered request is invalid; a retry would not help.
    fn on_unrenderable(&mut self, queued: QueuedAttempt, why: String) {
        let QueuedAttempt { job, attempt, due, .. } = queued;
        self.end_job(job, JobStep::DeadLettered, (why, None));
        // Nothing was sent, so the key gets its slot back, and the job has ended.
        self.handle_event(due, Event::Recalled(job, attempt));
        self.handle_event(due, Event::Withdrawn(job));
    }
}
