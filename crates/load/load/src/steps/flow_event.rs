//! Events of users and what follows, for compiled steps and programs alike.

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_scenario::plan::OriginId;

use super::StepExchange;
use crate::program::{KeptParts, RequestTimes, SocketEvent};

/// Event of a user.
#[derive(Debug)]
pub(crate) enum FlowEvent<'a> {
    /// An iteration begins.
    Begin,
    /// A wait is over.
    Woken,
    /// The load is over, and the user ends.
    Stop,
    /// A request is on its way, beside which the user does more.
    More,
    /// A request of a step has failed, of the send with this key; `remaining` further ones of it fail as well.
    Failed { step: u32, key: u32, kind: FailureKind, remaining: usize },
    /// The head or events of a response that is read as a stream, `service` after its send.
    Events { exchange: &'a StepExchange, status: u16, service: Nanos },
    /// Something has happened to a socket of the user.
    Socket(&'a SocketEvent<'a>),
    /// A message has come of the call with this key, which is a stream.
    Message { key: u32, message: &'a [u8] },
    /// A whole response with its times; `remaining` further ones of the same send are to come.
    Response { exchange: &'a StepExchange, status: u16, times: RequestTimes, remaining: usize },
}

impl FlowEvent<'_> {
    /// Key of the send that the event is about.
    pub(crate) fn key(&self) -> u32 {
        match self {
            Self::Begin | Self::Woken | Self::More | Self::Stop | Self::Socket(_) => 0,
            Self::Failed { key, .. } | Self::Message { key, .. } => *key,
            Self::Events { exchange, .. } | Self::Response { exchange, .. } => exchange.key,
        }
    }

    /// Index of the step of the request that the event is about.
    pub(crate) fn step(&self) -> Option<u32> {
        match self {
            Self::Begin | Self::Woken | Self::More | Self::Stop | Self::Socket(_) | Self::Message { .. } => None,
            Self::Failed { step, .. } => Some(*step),
            Self::Events { exchange, .. } | Self::Response { exchange, .. } => Some(exchange.step),
        }
    }
}

/// Next step of a flow after an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FlowNext {
    /// The request of the buffers is sent.
    Send(FlowSend),
    /// The request of the buffers is sent, and the user does more.
    SendBeside(FlowSend),
    /// The user waits until this time.
    WaitUntil(Nanos),
    /// The iteration begins at this time, in place of now.
    BeginAt(Nanos),
    /// The user has no iteration, now or later.
    Idle,
    /// Nothing: further responses, or events, are to come.
    Await,
    /// The response that is read as a stream ends where it is.
    EndStream,
    /// The iteration ends.
    End { ok: bool },
    /// The iteration is cut off.
    Cut,
    /// The thread ends.
    Stop,
}

/// How a request is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSend {
    /// Index of the step among all steps.
    pub(crate) step: u32,
    pub(crate) origin: OriginId,
    pub(crate) intended: Nanos,
    pub(crate) timeout: Option<Nanos>,
    pub(crate) is_bodyless: bool,
    pub(crate) keeps: KeptParts,
    /// Number that the program has given it.
    pub(crate) key: u32,
}
