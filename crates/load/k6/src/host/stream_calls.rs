//! Calls of gRPC that are streams, as scripts make them.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::function::Opt;
use rquickjs::module::Exports;
use rquickjs::{Array, ArrayBuffer, Ctx, Exception, Function, Result, Value};
use weir_load::program::CallNext;

use super::call_queue::ArrivedMessage;
use super::http::body_bytes;
use super::{UserState, user_of};
use crate::metrics::registry::BuiltIn;

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("callEnd", Function::new(ctx.clone(), end)?)?;
    exports.export("callMessage", Function::new(ctx.clone(), message)?)?;
    exports.export("callOpened", Function::new(ctx.clone(), opened)?)?;
    exports.export("callWrite", Function::new(ctx.clone(), write)?)?;
    Ok(())
}

/// Counts a call that is a stream: `callOpened(tags)`; names and values of its tags in turn.
fn opened(ctx: Ctx<'_>, tags: Vec<String>) -> Result<()> {
    user_of(&ctx)?.count_of_call(BuiltIn::GrpcStreams, &paired(&tags));
    Ok(())
}

/// Sends a message with its prefix on a call: `callWrite(key, message, tags)`.
fn write<'js>(ctx: Ctx<'js>, key: u32, message: Value<'js>, tags: Vec<String>) -> Result<()> {
    let user = user_of(&ctx)?;
    let bytes = body_bytes(&message).ok_or_else(|| Exception::throw_type(&ctx, "a message is not bytes"))?;
    user.exchanges.borrow_mut().calls.write(key, bytes);
    user.count_of_call(BuiltIn::GrpcStreamsMsgsSent, &paired(&tags));
    Ok(())
}

/// Ends the request of a call, or gives the call up: `callEnd(key, isCancelled)`.
fn end(ctx: Ctx<'_>, key: u32, is_cancelled: bool) -> Result<()> {
    let user = user_of(&ctx)?;
    let mut exchanges = user.exchanges.borrow_mut();
    if is_cancelled {
        exchanges.give_up(key);
    } else {
        exchanges.calls.end(key, CallNext::End);
    }
    Ok(())
}

/// Next message of a call, or of any: `callMessage(key)`, as `[key, message with its prefix, milliseconds since 1970]`.
fn message<'js>(ctx: Ctx<'js>, key: Opt<Option<u32>>) -> Result<Option<Array<'js>>> {
    let taken = user_of(&ctx)?.exchanges.borrow_mut().calls.take(key.0.flatten());
    let Some(ArrivedMessage { key, framed, unix_ms }) = taken else { return Ok(None) };
    let array = Array::new(ctx.clone())?;
    array.set(0, key)?;
    array.set(1, ArrayBuffer::new(ctx.clone(), framed)?)?;
    array.set(2, unix_ms)?;
    Ok(Some(array))
}

fn paired(tags: &[String]) -> Vec<(String, String)> {
    tags.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

impl UserState {
    /// Counts one for a metric of calls that are streams.
    pub(crate) fn count_of_call(&self, metric: BuiltIn, tags: &[(String, String)]) {
        self.metrics.add_all(&[(metric as usize, 1.0)], &|name: &str, value: &str| self.has_tag(tags, name, value));
    }
}
