//! Requests on a connection or on a stream, as their flow has them: what is sent, and what is kept of the response.

use std::fmt::Debug;

use weir_base::Nanos;
use weir_net::wire::{ResponseObserver, WireRequest};

use crate::event_streams::{ArrivedEvents, StreamObserver};
use crate::grpc::{CallMessages, GrpcCalls, OpenCallBody};

/// State of the requests of a connection with HTTP/1.1, or of a stream, besides their times. `requests` are the plan's, and
/// `nth` is the number that a [`Flight`](crate::flight::Flight) has of its request.
pub(crate) trait FlowExchange: Debug + Default + Send {
    /// Keeper of a response's part that is kept.
    type Kept: ResponseObserver;

    /// Whether the bytes of requests that are sent together are one piece.
    const IS_ONE_PIECE: bool;

    /// Bytes of a request from an offset on. If [they are one piece](Self::IS_ONE_PIECE), those of later requests follow.
    fn bytes_from<'b>(&'b self, requests: &'b [WireRequest], nth: u32, offset: usize) -> [&'b [u8]; 2];

    /// Number of bytes of a request.
    fn length_of(&self, requests: &[WireRequest], nth: u32) -> usize;

    /// Whether the response has no body in any case: to a HEAD.
    fn is_bodyless(&self, requests: &[WireRequest], nth: u32) -> bool;

    /// Index among all steps, if the request is a step's.
    fn step(&self) -> Option<u32> {
        None
    }

    /// Timeout of its own.
    fn timeout(&self) -> Option<Nanos> {
        None
    }

    /// Part of it that takes the response; `None` if nothing is kept.
    fn kept(&mut self) -> Option<&mut Self::Kept>;

    /// Whether the body of the response is observed or kept, and not only counted.
    fn looks_into_body(&self) -> bool;

    /// Observer of the response as a stream; `None` if responses are not observed, or none has come.
    fn observer(&self) -> Option<&StreamObserver>;

    /// Takes the observer, for a call that needs both.
    fn take_observer(&mut self) -> Option<Box<StreamObserver>>;

    /// Stores the observer; without a request it is dropped.
    fn put_observer(&mut self, observer: Box<StreamObserver>);

    /// Events of the response that are to be passed on; `None` if they are not.
    fn arrived(&mut self) -> Option<&mut ArrivedEvents> {
        None
    }

    /// Drops what is written and not sent again, if it is large.
    fn release_written(&mut self) {}

    /// Forgets what came of a response, before the request is sent again.
    fn prepare_again(&mut self) {}

    /// Takes the reason why the response is a failure, for a person.
    fn set_fault(&mut self, _reason: &str) {}

    /// Fault in the messages of a whole response to a call that has the status OK, as far as they were checked.
    fn message_fault(&self) -> Option<&'static str> {
        None
    }

    /// Whether it is a call of gRPC that is a stream.
    fn is_call_stream(&self) -> bool {
        false
    }

    /// Calls with the request of a call that is a stream; `None` for others.
    fn with_call_body<T>(&self, _look: impl FnOnce(&mut OpenCallBody) -> T) -> Option<T> {
        None
    }
}

/// Requests of the plan: their bytes are the plan's.
#[derive(Debug, Default)]
pub(crate) struct PlanExchange {
    /// Check of the messages, of a call of gRPC.
    messages: Option<CallMessages>,
    observer: Option<Box<StreamObserver>>,
}

impl PlanExchange {
    /// Exchange of a request, which may be a call of gRPC.
    pub(crate) fn of_call(calls: Option<GrpcCalls>) -> Self {
        Self { messages: calls.map(|calls| CallMessages::new(calls.are_streams)), observer: None }
    }
}

impl FlowExchange for PlanExchange {
    type Kept = CallMessages;

    const IS_ONE_PIECE: bool = false;

    #[inline]
    fn bytes_from<'b>(&'b self, requests: &'b [WireRequest], nth: u32, offset: usize) -> [&'b [u8]; 2] {
        [requests[nth as usize].bytes.get(offset..).unwrap_or_default(), &[]]
    }

    #[inline]
    fn length_of(&self, requests: &[WireRequest], nth: u32) -> usize {
        requests[nth as usize].bytes.len()
    }

    #[inline]
    fn is_bodyless(&self, requests: &[WireRequest], nth: u32) -> bool {
        requests[nth as usize].bodyless
    }

    #[inline]
    fn kept(&mut self) -> Option<&mut CallMessages> {
        self.messages.as_mut()
    }

    fn looks_into_body(&self) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.is_reading())
    }

    fn observer(&self) -> Option<&StreamObserver> {
        self.observer.as_deref()
    }

    fn take_observer(&mut self) -> Option<Box<StreamObserver>> {
        self.observer.take()
    }

    fn put_observer(&mut self, observer: Box<StreamObserver>) {
        self.observer = Some(observer);
    }

    fn prepare_again(&mut self) {
        self.messages = self.messages.map(CallMessages::restarted);
    }

    fn message_fault(&self) -> Option<&'static str> {
        self.messages.and_then(|messages| messages.fault())
    }
}
