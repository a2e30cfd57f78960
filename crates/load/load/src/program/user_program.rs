//! The seam between the load and programs that drive its users.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_measure::llm_timeline::LlmTimeline;
use weir_measure::run_script::RunScript;
use weir_measure::run_steps::StepFacts;
use weir_net::tls::PemTexts;
use weir_pace::arrival_queue::ArrivalQueue;
use weir_pace::shard::Shard;
use weir_scenario::plan::{FlowFailure, OriginId, RequestBytes, RequestOrigin};

use super::{ConnectionFacts, PipelinedRequest, ProgramAction, ReleasedRecord, SocketCommand, SocketEvent};
use crate::event_streams::ArrivedEvents;
use crate::headers::with_headers;

/// Program that drives the users of a load.
pub trait UserProgram: fmt::Debug + Send + Sync {
    /// Names of its scenarios, in order; known before the load.
    fn scenarios(&self) -> Vec<String>;

    /// Steps so far, in the order of their indices. Further ones may come during the run.
    fn steps(&self) -> Vec<StepFacts>;

    /// Maximum number of connections of a user, from 1: the number of origins that it talks to in turn.
    fn connections_per_user(&self) -> u64 {
        1
    }

    /// Maximum number of sockets that a user may hold beside these.
    fn sockets_per_user(&self) -> u64 {
        0
    }

    /// Whether responses may be read as streams of events: those whose sends keep [`Events`](super::KeptParts::Events).
    fn may_read_events(&self) -> bool {
        false
    }

    /// Which of its requests are calls of gRPC.
    fn calls(&self) -> ProgramCalls {
        ProgramCalls::Never
    }

    /// Measurements of its own so far, as the result will have them; `None` of most programs.
    fn measured(&self, _elapsed: Nanos) -> Option<RunScript> {
        None
    }

    /// Whether it is told of the connections of responses.
    fn asks_for_connections(&self) -> bool {
        false
    }

    /// Whether its calls run a script of the user, whose time the report has: late sends may be the script's then.
    fn has_script(&self) -> bool {
        true
    }

    /// Whether a call may wait for ever, in a function that nothing interrupts. The load then ends without it.
    fn may_block(&self) -> bool {
        false
    }

    /// Place of a call that does not return, as the beginning of a message: `shop.py:12: Shopper.browse`.
    /// `user` is the number on its thread.
    fn blocked_in(&self, _user: u32) -> String {
        "the script".to_owned()
    }

    /// Whether the program decides when its users begin their iterations, and when the load is over: then it cannot be
    /// changed while it runs.
    fn has_own_pace(&self) -> bool {
        false
    }

    /// Whether iterations of a recorded load begin when users are free, instead of at times of their own.
    fn begins_when_free(&self) -> bool {
        false
    }

    /// Whether a user may send again as soon as a response has come, within the same iteration.
    fn has_follow_ups(&self) -> bool {
        true
    }

    /// Program of one thread, made before the load, in the order of the threads.
    ///
    /// # Errors
    /// One line, if the program cannot begin.
    fn thread(&self, thread: ProgramThread) -> Result<Box<dyn ThreadProgram>, String>;
}

/// Thread that a program is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramThread {
    /// Number of the thread, from 0.
    pub index: u64,
    /// Number of threads.
    pub count: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Numbers of its users in the whole load.
    pub users: Shard,
}

/// Users of one thread: events in, actions out. An iteration begins with [`begin`](Self::begin); after each action
/// other than an end the event that it leads to follows.
pub trait ThreadProgram: fmt::Debug + Send {
    /// Makes users before the load begins, of at most `count`: what takes time would make their first requests late.
    fn make_users(&mut self, _count: usize) {}

