//! Delivery through rate limits in virtual time: the windows of one key, the service that counts it, and what comes of
//! it.
//!
//! ```text
//!   jobs ──► Windows ──way in──► service ◄── neighbour on the same key
//!               ▲                   │ accepted, or rejected with 429
//!               └────── way out ◄───┘
//! ```
//!
//! The sender is the very code that stands in `weir send` ([`weir_delivery::key_window`]); jobs are always
//! there. An
//! [oracle](DeliveryScenario::oracle) that reads the service's own count gives the most that any sender could have got
//! accepted.

mod service;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use self::service::{HeaderStyle, RetryAfterStyle, Service};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_delivery::key_window::{KeyRules, KeyWindows, OneWayDelayBound, WindowSlot};
use weir_delivery::limit_headers::RateLimitHeaders;
use weir_limits::models::RetryTime;
use weir_workload::delay::Delay;

/// One key, and all that happens to its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryScenario {
    /// Service that counts and rejects.
    pub service: Service,
    /// Limits that the sender is configured with.
    pub rules: KeyRules,
    /// The most requests without a response.
    pub in_flight: usize,
    /// Jobs to deliver.
    pub jobs: u64,
    /// End of the simulation, even with undelivered jobs.
    pub end: Nanos,
    /// From the sender to the service.
    pub latency_in: Delay,
    /// From the service to the sender.
    pub latency_out: Delay,
    /// How long the service works on what it has accepted.
    pub service_time: Delay,
    /// Stalls of the sender's machine.
    pub stalls: Option<RegularStalls>,
}

/// Stalls at regular intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegularStalls {
    /// Time from the start of one to that of the next.
    pub every: Nanos,
    /// Duration of each.
    pub length: Nanos,
}

/// Times of arrivals at the service, accepted and rejected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryResult {
    /// When each request was accepted.
    pub accepted: Vec<Nanos>,
    /// When each was rejected.
    pub rejected: Vec<Nanos>,
    /// When the last job was accepted.
    pub last_accepted_at: Nanos,
    /// Time that the sender waited with nothing in flight after all limits were free.
    pub idle: Nanos,
}

impl DeliveryResult {
    /// How many were accepted in [from, to).
    pub fn accepted_within(&self, from: Nanos, to: Nanos) -> usize {
        self.accepted.iter().filter(|at| (from..to).contains(at)).count()
    }

    /// The fraction of the requests that arrived from `from` on that was rejected.
    pub fn rejected_fraction_from(&self, from: Nanos) -> f64 {
        let rejected = self.rejected.iter().filter(|at| **at >= from).count();
        let all = rejected + self.accepted_within(from, Nanos::NEVER);
        rejected as f64 / all.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    ServiceDone,
    NeighbourRequest,
    Arrival(usize),
    Response(usize),
    Wake,
}

struct DeliverySimulation<'a> {
    world: &'a DeliveryScenario,
    rng: [SeededRng; 3],
    count: service::ServiceCount,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    sequence: u64,
    result: DeliveryResult,
}

