//! WebSockets, as the modules of a script open and use them.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::function::Opt;
use rquickjs::module::Exports;
use rquickjs::{Array, ArrayBuffer, Ctx, Exception, Function, Object, Result, Value};
use weir_base::Nanos;
use weir_load::program::SocketId;

use super::http::{body_bytes, request_of};
use super::sockets::{MAX_SOCKETS, SocketReport};
use super::state::Pause;
use super::user_of;
use crate::metrics::registry::BuiltIn;

/// Codes that a close frame may have.
fn is_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("socketBuffered", Function::new(ctx.clone(), buffered)?)?;
    exports.export("socketClose", Function::new(ctx.clone(), close)?)?;
    exports.export("socketEvent", Function::new(ctx.clone(), event)?)?;
    exports.export("socketForget", Function::new(ctx.clone(), forget)?)?;
    exports.export("socketOpen", Function::new(ctx.clone(), open)?)?;
    exports.export("socketPing", Function::new(ctx.clone(), ping)?)?;
    exports.export("socketSend", Function::new(ctx.clone(), send)?)?;
    exports.export("socketWait", Function::new(ctx.clone(), wait)?)?;
    Ok(())
}

/// Opens a socket as soon as the script waits: `socketOpen(url, headers, options, subprotocols, tags)`; its number.
fn open<'js>(
    ctx: Ctx<'js>,
    url: String,
    headers: Option<Array<'js>>,
    options: Option<Object<'js>>,
    subprotocols: Vec<String>,
    tags: Vec<String>,
) -> Result<u32> {
    let user = user_of(&ctx)?;
    let request = request_of(&ctx, &user, ("GET".into(), &url), None, headers, options)?;
    let tags = tags.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let opened = user.sockets.borrow_mut().open(request, subprotocols, tags, user.now.get());
    let too_many = || format!("more than {MAX_SOCKETS} open WebSockets of a user; close one first");
    opened.map(|id| id.0).ok_or_else(|| Exception::throw_type(&ctx, &too_many()))
}

/// Sends a text or bytes: `socketSend(socket, data)`; whether the socket is open.
fn send<'js>(ctx: Ctx<'js>, socket: u32, data: Value<'js>) -> Result<bool> {
    let user = user_of(&ctx)?;
    let bytes = body_bytes(&data).ok_or_else(|| Exception::throw_type(&ctx, "send() takes a text or bytes"))?;
    let is_sent = user.sockets.borrow_mut().send(SocketId(socket), data.is_string(), bytes, user.now.get());
    if is_sent {
        user.add_of_socket(SocketId(socket), &[(BuiltIn::WsMsgsSent as usize, 1.0)]);
    }
    Ok(is_sent)
}

/// Sends a ping: `socketPing(socket)`; whether the socket is open.
fn ping(ctx: Ctx<'_>, socket: u32) -> Result<bool> {
    let user = user_of(&ctx)?;
    let is_sent = user.sockets.borrow_mut().ping(SocketId(socket), user.now.get());
    Ok(is_sent)
}

/// Closes a socket: `socketClose(socket, code, reason)`.
fn close(ctx: Ctx<'_>, socket: u32, code: u16, reason: Opt<Option<String>>) -> Result<()> {
    const MAX_REASON_BYTES: usize = 123;
    let reason = reason.0.flatten().unwrap_or_default();
    if !is_code(code) {
        return Err(Exception::throw_type(&ctx, &format!("invalid close code {code}; write 1000, or 3000 to 4999")));
    }
    if reason.len() > MAX_REASON_BYTES {
        return Err(Exception::throw_type(&ctx, "a reason of a close has at most 123 bytes"));
    }
    user_of(&ctx)?.sockets.borrow_mut().close(SocketId(socket), code, reason);
    Ok(())
}

/// Next thing that has happened to a socket, or to any, as an array: its number, what, and its parts.
fn event<'js>(ctx: Ctx<'js>, socket: Opt<Option<u32>>) -> Result<Option<Array<'js>>> {
    let user = user_of(&ctx)?;
    let taken = user.sockets.borrow_mut().take(socket.0.flatten().map(SocketId));
    let Some((id, report)) = taken else { return Ok(None) };
    let array = Array::new(ctx.clone())?;
    array.set(0, id.0)?;
    let name = match report {
        SocketReport::Opened(subprotocol, head) => {
            array.set(2, subprotocol)?;
            array.set(3, String::from_utf8_lossy(&head).into_owned())?;
            "open"
        }
        SocketReport::Text(text) => {
            array.set(2, text)?;
            "text"
        }
        SocketReport::Bytes(bytes) => {
            array.set(2, ArrayBuffer::new_copy(ctx.clone(), bytes)?)?;
            "bytes"
        }
        SocketReport::Ping => "ping",
        SocketReport::Pong => "pong",
        SocketReport::Ended(fate) => {
            array.set(2, fate.code)?;
            array.set(3, fate.reason)?;
            array.set(4, fate.status)?;
            array.set(5, fate.error)?;
            "end"
        }
    };
    array.set(1, name)?;
    Ok(Some(array))
}

/// Forgets a socket that the script has left: `socketForget(socket)`.
fn forget(ctx: Ctx<'_>, socket: u32) -> Result<()> {
    let user = user_of(&ctx)?;
    user.end_socket(SocketId(socket));
    user.sockets.borrow_mut().forget(SocketId(socket));
    Ok(())
}

/// Waits until something has happened, or for a time: `socketWait(milliseconds)`; without end if it is negative.
fn wait(ctx: Ctx<'_>, wait_ms: f64) -> Result<()> {
    let user = user_of(&ctx)?;
    let until = match wait_ms {
        wait_ms if wait_ms >= 0.0 => user.now.get() + Nanos((wait_ms * 1e6) as u64),
        _ => Nanos::NEVER,
    };
    user.pause(&ctx, Pause::Await(until), "a WebSocket").map(drop)
}

/// Bytes of messages of a socket that are not given to its connection yet: `socketBuffered(socket)`.
fn buffered(ctx: Ctx<'_>, socket: u32) -> Result<usize> {
    Ok(user_of(&ctx)?.sockets.borrow().buffered(SocketId(socket)))
}
