//! What the modules of a script reach of weir: the module `weir:native`, and the state of a user behind it.
//!
//! - [`state`]: a user, and how its script waits; [`exchange`]: requests that it sends and their results
//! - [`sockets`], [`socket_calls`]: WebSockets, with what they have received
//! - [`calls`]: messages of gRPC
//! - [`http`], [`cookies`]: arguments of requests, jars; [`samples`]: metrics, checks and groups
//! - [`context`]: files of the init context, environment, log, facts of the run; [`bytes`]: encodings; [`crypto`]: digests and AES; [`html`]: documents; [`files`]: files and CSV

mod bytes;
mod calls;
mod context;
mod cookies;
mod crypto;
pub(crate) mod exchange;
mod files;
mod html;
mod http;
mod samples;
mod socket_calls;
pub(crate) mod sockets;
pub(crate) mod state;

use std::rc::Rc;

use rquickjs::module::{Declarations, Exports, ModuleDef};
use rquickjs::{Ctx, Exception, Result};

pub(crate) use self::state::UserState;

/// Module `weir:native`.
pub(crate) struct Native;

/// Names of its functions.
const NAMES: &[&str] = &[
    "abort",
    "awaitRequest",
    "finished",
    "require",
    "result",
    "sendLater",
    "aes",
    "arrayGet",
    "arrayMake",
    "base64Decode",
    "base64Encode",
    "check",
    "collectionInput",
    "compile",
    "cookieClear",
    "cookieGet",
    "cookieJar",
    "cookieSet",
    "csvMake",
    "digest",
    "environment",
    "facts",
    "failTest",
    "fileOpen",
    "fileRead",
    "groupEnter",
    "groupLeave",
    "grpcDecode",
    "grpcEncode",
    "grpcSchemas",
    "hex",
    "htmlAttributes",
    "htmlFilter",
    "htmlFind",
    "htmlNode",
    "htmlParse",
    "htmlText",
    "htmlWalk",
    "htmlWrite",
    "load",
    "log",
    "metric",
    "now",
    "open",
    "options",
    "parseUrl",
    "random",
    "randomBytes",
    "resolveUrl",
    "sample",
    "seed",
    "send",
    "setTags",
    "sleep",
    "socketBuffered",
    "socketClose",
    "socketEvent",
    "socketForget",
    "socketOpen",
    "socketPing",
    "socketSend",
    "socketWait",
    "utf8Decode",
    "utf8Encode",
];

impl ModuleDef for Native {
    fn declare(declare: &Declarations<'_>) -> Result<()> {
        NAMES.iter().try_for_each(|name| declare.declare(*name).map(drop))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        bytes::export(ctx, exports)?;
        calls::export(ctx, exports)?;
        context::export(ctx, exports)?;
        cookies::export(ctx, exports)?;
        crypto::export(ctx, exports)?;
        files::export(ctx, exports)?;
        html::export(ctx, exports)?;
        http::export(ctx, exports)?;
        samples::export(ctx, exports)?;
        socket_calls::export(ctx, exports)
    }
}

/// State of the user whose script calls.
pub(crate) fn user_of(ctx: &Ctx<'_>) -> Result<Rc<UserState>> {
    match ctx.userdata::<Rc<UserState>>() {
        Some(state) => Ok(Rc::clone(&state)),
        None => Err(Exception::throw_internal(ctx, "no user")),
    }
}
