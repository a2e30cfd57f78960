//! Users: each plays iterations of compiled steps, or of a program, and goes on with what its responses lead to.

mod call_streams;
mod held_record;
mod iterations;
mod lent_results;
mod program_streams;
mod sending;
mod socket_frames;
mod socket_records;
mod sockets;
mod split_sends;
mod step_results;
mod stopping;
mod tracing;

use std::collections::HashMap;
use std::sync::mpsc::Sender;

use self::call_streams::CallStreams;
use self::held_record::HeldRecord;
use self::program_streams::ProgramStreams;
use self::sockets::UserSockets;
use self::split_sends::SplitSends;
use super::flow::{ArrivedResponse, FailedConnection, Flow, ScenarioOrigin};
use super::{Worker, WorkerContext};
use crate::connection::LoadConnection;
use crate::counters::WorkerCounters;
use crate::flight::ReadTimes;
use crate::http2::StreamExchange;
use crate::plan::LoadPlan;
use crate::request_tracing::RequestSampler;
use crate::steps::{FlowEvent, ScriptTime, StepTrace, UserExchange, UserTable};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_http2::error_code::ErrorCode;
use weir_machine::readiness_event::ReadinessEvent;
use weir_measure::recorder::Interval;
use weir_net::tls::Tls;
use weir_net::wire::{DecodedResponse, HeadCache, WireError};
use weir_pace::arrival_queue::ArrivalQueue;
use weir_pace::feed::Feed;

/// Flow of users of scenarios, or of a program.
#[derive(Debug)]
pub(crate) struct UserRequests<'a> {
    table: UserTable<'a>,
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
    /// Responses that users of a program read as streams of events.
    streams: ProgramStreams,
    /// Connections of WebSocket that users of a program hold.
    sockets: UserSockets,
    /// Calls of gRPC of a program that are streams.
    calls: CallStreams,
    /// Sends of several requests on streams.
    split_sends: SplitSends,
    /// Whether users are told of the connections of responses.
    asks_for_connections: bool,
    /// In place of the others while they are lent; only with calls of a program that may block.
    spare_counters: Option<Box<WorkerCounters>>,
}

impl<'a> UserRequests<'a> {
    /// Users of thread number `index`.
    pub(crate) fn new(
        table: UserTable<'a>,
        shared: &WorkerContext<'_>,
        index: u64,
        trace: Option<Sender<StepTrace>>,
    ) -> Self {
        let plan = shared.plan;
        Self {
            asks_for_connections: table.flow.asks_for_connections(),
            table,
            held: HashMap::new(),
            is_stopped: false,
            is_stopping: false,
            trace,
            sampler: plan.tracing.as_ref().map(|tracing| tracing.sampler(index)),
            unix_s: 0,
            streams: ProgramStreams::default(),
            sockets: UserSockets::new(plan.seed, index),
            calls: CallStreams::default(),
            split_sends: SplitSends::default(),
            spare_counters: (!shared.control.calls.is_empty()).then(|| WorkerCounters::of(plan)),
        }
    }
}

