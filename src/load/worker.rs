//! One generator thread: an event loop that owns its connections, its share of the schedule and its record.
//!
//! Closed and open loop are the same code: [`Feed`] says what a free connection does. In the closed loop at full speed
//! a request costs one `read`, one `write` and one look at the clock. In the open loop it costs one wake-up: the loop
//! sleeps until the next send is due, sends, and then reads the answers that came meanwhile, whose true time of arrival
//! the kernel has noted ([`crate::http::stamp`]).

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use super::clock::{Clock, WallOffset, sharpen_sleeps, thread_cpu};
use super::plan::Plan;
use super::poller::{Poller, Ready};
use super::slot::{Flight, Phase, Slot};
use super::tally::Tally;
use crate::decide::Nanos;
use crate::decide::feed::{Feed, Start};
use crate::http::stream::Stream;
use crate::http::target::Address;
use crate::http::wire::{HeadCache, WireError};
use crate::measure::outcome::{Failure, Outcome};
use crate::measure::recorder::Interval;
use crate::report::jtl::Lines;

/// What all workers of a run share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) address: &'a Address,
    pub(super) clock: Clock,
    /// Set once, to have all stop at once.
    pub(super) stop: AtomicBool,
    /// The next request number that nobody has claimed (closed loop).
    pub(super) claimed: AtomicU64,
}

/// What a worker reports: once a second, and at its end.
#[derive(Debug)]
pub(super) enum Report {
    /// What happened in second number `.0`.
    Second(u64, Box<Interval>),
    /// It is done.
    Done(Box<Tally>),
}

pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    feed: Feed,
    poller: Poller,
    slots: Vec<Option<Slot>>,
    /// Tells a slot's present connection from earlier ones in events.
    generations: Vec<u32>,
    vacant: Vec<u32>,
    idle: Vec<u32>,
    most_slots: usize,
    connecting: usize,
    tally: Tally,
    reports: Sender<Report>,
    log: Option<Lines>,
    cache: HeadCache,
    buffer: Box<[u8]>,
    scratch: Vec<u8>,
    /// Present while answers are timed by the kernel.
    wall: Option<WallOffset>,
    second: u64,
    next_tick: Nanos,
}

/// Connections that one worker makes at a time: a service's queue of new connections is short, and what does not fit
/// is silently tried again a second later.
const MOST_CONNECTING: usize = 128;
/// How long a user waits after a connection could not be made.
const PAUSE: Nanos = Nanos::from_millis(100);
/// The longest sleep: a stop is noticed within it.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(50);
/// If the next send is due within this time, answers are left to wait until then.
const DOZE: Nanos = Nanos::from_millis(1);
/// A sleep shorter than this would end too late.
const SHORTEST_SLEEP: Nanos = Nanos(3_000);
const READ_BUFFER: usize = 64 * 1024;
/// From this many bytes of body on, the kernel is asked to throw them away.
const WORTH_SKIPPING: u64 = 1 << 20;

