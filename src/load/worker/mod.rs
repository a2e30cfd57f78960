//! One generator thread: an event loop that owns its connections, its share of the schedule and its record.
//!
//! Closed and open loop are the same code: [`Feed`] says what a free connection does. In the closed loop at full speed
//! a request costs one `read`, one `write` and one look at the clock. In the open loop it costs one wake-up: the loop
//! sleeps until the next send is due, sends, and then reads the answers that came meanwhile, whose true time of arrival
//! the kernel has noted ([`crate::http::stamp`]).

mod connect;
mod receive;

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use super::beginning::Beginning;
use super::plan::Plan;
use super::poller::Ready;
use super::slot::{Flight, Phase};
use super::table::Table;
use super::tally::Tally;
use crate::decide::Nanos;
use crate::decide::feed::{Feed, Start};
use crate::http::target::Address;
use crate::http::wire::HeadCache;
use crate::machine::clock::{Clock, WallOffset, sharpen_sleeps, thread_cpu};
use crate::measure::Counted;
use crate::measure::outcome::{Failure, Outcome};
use crate::measure::recorder::Interval;
use crate::report::jtl::Lines;

/// What all workers of a run share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) address: &'a Address,
    pub(super) beginning: &'a Beginning,
    /// How many workers are ready; the last of them says so.
    pub(super) ready: AtomicU64,
    /// Whether all that is counted is told after each stretch, and not at the end alone.
    pub(super) in_parts: bool,
    /// Set once, to have all stop at once.
    pub(super) stop: AtomicBool,
    /// The next request number that nobody has claimed (closed loop).
    pub(super) claimed: AtomicU64,
    /// When the run began, in nanoseconds since 1970, once a worker has found out.
    pub(super) started_unix_ns: OnceLock<u64>,
}

/// What a worker reports: once a stretch, and at its end.
#[derive(Debug)]
pub(super) enum Report {
    /// What happened in stretch number `.0`.
    Stretch(u64, Box<Interval>),
    /// It is done; what it counted and has not told yet.
    Done(Box<Counted>),
}

pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    clock: Clock,
    feed: Feed,
    table: Table,
    /// Connections to make before the start.
    preconnect: usize,
    tally: Tally,
    reports: Sender<Report>,
    log: Option<Lines>,
    cache: HeadCache,
    buffer: Box<[u8]>,
    scratch: Vec<u8>,
    /// Connections with more to read than had its turn.
    unread: Vec<Ready>,
    /// Present while answers are timed by the kernel.
    wall: Option<WallOffset>,
    /// When answers are looked for again, where the kernel times them.
    next_harvest: Nanos,
    stretch: u64,
    next_tick: Nanos,
}

/// Requests that are started in one go.
const MOST_STARTS: usize = 64;
/// The longest sleep: a stop is noticed within it.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(50);
/// If the next send is due within this time, answers are left to wait until then.
const DOZE: Nanos = Nanos::from_millis(1);
/// Answers that the kernel times are read this often: several at a time cost less each.
const HARVEST: Nanos = Nanos::from_millis(1);
/// A sleep shorter than this would end too late.
const SHORTEST_SLEEP: Nanos = Nanos(3_000);