impl Flow for UserRequests<'_> {
    type Exchange = UserExchange;

    // The first users have the first rows of data, whatever threads they are on: rows go by the numbers of tickets.
    const MAX_CLAIM: u64 = 1;
    // The next request of a user is intended when the response before it has come.
    const READS_TOGETHER: bool = false;
    const TAKES_ANY_CONNECTION: bool = false;

    fn may_read_events(&self) -> bool {
        self.table.flow.may_read_events()
    }

    #[inline]
    fn notes_writes(&self) -> bool {
        self.asks_for_connections
    }

    fn is_for_calls(&self, origin: Option<ScenarioOrigin>) -> bool {
        origin.is_some_and(|(_, origin)| self.table.flow.is_for_calls(origin))
    }

    fn messages_arrived(worker: &mut Worker<'_, Self>, index: u32, key: u32, bytes: &[u8], times: ReadTimes) {
        worker.pass_messages(index, key, bytes, times);
    }

    fn next_due(worker: &Worker<'_, Self>) -> Option<Nanos> {
        worker.next_user_due()
    }

    fn start_due(worker: &mut Worker<'_, Self>) {
        worker.start_users();
    }

    fn make_users(&mut self, count: usize) {
        self.table.flow.make_users(count);
    }

    fn refill(&mut self, queue: &mut ArrivalQueue) {
        self.table.flow.refill(queue);
    }

    fn set_until(&mut self, until: Nanos) {
        if let Some(counters) = &mut self.spare_counters {
            counters.set_until(until);
        }
    }

    fn set_max(&mut self, users: usize) {
        self.table.set_max(users);
    }

    fn connect(worker: &mut Worker<'_, Self>, user: u32, origin: Option<ScenarioOrigin>) -> Result<u32, String> {
        worker.connect_origin(user, origin)
    }

    fn tls<'t>(&'t self, origin: Option<ScenarioOrigin>, of_plan: Option<&'t Tls>) -> Option<&'t Tls> {
        match origin {
            Some((scenario, origin)) => self.table.flow.tls(scenario, origin),
            None => of_plan,
        }
    }

    #[inline]
    fn is_framed(connection: &LoadConnection<UserExchange>) -> bool {
        connection.exchange.as_ref().is_some_and(|step| step.socket.is_some())
    }

    fn upgrade(worker: &mut Worker<'_, Self>, index: u32) {
        worker.upgrade_socket(index);
    }

    fn frames_received(worker: &mut Worker<'_, Self>, index: u32, bytes: &[u8], times: ReadTimes) -> bool {
        worker.socket_received(index, bytes, times)
    }

    fn write_frames(worker: &mut Worker<'_, Self>, index: u32) {
        worker.write_socket(index);
    }

    fn expires_otherwise(worker: &mut Worker<'_, Self>, index: u32, now: Nanos) -> bool {
        worker.expire_socket(index, now)
    }

    fn ended_by_peer(worker: &mut Worker<'_, Self>, index: u32) {
        worker.socket_ended(index);
    }

    fn add_to_interval(worker: &mut Worker<'_, Self>, interval: &mut Interval) {
        interval.websocket = worker.flow.sockets.take_point().map(Box::new);
    }

    fn opened(worker: &mut Worker<'_, Self>, index: u32, now: Nanos) {
        if !worker.connections.get(index).is_some_and(|slot| Self::is_framed(slot)) {
            worker.write(index, now);
        }
    }

    fn head_cache<'c>(&'c mut self, exchange: &UserExchange, of_plan: &'c mut HeadCache) -> &'c mut HeadCache {
        match exchange {
            Some(step) if step.is_kept => self.table.exchanges.head_cache(step.step),
            _ => of_plan,
        }
    }

    fn pass_events(worker: &mut Worker<'_, Self>, index: u32, stream: Option<u32>, times: ReadTimes) -> bool {
        match stream {
            None => {
                let is_read = |slot: &mut LoadConnection<UserExchange>| {
                    slot.exchange.as_ref().is_some_and(|step| step.passes_events)
                };
                worker.connections.get(index).is_some_and(is_read) && worker.pass_events(index, None, times)
            }
            Some(key) => {
                worker.pass_events_on_stream(index, key, times);
                false
            }
        }
    }

    fn responded(worker: &mut Worker<'_, Self>, index: u32, response: &ArrivedResponse) -> bool {
        let ArrivedResponse { flight, answer, at, now, mut is_reusable, has_rest, .. } = *response;
        let Some(slot) = worker.connections.get(index) else { return false };
        let has_others = !slot.flights.is_empty();
        if !has_others {
            let closes = slot.exchange.as_ref().is_some_and(|step| step.closes);
            is_reusable &= worker.shared.plan.keep_alive && !closes && !has_rest;
            if has_rest {
                let detail = || WireError::Unsolicited.to_string();
                worker.results.counters.record_detail(FailureKind::Protocol, detail);
            }
        }
        worker.step_response(index, &flight, &answer, ReadTimes { at, now }, is_reusable || has_others);
        if has_others && !is_reusable {
            worker.fail_pipelined(index);
        }
        is_reusable
    }

    fn failed(worker: &mut Worker<'_, Self>, failed: FailedConnection<UserExchange>, kind: FailureKind, now: Nanos) {
        let FailedConnection { user, phase, written, flights, exchange, .. } = failed;
        let Some(step) = exchange else { return };
        if step.socket.is_some() {
            return worker.socket_failed(user, phase, &flights, step, kind, now);
        }
        worker.step_failed_on(user, &flights, kind, &step, (written, now));
        worker.flow.table.exchanges.put(step);
    }

    fn stream_responded(
        worker: &mut Worker<'_, Self>,
        index: u32,
        exchange: StreamExchange<UserExchange>,
        answer: &DecodedResponse,
        ReadTimes { at, now }: ReadTimes,
    ) {
        let StreamExchange { flight, user, inner, bytes_out, .. } = exchange;
        worker.flow.calls.end(user, &inner);
        let Some(mut step) = inner else { return };
        if worker.flow.asks_for_connections {
            step.connection = worker.connections.get(index).map(LoadConnection::facts);
        }
        let timeout = step.timeout.unwrap_or(worker.shared.plan.timeout);
        let outcome = flight.completed(answer, at, bytes_out as usize, timeout);
        let left = worker.flow.split_sends.end_request(user);
        let (action, exchange) = worker.examine_response(user, step, &flight, outcome, at, left);
        worker.recycle(exchange);
        worker.act_on_last(user, action, left, now);
    }

    fn stream_failed(
        worker: &mut Worker<'_, Self>,
        exchange: StreamExchange<UserExchange>,
        kind: FailureKind,
        code: Option<ErrorCode>,
        now: Nanos,
    ) -> bool {
        let StreamExchange { flight, user, inner, bytes_out, .. } = exchange;
        worker.flow.calls.end(user, &inner);
        let Some(mut step) = inner else { return false };
        let outcome = flight.failed(kind, now, bytes_out as usize);
        step.reset_code = code;
        let left = worker.flow.split_sends.end_request(user);
        let event = FlowEvent::Failed { step: step.step, key: step.key, kind, remaining: left };
        let action = worker.step_failed(user, &outcome, &event, Some(&step), now);
        worker.recycle(Some(step));
        worker.act_on_last(user, action, left, now);
        false
    }

    fn has_follow_ups(plan: &LoadPlan) -> bool {
        plan.program.as_ref().is_none_or(|program| program.program.has_follow_ups())
    }

    fn is_awaiting(&self) -> bool {
        self.table.is_awaiting()
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    fn is_done(worker: &Worker<'_, Self>) -> Option<bool> {
        let Worker { flow, feed, .. } = worker;
        if worker.clock.now() >= worker.until {
            // Users whose iterations are cut off take no arrival that waits.
            let is_open = matches!(feed, Feed::Open(_));
            let takes_more = is_open && flow.table.has_free() && feed.next_due().is_some_and(|due| due < worker.until);
            return Some(!takes_more);
        }
        (!flow.table.is_quiet() || flow.sockets.is_opening()).then_some(false)
    }

    fn take_script_time(&mut self) -> ScriptTime {
        self.table.flow.take_script_time()
    }

    fn tick(worker: &mut Worker<'_, Self>, now: Nanos) {
        worker.cut_program_streams(now);
    }

    fn stop(worker: &mut Worker<'_, Self>, ready: &mut Vec<ReadinessEvent>) {
        worker.stop_users(ready);
        worker.close_sockets(ready);
    }

    fn finish(worker: &mut Worker<'_, Self>) {
        // Some wait for what has no timer, such as the response to an upgrade.
        (0..worker.flow.table.count()).for_each(|user| worker.cut_iteration(user));
        worker.release_all();
        // What a program does at its end may block as well.
        worker.lend_results(u32::MAX);
        worker.flow.table.end();
        worker.take_results();
    }
}
