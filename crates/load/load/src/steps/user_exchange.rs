//! The exchange of a user's connection or stream: one only while a request is in flight.

use weir_base::Nanos;
use weir_machine::lock::lock;
use weir_net::wire::WireRequest;

use super::StepExchange;
use crate::event_streams::{ArrivedEvents, StreamObserver};
use crate::exchange::FlowExchange;
use crate::grpc::OpenCallBody;

/// Exchange of a step; `None` while its connection is idle.
pub(crate) type UserExchange = Option<Box<StepExchange>>;

impl FlowExchange for UserExchange {
    type Kept = StepExchange;

    const IS_ONE_PIECE: bool = true;

    #[inline]
    fn bytes_from<'b>(&'b self, _requests: &'b [WireRequest], nth: u32, offset: usize) -> [&'b [u8]; 2] {
        self.as_ref().map_or([&[], &[]], |step| step.request.parts_from(step.start_of(nth) + offset))
    }

    #[inline]
    fn length_of(&self, _requests: &[WireRequest], nth: u32) -> usize {
        self.as_ref().map_or(0, |step| step.length_of(nth))
    }

    #[inline]
    fn is_bodyless(&self, _requests: &[WireRequest], nth: u32) -> bool {
        self.as_ref().is_some_and(|step| step.is_bodyless(nth))
    }

    fn step(&self) -> Option<u32> {
        self.as_ref().map(|step| step.step)
    }

    fn timeout(&self) -> Option<Nanos> {
        self.as_ref()?.timeout
    }

    #[inline]
    fn kept(&mut self) -> Option<&mut StepExchange> {
        self.as_deref_mut().filter(|step| step.is_kept)
    }

    fn looks_into_body(&self) -> bool {
        self.as_ref().is_some_and(|step| step.looks_into_body())
    }

    fn observer(&self) -> Option<&StreamObserver> {
        self.as_ref()?.observer.as_deref()
    }

    fn take_observer(&mut self) -> Option<Box<StreamObserver>> {
        self.as_mut()?.observer.take()
    }

    fn put_observer(&mut self, observer: Box<StreamObserver>) {
        if let Some(step) = self {
            step.observer = Some(observer);
        }
    }

    fn arrived(&mut self) -> Option<&mut ArrivedEvents> {
        self.as_mut().filter(|step| step.passes_events).map(|step| &mut step.arrived)
    }

    fn release_written(&mut self) {
        if let Some(step) = self {
            step.release_written();
        }
    }

    fn set_fault(&mut self, reason: &str) {
        if let Some(step) = self {
            step.fault = Some(reason.to_owned());
        }
    }

    fn message_fault(&self) -> Option<&'static str> {
        let step = self.as_ref()?;
        if step.call.as_ref().is_some_and(|call| call.reader.is_within_message()) {
            return Some("the response ends within a message");
        }
        step.messages?.fault()
    }

    fn is_call_stream(&self) -> bool {
        self.as_ref().is_some_and(|step| step.call.is_some())
    }

    fn with_call_body<T>(&self, look: impl FnOnce(&mut OpenCallBody) -> T) -> Option<T> {
        Some(look(&mut lock(&self.as_ref()?.call.as_ref()?.body)))
    }

    fn prepare_again(&mut self) {
        if let Some(step) = self {
            step.prepare_next();
        }
    }
}
