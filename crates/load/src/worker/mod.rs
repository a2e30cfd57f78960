//! One generator thread: an event loop with its own connections, part of the schedule and recorder.
//!
//! Closed and open loop are the same code: [`Feed`] decides what a free connection does. In the closed loop at full
//! speed a request costs one `read`, one `write` and one look at the clock. In the open loop it costs one wake-up: the
//! loop sleeps until the next send is due, sends, and then reads the responses that came meanwhile, whose arrival the
//! kernel has timed ([`weir_http::kernel_timestamps`]).

mod connect;
mod context;
mod held_record;
mod program_call;
mod receive;
mod requests;
mod step_results;
mod stopping;
mod users;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

pub(super) use self::context::{RunControl, WorkerContext, WorkerReport};
use self::held_record::HeldRecord;
pub(super) use self::program_call::{OpenCall, ProgramCallSlot};
use super::connection::ConnectionPhase;
use super::connections::ConnectionTable;
use super::counters::WorkerCounters;
use super::poller::ReadinessEvent;
use super::request_log::ThreadLog;
use super::steps::{StepTrace, UserTable};
use weir_decide::Nanos;
use weir_decide::base::failure::FailureKind;
use weir_decide::load::feed::Feed;
use weir_http::wire::HeadCache;
use weir_machine::clock::{Clock, WallOffset, minimize_timer_slack, thread_cpu};
use weir_measure::outcome::Outcome;

pub(super) struct Worker<'a> {
    shared: &'a WorkerContext<'a>,
    /// Number of the thread.
    index: u64,
    clock: Clock,
    feed: Feed,
    connections: ConnectionTable,
    /// Connections to make before the start.
    preconnect: usize,
    counters: Box<WorkerCounters>,
    /// In place of the others while they are lent; only with calls of a program that may block.
    spare_counters: Option<Box<WorkerCounters>>,
    reports: Sender<WorkerReport>,
    log: Option<ThreadLog>,
    cache: HeadCache,
    buffer: Box<[u8]>,
    scratch: Vec<u8>,
    /// Users of scenarios or a program; `None` for requests of the plan.
    users: Option<UserTable<'a>>,
    /// Responses that a program has not decided about, by the numbers that it gave them.
    held: HashMap<u64, HeldRecord>,
    /// Whether the program has ended this thread.
    is_stopped: bool,
    /// Whether the load is over, and users do what they do at their end.
    is_stopping: bool,
    /// Listener of requests and responses of steps.
    trace: Option<Sender<StepTrace>>,
    /// Date, in seconds since 1970, as of the last iteration.
    unix_s: i64,
    /// Connections with more data than one turn reads.
    unread: Vec<ReadinessEvent>,
    /// Present while the kernel timestamps responses.
    wall: Option<WallOffset>,
    /// Time of the next look for responses, where the kernel timestamps them.
    next_read: Nanos,
    interval: u64,
    next_tick: Nanos,
}

/// Maximum number of requests started at a time.
const MAX_STARTS: usize = 64;
/// Longest sleep, within which a stop is noticed.
const MAX_SLEEP: Nanos = Nanos::from_millis(50);
/// If the next send is due within this time, responses wait until then.
const SPIN_THRESHOLD: Nanos = Nanos::from_millis(1);
/// Interval of reads of timestamped responses: several at a time cost less each.
const READ_INTERVAL: Nanos = Nanos::from_millis(1);
/// Shortest sleep that ends in time.
const MIN_SLEEP: Nanos = Nanos(3_000);

impl<'a> Worker<'a> {
    pub(super) fn new(
        shared: &'a WorkerContext<'a>,
        index: u64,
        reports: Sender<WorkerReport>,
        (log, trace): (Option<ThreadLog>, Option<Sender<StepTrace>>),
        users: Option<UserTable<'a>>,
    ) -> io::Result<Self> {
        let plan = shared.plan;
        let clock = Clock::starting_in(Nanos::ZERO);
        let counters = || Box::new(WorkerCounters::new(plan.warmup, plan.until));
        let stamped = matches!(plan.pacing, super::plan::Pacing::Open(_)) && !plan.spin;
        Ok(Self {
            shared,
            index,
            clock,
            feed: plan.feed(index, plan.threads),
            connections: ConnectionTable::new(plan.connections_of(index), plan.threads)?,
            preconnect: plan.preconnect_of(index),
            counters: counters(),
            spare_counters: (!shared.control.calls.is_empty()).then(counters),
            reports,
            log,
            cache: HeadCache::default(),
            buffer: vec![0; receive::READ_BUFFER_BYTES].into_boxed_slice(),
            scratch: Vec::new(),
            users,
            held: HashMap::new(),
            is_stopped: false,
            is_stopping: false,
            trace,
            unix_s: 0,
            unread: Vec::new(),
            wall: stamped.then(|| clock.wall_offset()),
            next_read: Nanos::ZERO,
            interval: 0,
            next_tick: Nanos::ZERO,
        })
    }

