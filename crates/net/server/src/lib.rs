//! HTTP server for services: event loops (one per thread, on tokio and hyper), HTTP/1.1 and HTTP/2 with TLS or without,
//! timeouts for slow peers, exact timers, bodies without copies, an access log, metrics, and graceful shutdown.
//!
//! - [`Service`], [`StatelessService`]: the handler; [`RequestContext`]: its access to a request; [`ServiceReply`], [`ResponseBody`],
//!   [`StaticBody`]: its response; [`DirectRequest`]: a request without a future
//! - [`start`], [`start_on`], and [`start_boxed`] for less code: start a service as a [`RunningServer`];
//!   [`ListenAddress`], [`ListenerOptions`]: where it listens, on sockets of its own or of `systemd`
//! - [`Handover`], [`NextProcess`]: sockets that one process passes on to the next
//! - `event_loop`: one thread; `thread_context`: the state that its connections share; `framing`: checks of a request's
//!   framing; `request_log`, `request_info`, `open_requests`, `response_histogram`: records of requests
//! - `connection`, `connection_state`: one connection, from the system's socket (`accepted_socket`) over timeouts
//!   (`socket`) and what comes before HTTP (`opening`: [`ProxyHeader`], [`tls`]) to the bytes of HTTP
//!   (`served_stream`); `http2`, `stream_progress`, `budgeted_stream`: HTTP/2; `http1` (with [`ParsedHead`]): requests and responses of HTTP/1.x
//! - [`timeouts`], [`transfer_pace`], `control_budget` with `header_block`: PURE: when a slow or idle peer is given up

mod accepted_socket;
mod access_log;
mod access_log_file;
mod access_log_format;
mod body;
mod boxed_service;
mod budgeted_stream;
mod coarse_clock;
mod connection;
mod connection_limits;
mod connection_state;
mod control_budget;
mod direct;
mod event_loop;
mod framing;
mod handover;
mod header_block;
mod http1;
mod http2;
mod listen;
mod listen_address;
mod listener_options;
mod metrics;
mod network;
mod open_requests;
mod opening;
mod outstanding_bytes;
mod proxy_header;
mod request_body;
mod request_context;
mod request_info;
mod request_log;
mod response_histogram;
mod running_server;
mod served_stream;
mod server_state;
mod socket;
mod stateless_service;
mod static_body;
mod stream_progress;
mod systemd;
mod thread_context;
pub mod timeouts;
pub mod tls;
pub mod transfer_pace;

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::access_log::AccessLogOptions;
pub use self::access_log_format::{AccessLogFormat, LogTemplate};
pub use self::body::{BodyError, ResponseBody};
pub use self::boxed_service::{start_boxed, start_boxed_on};
pub use self::connection_limits::ConnectionLimits;
pub use self::connection_state::TlsPeer;
pub use self::direct::{DirectReply, DirectRequest, WholeResponse};
pub use self::handover::{HandedSockets, Handover, HandoverError, ListenSockets, NextProcess};
pub use self::http1::request_head::{HeadError, HeadFields, HeadLimits, ParsedHead};
pub use self::listen::{BoundAddress, listen_on_host};
pub use self::listen_address::ListenAddress;
pub use self::listener_options::ListenerOptions;
pub use self::metrics::MetricsHandle;
pub use self::network::{Network, Proxies};
pub use self::open_requests::OpenRequestsHandle;
pub use self::proxy_header::ProxyHeader;
pub use self::request_body::RequestBody;
pub use self::request_context::{BodyPrefix, ReadBodyError, RequestBodyStream, RequestContext};
pub use self::request_info::RequestInFlight;
pub use self::running_server::{RunningServer, StopHandle, start, start_on};
pub use self::server_state::StopReport;
pub use self::stateless_service::StatelessService;
pub use self::static_body::StaticBody;
use crate::timeouts::Timeouts;
use weir_machine::logger::Logger;
pub use weir_machine::timer::Timer;
use weir_net::wire::PassedNames;

/// Handler of requests. One value serves all event loops.
pub trait Service: Send + Sync + 'static {
    /// State of one event loop.
    type Local: 'static;

    /// Called once on each event loop, before its first request.
    ///
    /// # Errors
    /// If the system lacks what the service needs.
    fn init_thread(&self, timer: &Timer) -> io::Result<Self::Local>;

    /// Handles a request. The future is dropped when the client leaves.
    fn handle(
        &self,
        local: &Self::Local,
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> impl Future<Output = ServiceReply>;

    /// Whether [`Self::direct`] is called.
    fn has_direct(&self) -> bool {
        false
    }

    /// Handles a request over HTTP/1 of which nothing is still to come, without a future; None leaves it to
    /// [`Self::handle`]. A service that handles it takes it as a whole.
    fn direct(
        &self,
        _local: &Self::Local,
        _request: &mut Request<RequestBody>,
        _context: &RequestContext,
    ) -> Option<DirectReply> {
        None
    }

    /// Called when the server stops, which awaits this like pending responses.
    fn shutdown(&self, _local: &Self::Local) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Whether requests of others are rejected because of what an HTTP/2 connection holds. Its streams that wait for their
    /// client then have less time.
    fn crowds_out_others(&self, _local: &Self::Local, _connection: u32) -> bool {
        false
    }

    /// Names of fields of requests over HTTP/1 that the service reads nowhere, so that they may be beside the headers:
    /// [`RequestBody::take_passed_fields`].
    fn passed_names(&self, _local: &Self::Local) -> PassedNames {
        PassedNames::NONE
    }

    /// Path of the request by which the server's own pages are looked up.
    fn builtin_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        Cow::Borrowed(path)
    }

    /// Adds the service's own counters to `/metrics`.
    fn register_metrics(&self, _registry: &mut Registry) {}

    /// Bytes that responses repeat and that can be sent without a copy.
    fn static_body(&self) -> Option<Arc<StaticBody>> {
        None
    }
}

