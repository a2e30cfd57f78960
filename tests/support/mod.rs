//! What the tests share: a scripted service, a client that sends anything, certificates, and the real binary in a fresh
//! folder.
#![allow(dead_code, unused_imports, reason = "each test file is a crate of its own and uses its part of this")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the service's end of a test has a clock of its own")]

mod calling;
mod certificates;
mod connection;
mod http2;
mod noise;
mod raw;
mod redis;
mod reply;
mod server;
mod serving;
mod setting;
mod tied;
mod weir;
mod wire;

pub(crate) use calling::{call, calling, get, ms, origin, plan, text, upstream, waiting};
pub(crate) use certificates::Authority;
pub(crate) use http2::over_http2;
pub(crate) use noise::{Burner, Stall, Stalling, Stalls};
pub(crate) use raw::{Answer, Raw};
pub(crate) use redis::{Manner, Proxy, RedisServer};
pub(crate) use reply::{Gate, Reply};
pub(crate) use server::{Builder, Seen, Server};
pub(crate) use serving::Serving;
pub(crate) use setting::{ALWAYS, SYNCED, Sent, Setting, Terms};
pub(crate) use tied::{running_in, spawn_tied};
pub(crate) use weir::{Output, Running, Weir, load, until};

/// Whether `value` is within `share` of `truth`.
pub(crate) fn close(value: f64, truth: f64, share: f64) -> bool {
    (value - truth).abs() <= truth.abs() * share
}
