//! A service of slots with a queue, whose callers give up and retry while it works on: naive, event by event.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::super::RecoverySecond;
use crate::recorder::Interval;
use weir_base::Nanos;
use weir_base::rng::SeededRng;

/// Slots, and the time of a request in one, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceModel {
    pub(super) slots: usize,
    pub(super) service_s: f64,
}

impl ServiceModel {
    /// Requests per second.
    pub(super) fn capacity(&self) -> f64 {
        self.slots as f64 / self.service_s
    }
}

/// Patience of clients, in seconds, and how often they try again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clients {
    pub(super) timeout_s: f64,
    pub(super) retries: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Happening {
    /// A request of this call has been served.
    Served(usize, u64),
    /// The client gives this attempt up.
    TimedOut(usize, u64),
    /// The client sends again.
    Sent(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct TimedEvent {
    at: f64,
    number: u64,
    what: Happening,
}

impl Eq for TimedEvent {}

impl PartialOrd for TimedEvent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TimedEvent {
    /// The earliest one is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.total_cmp(&self.at).then(other.number.cmp(&self.number))
    }
}

#[derive(Clone, Copy, Debug)]
struct SimulatedCall {
    begun: f64,
    /// Number of the attempt that the client waits for; none if it waits for none.
    attempt: Option<u64>,
    attempts: u64,
}

#[derive(Debug)]
pub(super) struct SimulatedService {
    model: ServiceModel,
    clients: Clients,
    rng: SeededRng,
    now: f64,
    number: u64,
    events: BinaryHeap<TimedEvent>,
    calls: Vec<SimulatedCall>,
    /// Requests that wait, with those whose callers have left.
    queue: VecDeque<(usize, u64)>,
    busy: usize,
    seen: Interval,
}

impl SimulatedService {
    pub(super) fn new(model: ServiceModel, clients: Clients, seed: u64) -> Self {
        Self {
            model,
            clients,
            rng: SeededRng::new(seed, 77),
            now: 0.0,
            number: 0,
            events: BinaryHeap::new(),
            calls: Vec::new(),
            queue: VecDeque::new(),
            busy: 0,
            seen: Interval::default(),
        }
    }

    /// The next second, with this many calls per second at random.
    pub(super) fn second(&mut self, level: f64) -> RecoverySecond {
        let (from, until) = (self.now, self.now + 1.0);
        let mut at = from + self.rng.exponential() / level;
        while at < until {
            self.run_to(at);
            self.calls.push(SimulatedCall { begun: at, attempt: None, attempts: 0 });
            self.send(self.calls.len() - 1);
            at += self.rng.exponential() / level;
        }
        self.run_to(until);
        let seen = std::mem::take(&mut self.seen);
        let requests = seen.ok;
        let times = Interval { ok: seen.iteration_times.count(), failed: seen.failed, ..Interval::default() };
        RecoverySecond { requests, times: seen.iteration_times, ..RecoverySecond::of(&times, level) }
    }

    fn run_to(&mut self, until: f64) {
        while let Some(event) = self.events.peek().copied().filter(|event| event.at <= until) {
            self.events.pop();
            self.now = event.at;
            match event.what {
                Happening::Served(call, attempt) => self.served(call, attempt),
                Happening::TimedOut(call, attempt) => self.timed_out(call, attempt),
                Happening::Sent(call) => self.send(call),
            }
        }
        self.now = until;
    }

    fn schedule(&mut self, after: f64, what: Happening) {
        self.number += 1;
        self.events.push(TimedEvent { at: self.now + after, number: self.number, what });
    }

    fn send(&mut self, call: usize) {
        self.calls[call].attempts += 1;
        let attempt = self.calls[call].attempts;
        self.calls[call].attempt = Some(attempt);
        if self.clients.timeout_s.is_finite() {
            self.schedule(self.clients.timeout_s, Happening::TimedOut(call, attempt));
        }
        self.queue.push_back((call, attempt));
        self.serve();
    }

    /// Gives free slots to the requests that have waited longest, also to those whose callers have left.
    fn serve(&mut self) {
        while self.busy < self.model.slots {
            let Some((call, attempt)) = self.queue.pop_front() else { return };
            self.busy += 1;
            self.schedule(self.model.service_s, Happening::Served(call, attempt));
        }
    }

    fn served(&mut self, call: usize, attempt: u64) {
        self.busy -= 1;
        if self.calls[call].attempt == Some(attempt) {
            self.calls[call].attempt = None;
            self.seen.ok += 1;
            self.seen.iteration_times.record(Nanos::from_secs_f64(self.now - self.calls[call].begun));
        }
        self.serve();
    }

    fn timed_out(&mut self, call: usize, attempt: u64) {
        if self.calls[call].attempt != Some(attempt) {
            return;
        }
        self.calls[call].attempt = None;
        self.seen.ok += 1;
        if attempt > self.clients.retries {
            self.seen.failed += 1;
        } else {
            let wait = 0.1 * 2_f64.powi(attempt as i32 - 1) * (0.5 + self.rng.unit());
            self.schedule(wait, Happening::Sent(call));
        }
    }
}