    /// Executes its part of the plan to the end.
    pub(super) fn run(mut self) {
        minimize_timer_slack();
        self.preconnect();
        self.start_together();
        self.counters.counts().began = self.clock.now();
        if let Some(log) = &mut self.log {
            let start = || self.clock.wall_offset().unix_ns(Nanos::ZERO);
            log.set_start(*self.shared.started_unix_ns.get_or_init(start));
        }
        self.record_cpu(Nanos::ZERO);
        let mut ready = Vec::with_capacity(256);
        while !self.is_stopped && !self.shared.control.is_stopped() && !self.is_done() {
            self.turn(&mut ready);
        }
        self.stop_users(&mut ready);
        self.finish();
    }

    /// Waits for something to do, and does it.
    #[inline]
    fn turn(&mut self, ready: &mut Vec<ReadinessEvent>) {
        let mut polled = self.wait(ready);
        if !polled && !self.connections.has_idle() {
            // A response that frees a connection is better than a new connection.
            self.poll(Nanos::ZERO, ready);
            self.drain_events(ready);
            polled = true;
        }
        self.start_due();
        if !polled && (!self.responses_wait() || self.clock.now() >= self.next_read) {
            self.poll(Nanos::ZERO, ready);
        }
        self.drain_events(ready);
        let now = self.clock.now();
        if now >= self.next_tick {
            self.tick(now);
        }
    }

    /// Waits for the other workers, and for the run's clock.
    fn start_together(&mut self) {
        let shared = self.shared;
        if shared.ready.fetch_add(1, Ordering::AcqRel) + 1 == shared.plan.threads {
            shared.start_gate.set_ready();
        }
        // Not a barrier: a worker that failed to start would block the others.
        while !shared.control.is_stopped() {
            if let Some(clock) = shared.start_gate.wait(MAX_SLEEP) {
                self.clock = *clock;
                break;
            }
        }
        self.clock.sleep_until(Nanos::ZERO);
    }

    /// Waits until there is work. True if it has polled for events (otherwise the caller does, after its sends).
    fn wait(&mut self, ready: &mut Vec<ReadinessEvent>) -> bool {
        if !self.unread.is_empty() {
            self.poll(Nanos::ZERO, ready);
            ready.append(&mut self.unread);
            return true;
        }
        self.refill_permits();
        let now = self.clock.now();
        let due = match &self.users {
            Some(_) => self.next_user_due(),
            None if self.connections.can_start() => self.feed.next_due(),
            None => None,
        };
        let until = due.unwrap_or(Nanos::NEVER).min(self.next_tick).min(now + MAX_SLEEP);
        let gap = until - now;
        if gap < MIN_SLEEP || self.shared.plan.spin {
            return false;
        }
        if self.responses_wait() && due.is_some_and(|t| t - now <= SPIN_THRESHOLD) {
            self.clock.sleep_until(until);
            return false;
        }
        self.poll(gap, ready);
        true
    }

    /// Whether responses can be read later than they arrive: the kernel timestamps them, and nothing is done on
    /// them at once, unlike with users of scenarios.
    fn responses_wait(&self) -> bool {
        self.wall.is_some() && self.users.is_none()
    }

    fn poll(&mut self, most: Nanos, ready: &mut Vec<ReadinessEvent>) {
        // Fails only for a closed or wrong descriptor, and this one is owned; a stop is noticed all the same.
        if self.connections.wait(most, ready).is_err() {
            self.shared.control.stop();
        }
    }

    fn drain_events(&mut self, ready: &mut Vec<ReadinessEvent>) {
        if self.wall.is_some() && !ready.is_empty() {
            self.wall = Some(self.clock.wall_offset());
            self.next_read = self.clock.now() + READ_INTERVAL;
        }
        for event in ready.drain(..) {
            self.handle(event);
        }
    }

    /// Starts what is due: requests of the plan, or users of scenarios.
    fn start_due(&mut self) {
        if self.users.is_some() { self.start_users() } else { self.start_requests() }
    }

    /// Claims new tickets of the closed loop before it runs out of them.
    #[inline]
    fn refill_permits(&mut self) {
        let Feed::Closed(feed) = &mut self.feed else { return };
        if feed.permits_remaining() > 0 {
            return;
        }
        let plan = self.shared.plan;
        let total = plan.limit.map_or(u64::MAX / 2, |limit| plan.shard.count(limit));
        // Few at a time near the end, so that threads finish together.
        let left = total.saturating_sub(self.shared.claimed.load(Ordering::Relaxed));
        let want = (left / (plan.threads * 8)).clamp(1, 64);
        let first = self.shared.claimed.fetch_add(want, Ordering::Relaxed);
        feed.grant(first.min(total)..(first + want).min(total));
    }

