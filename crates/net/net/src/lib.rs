//! HTTP over sockets: the load generator's HTTP/1.1, and the client for upstreams.
//!
//! - [`address_race`]: which of a name's addresses is attempted next, and when
//! - [`client`]: requests to upstreams, with a connection pool
//! - [`content_coding`]: decompression of bodies
//! - [`local_executor`]: executor of hyper's own tasks
//! - [`lookup`]: look-ups of header fields where a message has few
//! - [`path`]: normalized paths
//! - [`target`]: URLs and the addresses to connect to
//! - [`wire`]: encoding of requests and decoding of responses, without sockets
//! - [`tls`]: TLS configuration
//! - [`stream`]: one non-blocking connection
//! - [`upgrade`]: upgrades of a connection to another protocol
//! - [`traceparent`], [`trace_sampling`]: trace contexts in headers, and which traces are sampled

pub mod address_race;
pub mod client;
pub mod content_coding;
pub mod local_executor;
pub mod lookup;
pub mod path;
pub mod stream;
pub mod target;
pub mod tls;
pub mod trace_sampling;
pub mod traceparent;
pub mod upgrade;
pub mod wire;
