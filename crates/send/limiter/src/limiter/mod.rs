//! The limiter: who waits for a key, who has been granted a slot, and what is to be stored.

mod step;

use std::sync::{Arc, Condvar, Mutex};

use rustc_hash::FxHashMap;
use weir_base::Nanos;
use weir_delivery::key_window::WindowSlot;
use weir_delivery::limiter::{HolderId, LimiterKey, LimiterRules, SlotEvent};
use weir_machine::clock;
use weir_machine::lock::{lock, try_lock, wait_timeout};

use self::step::{RETRY_INTERVAL, Stores};
use super::key_line::{Grant, KeyLine, PendingEvent, TicketId, Waiting};
use super::place::SharedPlace;
use super::store::{self, LocalKeys};
use super::trouble::StoreTrouble;

/// A slot that a user has taken.
#[derive(Clone, Debug)]
pub struct SlotId {
    key: Arc<str>,
    slot: WindowSlot,
    is_local: bool,
}

/// Result of a look.
#[derive(Debug)]
pub enum Look {
    /// The user has the slot, and may send.
    Taken(SlotId),
    /// Nothing is free. Look again after `wait`, or when woken; `is_sure`: the limits were asked.
    Wait {
        /// Time; [`Nanos::NEVER`]: only when woken.
        wait: Nanos,
        /// Whether the key was looked at since the user has joined.
        is_sure: bool,
    },
}

/// Users to be woken, so that they look, and what is to be reported.
#[derive(Debug, Default)]
pub struct Wakes {
    /// Their tickets.
    pub tickets: Vec<TicketId>,
    /// A line about the shared place, for a log.
    pub notice: Option<String>,
}

/// Limits of any number of keys.
#[derive(Debug)]
pub struct Limiter {
    rules: Arc<LimiterRules>,
    place: SharedPlace,
    falls_back: bool,
    stores: Mutex<Stores>,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: FxHashMap<Arc<str>, KeyLine>,
    tickets: FxHashMap<TicketId, Arc<str>>,
    failed: FxHashMap<TicketId, StoreTrouble>,
    last_ticket: u64,
    is_closed: bool,
}

/// The same for a place behind a network.
const REMOTE_LOOKS: (Nanos, Nanos) = (Nanos::from_millis(5), Nanos::from_millis(50));
/// Time within which a departure is reported.
const DEPARTURE_DELAY: Nanos = Nanos::from_millis(2);
/// Time for the last steps of a limiter that is closed.
const CLOSE_TIME: Nanos = Nanos::from_millis(500);
/// Attempts to store the end of a slot while another process has the key, and the time between them.
const END_ATTEMPTS: (u32, Nanos) = (100, Nanos(100_000));

impl Limiter {
    /// A limiter; `falls_back`: while the place is unreachable, it goes on with keys in memory.
    ///
    /// # Errors
    /// See [`StoreTrouble`].
    pub fn new(
        rules: LimiterRules,
        place: SharedPlace,
        holder: HolderId,
        falls_back: bool,
    ) -> Result<Self, StoreTrouble> {
        let rules = Arc::new(if matches!(place, SharedPlace::Memory) { rules } else { rules.stored() });
        let shared = store::open(&place, &rules, holder)?;
        let stores = Stores { shared, local: LocalKeys::new(&rules, holder), retry_at: None };
        let (stores, state) = (Mutex::new(stores), Mutex::default());
        Ok(Self { rules, place, falls_back, stores, state, work: Condvar::new() })
    }

    /// Whether the weight is within every limit.
    pub fn fits(&self, weight: u64) -> bool {
        LimiterKey::new(&self.rules).fits(weight)
    }

    /// Whether steps need [`Self::work`], since they take round trips.
    pub fn is_remote(&self) -> bool {
        self.place.is_remote()
    }

    fn is_memory(&self) -> bool {
        matches!(self.place, SharedPlace::Memory)
    }

    /// Puts a user at the end of the key's line.
    pub fn join(&self, key: &str, weight: u64) -> TicketId {
        let mut state = lock(&self.state);
        state.last_ticket += 1;
        let ticket = TicketId(state.last_ticket);
        let key = state.lines.get_key_value(key).map_or_else(|| Arc::from(key), |(key, _)| Arc::clone(key));
        state.tickets.insert(ticket, Arc::clone(&key));
        let line = state.lines.entry(key).or_default();
        line.waiting.push_back(Waiting { ticket, weight, looked: false });
        if self.is_remote() || line.waiting.len() == 1 {
            line.next_step = Some(Nanos::ZERO);
            self.work.notify_one();
        }
        ticket
    }

