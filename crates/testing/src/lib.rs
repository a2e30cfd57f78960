//! Tools that the tests share: a scripted service, a client that sends anything, certificates, and the real binary in a
//! fresh folder.
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "for tests of this workspace")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::new_without_default, reason = "a test makes what it needs by name")]
#![allow(clippy::disallowed_methods, reason = "the service's end of a test has a clock of its own")]

mod certificates;
mod closed_port;
mod connection;
mod counting_allocator;
mod disk;
mod dns;
mod frames;
mod full_listener;
pub mod hostile;
mod http2;
mod http2_peer;
mod http2_service;
mod noise;
mod over;
mod raw;
mod raw_stream;
mod redis;
mod relay;
mod reply;
mod seen;
mod server;
mod serving;
mod shared;
mod tied;
mod tls_client;
mod weir;
mod wire;

pub use certificates::{Authority, Pair};
pub use closed_port::closed_address;
pub use counting_allocator::CountingAllocator;
pub use disk::Disk;
pub use dns::{DnsManner, DnsSeen, DnsServer};
pub use frames::{Frame, Frames};
pub use full_listener::full_listener;
pub use h2::Reason;
pub use http2::over_http2;
pub use http2_peer::{Http2Manner, Http2Peer, frame, goaway, settings};
pub use http2_service::{Http2Builder, Http2Reply, Http2Seen, Http2Service};
pub use noise::{Burner, Stall, Stalling, Stalls, stall_once};
pub use over::Over;
pub use raw::{Answer, Raw};
pub use redis::{Manner, Proxy, RedisServer};
pub use relay::Relay;
pub use reply::{Gate, Reply};
pub use seen::Seen;
pub use server::{Builder, Server};
pub use serving::Serving;
pub use tied::{children, is_running, running_in, spawn_tied};
pub use tls_client::{TlsClient, TlsClientBuilder};
pub use weir::{Output, Running, Weir, load, until, weir_path};

/// Whether `value` is within `share` of `truth`.
pub fn close(value: f64, truth: f64, share: f64) -> bool {
    (value - truth).abs() <= truth.abs() * share
}
