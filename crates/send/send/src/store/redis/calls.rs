//! Calls of scripts.

use std::sync::Arc;

use ::redis::Value;

use super::script::{RedisScript, ScriptCall};
use super::writer::{RedisStoreShared, RedisTask};
use super::{RedisStore, store_error};
use crate::store::{Store, StoreError, StoreFuture};
use weir_machine::lock::lock;
use weir_redis::RedisValues;

impl RedisStore {
    /// Calls a script on the caller's thread; once more if the connection was lost since the last call.
    pub(super) fn read(&self, ask: &ScriptCall) -> Result<Value, StoreError> {
        if let Some(why) = self.unreachable_reason() {
            // Fails at once: the writer notices when the server is reachable again.
            return Err(StoreError::Unreachable(self.shared.context.address.path(), why));
        }
        let mut link = lock(&self.reader);
        let mut last = StoreError::Closed;
        for _ in 0..2 {
            match link.call_all(&[(0, ask)]) {
                Ok(mut replies) => return replies.pop().unwrap_or(Err(StoreError::Closed)),
                Err(trouble) => last = store_error(&self.shared.context.address, trouble),
            }
        }
        Err(last)
    }

    pub(super) fn overview(&self) -> Result<RedisValues, StoreError> {
        self.read(&ScriptCall::new(RedisScript::Overview)).map(RedisValues::of)
    }

    /// Calls a script on the writer's thread; `reads` returns the result and the kinds of changes to notify.
    pub(super) fn call_then<T: Send + 'static>(
        &self,
        ask: ScriptCall,
        reads: impl FnOnce(Value) -> (T, i64) + Send + 'static,
    ) -> StoreFuture<T> {
        let (reply, ticket) = StoreFuture::new();
        let shared = Arc::clone(&self.shared);
        let on_reply = move |said: Result<Value, StoreError>| {
            let read = said.map(reads);
            let what = read.as_ref().map_or(0, |(_, what)| *what);
            // Notified before the reply: a caller may check for changes at once.
            shared.notify(what);
            reply.send(read.map(|(result, _)| result));
        };
        self.shared.work_queue.push(RedisTask::Call { ask, hears: Box::new(on_reply) });
        ticket
    }

    /// Runs a sequence of calls on the writer's thread.
    pub(super) fn call_sequence<T: Send + 'static>(
        &self,
        does: impl FnOnce(
            &mut dyn FnMut(ScriptCall) -> Result<Value, StoreError>,
            &RedisStoreShared,
        ) -> Result<T, StoreError>
        + Send
        + 'static,
    ) -> StoreFuture<T> {
        let (reply, ticket) = StoreFuture::new();
        let shared = Arc::clone(&self.shared);
        self.shared.work_queue.push(RedisTask::Sequence(Box::new(move |asks| reply.send(does(asks, &shared)))));
        ticket
    }
}
