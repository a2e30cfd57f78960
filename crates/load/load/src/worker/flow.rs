//! Kinds of requests of a load, and the consequences of their ends: requests of the plan, users, or messages.

use std::collections::VecDeque;

use super::Worker;
use crate::connection::{ConnectionPhase, LoadConnection};
use crate::exchange::FlowExchange;
use crate::flight::{Flight, ReadTimes, WriteProgress};
use crate::http2::StreamExchange;
use crate::plan::LoadPlan;
use crate::steps::ScriptTime;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_http2::error_code::ErrorCode;
use weir_machine::readiness_event::ReadinessEvent;
use weir_measure::recorder::Interval;
use weir_net::tls::Tls;
use weir_net::wire::{DecodedResponse, HeadCache};
use weir_pace::arrival_queue::ArrivalQueue;
use weir_scenario::plan::OriginId;

/// Scenario and origin that a connection belongs to.
pub(crate) type ScenarioOrigin = (u32, OriginId);

/// A kind of requests. The worker has the clock, the feed, the connections and the records; it asks its flow what is
/// due, and tells it what has ended.
pub(crate) trait Flow: Sized {
    /// Requests of it on a connection or a stream.
    type Exchange: FlowExchange;

    /// Maximum number of tickets of the closed loop that a thread claims at a time.
    const MAX_CLAIM: u64;
    /// Whether responses may wait to be read together: no request is intended at the time of a response.
    const READS_TOGETHER: bool;
    /// Whether a connection with room takes any request, and not only those of its own users.
    const TAKES_ANY_CONNECTION: bool;

    /// Whether a connection is upgraded to a protocol of frames, which the flow reads and writes itself.
    #[inline]
    fn is_framed(_connection: &LoadConnection<Self::Exchange>) -> bool {
        false
    }

    /// Whether responses may be read as streams of events, though the plan observes none.
    fn may_read_events(&self) -> bool {
        false
    }

    /// Whether the times are noted at which requests have been handed to the kernel.
    #[inline]
    fn notes_writes(&self) -> bool {
        false
    }

    /// Whether a connection takes a request at once.
    #[inline]
    fn has_idle(worker: &Worker<'_, Self>) -> bool {
        worker.connections.has_idle()
    }

    /// Whether requests to an origin are calls of gRPC that a program makes.
    fn is_for_calls(&self, _origin: Option<ScenarioOrigin>) -> bool {
        false
    }