/// Outcome of a request; see also [`RequestContext::hang`].
#[derive(Debug)]
pub enum ServiceReply {
    /// A response.
    Response(Response<ResponseBody>),
    /// A reset of the connection (in HTTP/2: of the stream).
    Reset,
    /// A 101, after which the connection's bytes are forwarded to and from the tunnel. Only for HTTP/1.1.
    Upgrade(Response<ResponseBody>, Box<dyn Tunnel>),
}

/// Peer of an upgraded connection.
pub trait Tunnel: AsyncRead + AsyncWrite + fmt::Debug + Unpin {}

impl<T: AsyncRead + AsyncWrite + fmt::Debug + Unpin> Tunnel for T {}

impl ServiceReply {
    /// Status of the response, if there is one.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Response(response) | Self::Upgrade(response, _) => Some(response.status()),
            Self::Reset => None,
        }
    }
}

impl From<Response<ResponseBody>> for ServiceReply {
    fn from(response: Response<ResponseBody>) -> Self {
        Self::Response(response)
    }
}

/// Maximum number of open files that a server asks the system for.
pub const MAX_OPEN_FILES: u64 = 1 << 20;

/// Maximum number of event loops.
pub const MAX_WORKERS: u16 = 256;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address or name to listen on.
    pub host: String,
    /// The port; 0 lets the system choose.
    pub port: u16,
    /// Number of event loops, one thread each.
    pub workers: usize,
    /// Timeouts for slow peers.
    pub timeouts: Timeouts,
    /// Limits of the connections of all listeners together.
    pub connection_limits: ConnectionLimits,
    /// Maximum size of a request's head, in bytes; above it 431. At least 8,192.
    pub max_head_bytes: usize,
    /// Maximum number of a request's header fields; above it 431.
    pub max_header_fields: usize,
    /// Access log; None for none.
    pub access_log: Option<AccessLogOptions>,
    /// Paths that the server handles itself.
    pub builtin_paths: BuiltinPaths,
    /// Whether the arrival of a connection's first request is read from the kernel; otherwise a request arrives when it
    /// is read.
    pub uses_receive_timestamps: bool,
    /// Whether requests in flight can be listed; see [`RunningServer::open_requests`].
    pub lists_requests: bool,
    /// Sockets of the process whose place this one takes, used for their addresses.
    pub handed: HandedSockets,
    /// Logger for problems.
    pub logger: Logger,
}

/// Paths that the server handles itself; an empty one is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinPaths {
    /// Path of the metrics for Prometheus.
    pub metrics: String,
    /// Path of the health check, which returns `ok`, and 503 once the server is about to stop.
    pub health: String,
}

impl Default for BuiltinPaths {
    fn default() -> Self {
        Self { metrics: "/metrics".to_owned(), health: String::new() }
    }
}

impl Options {
    /// Listener at its host and port.
    pub(crate) fn plain_listener(&self) -> ListenerOptions {
        ListenerOptions::plain(ListenAddress::Tcp(self.host.clone(), self.port))
    }

    /// Range of [`Self::max_head_bytes`] on the command line.
    pub const HEAD_BYTES: RangeInclusive<u64> = 8192..=1 << 20;
    /// Range of [`Self::max_header_fields`] on the command line.
    pub const HEADER_FIELDS: RangeInclusive<u64> = 16..=4096;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 0,
            workers: 1,
            timeouts: Timeouts::default(),
            connection_limits: ConnectionLimits::default(),
            max_head_bytes: 64 * 1024,
            max_header_fields: 256,
            access_log: None,
            builtin_paths: BuiltinPaths::default(),
            uses_receive_timestamps: false,
            lists_requests: false,
            handed: HandedSockets::default(),
            logger: Logger::new(|_| {}),
        }
    }
}

/// Reason why a server could not start.
#[derive(Debug)]
pub enum ServerError {
    /// The address is not available, and the reason.
    Listen(ListenAddress, io::Error),
    /// The access log is not writable.
    AccessLog(PathBuf, io::Error),
    /// The system has no thread, poller or timer left.
    System(io::Error),
}

impl std::error::Error for ServerError {}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address @ ListenAddress::Tcp(..), error) => {
                write!(f, "cannot listen on {address}: {error}; choose another address, or port 0 for a free one")
            }
            Self::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::AccessLog(path, error) => write!(f, "cannot write the access log {}: {error}", path.display()),
            Self::System(error) => write!(f, "the system does not let us serve: {error}"),
        }
    }
}

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
