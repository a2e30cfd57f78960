//! A recording proxy: what goes through it becomes a HAR file, and with `weir_import` a scenario.
//!
//! - [`RecordSession`] is a recording as a command makes it: `progress_line` while it goes on, `record_outcome` at its end
//! - [`RecordingProxy`] is the proxy, with its [`Options`]; a [`RecordObserver`] gets its progress
//! - `proxy` has the connections of clients and where their requests go, `connect` the tunnels, `forward` one request
//! - `recording_state` is what is recorded: `open_exchange` is a request in flight, `passing_body` and `body_capture` its
//!   bodies, `journal` the file
//! - PURE: [`HostScope`] (which hosts), `resource` (what a request is for), `tunnel_content` (what a tunnel has),
//!   `forwarded_headers`, `reverse` (headers), `exchange` and `har_entry` (what is written), [`notation`] (options as
//!   users write them)
//!
//! No request is sent that a client did not send, and bytes of bodies pass as they come. What is a think time, a value
//! to capture or a secret is decided by the import of the HAR file, as for one of a browser.

mod body_capture;
mod certificate_authority;
mod connect;
mod error;
mod exchange;
mod forward;
mod forwarded_headers;
mod har_entry;
mod host_scope;
mod journal;
mod leaf_cache;
mod local_response;
pub mod notation;
mod open_exchange;
mod passing_body;
mod prefixed_stream;
mod progress_line;
mod proxy;
mod proxy_context;
mod record_outcome;
mod record_session;
mod recording_proxy;
mod recording_state;
mod resource;
mod reverse;
mod tunnel_content;
mod upstreams;

pub use self::error::RecordError;
pub use self::host_scope::{HostPattern, HostScope};
pub use self::record_session::RecordSession;
pub use self::recording_proxy::{Options, RecordingProxy};
pub use self::recording_state::{RecordCounts, RecordObserver};