    /// Takes the user's slot, if there is one.
    ///
    /// # Errors
    /// See [`StoreTrouble`]; the user is to be [cancelled](Self::cancel), which wakes the next one.
    pub fn look(&self, ticket: TicketId) -> Result<(Look, Wakes), StoreTrouble> {
        let mut wakes = Wakes::default();
        let key = match self.taken(ticket)? {
            Ok(slot) => {
                self.departed(&slot, &mut wakes);
                return Ok((Look::Taken(slot), wakes));
            }
            Err((key, true)) if !self.is_remote() => key,
            Err((key, _)) => {
                let is_sure = lock(&self.state).lines.get(&key).is_none_or(|line| is_looked_at(line, ticket));
                return Ok((Look::Wait { wait: Nanos::NEVER, is_sure: is_sure || !self.is_remote() }, wakes));
            }
        };
        let stepped = self.step(&key, Some(ticket), &mut wakes);
        let is_sure = match stepped {
            Ok(()) => true,
            Err(StoreTrouble::Busy) => false,
            Err(trouble) => return Err(trouble),
        };
        wakes.tickets.retain(|other| *other != ticket);
        if let Ok(slot) = self.taken(ticket)? {
            return Ok((Look::Taken(slot), wakes));
        }
        let state = lock(&self.state);
        let next = state.lines.get(&key).and_then(|line| line.next_step).unwrap_or(Nanos::NEVER);
        let wait = if next == Nanos::NEVER { next } else { next - clock::monotonic() };
        Ok((Look::Wait { wait, is_sure }, wakes))
    }

    /// The user's slot, or its key and whether it is the first one that waits.
    fn taken(&self, ticket: TicketId) -> Result<Result<SlotId, (Arc<str>, bool)>, StoreTrouble> {
        let mut state = lock(&self.state);
        if let Some(trouble) = state.failed.remove(&ticket) {
            return Err(trouble);
        }
        let gone = || StoreTrouble::Failed("the ticket has ended".into());
        let key = state.tickets.get(&ticket).map(Arc::clone).ok_or_else(gone)?;
        let line = state.lines.get_mut(&key).ok_or_else(gone)?;
        let Some(grant) = line.take_grant(ticket) else {
            let is_first = line.waiting.front().is_some_and(|waiting| waiting.ticket == ticket);
            return Ok(Err((key, is_first)));
        };
        let now = clock::monotonic();
        let Grant { weight, slot, is_local, until, .. } = grant;
        if until < now {
            // It may no longer be used: the server counts it as sent until it hears otherwise.
            line.held -= 1;
            line.events.push_back(PendingEvent { at: now, slot, is_local, event: SlotEvent::Unsent });
            line.waiting.push_front(Waiting { ticket, weight, looked: true });
            line.next_step = Some(Nanos::ZERO);
            self.work.notify_one();
            return Ok(Err((key, true)));
        }
        if until < Nanos::NEVER {
            line.events.push_back(PendingEvent { at: now, slot, is_local, event: SlotEvent::Departed });
            line.next_step = Some(line.next_step.unwrap_or(Nanos::NEVER).min(now + DEPARTURE_DELAY));
            self.work.notify_one();
        }
        state.tickets.remove(&ticket);
        Ok(Ok(SlotId { key, slot, is_local }))
    }

    /// Stores the departure of a slot that was granted before.
    fn departed(&self, slot: &SlotId, wakes: &mut Wakes) {
        if !self.is_remote() {
            // One that is not stored counts as sent later.
            _ = self.step(&slot.key, None, wakes);
        }
    }

    /// Takes a user out of the line; a slot that it has been granted was never used.
    pub fn cancel(&self, ticket: TicketId) -> Wakes {
        let mut wakes = Wakes::default();
        let mut state = lock(&self.state);
        state.failed.remove(&ticket);
        let Some(key) = state.tickets.remove(&ticket) else { return wakes };
        let Some(line) = state.lines.get_mut(&key) else { return wakes };
        if let Some(grant) = line.take_grant(ticket) {
            let (at, event) = (clock::monotonic(), SlotEvent::Unsent);
            line.events.push_back(PendingEvent { at, slot: grant.slot, is_local: grant.is_local, event });
            line.held -= 1;
            drop(state);
            self.flush(&key, &mut wakes);
        } else if line.remove(ticket) == Some(true) {
            wakes.tickets.extend(line.waiting.front().map(|next| next.ticket));
            line.next_step = Some(Nanos::ZERO).filter(|_| !line.waiting.is_empty());
            let is_empty = line.is_empty();
            if is_empty {
                state.lines.remove(&key);
            }
            self.work.notify_one();
        }
        wakes
    }

