//! Calls of gRPC that are streams: what a program adds to their requests, and messages of their responses.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use super::super::Worker;
use super::UserRequests;
use crate::flight::ReadTimes;
use crate::grpc::OpenCallBody;
use crate::http2::StreamExchange;
use crate::program::{CallCommand, CallNext};
use crate::steps::{CallStream, FlowEvent, UserExchange};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::lock::lock;

/// Requests of the calls of a thread that are streams, by users and keys of their sends.
#[derive(Debug, Default)]
pub(super) struct CallStreams {
    bodies: HashMap<(u32, u32), Arc<Mutex<OpenCallBody>>>,
}

impl CallStreams {
    /// Begins the call of a user's send.
    pub(super) fn begin(&mut self, user: u32, key: u32) {
        self.bodies.entry((user, key)).or_default();
    }

    /// Call of a user's send that goes to its connection.
    pub(super) fn stream(&mut self, user: u32, key: u32) -> Box<CallStream> {
        Box::new(CallStream::new(Arc::clone(self.bodies.entry((user, key)).or_default())))
    }

    /// Forgets a call that has ended, if an exchange is one.
    #[inline]
    pub(super) fn end(&mut self, user: u32, exchange: &UserExchange) {
        if let Some(step) = exchange.as_ref().filter(|step| step.call.is_some()) {
            self.bodies.remove(&(user, step.key));
        }
    }
}

/// Whether an exchange is the call of a user's send.
fn is_call(exchange: &StreamExchange<UserExchange>, user: u32, key: u32) -> bool {
    let is_same = |step: &crate::steps::StepExchange| step.call.is_some() && step.key == key;
    exchange.user == user && exchange.inner.as_deref().is_some_and(is_same)
}

impl Worker<'_, UserRequests<'_>> {
    /// Goes on with a call of a user.
    pub(super) fn run_call_command(&mut self, user: u32, command: &CallCommand, now: Nanos) {
        let CallCommand { key, message, then } = command;
        let Some(body) = self.flow.calls.bodies.get(&(user, *key)).map(Arc::clone) else { return };
        let (connection, is_read) = {
            let mut body = lock(&body);
            let is_read = body.push(message);
            if *then != CallNext::More {
                body.finish();
            }
            (body.connection, is_read)
        };
        if *then == CallNext::Cancel {
            self.flow.calls.bodies.remove(&(user, *key));
        }
        let Some(index) = connection else { return };
        let Some(streams) = self.streams_of(index) else { return };
        if *then == CallNext::Cancel || !is_read {
            let taken = streams.take_where(|exchange| is_call(exchange, user, *key));
            if is_read || taken.is_empty() {
                self.results.counters.give_up(taken.len() as u64, now);
                self.note_unused(index, now);
            } else {
                let why = || "the service reads nothing: 16 MiB wait to be written".to_owned();
                self.results.counters.record_detail(FailureKind::Reset, why);
                self.fail_expired(index, taken, FailureKind::Reset, now);
            }
        } else {
            let stream = streams.exchanges().find(|exchange| is_call(exchange, user, *key));
            let stream = stream.and_then(|exchange| exchange.stream);
            stream.into_iter().for_each(|stream| streams.protocol.resume_body(stream));
        }
        self.mark_dirty(index);
    }

    /// Takes bytes of the response to a call that is a stream: whole messages go to its user.
    pub(super) fn pass_messages(&mut self, index: u32, key: u32, bytes: &[u8], ReadTimes { at, now }: ReadTimes) {
        let connection = self.connections.key(index);
        let Some((user, step)) = self.call_on(index, key) else { return };
        let number = step.key;
        let Some(call) = &mut step.call else { return };
        let mut reader = std::mem::take(&mut call.reader);
        reader.push(bytes);
        let fault = loop {
            let message = match reader.next_message() {
                Ok(Some(message)) => message,
                Ok(None) => break None,
                Err(why) => break Some(why),
            };
            // Nothing goes to users whose load is over.
            if self.has_cut_users(now) {
                continue;
            }
            let event = FlowEvent::Message { key: number, message };
            let action = self.ask(user, |users, unix_s| users.side_event(user, &event, at, unix_s));
            self.act(user, Some(action), now);
            // What follows from a message may have ended the call.
            let is_same = self.connections.key(index) == connection
                && self.call_on(index, key).is_some_and(|(of, step)| (of, step.key) == (user, number));
            if !is_same {
                return;
            }
        };
        if let Some(why) = fault {
            self.results.counters.record_detail(FailureKind::Body, || why);
            let Some(streams) = self.streams_of(index) else { return };
            let taken = streams.take_where(|exchange| is_call(exchange, user, number));
            return self.fail_expired(index, taken, FailureKind::Body, now);
        }
        if let Some(call) = self.call_on(index, key).and_then(|(_, step)| step.call.as_mut()) {
            call.reader = reader;
        }
    }

    /// Gives up the calls that are streams: the load is over, and they may have no end. Their users wait for nothing
    /// else, or are cut off as well.
    pub(super) fn cut_calls(&mut self, now: Nanos) {
        if self.flow.calls.bodies.is_empty() {
            return;
        }
        let bodies = std::mem::take(&mut self.flow.calls.bodies);
        let connections: BTreeSet<u32> = bodies.values().filter_map(|body| lock(body).connection).collect();
        for index in connections {
            let Some(streams) = self.streams_of(index) else { continue };
            let is_stream = |exchange: &mut StreamExchange<UserExchange>| {
                exchange.inner.as_ref().is_some_and(|step| step.call.is_some())
            };
            let taken = streams.take_where(is_stream);
            self.results.counters.give_up(taken.len() as u64, now);
            taken.iter().for_each(|exchange| self.flow.table.wake_at(exchange.user, now));
            self.mark_dirty(index);
        }
    }

    fn call_on(&mut self, index: u32, key: u32) -> Option<(u32, &mut crate::steps::StepExchange)> {
        let exchange = self.streams_of(index)?.get(key)?;
        let user = exchange.user;
        let step = exchange.inner.as_deref_mut().filter(|step| step.call.is_some())?;
        Some((user, step))
    }
}
