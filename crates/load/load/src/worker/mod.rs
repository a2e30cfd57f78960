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
mod held_record;
mod http2;
mod periodic;
mod planned_end;
mod program_call;
mod program_streams;
mod readiness;
mod receive;
mod requests;
mod step_results;
mod stopping;
mod tracing;
mod users;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

pub(super) use self::context::{RunControl, WorkerContext, WorkerReport};
use self::event_streams::StreamObservers;
use self::held_record::HeldRecord;
use self::http2::{MovedRequest, SplitSends};
pub(super) use self::program_call::{OpenCall, ProgramCallSlot};
use self::program_streams::ProgramStreams;
use super::connections::ConnectionTable;
use super::counters::WorkerCounters;
use super::http2::StreamGroups;
use super::request_log::ThreadLog;
use super::request_tracing::RequestSampler;
use super::steps::{StepTrace, UserTable};
use weir_base::Nanos;
use weir_machine::clock::{Clock, WallOffset, minimize_timer_slack};
use weir_machine::readiness_event::ReadinessEvent;
use weir_machine::system::receive_timestamps;
use weir_measure::outcome::Outcome;
use weir_net::wire::HeadCache;
use weir_pace::feed::Feed;

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
    /// Sampler of requests that are traced; `None` if none are.
    sampler: Option<RequestSampler>,
    /// Date, in seconds since 1970, as of the last iteration.
    unix_s: i64,
    /// Observers of responses as streams; `None` if responses are not observed.
    observers: Option<StreamObservers>,
    /// Responses that users of a program read as streams of events.
    program_streams: ProgramStreams,
    /// Connections with more data than one turn reads.
    unread: Vec<ReadinessEvent>,
    /// Connections with streams that have something to write.
    unwritten: Vec<u32>,
    /// Connections that users share.
    groups: StreamGroups,
    /// Requests whose connections have ended before they were processed.
    moved: VecDeque<MovedRequest>,
    /// Sends of several requests on streams.
    split_sends: SplitSends,
    /// Time of the next check of connections with streams.
    next_care: Nanos,
    /// Present while the kernel timestamps responses.
    wall: Option<WallOffset>,
    /// Time of the next look for responses, or for events of streams, where the kernel timestamps them.
    next_read: Nanos,
    interval: u64,
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
        let counters = || {
            let mut counters = Box::new(WorkerCounters::new(plan.warmup, plan.until, plan.mask.clone()));
            if plan.control.is_some() {
                counters.report_outcomes();
            }
            counters
        };
        let is_open = !matches!(plan.pacing, super::plan::Pacing::Closed(_));
        let reads_events = users.as_ref().is_some_and(UserTable::may_read_events);
        let observers = match plan.streams {
            Some(options) => Some(StreamObservers::new(options, plan.stream_ends())),
            None => reads_events.then(StreamObservers::of_programs),
        };
        // Events that wait for a late thread keep their times.
        let stamped = receive_timestamps::ARE_SUPPORTED && (is_open || plan.streams.is_some()) && !plan.spin;
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
            sampler: plan.tracing.as_ref().map(|tracing| tracing.sampler(index)),
            unix_s: 0,
            observers,
            program_streams: ProgramStreams::default(),
            unread: Vec::new(),
            unwritten: Vec::new(),
            groups: StreamGroups::default(),
            moved: VecDeque::new(),
            split_sends: SplitSends::default(),
            next_care: Nanos::ZERO,
            wall: stamped.then(|| clock.wall_offset()),
            next_read: Nanos::ZERO,
            interval: 0,
            next_tick: Nanos::ZERO,
            until: plan.until,
            version: 0,
            may_change_until: plan.control.as_ref().map_or(Nanos::ZERO, |control| control.load().until()),
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
        self.take_changes();
        let mut polled = self.wait(ready);
        if !polled && !self.connections.has_idle() {
            // A response that frees a connection is better than a new connection.
            self.poll(Nanos::ZERO, ready);
            self.drain_events(ready);
            polled = true;
        }
        self.start_due();
        // Once per turn, where most are in flight, and not per request.
        self.counters.sample_in_flight();
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
            _ if !self.moved.is_empty() && self.connections.can_start() => Some(now),
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
        if self.observers.is_some() && self.next_read - now >= MIN_SLEEP {
            self.clock.sleep_until(until.min(self.next_read));
            return false;
        }
        self.poll(gap, ready);
        true
    }

    /// Whether reads may be batched: arrival times come from the kernel, and no response causes an immediate send, as
    /// it would for users of scenarios. Of several responses in one read only the last one's time is known.
    fn responses_wait(&self) -> bool {
        self.wall.is_some()
            && self.users.is_none()
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
        if self.wall.is_some() && !ready.is_empty() {
            self.wall = Some(self.clock.wall_offset());
            let now = self.clock.now();
            self.next_read = now + if self.observers.is_some() { self.read_wait(now) } else { READ_INTERVAL };
        }
        for event in ready.drain(..) {
            self.handle(event);
        }
        // What responses over HTTP/1.1 have led to.
        self.flush_streams();
    }

    /// Starts what is due: requests of the plan, or users of scenarios.
    fn start_due(&mut self) {
        match (&self.users, &self.shared.http2) {
            (Some(_), _) => self.start_users(),
            (None, Some(_)) => self.start_on_streams(),
            (None, None) => self.start_requests(),
        }
        self.flush_streams();
    }

    /// Claims new tickets of the closed loop before it runs out of them, and takes arrivals that come from outside.
    #[inline]
    fn refill_permits(&mut self) {
        let feed = match &mut self.feed {
            Feed::Closed(feed) => feed,
            Feed::Open(feed) => {
                if let (Some(queue), Some(users)) = (feed.queue().filter(|queue| queue.wants_more()), &mut self.users) {
                    users.refill(queue);
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
        // Few at a time near the end, so that threads finish together; and one at a time for users, whose rows of data
        // go by these numbers: the first users have the first rows, whatever threads they are on.
        let left = total.saturating_sub(self.shared.claimed.load(Ordering::Relaxed));
        let want = if self.users.is_some() { 1 } else { (left / (plan.threads * 8)).clamp(1, 64) };
        let first = self.shared.claimed.fetch_add(want, Ordering::Relaxed);
        feed.grant(first.min(total)..(first + want).min(total));
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

    fn finish(mut self) {
        let now = self.clock.now();
        self.feed.stop(now.min(self.until));
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