    /// Takes in an event of a slot.
    pub fn end(&self, slot: &SlotId, event: SlotEvent) -> Wakes {
        let mut wakes = Wakes::default();
        let mut state = lock(&self.state);
        let line = state.lines.entry(Arc::clone(&slot.key)).or_default();
        line.held = line.held.saturating_sub(1);
        let at = clock::monotonic();
        line.events.push_back(PendingEvent { at, slot: slot.slot, is_local: slot.is_local, event });
        drop(state);
        self.flush(&slot.key, &mut wakes);
        wakes
    }

    /// Stores the events of a key, or has them stored.
    fn flush(&self, key: &Arc<str>, wakes: &mut Wakes) {
        if self.is_remote() {
            if let Some(line) = lock(&self.state).lines.get_mut(key) {
                line.next_step = Some(Nanos::ZERO);
            }
            self.work.notify_one();
            return;
        }
        for _ in 0..END_ATTEMPTS.0 {
            if self.step(key, None, wakes) != Err(StoreTrouble::Busy) {
                return;
            }
            clock::Clock::starting_in(Nanos::ZERO).sleep_until(END_ATTEMPTS.1);
        }
    }

    /// Makes the steps that are due within this time, for a place behind a network; returns after some, at the end of the
    /// time, or once the limiter is closed (None).
    pub fn work(&self, within: Nanos) -> Option<Wakes> {
        let end = clock::monotonic() + within;
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return None;
            }
            let now = clock::monotonic();
            let due = |line: &KeyLine| line.next_step.is_some_and(|at| at <= now);
            let keys: Vec<Arc<str>> =
                state.lines.iter().filter(|(_, line)| due(line)).map(|(key, _)| Arc::clone(key)).collect();
            if !keys.is_empty() {
                drop(state);
                let mut wakes = Wakes::default();
                for key in keys {
                    if let Err(trouble) = self.step(&key, None, &mut wakes) {
                        self.fail(&key, &trouble, &mut wakes);
                    }
                }
                return Some(wakes);
            }
            let next = state.lines.values().filter_map(|line| line.next_step).min().unwrap_or(Nanos::NEVER).min(end);
            if now >= end {
                return Some(Wakes::default());
            }
            state = wait_timeout(&self.work, state, (next - now).as_duration()).0;
        }
    }

    /// Fails those that wait for a key: the place is unreachable.
    fn fail(&self, key: &Arc<str>, trouble: &StoreTrouble, wakes: &mut Wakes) {
        let mut state = lock(&self.state);
        let Some(line) = state.lines.get_mut(key) else { return };
        let now = clock::monotonic();
        if *trouble == StoreTrouble::Busy {
            line.next_step = Some(now + REMOTE_LOOKS.0);
            return;
        }
        line.next_step = Some(now + RETRY_INTERVAL).filter(|_| !line.events.is_empty() || line.held > 0);
        for waiting in std::mem::take(&mut line.waiting) {
            wakes.tickets.push(waiting.ticket);
            state.failed.insert(waiting.ticket, trouble.clone());
            state.tickets.remove(&waiting.ticket);
        }
    }

    /// Ends [`Self::work`], and stores what it has not: a process that ends now should not hold its last slots.
    pub fn close(&self) {
        lock(&self.state).is_closed = true;
        self.work.notify_all();
        let end = clock::monotonic() + CLOSE_TIME;
        while self.is_remote() && clock::monotonic() < end {
            let Some(key) = self.unstored() else { return };
            if self.step(&key, None, &mut Wakes::default()).is_err() {
                return;
            }
        }
    }

    /// A key with events that are not stored.
    fn unstored(&self) -> Option<Arc<str>> {
        let state = lock(&self.state);
        state.lines.iter().find(|(_, line)| !line.events.is_empty()).map(|(key, _)| Arc::clone(key))
    }

    /// Lets go of the files of the parent, in a child of a fork: the parent's locks stay the parent's alone.
    pub fn release_in_child(&self) {
        if let Some(mut stores) = try_lock(&self.stores) {
            stores.shared.release_in_child();
        }
    }
}

fn is_looked_at(line: &KeyLine, ticket: TicketId) -> bool {
    line.waiting.iter().find(|waiting| waiting.ticket == ticket).is_none_or(|waiting| waiting.looked)
}