    /// Takes bytes of the response to a call that is a stream, by the key of its stream.
    fn messages_arrived(_worker: &mut Worker<'_, Self>, _index: u32, _key: u32, _bytes: &[u8], _times: ReadTimes) {}

    /// Time of the next thing that it does by itself.
    fn next_due(worker: &Worker<'_, Self>) -> Option<Nanos>;

    /// Does what is due; a limited number at a time, since responses must be read too.
    fn start_due(worker: &mut Worker<'_, Self>);

    /// Makes users before the load begins, of at most `count`.
    fn make_users(&mut self, _count: usize) {}

    /// Moves arrivals that come from outside into the queue.
    fn refill(&mut self, _queue: &mut ArrivalQueue) {}

    /// Replaces the end of the load.
    fn set_until(&mut self, _until: Nanos) {}

    /// Allows another number of users.
    fn set_max(&mut self, _users: usize) {}

    /// Begins a connection, for `user` and its origin if it has one.
    ///
    /// # Errors
    /// Why there is none.
    fn connect(worker: &mut Worker<'_, Self>, user: u32, origin: Option<ScenarioOrigin>) -> Result<u32, String>;

    /// TLS of a connection; `of_plan` is that of requests of the plan.
    fn tls<'t>(&'t self, _origin: Option<ScenarioOrigin>, of_plan: Option<&'t Tls>) -> Option<&'t Tls> {
        of_plan
    }

    /// Upgrades a connection that has just been made; it is open once [`Worker::set_opened`] is called.
    fn upgrade(_worker: &mut Worker<'_, Self>, _index: u32) {}

    /// Takes an upgraded connection that has just opened, and that no request has waited for.
    fn opened_unused(_worker: &mut Worker<'_, Self>, _index: u32, _now: Nanos) {}

    /// Takes a connection that has failed without a request on it.
    fn unused_failed(
        _worker: &mut Worker<'_, Self>,
        _phase: ConnectionPhase,
        _kind: FailureKind,
        _detail: &dyn Fn() -> String,
    ) {
    }

    /// Takes bytes of an upgraded connection, or of its upgrade; true if it still exists.
    fn frames_received(_worker: &mut Worker<'_, Self>, _index: u32, _bytes: &[u8], _times: ReadTimes) -> bool {
        false
    }

    /// Writes what an upgraded connection has to write.
    fn write_frames(_worker: &mut Worker<'_, Self>, _index: u32) {}

    /// Whether the timeout of what waits on a connection is not that of the connection; what has expired is dealt with.
    fn expires_otherwise(_worker: &mut Worker<'_, Self>, _index: u32, _now: Nanos) -> bool {
        false
    }

    /// Takes the end of an upgraded connection.
    fn ended_by_peer(_worker: &mut Worker<'_, Self>, _index: u32) {}

    /// Continues on a connection with HTTP/1.1 that has just opened, and has requests.
    fn opened(worker: &mut Worker<'_, Self>, index: u32, now: Nanos);

    /// Cache of heads for a response; `of_plan` is that of requests of the plan.
    #[inline]
    fn head_cache<'c>(&'c mut self, _exchange: &Self::Exchange, of_plan: &'c mut HeadCache) -> &'c mut HeadCache {
        of_plan
    }

    /// Passes on what has arrived of a response; true if its user ends the response. `stream` is the key of its request
    /// on a connection with HTTP/2, where an end is carried out here and the result is false.
    fn pass_events(_worker: &mut Worker<'_, Self>, _index: u32, _stream: Option<u32>, _times: ReadTimes) -> bool {
        false
    }

    /// Takes a whole response over HTTP/1.1, which the connection no longer has in flight; true if the connection may
    /// have another one.
    fn responded(worker: &mut Worker<'_, Self>, index: u32, response: &ArrivedResponse) -> bool;

    /// Continues on a connection that has had responses, and has been `free` since then.
    fn continue_on(_worker: &mut Worker<'_, Self>, _index: u32, _free: Nanos, _now: Nanos) {}

    /// Closes a connection that cannot be used again. What is next for its user goes on a new one, unless users see to
    /// that themselves.
    fn replace(worker: &mut Worker<'_, Self>, index: u32, _now: Nanos) {
        worker.connections.close(index);
    }

    /// Takes requests whose connection with HTTP/1.1 has failed.
    fn failed(worker: &mut Worker<'_, Self>, failed: FailedConnection<Self::Exchange>, kind: FailureKind, now: Nanos);

    /// Takes a whole response over HTTP/2.
    fn stream_responded(
        worker: &mut Worker<'_, Self>,
        index: u32,
        exchange: StreamExchange<Self::Exchange>,
        answer: &DecodedResponse,
        times: ReadTimes,
    );

    /// Takes a request over HTTP/2 without a response, and the code that has ended its stream. True if what is next for
    /// its user is the caller's to start.
    fn stream_failed(
        worker: &mut Worker<'_, Self>,
        exchange: StreamExchange<Self::Exchange>,
        kind: FailureKind,
        code: Option<ErrorCode>,
        now: Nanos,
    ) -> bool;

    /// Fills a connection with HTTP/2, whose service has said how many streams it permits. `is_bound`: whether it
    /// belongs to a group of users.
    fn fill_permitted(_worker: &mut Worker<'_, Self>, _index: u32, _is_bound: bool, _now: Nanos) {}

    /// Continues with the next request of a user after one on a connection with HTTP/2, which has been `free` since then.
    fn continue_on_streams(_worker: &mut Worker<'_, Self>, _index: u32, _user: u32, _free: Nanos, _now: Nanos) {}

    /// Gives a connection with HTTP/2 the further requests of `user`, or of the schedule.
    fn fill_streams(_worker: &mut Worker<'_, Self>, _index: u32, _user: u32, _free: Nanos, _now: Nanos) {}

    /// Starts what is next for users of the closed loop whose connection with HTTP/2 has failed. `capped`: whether all
    /// allowed connections were busy.
    fn restart_on_streams(_worker: &mut Worker<'_, Self>, _users: &[u32], _capped: bool, _now: Nanos) {}

    /// Whether a response is followed by a request that is intended when it has come.
    fn has_follow_ups(_plan: &LoadPlan) -> bool {
        false
    }

    /// Whether requests wait to be allowed to connect.
    fn is_awaiting(&self) -> bool {
        false
    }

    /// Whether it has ended this thread.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Whether the load is over, and users do what they do at their end.
    fn is_stopping(&self) -> bool {
        false
    }

    /// Whether the thread is done, as far as that does not depend on the feed; `None` if it does.
    fn is_done(_worker: &Worker<'_, Self>) -> Option<bool> {
        None
    }

    /// Time within calls of a program so far, and the longest call since the last look.
    fn take_script_time(&mut self) -> ScriptTime {
        ScriptTime::default()
    }

    /// Periodic work.
    fn tick(_worker: &mut Worker<'_, Self>, _now: Nanos) {}

    /// Adds what it alone counts to an interval that ends.
    fn add_to_interval(_worker: &mut Worker<'_, Self>, _interval: &mut Interval) {}

    /// Does what users do at their end.
    fn stop(_worker: &mut Worker<'_, Self>, _ready: &mut Vec<ReadinessEvent>) {}

    /// Ends what is left of it at the end of the run.
    fn finish(_worker: &mut Worker<'_, Self>) {}
}

/// Whole response over HTTP/1.1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivedResponse {
    pub(crate) flight: Flight,
    pub(crate) answer: DecodedResponse,
    /// How far the requests of the connection are written, its own being the oldest. A step's counts as written whole.
    pub(crate) written: WriteProgress,
    /// Arrival of its last byte, and the time now.
    pub(crate) at: Nanos,
    pub(crate) now: Nanos,
    /// Whether the service keeps the connection, and the request was completely written.
    pub(crate) is_reusable: bool,
    /// Whether more bytes have come with it.
    pub(crate) has_rest: bool,
}

/// Requests and bytes of a failed connection with HTTP/1.1.
#[derive(Debug)]
pub(crate) struct FailedConnection<X> {
    pub(crate) user: u32,
    pub(crate) phase: ConnectionPhase,
    pub(crate) written: WriteProgress,
    /// Requests without a response, the oldest first; at least one.
    pub(crate) flights: VecDeque<Flight>,
    pub(crate) exchange: X,
    /// Whether all allowed connections were busy.
    pub(crate) capped: bool,
}
