//! Courses that users of one thread follow: compiled steps, a program, or nothing after the load.

use std::fmt::Debug;

use weir_base::Nanos;
use weir_net::tls::Tls;
use weir_pace::arrival_queue::ArrivalQueue;
use weir_request::secret_mask::SecretMask;
use weir_scenario::evaluate::CompiledCapture;
use weir_scenario::plan::{OriginId, RequestBytes, StepFindings};
use weir_scenario::value::Value;

use super::ResolvedOrigin;
use super::flow_event::{FlowEvent, FlowNext};
use crate::program::{PipelinedRequest, ReleasedRecord, SocketCommand};

/// Course that users of one thread follow. Steps are numbered among all of the load.
pub(crate) trait UserFlow: Debug + Send {
    /// Prepares a user for the iteration of this number; returns its scenario, or `None` if there is none.
    fn prepare(&mut self, _user: u32, _number: u64) -> Option<u32> {
        Some(0)
    }

    /// Continues a user with an event; returns its next step, or `None` if it has nothing to do.
    fn call(&mut self, subject: &mut CallSubject, event: &FlowEvent<'_>, buffers: CallBuffers<'_>) -> Option<FlowNext>;

    /// Earliest start of a user's next iteration, after one that was intended at `intended`; `NEVER` without one.
    fn next_start(&self, user: u32, intended: Nanos) -> Option<Nanos>;

    /// Number among all steps of a step that was found in a scenario.
    fn step_index(&self, _scenario: u32, step: u32) -> u32 {
        step
    }

    /// Name of a step.
    fn step_name(&self, step: u32) -> String;

    /// Checks of a step.
    fn step_checks(&self, _step: u32) -> &[String] {
        &[]
    }

    /// Captures of a step of a user's scenario.
    fn captures(&self, _user: u32, _step: u32) -> &[CompiledCapture] {
        &[]
    }

    /// Variables of a user that have values, by name.
    fn variables(&self, _user: u32) -> Vec<(String, Value)> {
        Vec::new()
    }

    /// Secrets masked in samples of a user's failures.
    fn secret_mask(&self, user: u32) -> SecretMask;

    /// Whether a step of a user's scenario, and not the status alone, decides if a response is a success.
    fn decides_success(&self, user: u32, step: u32) -> bool;

    /// Whether the last response is a failure, whatever the findings are.
    fn is_failed(&self) -> bool {
        false
    }

    /// Number under which the record of the last response is held back, if it is.
    fn held_as(&self) -> Option<u64> {
        None
    }

    /// Decisions about records that were held back.
    fn take_released(&mut self) -> Vec<ReleasedRecord> {
        Vec::new()
    }

    /// Commands for sockets that were given since the last look, each with its user.
    fn take_socket_commands(&mut self) -> Vec<(u32, SocketCommand)> {
        Vec::new()
    }

    /// Addresses of an origin; one that the plan does not know is resolved now, once.
    ///
    /// # Errors
    /// Why there are none.
    fn address(&mut self, scenario: u32, origin: OriginId) -> Result<&ResolvedOrigin, String>;

    /// TLS of an origin whose addresses are known.
    fn tls(&self, scenario: u32, origin: OriginId) -> Option<&Tls>;

    /// Whether requests to an origin whose addresses are known are calls of gRPC.
    fn is_for_calls(&self, _origin: OriginId) -> bool {
        false
    }

    /// Origin as text.
    fn origin_name(&self, scenario: u32, origin: OriginId) -> String;

    /// Whether responses may be read as streams of events.
    fn may_read_events(&self) -> bool {
        false
    }

    /// Whether users are told of the connections of responses.
    fn asks_for_connections(&self) -> bool {
        false
    }

    /// Whether users do something at their end.
    fn stops_users(&self) -> bool {
        false
    }

    /// Reason to end the run, if there is one.
    fn abort_reason(&mut self) -> Option<String> {
        None
    }

    /// Takes note that an iteration is cut off.
    fn cut(&mut self, _user: u32) {}

    /// Makes users before the load begins, of at most `count`.
    fn make_users(&mut self, _count: usize) {}

    /// Moves arrivals from outside into the queue.
    fn refill(&mut self, queue: &mut ArrivalQueue) {
        queue.close();
    }

    /// Time within calls so far, and the longest one since the last look.
    fn take_script_time(&mut self) -> ScriptTime {
        ScriptTime::default()
    }
}

/// User and iteration of a call, which may change scenario and intended start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSubject {
    pub(crate) user: u32,
    pub(crate) scenario: u32,
    pub(crate) iteration: u64,
    pub(crate) intended: Nanos,
}

/// Buffers for the request and the findings of a call, its time, and the date in seconds since 1970.
#[derive(Debug)]
pub(crate) struct CallBuffers<'a> {
    pub(crate) request: &'a mut RequestBytes,
    pub(crate) pipelined: &'a mut Vec<PipelinedRequest>,
    pub(crate) findings: &'a mut StepFindings,
    pub(crate) now: Nanos,
    pub(crate) unix_s: i64,
}

/// Time within calls of a program, during which its thread does nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScriptTime {
    /// Sum over all calls.
    pub(crate) total: Nanos,
    /// Longest call since the last look.
    pub(crate) longest: Nanos,
}

/// Course after the load: nothing.
#[derive(Debug)]
pub(super) struct EndedFlow;

impl UserFlow for EndedFlow {
    fn prepare(&mut self, _user: u32, _number: u64) -> Option<u32> {
        None
    }

    fn call(&mut self, _: &mut CallSubject, _: &FlowEvent<'_>, _: CallBuffers<'_>) -> Option<FlowNext> {
        None
    }

    fn next_start(&self, _user: u32, _intended: Nanos) -> Option<Nanos> {
        None
    }

    fn step_name(&self, _step: u32) -> String {
        String::new()
    }

    fn secret_mask(&self, _user: u32) -> SecretMask {
        SecretMask::default()
    }

    fn decides_success(&self, _user: u32, _step: u32) -> bool {
        false
    }

    fn address(&mut self, _scenario: u32, _origin: OriginId) -> Result<&ResolvedOrigin, String> {
        Err("the load is over".into())
    }

    fn tls(&self, _scenario: u32, _origin: OriginId) -> Option<&Tls> {
        None
    }

    fn origin_name(&self, _scenario: u32, _origin: OriginId) -> String {
        String::new()
    }
}
