//! One generator thread: an event loop with its own connections, part of the schedule and recorder.
//!
//! Closed and open loop are the same code: [`Feed`] decides what a free connection does. In the closed loop at full
//! speed a request costs one `read`, one `write` and one reading of the clock. In the open loop it costs one wake-up:
//! the loop sleeps until the next send is due, sends, and then reads the responses that came meanwhile, whose arrival
//! the kernel has timed ([`weir_machine::system::receive_timestamps`]).

mod changes;
mod connect;
mod context;
mod event_streams;
mod flow;
mod http2;
mod periodic;
mod plan_requests;
mod planned_end;
mod program_call;
mod readiness;
mod receive;
mod users;
mod websocket;
mod worker_results;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

pub(super) use self::context::{RunControl, WorkerContext, WorkerReport};
use self::event_streams::StreamObservers;
pub(super) use self::flow::Flow;
use self::http2::StreamWork;
pub(super) use self::plan_requests::PlanRequests;
pub(super) use self::program_call::{OpenCall, ProgramCallSlot};
pub(super) use self::users::UserRequests;
pub(super) use self::websocket::WebSocketMessages;
use self::worker_results::WorkerResults;
use super::connections::ConnectionTable;
use super::counters::WorkerCounters;
use super::request_log::ThreadLog;
use weir_base::Nanos;
use weir_machine::clock::{Clock, WallOffset, minimize_timer_slack};
use weir_machine::readiness_event::ReadinessEvent;
use weir_machine::system::receive_timestamps;
use weir_measure::outcome::Outcome;
use weir_net::wire::HeadCache;
use weir_pace::feed::Feed;

pub(super) struct Worker<'a, F: Flow> {
    shared: &'a WorkerContext<'a>,
    /// Number of the thread.
    index: u64,
    clock: Clock,
    feed: Feed,
    flow: F,
    connections: ConnectionTable<F::Exchange>,
    /// Connections to make before the start.
    preconnect: usize,
    /// State of HTTP/2 besides the connections.
    streams: StreamWork<F::Exchange>,
    /// Observers of responses as streams; `None` if responses are not observed.
    observers: Option<StreamObservers>,
    results: WorkerResults,
    reports: Sender<WorkerReport>,
    reading: Reading,
    next_tick: Nanos,
    /// End of the load, and the number of its changes so far.
    until: Nanos,
    version: u64,
    /// End of what a change may start; zero if none is possible.
    may_change_until: Nanos,
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

impl<'a, F: Flow> Worker<'a, F> {
    /// Thread number `index`.
    pub(super) fn new(
        shared: &'a WorkerContext<'a>,
        index: u64,
        reports: Sender<WorkerReport>,
        log: Option<ThreadLog>,
        flow: F,
    ) -> io::Result<Self> {
        let plan = shared.plan;
        let clock = Clock::starting_in(Nanos::ZERO);
        let is_open = !matches!(plan.pacing, super::plan::Pacing::Closed(_));
        // Events that wait for a late thread keep their times.
        let stamped = receive_timestamps::ARE_SUPPORTED && (is_open || plan.streams.is_some()) && !plan.spin;
        Ok(Self {
            shared,
            index,
            clock,
            feed: plan.feed(index, plan.threads),
            observers: StreamObservers::of(plan, flow.may_read_events()),
            flow,
            connections: ConnectionTable::new(plan.connections_of(index), plan.threads)?,
            preconnect: plan.preconnect_of(index),
            streams: StreamWork::default(),
            results: WorkerResults { counters: WorkerCounters::of(plan), interval: 0, log },
            reports,
            reading: Reading::new(stamped.then(|| clock.wall_offset())),
            next_tick: Nanos::ZERO,
            until: plan.until,
            version: 0,
            may_change_until: match &plan.control {
                Some(control) if !plan.has_own_pace() => control.load().until(),
                _ => Nanos::ZERO,
            },
        })
    }

    /// Executes its part of the plan to the end.
    pub(super) fn run(mut self) {
        minimize_timer_slack();
        self.preconnect();
        let users = self.shared.plan.users_of(self.index);
        self.flow.make_users(users);
        self.start_together();
        self.results.counters.counts().began = self.clock.now();
        if let Some(log) = &mut self.results.log {
            let start = || self.clock.wall_offset().unix_ns(Nanos::ZERO);
            log.set_start(*self.shared.started_unix_ns.get_or_init(start));
        }
        self.record_cpu(Nanos::ZERO);
        let mut ready = Vec::with_capacity(256);
        while !self.flow.is_stopped() && !self.shared.control.is_stopped() && !self.is_done() {
            self.turn(&mut ready);
        }
        F::stop(&mut self, &mut ready);
        self.finish();
    }

