//! What the modules of a script reach of weir: the module `weir:native`, and the state of a user behind it.
//!
//! - [`state`]: a user, and how its script waits; [`exchange`]: requests that it sends and their results
//! - [`core`]: what every script needs, and the module `k6`; [`globals`]: global names; [`checks`]: checks and groups
//! - [`http_module`]: `k6/http`; [`http_calls`]: its requests; [`jar_objects`]: its cookie jars; [`request_arguments`]: what they are made of; [`response_class`],
//!   [`response_fields`], [`response_json`]: objects of their responses; [`own_modules`]: what they reach of modules in JavaScript
//! - [`sockets`], [`socket_calls`]: WebSockets, with what they have received
//! - [`calls`]: messages of gRPC; [`stream_calls`], [`call_queue`]: calls that are streams, with what they have received
//! - [`http`], [`cookies`]: arguments of requests, jars; [`samples`]: metrics, checks and groups
//! - [`context`]: files of the init context, environment, log, facts of the run; [`bytes`]: encodings; [`crypto`]: digests and AES; [`html`]: documents; [`files`]: files and CSV; [`secrets`]: secrets

mod bytes;
pub(crate) mod call_queue;
mod calls;
mod checks;
mod collections;
mod context;
mod cookies;
mod core;
mod crypto;
pub(crate) mod exchange;
mod files;
pub(crate) mod globals;
mod html;
mod http;
mod http_calls;
mod http_module;
mod jar_objects;
mod json_part;
mod own_modules;
mod request_arguments;
mod response_class;
pub(crate) mod response_fields;
mod response_json;
mod samples;
mod secrets;
mod socket_calls;
pub(crate) mod sockets;
pub(crate) mod state;
mod stream_calls;

use std::rc::Rc;

use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{Ctx, Exception, Module, Result};

pub(crate) use self::state::UserState;

/// Module `weir:native`: all of the host's functions.
struct Native;

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
    "callEnd",
    "callMessage",
    "callOpened",
    "callWrite",
    "collectionInput",
    "compile",
    "countCheck",
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
    "grpcChannel",
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
    "secret",
    "secretSource",
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
        collections::export(ctx, exports)?;
        context::export(ctx, exports)?;
        cookies::export(ctx, exports)?;
        crypto::export(ctx, exports)?;
        files::export(ctx, exports)?;
        html::export(ctx, exports)?;
        http::export(ctx, exports)?;
        samples::export(ctx, exports)?;
        secrets::export(ctx, exports)?;
        socket_calls::export(ctx, exports)?;
        stream_calls::export(ctx, exports)
    }
}

/// Module of this name that is written in Rust; `None` for another one.
pub(crate) fn declared<'js>(ctx: &Ctx<'js>, name: &str) -> Option<Result<Module<'js, Declared>>> {
    Some(match name {
        "weir:native" => Module::declare_def::<Native, _>(ctx.clone(), name),
        "weir:core" => Module::declare_def::<core::Core, _>(ctx.clone(), name),
        "weir:execution" => Module::declare_def::<core::ExecutionFacts, _>(ctx.clone(), name),
        "weir:http" => Module::declare_def::<http_module::RequestsModule, _>(ctx.clone(), name),
        "k6/http" => Module::declare_def::<http_module::HttpModule, _>(ctx.clone(), name),
        "k6" => Module::declare_def::<core::K6Module, _>(ctx.clone(), name),
        _ => return None,
    })
}

/// State of the user whose script calls.
pub(crate) fn user_of(ctx: &Ctx<'_>) -> Result<Rc<UserState>> {
    state::attached(ctx).ok_or_else(|| Exception::throw_internal(ctx, "no user"))
}
