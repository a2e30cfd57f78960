//! Calls of gRPC that are streams: messages of users' scripts, and those that come for them.

use std::rc::Rc;

use weir_base::failure::FailureKind;
use weir_load::program::{CallCommand, CallNext, ProgramAction, ProgramCall, RequestTimes, SocketCommand};
use weir_machine::clock::unix_s;

use super::thread::K6Thread;
use super::user::UserWait;
use crate::host::call_queue::ArrivedMessage;
use crate::metrics::registry::BuiltIn;

impl K6Thread {
    /// Gives the load what a user's script sends on its calls; their requests were sent before.
    pub(super) fn flush_calls(&mut self, call: &mut ProgramCall<'_>) {
        loop {
            let Some(user) = self.user(call.user) else { return };
            let Some(command) = user.state.exchanges.borrow_mut().calls.outbox.pop_front() else { return };
            if command.then == CallNext::Cancel {
                user.take_exchange(command.key);
            }
            call.command(SocketCommand::Call(command));
        }
    }

    /// Takes a message of a user's call; what its script does next.
    pub(super) fn take_message(&mut self, message: &[u8], call: &mut ProgramCall<'_>) -> ProgramAction {
        let (now, key) = (call.now, call.key);
        let is_over = self.program.is_over(now);
        let Some(user) = self.user(call.user) else { return ProgramAction::Await };
        // One of an iteration that has ended, or that the script has left.
        let Some(exchange) = user.exchanges.iter().find(|exchange| exchange.key == key) else {
            return ProgramAction::Await;
        };
        let state = Rc::clone(&user.state);
        state.now.set(now);
        state.count_of_call(BuiltIn::GrpcStreamsMsgsReceived, &exchange.request.tags);
        let unix_ms = (unix_s() * 1e3).floor();
        let is_taken =
            state.exchanges.borrow_mut().add_message(ArrivedMessage { key, framed: message.to_vec(), unix_ms });
        user.due = now;
        let is_awaited = matches!(user.wait, UserWait::Request(_));
        if !is_taken {
            self.fail_call(key, call);
        }
        if is_awaited && !is_over { self.next_action(call) } else { ProgramAction::Await }
    }

    /// Ends a call whose messages the script does not take.
    fn fail_call(&mut self, key: u32, call: &mut ProgramCall<'_>) {
        let now = call.now;
        let Some(user) = self.user(call.user) else { return };
        let Some(exchange) = user.take_exchange(key) else { return };
        call.command(SocketCommand::Call(CallCommand { key, message: Vec::new(), then: CallNext::Cancel }));
        let times = RequestTimes { service: now - exchange.since, ..RequestTimes::default() };
        self.judge(&exchange.failed_sample(FailureKind::Body, times), call);
        let why = "more than 16 MiB of messages that the script does not take".to_owned();
        self.finish(call.user, *exchange, (FailureKind::Body, why));
    }

    /// Gives up the calls of a user whose iteration ends.
    pub(super) fn end_calls(&mut self, call: &mut ProgramCall<'_>) {
        let Some(user) = self.user(call.user) else { return };
        let streams = user.exchanges.iter().filter(|exchange| exchange.request.is_stream);
        for key in streams.map(|exchange| exchange.key) {
            call.command(SocketCommand::Call(CallCommand { key, message: Vec::new(), then: CallNext::Cancel }));
        }
    }
}
