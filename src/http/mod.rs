//! Bytes on sockets: HTTP/1.1 as `load` speaks it, and requests to upstreams.
//!
//! - [`client`]: connections to upstreams, kept and used again
//! - [`path`]: a path in one form, whatever its spelling
//! - [`target`]: a URL and its options -> where a request goes
//! - [`wire`]: requests to bytes, bytes to answers; no sockets
//! - [`tls`]: certificates and checks
//! - [`stream`]: one non-blocking connection
//! - [`stamp`]: when the kernel received what was read

pub mod client;
pub mod path;
pub mod stamp;
pub mod stream;
pub mod target;
pub mod tls;
pub mod wire;