impl<'a> DeliverySimulation<'a> {
    fn new(world: &'a DeliveryScenario, seed: u64) -> Self {
        let mut run = Self {
            world,
            rng: [101, 102, 103].map(|salt| SeededRng::new(seed, salt)),
            count: world.service.initial_count(),
            events: BinaryHeap::new(),
            sequence: 0,
            result: DeliveryResult::default(),
        };
        if let Some(gap) = world.service.neighbour {
            run.schedule(gap, Event::NeighbourRequest);
        }
        run
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn next_event(&mut self) -> Option<(Nanos, Event)> {
        let Reverse((at, _, event)) = self.events.pop()?;
        let all = self.result.accepted.len() as u64 >= self.world.jobs;
        (at < self.world.end && !all).then_some((at, event))
    }

    /// Request of another user of the key, which ignores the response.
    fn neighbour_request(&mut self, now: Nanos) {
        if self.count.admit(now, &self.world.service).is_ok() {
            self.schedule_service(now);
        }
        if let Some(gap) = self.world.service.neighbour {
            self.schedule(now + gap, Event::NeighbourRequest);
        }
    }

    fn schedule_service(&mut self, now: Nanos) -> Nanos {
        let at = now + self.world.service_time.at(&self.rng[1], self.sequence);
        self.schedule(at, Event::ServiceDone);
        at
    }

    fn admit(&mut self, now: Nanos) -> Result<(), RetryTime> {
        let judged = self.count.admit(now, &self.world.service);
        match judged {
            Ok(()) => {
                self.result.accepted.push(now);
                self.result.last_accepted_at = now;
            }
            Err(_) => self.result.rejected.push(now),
        }
        judged
    }
}

impl DeliveryScenario {
    /// The sender of weir.
    pub fn deliver(&self, seed: u64) -> DeliveryResult {
        let mut run = DeliverySimulation::new(self, seed);
        let mut windows = KeyWindows::new(&self.rules);
        let mut way_in = self.rules.delay_bound.map_or_else(OneWayDelayBound::learnt, OneWayDelayBound::fixed);
        let mut bound = way_in.bound();
        let mut sent: Vec<(WindowSlot, Nanos, bool, RateLimitHeaders)> = Vec::new();
        let (mut out, mut unsent, mut wake) = (0, self.jobs, Nanos::NEVER);
        run.schedule(Nanos::ZERO, Event::Wake);
        while let Some((now, event)) = run.next_event() {
            let awake = self.next_awake(now);
            match event {
                Event::ServiceDone => run.count.finished(&self.service),
                Event::NeighbourRequest => run.neighbour_request(now),
                Event::Arrival(index) => {
                    let judged = run.admit(now);
                    let feedback = self.service.feedback(now, &mut run.count, judged.err());
                    let done = if judged.is_ok() { run.schedule_service(now) } else { now };
                    let back = done + self.latency_out.at(&run.rng[2], run.sequence);
                    (sent[index].2, sent[index].3) = (judged.is_ok(), feedback);
                    run.schedule(back, Event::Response(index));
                }
                // Nothing is read while the sender's machine stands still.
                Event::Response(_) | Event::Wake if awake > now => run.schedule(awake, event),
                Event::Response(index) => {
                    let (slot, at, accepted, feedback) = &sent[index];
                    let to_blame = !accepted && way_in.rejected(now, *at);
                    windows.apply_quotas(*slot, now, &feedback.quotas, Nanos::NEVER);
                    if *accepted {
                        windows.accepted(*slot, now);
                    } else {
                        windows.rejected(*slot, now, feedback.retry_after, !to_blame);
                        unsent += 1;
                    }
                    let usual = way_in.usual_round_trip();
                    if let Some(took) = windows.responded(*slot, now, usual)
                        && *accepted
                    {
                        way_in.responded(took);
                    }
                    out -= 1;
                    run.schedule(now, Event::Wake);
                }
                Event::Wake => {
                    if wake <= now {
                        wake = Nanos::NEVER;
                    }
                    windows.advance(now);
                    if bound != way_in.bound() {
                        bound = way_in.bound();
                        windows.set_delay_bound(now, bound);
                    }
                    let mut earliest = windows.earliest(1);
                    while earliest <= now && out < self.in_flight && unsent > 0 {
                        let slot = windows.sent(now, 1);
                        windows.departed(slot, now);
                        let index = sent.len();
                        sent.push((slot, now, false, RateLimitHeaders::default()));
                        let arrives = now + self.latency_in.at(&run.rng[0], run.sequence);
                        run.schedule(arrives, Event::Arrival(index));
                        (out, unsent) = (out + 1, unsent - 1);
                        earliest = windows.earliest(1);
                    }
                    if out == 0 && unsent > 0 {
                        let free = now + run.count.reset(now);
                        run.result.idle = run.result.idle.max(earliest - free);
                    }
                    if earliest > now && earliest < wake {
                        wake = earliest;
                        run.schedule(earliest, Event::Wake);
                    }
                }
            }
        }
        run.result
    }

    /// A sender that reads the service's own count, and whose requests arrive at once.
    pub fn oracle(&self, seed: u64) -> DeliveryResult {
        let mut run = DeliverySimulation::new(self, seed);
        let (mut out, mut wake) = (0, Nanos::NEVER);
        run.schedule(Nanos::ZERO, Event::Wake);
        while let Some((now, event)) = run.next_event() {
            match event {
                Event::ServiceDone => {
                    run.count.finished(&self.service);
                    run.schedule(now, Event::Wake);
                }
                Event::NeighbourRequest => run.neighbour_request(now),
                Event::Arrival(_) => {}
                Event::Response(_) => {
                    out -= 1;
                    run.schedule(now, Event::Wake);
                }
                Event::Wake => {
                    while out < self.in_flight {
                        if let Err(retry) = run.admit(now) {
                            if let RetryTime::After(length) = retry
                                && (wake <= now || wake == Nanos::NEVER)
                            {
                                wake = now + length.max(Nanos(1));
                                run.schedule(wake, Event::Wake);
                            }
                            break;
                        }
                        out += 1;
                        let done = run.schedule_service(now);
                        let ways = self.latency_in.at(&run.rng[0], run.sequence)
                            + self.latency_out.at(&run.rng[2], run.sequence);
                        run.schedule(done + ways, Event::Response(0));
                    }
                }
            }
        }
        run.result
    }

    /// When the sender's machine goes on.
    fn next_awake(&self, now: Nanos) -> Nanos {
        let stalls = self.stalls.filter(|stalls| stalls.every > Nanos::ZERO);
        let Some(RegularStalls { every, length }) = stalls else { return now };
        let begun = Nanos(now.0 - now.0 % every.0);
        if begun > Nanos::ZERO { now.max(begun + length) } else { now }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