impl<'a> Worker<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        index: u64,
        reports: Sender<Report>,
        log: Option<Lines>,
    ) -> io::Result<Self> {
        let plan = shared.plan;
        let clock = Clock::starting_in(Nanos::ZERO);
        let stamped = matches!(plan.pace, super::plan::Pace::Open(_)) && !plan.spin;
        Ok(Self {
            shared,
            clock,
            feed: plan.feed(index, plan.threads),
            table: Table::new(plan.connections_of(index), plan.threads)?,
            preconnect: plan.preconnect_of(index),
            tally: Tally::new(plan.warmup, plan.until),
            reports,
            log,
            cache: HeadCache::default(),
            buffer: vec![0; receive::READ_BUFFER].into_boxed_slice(),
            scratch: Vec::new(),
            unread: Vec::new(),
            wall: stamped.then(|| clock.wall_offset()),
            next_harvest: Nanos::ZERO,
            stretch: 0,
            next_tick: Nanos::ZERO,
        })
    }

    /// Drives its share of the plan to the end.
    pub(super) fn run(mut self) {
        sharpen_sleeps();
        self.preconnect();
        self.start_together();
        self.tally.began = self.clock.now();
        if let Some(log) = &mut self.log {
            let start = || self.clock.wall_offset().unix_ns(Nanos::ZERO);
            log.begin(*self.shared.started_unix_ns.get_or_init(start));
        }
        self.tally.note_cpu(Nanos::ZERO, thread_cpu());
        let mut ready = Vec::with_capacity(256);
        while !self.shared.stop.load(Ordering::Relaxed) && !self.is_done() {
            let mut polled = self.rest(&mut ready);
            if !polled && !self.table.has_idle() {
                // Better an answer that frees a connection than a new connection.
                self.poll(Nanos::ZERO, &mut ready);
                self.work_off(&mut ready);
                polled = true;
            }
            self.pump();
            if !polled && self.clock.now() >= self.next_harvest {
                self.poll(Nanos::ZERO, &mut ready);
            }
            self.work_off(&mut ready);
            let now = self.clock.now();
            if now >= self.next_tick {
                self.tick(now);
            }
        }
        self.finish();
    }

    /// Waits for the other workers and takes the run's clock.
    fn start_together(&mut self) {
        let shared = self.shared;
        if shared.ready.fetch_add(1, Ordering::AcqRel) + 1 == shared.plan.threads {
            shared.beginning.ready();
        }
        // Not a barrier: a worker that could never start would hold the others for ever.
        while !shared.stop.load(Ordering::Relaxed) {
            if let Some(clock) = shared.beginning.wait(LONGEST_SLEEP) {
                self.clock = *clock;
                break;
            }
        }
        self.clock.sleep_until(Nanos::ZERO);
    }

    /// Waits until there is something to do. Whether it has asked for events (else the caller does, after its sends).
    fn rest(&mut self, ready: &mut Vec<Ready>) -> bool {
        if !self.unread.is_empty() {
            self.poll(Nanos::ZERO, ready);
            ready.append(&mut self.unread);
            return true;
        }
        self.claim();
        let now = self.clock.now();
        let can_start = self.table.can_start();
        let due = if can_start { self.feed.next_due() } else { None };
        let until = due.unwrap_or(Nanos::NEVER).min(self.next_tick).min(now + LONGEST_SLEEP);
        let gap = until - now;
        if gap < SHORTEST_SLEEP || self.shared.plan.spin {
            return false;
        }
        if self.wall.is_some() && due.is_some_and(|t| t - now <= DOZE) {
            self.clock.sleep_until(until);
            return false;
        }
        self.poll(gap, ready);
        true
    }

    fn poll(&mut self, most: Nanos, ready: &mut Vec<Ready>) {
        // Cannot fail but for a closed or wrong descriptor, and this one is ours; a stop is noticed all the same.
        if self.table.wait(most, ready).is_err() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    fn work_off(&mut self, ready: &mut Vec<Ready>) {
        if self.wall.is_some() && !ready.is_empty() {
            self.wall = Some(self.clock.wall_offset());
            self.next_harvest = self.clock.now() + HARVEST;
        }
        for event in ready.drain(..) {
            self.handle(event);
        }
    }

    /// Starts what the clock asks for; not too much at a time, for answers must be read too.
    fn pump(&mut self) {
        for _ in 0..MOST_STARTS {
            if !self.table.can_start() {
                return;
            }
            self.claim();
            let now = self.clock.now();
            let Some(start) = self.feed.due(now) else { return };
            match self.table.take_idle(now) {
                Some(index) => self.start_on(index, &start, now),
                None => self.connect(&start, start.arrival.intended, now),
            }
        }
    }

    /// Gets the closed loop new tickets before it runs out of them.
    #[inline]
    fn claim(&mut self) {
        let Feed::Closed(feed) = &mut self.feed else { return };
        if feed.tickets_left() > 0 {
            return;
        }
        let plan = self.shared.plan;
        let total = plan.limit.map_or(u64::MAX / 2, |limit| plan.deal.count(limit));
        // Few at a time near the end, so that no thread has work left when the others have none.
        let left = total.saturating_sub(self.shared.claimed.load(Ordering::Relaxed));
        let want = (left / (plan.threads * 8)).clamp(1, 64);
        let first = self.shared.claimed.fetch_add(want, Ordering::Relaxed);
        feed.grant(first.min(total)..(first + want).min(total));
    }

    /// The idle connection `index` takes a request.
    fn start_on(&mut self, index: u32, start: &Start, now: Nanos) {
        let request = self.shared.plan.source.pick(start.arrival.number);
        self.tally.begin(start.arrival.intended, now);
        if let Some(slot) = self.table.get(index) {
            slot.user = start.user;
            slot.push(Flight::new(start, start.arrival.intended, request));
            self.go_on(index, now, now);
        }
    }

    fn handle(&mut self, event: Ready) {
        let Some(index) = self.table.owner(&event) else { return };
        let Some(slot) = self.table.get(index) else { return };
        match slot.phase {
            Phase::Open => {
                if event.writable && (slot.has_unsent() || slot.stream.holds_back()) {
                    let now = self.clock.now();
                    self.write(index, now);
                }
                if event.readable {
                    self.read(event, index);
                }
            }
            Phase::Connecting if event.writable => {
                self.connected(index);
                // A service that speaks first: its bytes have no event of their own.
                let is_open = self.table.get(index).is_some_and(|slot| slot.phase == Phase::Open);
                if event.readable && is_open && self.table.owner(&event).is_some() {
                    self.read(event, index);
                }
            }
            Phase::Handshaking => self.handshake(index),
            Phase::Connecting => {}
        }
    }

    /// Fills the connection with what its user, or the schedule, has for it, and writes it; without anything it is
    /// idle, or closed for good. It has been `free` since then: what was meant to start later waited for weir alone.
    #[inline]
    fn go_on(&mut self, index: u32, free: Nanos, now: Nanos) {
        let plan = self.shared.plan;
        // Waiting arrivals had no connection only if none could be had.
        let capped = self.table.is_exhausted();
        self.claim();
        let Some(mut slot) = self.table.get(index) else { return };
        while slot.flights.len() < plan.pipeline {
            let Some(start) = self.feed.again(slot.user, now) else { break };
            let ready = self.tally.ready(start.arrival.intended, capped, free);
            self.tally.begin(start.arrival.intended, now);
            slot.push(Flight::new(&start, ready, plan.source.pick(start.arrival.number)));
            if slot.flights.len() < plan.pipeline {
                self.claim();
                let Some(same) = self.table.get(index) else { return };
                slot = same;
            }
        }
        if !slot.flights.is_empty() {
            self.write(index, now);
        } else if matches!(self.feed, Feed::Open(_)) {
            self.table.set_idle(index, now);
        } else {
            self.table.close(index);
        }
    }

    #[inline]
    fn write(&mut self, index: u32, now: Nanos) {
        let requests = &self.shared.plan.requests;
        let Some(slot) = self.table.get(index) else { return };
        let written = slot.write(requests, now);
        let flushed = written.and_then(|()| slot.stream.flush());
        // A peer that has closed may still have sent an answer (413, say): reading on tells which it is.
        if let Err(error) = flushed
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            self.fail(index, kind_of(&error), || error.to_string());
        }
    }

    /// A request has ended.
    #[inline]
    fn end(&mut self, outcome: &Outcome, user: u32) {
        self.tally.end(outcome);
        if let Some(log) = &mut self.log {
            log.push(outcome, user, self.table.in_use());
        }
    }

    /// What is done from time to time: timeouts, and the report of each stretch.
    fn tick(&mut self, now: Nanos) {
        let plan = self.shared.plan;
        self.expire(now);
        let backlog = self.feed.backlog(now);
        self.tally.see_backlog(backlog);
        self.tally.note_cpu(now, thread_cpu());
        let stretch = now.0 / plan.stretch.0;
        if stretch > self.stretch {
            self.publish(backlog);
            self.stretch = stretch;
        }
        let next_stretch = Nanos((stretch + 1) * plan.stretch.0);
        let scan = Nanos((plan.timeout.0 / 20).clamp(1_000_000, 100_000_000));
        self.next_tick = next_stretch.min(now + scan);
    }

    fn expire(&mut self, now: Nanos) {
        let timeout = self.shared.plan.timeout;
        for index in self.table.indices() {
            let since = self.table.get(index).and_then(|slot| slot.waits_since());
            if since.is_some_and(|since| now - since > timeout) {
                self.fail(index, Failure::Timeout, || format!("no answer within {timeout}"));
            }
        }
    }

    fn publish(&mut self, backlog: u64) {
        let mut interval = self.tally.take_interval(backlog);
        interval.counted = self.shared.in_parts.then(|| self.tally.take(&self.feed));
        // The receiver is gone only when the run is given up.
        let _ = self.reports.send(Report::Stretch(self.stretch, interval));
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
        let now = self.clock.now();
        self.feed.stop(now.min(self.shared.plan.until));
        self.publish(0);
        self.tally.note_cpu(now, thread_cpu());
        self.tally.close(now);
        drop(self.log.take());
        let _ = self.reports.send(Report::Done(self.tally.take(&self.feed)));
    }
}

fn kind_of(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidData => Failure::Tls,
        io::ErrorKind::UnexpectedEof => Failure::Closed,
        _ => Failure::Reset,
    }
}