    fn handle(&mut self, event: ReadinessEvent) {
        let Some(index) = self.connections.owner(&event) else { return };
        let Some(slot) = self.connections.get(index) else { return };
        match slot.phase {
            ConnectionPhase::Open => {
                if event.writable && (slot.has_unsent() || slot.stream.has_pending_tls()) {
                    let now = self.clock.now();
                    self.write(index, now);
                }
                if event.readable {
                    self.read(event, index);
                }
            }
            ConnectionPhase::Connecting if event.writable => {
                self.connected(index);
                // A service that sends first: its bytes have no event of their own.
                let is_open = self.connections.get(index).is_some_and(|slot| slot.phase == ConnectionPhase::Open);
                if event.readable && is_open && self.connections.owner(&event).is_some() {
                    self.read(event, index);
                }
            }
            ConnectionPhase::Handshaking => self.handshake(index),
            ConnectionPhase::Connecting => {}
        }
    }

    #[inline]
    fn write(&mut self, index: u32, now: Nanos) {
        let requests = &self.shared.plan.requests;
        let Some(slot) = self.connections.get(index) else { return };
        let written = slot.write(requests, now);
        let flushed = written.and_then(|()| slot.stream.flush());
        // A peer that has closed may still have sent a response (413, say): reading shows which it is.
        if let Err(error) = flushed
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            self.fail(index, failure_of(&error), || error.to_string());
        }
    }

    /// Records the end of a request.
    #[inline]
    fn end(&mut self, outcome: &Outcome, user: u32) {
        self.counters.end(outcome);
        if let Some(log) = &mut self.log {
            log.push(outcome, user, self.connections.in_use(), 0, "");
        }
    }

    /// Records a request of a step that has left the system.
    fn finish_request(&mut self, outcome: &Outcome, user: u32, step: u32, message: &str) {
        self.counters.record(outcome);
        if let Some(log) = &mut self.log {
            log.push(outcome, user, self.connections.in_use(), step, message);
        }
    }

    /// Periodic work: timeouts, and the report of each interval.
    fn tick(&mut self, now: Nanos) {
        let plan = self.shared.plan;
        self.expire(now);
        let backlog = self.feed.backlog(now);
        self.counters.record_backlog(backlog);
        self.record_cpu(now);
        let stretch = now.0 / plan.interval.0;
        if stretch > self.interval {
            self.publish(backlog);
            self.interval = stretch;
        }
        let next_stretch = Nanos((stretch + 1) * plan.interval.0);
        let scan = Nanos((plan.timeout.0 / 20).clamp(1_000_000, 100_000_000));
        self.next_tick = next_stretch.min(now + scan);
    }

    fn record_cpu(&mut self, now: Nanos) {
        let script = self.users.as_mut().map(UserTable::take_script_time).unwrap_or_default();
        self.counters.record_cpu(now, thread_cpu(), script);
    }

    fn expire(&mut self, now: Nanos) {
        for index in self.connections.indices() {
            let Some(slot) = self.connections.get(index) else { continue };
            let timeout = slot.step.as_ref().and_then(|step| step.timeout).unwrap_or(self.shared.plan.timeout);
            if slot.waiting_since().is_some_and(|since| now - since > timeout) {
                self.fail(index, FailureKind::Timeout, || format!("no response within {timeout}"));
            }
        }
    }

    fn publish(&mut self, backlog: u64) {
        let mut interval = self.counters.take_interval(backlog);
        if self.shared.per_interval {
            self.counters.take_offers(&mut self.feed);
            interval.counts = Some(self.counters.take_counts());
        }
        // The receiver is dropped only when the run is abandoned.
        let _ = self.reports.send(WorkerReport::Interval(self.interval, interval));
    }

    /// Whether nothing is in flight or to come.
    fn is_done(&mut self) -> bool {
        if self.counters.in_flight() > 0 {
            return false;
        }
        if let Some(users) = &self.users {
            let is_over = self.clock.now() >= self.shared.plan.until;
            // Users whose iterations are cut off take no arrival that waits.
            if is_over || !users.is_quiet() {
                return is_over;
            }
        }
        self.refill_permits();
        self.feed.next_due().is_none()
    }

    fn finish(mut self) {
        let now = self.clock.now();
        self.feed.stop(now.min(self.shared.plan.until));
        if let Some(users) = &mut self.users {
            let counts = self.counters.counts();
            users.cut(|scenario| counts.scenario(scenario).cut += 1);
        }
        self.release_all();
        self.record_cpu(now);
        // What a program does at its end may block as well.
        self.lend_results(u32::MAX);
        self.users = None;
        self.take_results();
        self.publish(0);
        self.counters.close(now);
        drop(self.log.take());
        self.counters.take_offers(&mut self.feed);
        let _ = self.reports.send(WorkerReport::Done(self.counters.take_counts()));
    }
}

fn failure_of(error: &io::Error) -> FailureKind {
    match error.kind() {
        io::ErrorKind::InvalidData => FailureKind::Tls,
        io::ErrorKind::UnexpectedEof => FailureKind::Closed,
        _ => FailureKind::Reset,
    }
}
