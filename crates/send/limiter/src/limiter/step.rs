//! Steps of a key: events are stored, and slots granted to those that wait.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_base::Nanos;
use weir_delivery::limiter::{GRANT_VALIDITY, LimiterKey, SlotEvent};
use weir_machine::clock;
use weir_machine::lock::lock;

use super::{Limiter, REMOTE_LOOKS, State, Wakes};
use crate::key_line::{Grant, PendingEvent, TicketId, Waiting};
use crate::store::{KeyStore, LocalKeys, StepTime};
use crate::trouble::StoreTrouble;

#[derive(Debug)]
pub(super) struct Stores {
    pub(super) shared: Box<dyn KeyStore>,
    /// Keys while the shared place is unreachable.
    pub(super) local: LocalKeys,
    /// Time of the next attempt to reach the shared place, after a failure.
    pub(super) retry_at: Option<Nanos>,
}

/// Outcome of a step.
#[derive(Debug, Default)]
struct KeyStepOutcome {
    applied: usize,
    grants: Vec<Grant>,
    /// Time from the step until the first waiting user may have a slot; None: no user waits.
    next: Option<Nanos>,
    /// Whether other holders have slots of the key.
    has_others: bool,
    is_local: bool,
}

/// Interval of attempts to reach a place again.
pub(super) const RETRY_INTERVAL: Nanos = Nanos::SECOND;
/// Interval of looks for holders that are gone.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(100);
/// Shortest and longest intervals of looks at a key that others hold.
const LOOKS: (Nanos, Nanos) = (Nanos::from_millis(2), Nanos::from_millis(20));
/// Interval of steps while slots are held, for a place that forgets holders it does not see.
const HEARTBEAT: Nanos = Nanos::from_secs(3);
/// Time to the next step while another process has the key.
const BUSY_INTERVAL: Nanos = Nanos::MILLI;
/// Time to the next step with an event that the server's clock may not have passed.
const EVENT_INTERVAL: Nanos = Nanos(300_000);

impl Limiter {
    /// Makes a step of a key: stores events, and grants slots to those that wait. The `own` user takes its slot at once.
    pub(super) fn step(&self, key: &Arc<str>, own: Option<TicketId>, wakes: &mut Wakes) -> Result<(), StoreTrouble> {
        let mut stores = lock(&self.stores);
        let now = clock::monotonic();
        let (waiting, events, check, was_local) = {
            let mut state = lock(&self.state);
            let Some(line) = state.lines.get_mut(key) else { return Ok(()) };
            let check = !line.waiting.is_empty() && now - line.checked_at > CHECK_INTERVAL;
            line.checked_at = if check { now } else { line.checked_at };
            let (mine, shared) = std::mem::take(&mut line.events).into_iter().partition(|event| event.is_local);
            line.events = shared;
            let mine: VecDeque<PendingEvent> = mine;
            for PendingEvent { at, slot, event, .. } in mine {
                stores.local.step_at(key, at, &mut |key, time| {
                    key.apply(&self.rules, slot, &event, time.now);
                    true
                });
            }
            // What comes while the step is made needs another one.
            line.next_step = None;
            // What was sent long ago no longer counts.
            let age = now - line.stepped_at;
            let was_local = line.was_local && age < LimiterKey::worst_case(&self.rules, now).memory(now);
            (line.waiting.clone(), line.events.clone(), check, was_local)
        };
        let mut outcome = KeyStepOutcome::default();
        let mut act = |key: &mut LimiterKey, time: StepTime, is_local: bool| {
            outcome = KeyStepOutcome { is_local, ..KeyStepOutcome::default() };
            if was_local && !is_local {
                // What was sent meanwhile is not there.
                *key = LimiterKey::worst_case(&self.rules, time.now);
            }
            for event in events.iter().filter(|_| !is_local) {
                if event.at > time.local {
                    break;
                }
                key.apply(&self.rules, event.slot, &event.event, time.now);
                outcome.applied += 1;
            }
            for Waiting { ticket, weight, .. } in &waiting {
                let is_taken = own == Some(*ticket);
                match key.grant(time.now, *weight, time.holder, (!is_taken).then_some(GRANT_VALIDITY)) {
                    Ok(slot) => {
                        let until = if is_taken { Nanos::NEVER } else { time.local + GRANT_VALIDITY };
                        outcome.grants.push(Grant { ticket: *ticket, weight: *weight, slot, is_local, until });
                    }
                    Err(at) => {
                        outcome.next = Some(if at == Nanos::NEVER { at } else { at - time.now });
                        break;
                    }
                }
            }
            outcome.has_others = key.holders().iter().any(|holder| *holder != time.holder);
            outcome.applied > 0 || !outcome.grants.is_empty() || (was_local && !is_local)
        };
        let is_skipped = stores.retry_at.is_some_and(|at| now < at) && self.falls_back;
        let done = if is_skipped {
            Err(StoreTrouble::Failed(String::new()))
        } else {
            stores.shared.step(key, check, &mut |key, time| act(key, time, false))
        };
        let mut notice = None;
        match done {
            Err(StoreTrouble::Failed(why)) if self.falls_back => {
                if !is_skipped {
                    let was_reachable = stores.retry_at.replace(now + RETRY_INTERVAL).is_none();
                    notice = was_reachable.then(|| format!("{why}; this process goes on with limits of its own"));
                }
                stores.local.step_at(key, now, &mut |key, time| act(key, time, true));
            }
            Err(trouble) => {
                if let Some(line) = lock(&self.state).lines.get_mut(key) {
                    line.next_step = Some(now + BUSY_INTERVAL);
                }
                return Err(trouble);
            }
            Ok(()) => {
                if stores.retry_at.take().is_some() {
                    notice = Some(format!("{} is reachable again", self.place.redacted()));
                }
            }
        }
        let last = waiting.iter().map(|waiting| waiting.ticket).max();
        self.merge(key, outcome, last, wakes);
        wakes.notice = notice.or(wakes.notice.take());
        Ok(())
    }