    /// Begins an iteration of a user.
    fn begin(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction;

    /// Continues a user whose wait is over.
    fn woken(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction;

    /// Continues a user whose request is on its way, with further ones or a wait.
    fn more(&mut self, _call: &mut ProgramCall<'_>) -> ProgramAction {
        ProgramAction::Await
    }

    /// Takes the head, or further events, of a response that is read as a stream of events.
    fn events(&mut self, _part: &StreamPart<'_>, _call: &mut ProgramCall<'_>) -> ProgramAction {
        ProgramAction::Await
    }

    /// Takes a whole response.
    fn response(&mut self, response: &ProgramResponse<'_>, call: &mut ProgramCall<'_>) -> ProgramAction;

    /// Takes what has happened to a socket of a user; [`Await`](ProgramAction::Await) leaves what the user waits for as
    /// it is.
    fn socket(&mut self, _event: &SocketEvent<'_>, _call: &mut ProgramCall<'_>) -> ProgramAction {
        ProgramAction::Await
    }

    /// Takes a message, with its prefix, of a call that is a stream; [`Await`](ProgramAction::Await) leaves what the user
    /// waits for as it is. The end of the call is a [response](Self::response).
    fn message(&mut self, _message: &[u8], _call: &mut ProgramCall<'_>) -> ProgramAction {
        ProgramAction::Await
    }

    /// Takes a request without a response; `remaining` further ones of the same send fail as well, and the action of
    /// the last one counts.
    fn failed(&mut self, kind: FailureKind, remaining: usize, call: &mut ProgramCall<'_>) -> ProgramAction;

    /// Earliest start of the next iteration of a user whose iteration has ended: the wait between belongs to none.
    /// `NEVER`: the user has no further one.
    fn next_start(&self, _user: u32) -> Option<Nanos> {
        None
    }

    /// Whether users do something at their end: [`stop`](Self::stop).
    fn stops_users(&self) -> bool {
        false
    }

    /// Lets a user end after the load, in place of its next action. It may send and wait; its end does not count as an
    /// iteration.
    fn stop(&mut self, _call: &mut ProgramCall<'_>) -> ProgramAction {
        ProgramAction::End { ok: true }
    }

    /// Takes note that the end of the run has cut an iteration off.
    fn cut(&mut self, _user: u32) {}

    /// Moves arrivals of a recorded load that are known into the queue, and closes it after the last one. It does not
    /// wait for any.
    fn refill(&mut self, queue: &mut ArrivalQueue) {
        queue.close();
    }

    /// Origin that a send has named; called once for each.
    fn origin(&self, _origin: OriginId) -> Option<ProgramOrigin> {
        None
    }
}

/// Which requests of a program are calls of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramCalls {
    /// None.
    Never,
    /// Those to an origin [for calls](ProgramOrigin::is_for_calls), each user of which has a connection of its own.
    ByOrigin,
    /// All of them: connections are those of the load.
    Always,
}

/// Destination of a program's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOrigin {
    /// Scheme, host and port; TLS has the host's name.
    pub origin: RequestOrigin,
    /// Address in place of those of the host.
    pub address: Option<SocketAddr>,
    /// Whether its requests are calls of gRPC, which HTTP/2 alone carries.
    pub is_for_calls: bool,
    /// Certificates in place of those of the load.
    pub tls: Option<Arc<PemTexts>>,
}

/// Arguments of a call of a program, and its results: the request, failures, and decisions about responses.
#[derive(Debug)]
pub struct ProgramCall<'a> {
    /// Number of the user on its thread, from 0.
    pub user: u32,
    /// Number of the iteration in the whole load.
    pub iteration: u64,
    /// Intended start of the iteration; `begin` sets it to a later time if the user is not there yet.
    pub intended: Nanos,
    /// Time of the event: of a response its arrival.
    pub now: Nanos,
    /// Index of the user's scenario; `begin` sets it.
    pub scenario: u32,
    /// Index of the step that a failure without a request belongs to.
    pub step: u32,
    /// Number that the program has given the request whose response or failure this is.
    pub key: u32,
    /// Whether the response is a success, if the program decides it; otherwise its status does.
    pub is_success: Option<bool>,
    /// Number under which the record of this response is held back, until the program decides about it; the program
    /// sets it, and takes each number once.
    pub held_as: Option<u64>,
    pub(crate) released: &'a mut Vec<ReleasedRecord>,
    pub(crate) sockets: &'a mut Vec<(u32, SocketCommand)>,
    pub(crate) request: &'a mut RequestBytes,
    pub(crate) pipelined: &'a mut Vec<PipelinedRequest>,
    pub(crate) failures: &'a mut Vec<FlowFailure>,
}

impl ProgramCall<'_> {
    /// Takes the bytes of a request.
    pub fn put_request(&mut self, bytes: &[u8]) {
        self.request.clear();
        // Not twice as much: it stays allocated as long as the request is in flight.
        self.request.written.reserve_exact(bytes.len());
        self.request.written.extend_from_slice(bytes);
        self.pipelined.clear();
    }

    /// Takes the bytes of several requests that are sent together, with the end of each.
    pub fn put_pipeline(&mut self, bytes: &[u8], requests: &[PipelinedRequest]) {
        self.put_request(bytes);
        if requests.len() > 1 {
            self.pipelined.extend_from_slice(requests);
        }
    }

    /// Takes a command for a socket of the user, which is executed behind the call; those of one call in their order.
    pub fn command(&mut self, command: SocketCommand) {
        self.sockets.push((self.user, command));
    }

    /// Takes the decision about a response whose record was held back.
    pub fn release(&mut self, record: ReleasedRecord) {
        self.released.push(record);
    }

    /// Takes the reason of a failure: of the response, or of a request that could not be made.
    pub fn fail(&mut self, reason: String) {
        self.failures.push(FlowFailure::Program(reason));
    }
}

/// Times of a request with a whole response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// From the send to the whole response.
    pub service: Nanos,
    /// From the send to the first byte.
    pub first_byte: Nanos,
    /// Time that the request has waited for its connection to be made, ...
    pub connect: Nanos,
    /// ... of which the transport, such as TCP, took this, ...
    pub transport: Nanos,
    /// ... and the handshake of TLS this; 0 without TLS.
    pub handshake: Nanos,
    /// From the send until its last byte was handed to the kernel, within `first_byte`; 0 if the program does not ask
    /// for connections, or the response came before.
    pub sending: Nanos,
}

/// Whole response to a request of a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramResponse<'a> {
    /// Status.
    pub status: u16,
    /// Times of the request.
    pub times: RequestTimes,
    /// Head as it came, if it is kept.
    pub head: &'a [u8],
    /// Body as it came, without framing, if it is kept.
    pub body: &'a [u8],
    /// Number of requests of the same send that have no response yet.
    pub remaining: usize,
    /// Times of a language model's response; `None` for other responses.
    pub llm: Option<LlmTimeline>,
    /// Last events of a response that is read as a stream.
    pub events: &'a ArrivedEvents,
    /// Connection that it came on, if the program asks for it.
    pub connection: Option<&'a Arc<ConnectionFacts>>,
}

/// Part of a response that is read as a stream of events.
#[derive(Clone, Copy, Debug)]
pub struct StreamPart<'a> {
    /// Status.
    pub status: u16,
    /// Time from the send to this part.
    pub service: Nanos,
    /// Head as it came.
    pub head: &'a [u8],
    /// Events that are new; none with the head alone.
    pub events: &'a ArrivedEvents,
}

impl ProgramResponse<'_> {
    /// Calls with the headers of a kept head, in order.
    pub fn with_headers<T>(&self, call: impl FnOnce(&[(&str, &[u8])]) -> T) -> T {
        with_headers(self.head, call)
    }
}