impl<'a> Worker<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        index: u64,
        reports: Sender<Report>,
        log: Option<Lines>,
    ) -> io::Result<Self> {
        let plan = shared.plan;
        let stamped = matches!(plan.pace, super::plan::Pace::Open(_)) && !plan.spin;
        Ok(Self {
            shared,
            feed: plan.feed(index, plan.threads),
            poller: Poller::new()?,
            slots: Vec::new(),
            generations: Vec::new(),
            vacant: Vec::new(),
            idle: Vec::new(),
            most_slots: plan.connections_of(index),
            connecting: 0,
            tally: Tally::new(plan.warmup, plan.until),
            reports,
            log,
            cache: HeadCache::default(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            scratch: Vec::new(),
            wall: stamped.then(|| shared.clock.wall_offset()),
            second: 0,
            next_tick: Nanos::ZERO,
        })
    }

    /// Drives its share of the plan to the end.
    pub(super) fn run(mut self) {
        sharpen_sleeps();
        self.shared.clock.sleep_until(Nanos::ZERO);
        self.tally.note_cpu(Nanos::ZERO, thread_cpu());
        let mut ready = Vec::with_capacity(256);
        loop {
            let polled = self.rest(&mut ready);
            let now = self.shared.clock.now();
            self.pump(now);
            if !polled {
                self.poll(Nanos::ZERO, &mut ready);
            }
            if self.wall.is_some() && !ready.is_empty() {
                self.wall = Some(self.shared.clock.wall_offset());
            }
            for event in ready.drain(..) {
                self.handle(event);
            }
            let now = self.shared.clock.now();
            if now >= self.next_tick {
                self.tick(now);
            }
            if self.shared.stop.load(Ordering::Relaxed) || self.is_done() {
                break;
            }
        }
        self.finish();
    }

    /// Waits until there is something to do. Whether it has asked for events (else the caller does, after its sends).
    fn rest(&mut self, ready: &mut Vec<Ready>) -> bool {
        let now = self.shared.clock.now();
        let can_start = self.can_start();
        let due = if can_start { self.feed.next_due() } else { None };
        let until = due.unwrap_or(Nanos::NEVER).min(self.next_tick).min(now + LONGEST_SLEEP);
        let gap = until - now;
        if gap < SHORTEST_SLEEP || self.shared.plan.spin {
            return false;
        }
        if self.wall.is_some() && due.is_some_and(|t| t - now <= DOZE) {
            self.shared.clock.sleep_until(until);
            return false;
        }
        self.poll(gap, ready);
        true
    }

    fn poll(&mut self, most: Nanos, ready: &mut Vec<Ready>) {
        // Cannot fail but for a closed or wrong descriptor, and this one is ours; a stop is noticed all the same.
        if self.poller.wait(most, ready).is_err() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Starts what the clock asks for.
    fn pump(&mut self, now: Nanos) {
        while self.can_start() {
            self.claim();
            let Some(start) = self.feed.due(now) else { return };
            match self.idle.pop() {
                Some(index) => self.start_on(index, &start, start.arrival.intended),
                None => self.connect(&start, start.arrival.intended),
            }
        }
    }

    fn can_start(&self) -> bool {
        !self.idle.is_empty() || (self.connecting < MOST_CONNECTING && self.in_use() < self.most_slots)
    }

    fn in_use(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// Gets the closed loop new tickets before it runs out of them.
    #[inline]
    fn claim(&mut self) {
        let Feed::Closed(feed) = &mut self.feed else { return };
        if feed.tickets_left() > 0 {
            return;
        }
        let plan = self.shared.plan;
        let total = plan.limit.unwrap_or(u64::MAX / 2);
        // Few at a time near the end, so that no thread has work left when the others have none.
        let left = total.saturating_sub(self.shared.claimed.load(Ordering::Relaxed));
        let want = (left / (plan.threads * 8)).clamp(1, 64);
        let first = self.shared.claimed.fetch_add(want, Ordering::Relaxed);
        feed.grant(first.min(total)..(first + want).min(total));
    }

    /// The idle connection `index` takes a request.
    fn start_on(&mut self, index: u32, start: &Start, ready: Nanos) {
        let request = self.shared.plan.source.pick(start.arrival.number);
        let now = self.shared.clock.now();
        self.tally.begin(start.arrival.intended, now);
        if let Some(slot) = &mut self.slots[index as usize] {
            slot.idle = false;
            slot.push(Flight::new(start, ready, request));
            self.write(index, now);
        }
    }

    /// A new connection takes a request.
    fn connect(&mut self, start: &Start, ready: Nanos) {
        let now = self.shared.clock.now();
        let request = self.shared.plan.source.pick(start.arrival.number);
        self.tally.begin(start.arrival.intended, now);
        let flight = Flight::new(start, ready, request);
        let index = self.vacant.pop().unwrap_or(self.slots.len() as u32);
        if index as usize == self.slots.len() {
            self.slots.push(None);
            self.generations.push(0);
        }
        let opened = Stream::connect(self.shared.address, self.wall.is_some()).and_then(|stream| {
            let key = u64::from(self.generations[index as usize]) << 32 | u64::from(index);
            self.poller.add(&stream, key)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => {
                let mut slot = Slot::new(stream, start.user, now);
                slot.push(flight);
                self.slots[index as usize] = Some(slot);
                self.connecting += 1;
                self.tally.connections += 1;
            }
            Err(error) => {
                self.vacant.push(index);
                self.end(&flight.failed(Failure::Connect, now), start.user);
                self.tally.detail(Failure::Connect, || error.to_string());
                self.feed.again_after(start.user, now + PAUSE);
            }
        }
    }

    fn handle(&mut self, event: Ready) {
        let (index, generation) = (event.key as u32, (event.key >> 32) as u32);
        if self.generations[index as usize] != generation {
            return;
        }
        let Some(slot) = &self.slots[index as usize] else { return };
        match slot.phase {
            Phase::Open => {
                if event.writable && (slot.has_unsent() || slot.stream.holds_back()) {
                    let now = self.shared.clock.now();
                    self.write(index, now);
                }
                if event.readable {
                    self.read(index, event.hung_up);
                }
            }
            Phase::Connecting if event.writable => self.connected(index),
            Phase::Handshaking => self.handshake(index),
            Phase::Connecting => {}
        }
    }

    fn connected(&mut self, index: u32) {
        let plan = self.shared.plan;
        let Some(slot) = &mut self.slots[index as usize] else { return };
        if let Err(error) = slot.stream.connected() {
            return self.fail(index, Failure::Connect, || error.to_string());
        }
        let Some(tls) = &plan.tls else { return self.opened(index) };
        if let Err(error) = slot.stream.start_tls(tls) {
            return self.fail(index, Failure::Tls, || error.to_string());
        }
        slot.phase = Phase::Handshaking;
        self.handshake(index);
    }

    fn handshake(&mut self, index: u32) {
        let Some(slot) = &mut self.slots[index as usize] else { return };
        match slot.stream.handshake() {
            Ok(true) => self.opened(index),
            Ok(false) => {}
            Err(error) => self.fail(index, Failure::Tls, || error.to_string()),
        }
    }

    /// The connection can be used: its first request, which waited for it, goes out.
    fn opened(&mut self, index: u32) {
        let now = self.shared.clock.now();
        self.connecting -= 1;
        let Some(slot) = &mut self.slots[index as usize] else { return };
        slot.phase = Phase::Open;
        if self.tally.tls.is_none() {
            self.tally.tls = slot.stream.tls_description();
        }
        for flight in &mut slot.flights {
            flight.connect = now - slot.opened;
            flight.ready = now;
        }
        self.go_on(index, now);
    }

    /// Fills the connection with what its user, or the schedule, has for it, and writes it; without anything it is
    /// idle, or closed for good.
    #[inline]
    fn go_on(&mut self, index: u32, now: Nanos) {
        let plan = self.shared.plan;
        // Waiting arrivals had no connection only if none could be had.
        let capped = self.idle.is_empty() && self.in_use() >= self.most_slots;
        self.claim();
        let Some(slot) = &mut self.slots[index as usize] else { return };
        while slot.flights.len() < plan.pipeline {
            let Some(start) = self.feed.again(slot.user, now) else { break };
            let intended = start.arrival.intended;
            let ready = if capped { intended.max(now) } else { intended };
            if capped && intended < now {
                self.tally.waited(intended);
            }
            self.tally.begin(intended, now);
            slot.push(Flight::new(&start, ready, plan.source.pick(start.arrival.number)));
            if let Feed::Closed(feed) = &self.feed
                && feed.tickets_left() == 0
            {
                break;
            }
        }
        if !slot.flights.is_empty() {
            self.write(index, now);
        } else if matches!(self.feed, Feed::Open(_)) {
            slot.idle = true;
            self.idle.push(index);
        } else {
            self.close(index);
        }
    }

    #[inline]
    fn write(&mut self, index: u32, now: Nanos) {
        let requests = &self.shared.plan.requests;
        let Some(slot) = &mut self.slots[index as usize] else { return };
        let written = slot.write(requests, now);
        let flushed = written.and_then(|()| slot.stream.flush());
        // A peer that has closed may still have sent an answer (413, say): reading on tells which it is.
        if let Err(error) = flushed
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            self.fail(index, kind_of(&error), || error.to_string());
        }
    }

    #[inline]
    fn read(&mut self, index: u32, hung_up: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let Some(slot) = &mut self.slots[index as usize] else { break };
            let left = slot.decoder.left();
            let received = if left > WORTH_SKIPPING && slot.stream.can_skip() {
                // Never written to, so it takes address space and no memory.
                self.scratch.resize(WORTH_SKIPPING as usize, 0);
                let received = slot.stream.skip(left - READ_BUFFER as u64, &mut self.scratch);
                if let Ok(received) = &received {
                    slot.decoder.skip(received.bytes as u64);
                    if received.bytes > 0 && !received.drained {
                        continue;
                    }
                }
                received.map(|r| (r, 0))
            } else {
                slot.stream.read(&mut buffer).map(|r| (r, r.bytes))
            };
            let now = self.shared.clock.now();
            match received {
                Ok((received, _)) if received.bytes == 0 => {
                    self.closed_by_peer(index, now);
                    break;
                }
                Ok((received, taken)) => {
                    let at = match (self.wall, received.stamp) {
                        (Some(wall), Some(stamp)) => wall.at(stamp).min(now),
                        _ => now,
                    };
                    let open = self.take(index, &buffer[..taken], at, now);
                    if !open || (received.drained && !hung_up) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.fail(index, kind_of(&error), || error.to_string());
                    break;
                }
            }
        }
        self.buffer = buffer;
    }

    /// Takes in what came at `at` on a connection; whether it is still open.
    #[inline]
    fn take(&mut self, index: u32, mut bytes: &[u8], at: Nanos, now: Nanos) -> bool {
        let plan = self.shared.plan;
        let mut answered = false;
        while !bytes.is_empty() {
            let Some(slot) = &mut self.slots[index as usize] else { return false };
            let early = slot.front_is_unsent();
            let Some(flight) = slot.flights.front_mut() else {
                self.fail(index, Failure::Protocol, || WireError::Unasked.to_string());
                return false;
            };
            let request = &plan.requests[flight.request as usize];
            // A stamp may be older than the send by the clocks' disagreement; nothing is answered before it is sent.
            let at = at.max(flight.sent.min(now));
            flight.first_byte.get_or_insert(at);
            if self.tally.server.is_none() {
                self.tally.find_server(bytes);
            }
            let step = match slot.decoder.push(bytes, request.bodyless, &mut self.cache) {
                Ok(step) => step,
                Err(error) => {
                    self.fail(index, Failure::Protocol, || error.to_string());
                    return false;
                }
            };
            bytes = &bytes[step.used..];
            let Some(answer) = step.answer else { continue };
            let outcome = flight.answered(&answer, at, request.bytes.len(), plan.timeout);
            slot.flights.pop_front();
            let user = slot.user;
            self.end(&outcome, user);
            if !answer.keep_alive || !plan.keep_alive || early {
                self.reconnect(index, now);
                return false;
            }
            answered = true;
        }
        if answered {
            self.go_on(index, now);
        }
        true
    }

    /// The peer has closed: that ends an answer without a length, and cuts any other.
    fn closed_by_peer(&mut self, index: u32, now: Nanos) {
        let plan = self.shared.plan;
        let Some(slot) = &mut self.slots[index as usize] else { return };
        match (slot.flights.front(), slot.decoder.close()) {
            // Idle: a service may close what it likes.
            (None, _) => self.close(index),
            (Some(flight), Ok(Some(answer))) => {
                let bytes_out = plan.requests[flight.request as usize].bytes.len();
                let outcome = flight.answered(&answer, now, bytes_out, plan.timeout);
                slot.flights.pop_front();
                let user = slot.user;
                self.end(&outcome, user);
                self.reconnect(index, now);
            }
            (Some(_), Ok(None)) => {
                self.fail(index, Failure::Closed, || "the connection was closed before an answer".into())
            }
            (Some(_), Err(error)) => self.fail(index, Failure::Closed, || error.to_string()),
        }
    }

    /// The connection is of no more use, its user goes on with a new one. Requests that were still on it have failed.
    fn reconnect(&mut self, index: u32, now: Nanos) {
        let Some(slot) = &self.slots[index as usize] else { return };
        if !slot.flights.is_empty() {
            return self.fail(index, Failure::Closed, || "the service closed with requests in the pipeline".into());
        }
        let user = slot.user;
        let capped = self.idle.is_empty() && self.in_use() >= self.most_slots;
        self.close(index);
        self.claim();
        if let Some(start) = self.feed.again(user, now) {
            let intended = start.arrival.intended;
            if capped && intended < now {
                self.tally.waited(intended);
            }
            self.connect(&start, if capped { intended.max(now) } else { intended });
        }
    }

    /// The connection broke: so did all requests on it.
    fn fail(&mut self, index: u32, kind: Failure, detail: impl FnOnce() -> String) {
        let now = self.shared.clock.now();
        let Some(slot) = &mut self.slots[index as usize] else { return };
        let (user, phase, flights) = (slot.user, slot.phase, std::mem::take(&mut slot.flights));
        if !flights.is_empty() {
            self.tally.detail(kind, detail);
        }
        self.close(index);
        for flight in &flights {
            self.end(&flight.failed(kind, now), user);
        }
        if phase == Phase::Open {
            self.claim();
            if let Some(start) = self.feed.again(user, now) {
                self.connect(&start, start.arrival.intended);
            }
        } else {
            self.feed.again_after(user, now + PAUSE);
        }
    }

    /// A request has ended.
    #[inline]
    fn end(&mut self, outcome: &Outcome, user: u32) {
        self.tally.end(outcome);
        if let Some(log) = &mut self.log {
            log.push(outcome, user, self.slots.len() - self.vacant.len());
        }
    }

    fn close(&mut self, index: u32) {
        let Some(slot) = self.slots[index as usize].take() else { return };
        if slot.phase != Phase::Open {
            self.connecting -= 1;
        }
        if slot.idle {
            self.idle.retain(|i| *i != index);
        }
        let generation = &mut self.generations[index as usize];
        *generation = generation.wrapping_add(1);
        self.vacant.push(index);
    }

    /// What is done from time to time: timeouts, and the report of each second.
    fn tick(&mut self, now: Nanos) {
        let plan = self.shared.plan;
        self.expire(now);
        let backlog = self.feed.backlog(now);
        self.tally.see_backlog(backlog);
        self.tally.note_cpu(now, thread_cpu());
        let second = now.0 / Nanos::SECOND.0;
        if second > self.second {
            self.publish(backlog);
            self.second = second;
        }
        let next_second = Nanos::from_secs(second + 1);
        let scan = Nanos((plan.timeout.0 / 20).clamp(1_000_000, 100_000_000));
        self.next_tick = next_second.min(now + scan);
    }

    fn expire(&mut self, now: Nanos) {
        let timeout = self.shared.plan.timeout;
        for index in 0..self.slots.len() {
            let since = self.slots[index].as_ref().and_then(Slot::waits_since);
            if since.is_some_and(|since| now - since > timeout) {
                self.fail(index as u32, Failure::Timeout, || format!("no answer within {timeout}"));
            }
        }
    }

    fn publish(&mut self, backlog: u64) {
        let interval = self.tally.take_interval(backlog);
        // The receiver is gone only when the run is given up.
        let _ = self.reports.send(Report::Second(self.second, interval));
    }

    /// Nothing is on its way and nothing is to come.
    fn is_done(&mut self) -> bool {
        if self.tally.in_flight() > 0 {
            return false;
        }
        self.claim();
        self.feed.next_due().is_none()
    }

    fn finish(mut self) {
        let now = self.shared.clock.now();
        self.feed.stop(now.min(self.shared.plan.until));
        self.publish(0);
        self.tally.note_cpu(now, thread_cpu());
        self.tally.close(now, self.feed.dropped());
        drop(self.log.take());
        let _ = self.reports.send(Report::Done(Box::new(self.tally)));
    }
}

fn kind_of(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidData => Failure::Tls,
        io::ErrorKind::UnexpectedEof => Failure::Closed,
        _ => Failure::Reset,
    }
}