    /// Takes in the outcome of a step, which had the users up to `last`.
    fn merge(&self, key: &Arc<str>, outcome: KeyStepOutcome, last: Option<TicketId>, wakes: &mut Wakes) {
        let now = clock::monotonic();
        let mut state = lock(&self.state);
        let State { lines, tickets, .. } = &mut *state;
        let Some(line) = lines.get_mut(key) else { return };
        line.events.drain(..outcome.applied.min(line.events.len()));
        (line.stepped_at, line.was_local) = (now, outcome.is_local);
        line.idle_steps = if outcome.grants.is_empty() { line.idle_steps.saturating_add(1) } else { 0 };
        let has_new_front = outcome.applied > 0 || !outcome.grants.is_empty();
        for grant in outcome.grants {
            line.remove(grant.ticket);
            if tickets.contains_key(&grant.ticket) {
                wakes.tickets.push(grant.ticket);
                line.grants.push(grant);
                line.held += 1;
            } else {
                let Grant { slot, is_local, .. } = grant;
                line.events.push_back(PendingEvent { at: now, slot, is_local, event: SlotEvent::Unsent });
            }
        }
        for waiting in line.waiting.iter_mut().filter(|waiting| !waiting.looked && Some(waiting.ticket) <= last) {
            waiting.looked = true;
            wakes.tickets.push(waiting.ticket);
        }
        let (shortest, longest) = if self.is_remote() { REMOTE_LOOKS } else { LOOKS };
        let look = match outcome.next.filter(|_| !line.waiting.is_empty()) {
            None => Nanos::NEVER,
            Some(next) if !outcome.has_others && (next < Nanos::NEVER || self.is_memory()) => next,
            // Others may end their slots at any time.
            Some(Nanos::NEVER) => Nanos(shortest.0 << line.idle_steps.min(4)).min(longest),
            Some(next) => Nanos(next.0 / 4).max(shortest).min(next),
        };
        let event = if line.events.is_empty() { Nanos::NEVER } else { EVENT_INTERVAL };
        let heartbeat = if line.held > 0 && self.is_remote() { HEARTBEAT } else { Nanos::NEVER };
        let next = look.min(event).min(heartbeat);
        let next = Some(now + next).filter(|_| next < Nanos::NEVER);
        line.next_step = [line.next_step, next].into_iter().flatten().min();
        // The first one that waits is another one, or has another time to look.
        wakes.tickets.extend(line.waiting.front().filter(|_| has_new_front).map(|first| first.ticket));
        if line.is_empty() {
            lines.remove(key);
        }
    }
}