    /// Waits for something to do, and does it.
    #[inline]
    fn turn(&mut self, ready: &mut Vec<ReadinessEvent>) {
        let mut polled = self.wait(ready);
        if !polled && !F::has_idle(self) {
            // A response that frees a connection is better than a new connection.
            self.poll(Nanos::ZERO, ready);
            self.drain_events(ready);
            polled = true;
        }
        // After the wait: one that wakes late would send by what no longer holds.
        self.take_changes();
        self.start_due();
        // Once per turn, where most are in flight, and not per request.
        self.results.counters.sample_in_flight();
        if !polled && (!self.responses_wait() || self.clock.now() >= self.reading.next_read) {
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
        if !self.reading.unread.is_empty() {
            self.poll(Nanos::ZERO, ready);
            ready.append(&mut self.reading.unread);
            return true;
        }
        self.refill_permits();
        let now = self.clock.now();
        let has_moved = !self.streams.moved.is_empty() && self.connections.can_start();
        let due = if has_moved { Some(now) } else { F::next_due(self) };
        let due = due.into_iter().chain(self.next_message()).min();
        let until = due.unwrap_or(Nanos::NEVER).min(self.next_tick).min(now + MAX_SLEEP);
        let gap = until - now;
        if gap < MIN_SLEEP || self.shared.plan.spin {
            return false;
        }
        if self.responses_wait() && due.is_some_and(|t| t - now <= SPIN_THRESHOLD) {
            self.clock.sleep_until(until);
            return false;
        }
        if self.observers.is_some() && self.reading.next_read - now >= MIN_SLEEP {
            self.clock.sleep_until(until.min(self.reading.next_read));
            return false;
        }
        self.poll(gap, ready);
        true
    }

    /// Whether reads may be batched: arrival times come from the kernel, and no response causes an immediate send. Of
    /// several responses in one read only the last one's time is known.
    fn responses_wait(&self) -> bool {
        F::READS_TOGETHER
            && self.reading.wall.is_some()
            && self.observers.is_none()
            && self.shared.http2.as_ref().is_none_or(|http2| http2.streams == 1)
    }

    fn poll(&mut self, most: Nanos, ready: &mut Vec<ReadinessEvent>) {
        // Fails only for a closed or wrong descriptor, and this one is owned; a stop is noticed all the same.
        if self.connections.wait(most, ready).is_err() {
            self.shared.control.stop();
        }
    }

    fn drain_events(&mut self, ready: &mut Vec<ReadinessEvent>) {
        if self.reading.wall.is_some() && !ready.is_empty() {
            self.reading.wall = Some(self.clock.wall_offset());
            let now = self.clock.now();
            self.reading.next_read = now + if self.observers.is_some() { self.read_wait(now) } else { READ_INTERVAL };
        }
        for event in ready.drain(..) {
            self.handle(event);
        }
        // What responses over HTTP/1.1 have led to.
        self.flush_streams();
    }

    /// Starts what is due.
    fn start_due(&mut self) {
        F::start_due(self);
        self.resume_messages();
        self.flush_streams();
    }

    /// Claims new tickets of the closed loop before it runs out of them, and takes arrivals that come from outside.
    #[inline]
    fn refill_permits(&mut self) {
        let feed = match &mut self.feed {
            Feed::Closed(feed) => feed,
            Feed::Open(feed) => {
                if let Some(queue) = feed.queue().filter(|queue| queue.wants_more()) {
                    self.flow.refill(queue);
                    queue.looked(self.clock.now());
                }
                return;
            }
        };
        if feed.permits_remaining() > 0 || !feed.has_demand() {
            return;
        }
        let plan = self.shared.plan;
        let total = plan.limit.map_or(u64::MAX / 2, |limit| plan.shard.count(limit));
        // Few at a time near the end, so that threads finish together.
        let left = total.saturating_sub(self.shared.claimed.load(Ordering::Relaxed));
        let want = (left / (plan.threads * 8)).clamp(1, F::MAX_CLAIM);
        let first = self.shared.claimed.fetch_add(want, Ordering::Relaxed);
        feed.grant(first.min(total)..(first + want).min(total));
    }

    /// Logs a request that has ended; `step` is 0 for requests of the plan.
    #[inline]
    fn log_request(&mut self, outcome: &Outcome, user: u32, step: u32, message: &str) {
        if let Some(log) = &mut self.results.log {
            log.push(outcome, user, self.connections.in_use(), step, message);
        }
    }

    fn finish(mut self) {
        let now = self.clock.now();
        self.feed.stop(now.min(self.until));
        // Before the end of the flow, which takes the time within its script with it.
        self.record_cpu(now);
        self.cut_observed(now);
        F::finish(&mut self);
        self.publish(0);
        let mut results = self.results;
        results.counters.close(now);
        drop(results.log.take());
        results.counters.take_offers(&mut self.feed);
        let _ = self.reports.send(WorkerReport::Done(results.counters.take_counts()));
    }
}

/// How a thread reads: buffers, and the times of reads that the kernel timestamps.
struct Reading {
    cache: HeadCache,
    buffer: Box<[u8]>,
    scratch: Vec<u8>,
    /// Connections with more data than one turn reads.
    unread: Vec<ReadinessEvent>,
    /// Present while the kernel timestamps responses.
    wall: Option<WallOffset>,
    /// Time of the next look for responses, or for events of streams, where the kernel timestamps them.
    next_read: Nanos,
}

impl Reading {
    fn new(wall: Option<WallOffset>) -> Self {
        Self {
            cache: HeadCache::default(),
            buffer: vec![0; receive::READ_BUFFER_BYTES].into_boxed_slice(),
            scratch: Vec::new(),
            unread: Vec::new(),
            wall,
            next_read: Nanos::ZERO,
        }
    }
}
