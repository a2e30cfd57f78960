//! HTTP server for services: event loops (one per thread, on tokio and hyper), HTTP/1.1 and HTTP/2 without TLS,
//! timeouts for slow peers, exact timers, bodies without copies, an access log, metrics, and graceful shutdown.
//!
//! - [`Service`]: the handler; [`RequestContext`]: its access to a request; [`ServiceReply`], [`ResponseBody`],
//!   [`StaticBody`]: its response
//! - [`start`]: starts a service as a [`RunningServer`]
//! - `event_loop`: one thread; `framing`: checks of a request's framing; `home`: the state that connections share;
//!   `connection`, `socket`, `watch`: one connection; `ledger`: records of requests

mod access_log;
mod body;
mod coarse_clock;
mod connection;
mod connection_state;
mod event_loop;
mod framing;
mod listen;
mod metrics;
mod receive_age;
mod request_context;
mod request_log;
mod socket;
mod static_body;
mod thread_context;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use prometheus_client::registry::Registry;
use slab::Slab;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch as channel};

use self::access_log::AccessLog;
pub use self::body::{BodyError, RequestBody, ResponseBody};
use self::coarse_clock::CoarseClock;
use self::event_loop::run_on_current_thread;
use self::metrics::ServerMetrics;
pub use self::request_context::{BodyPrefix, ReadBodyError, RequestBodyStream, RequestContext};
use self::request_log::RequestAccounting;
pub use self::static_body::StaticBody;
use self::thread_context::{MemoryReclaimer, ThreadContext};
use weir_decide::Nanos;
use weir_decide::service::timeouts::Timeouts;
pub use weir_machine::timer::Timer;
use weir_machine::{self as machine, clock::Clock};

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
        request: Request<Incoming>,
        turn: &RequestContext,
    ) -> impl Future<Output = ServiceReply>;

    /// Called when the server stops, which awaits this like pending responses.
    fn shutdown(&self, _local: &Self::Local) -> impl Future<Output = ()> {
        std::future::ready(())
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
            Self::Response(answer) | Self::Upgrade(answer, _) => Some(answer.status()),
            Self::Reset => None,
        }
    }
}

impl From<Response<ResponseBody>> for ServiceReply {
    fn from(answer: Response<ResponseBody>) -> Self {
        Self::Response(answer)
    }
}

/// Logger for the operator of the server.
#[derive(Clone)]
pub struct Logger(Arc<dyn Fn(&str) + Send + Sync>);

impl Logger {
    /// A logger that calls `log` with each message.
    pub fn new(log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(log))
    }

    /// Logs a message.
    pub fn log(&self, text: &str) {
        (self.0)(text);
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logger")
    }
}

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
    /// Maximum size of a request's head, in bytes; above it 431. At least 8,192.
    pub max_head_bytes: usize,
    /// Maximum number of a request's header fields; above it 431.
    pub max_header_fields: usize,
    /// Access log file, one JSON line per request; `-` is stderr.
    pub access_log: Option<PathBuf>,
    /// Paths that the server handles itself.
    pub builtin_paths: BuiltinPaths,
    /// Whether the arrival of a connection's first request is read from the kernel; otherwise a request arrives when it
    /// is read.
    pub uses_receive_timestamps: bool,
    /// Logger for problems.
    pub logger: Logger,
}

/// Paths that the server handles itself; an empty one is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinPaths {
    /// Path of the metrics for Prometheus.
    pub metrics: String,
    /// Path of the health check, which returns `ok`.
    pub health: String,
}

impl Default for BuiltinPaths {
    fn default() -> Self {
        Self { metrics: "/metrics".to_owned(), health: String::new() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 0,
            workers: 1,
            timeouts: Timeouts::default(),
            max_head_bytes: 64 * 1024,
            max_header_fields: 256,
            access_log: None,
            builtin_paths: BuiltinPaths::default(),
            uses_receive_timestamps: false,
            logger: Logger::new(|_| {}),
        }
    }
}

/// Reason why a server could not start.
#[derive(Debug)]
pub enum ServerError {
    /// The address is not available: host, port, reason.
    Listen(String, u16, io::Error),
    /// The access log is not writable.
    AccessLog(PathBuf, io::Error),
    /// The system has no thread, poller or timer left.
    System(io::Error),
}

impl std::error::Error for ServerError {}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(host, port, error) => {
                write!(f, "cannot listen on {host}:{port}: {error}; choose another address, or port 0 for a free one")
            }
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

/// Signal to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShutdownRequest {
    Run,
    /// Deadline of pending responses.
    DrainUntil(Nanos),
    Now,
}

/// A running server; stops at once when dropped.
#[derive(Debug)]
pub struct RunningServer {
    address: SocketAddr,
    clock: Clock,
    stop: channel::Sender<ShutdownRequest>,
    threads: Vec<JoinHandle<()>>,
    access_log: Option<AccessLog>,
}

/// Starts a service; it accepts connections when this returns.
///
/// # Errors
/// See [`ServerError`].
pub fn start<S: Service>(service: S, options: &Options) -> Result<RunningServer, ServerError> {
    // Each connection is an open file; a limit that is too low is logged.
    let _ = machine::allow_open_files(machine::max_connections().min(1 << 20));
    let (address, listeners) = listen::listeners(&options.host, options.port, options.workers.max(1))
        .map_err(|error| ServerError::Listen(options.host.clone(), options.port, error))?;
    let log = match &options.access_log {
        Some(path) => {
            Some(AccessLog::open(path, &options.logger).map_err(|error| ServerError::AccessLog(path.clone(), error))?)
        }
        None => None,
    };
    let service = Arc::new(service);
    let metrics = Arc::new(ServerMetrics::new(|registry| service.register_metrics(registry)));
    let clock = Clock::starting_in(Nanos::ZERO);
    let (stop, stopped) = channel::channel(ShutdownRequest::Run);
    let mut running = RunningServer { address, clock, stop, threads: Vec::new(), access_log: log };
    let (ready, all_ready) = mpsc::channel();
    for listener in listeners {
        let (service, metrics, options) = (Arc::clone(&service), Arc::clone(&metrics), options.clone());
        let (stopped, ready) = (stopped.clone(), ready.clone());
        let pen = running.access_log.as_ref().map(|log| log.writer(&options.logger));
        let thread = thread::Builder::new().name("event-loop".to_owned()).spawn(move || {
            let ended = run_on_current_thread(async || {
                let home = thread_context(service, clock, metrics, pen, options)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                let _ = ready.send(Ok(()));
                event_loop::run(home, listener, stopped).await;
                Ok(())
            });
            if let Err(error) = ended {
                let _ = ready.send(Err(error));
            }
        })?;
        running.threads.push(thread);
    }
    drop(ready);
    for _ in 0..running.threads.len() {
        all_ready.recv().unwrap_or_else(|_| Err(io::Error::other("an event loop ended")))?;
    }
    Ok(running)
}

fn thread_context<S: Service>(
    service: Arc<S>,
    clock: Clock,
    metrics: Arc<ServerMetrics>,
    pen: Option<access_log::AccessLogWriter>,
    options: Options,
) -> io::Result<Rc<ThreadContext<S>>> {
    let (timer, rings) = Timer::new(clock)?;
    tokio::task::spawn_local(rings);
    Ok(Rc::new(ThreadContext {
        local: service.init_thread(&timer)?,
        static_body: service.static_body(),
        service,
        timeouts: options.timeouts,
        max_head_bytes: options.max_head_bytes.max(8192),
        max_header_fields: options.max_header_fields,
        builtin_paths: options.builtin_paths,
        uses_receive_timestamps: options.uses_receive_timestamps,
        accounting: Rc::new(RequestAccounting {
            clock,
            coarse_clock: CoarseClock::default(),
            metrics,
            access_log: pen,
        }),
        timer,
        logger: options.logger,
        connections: RefCell::new(Slab::new()),
        connection_ended: Notify::new(),
        memory_reclaimer: MemoryReclaimer::default(),
    }))
}

impl RunningServer {
    /// Listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://` and the address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops accepting connections, and awaits pending responses for `grace` at most.
    pub fn stop(mut self, grace: Duration) {
        self.stop_handle().stop(grace);
        self.finish();
    }

    /// Handle by which another thread stops the server, or ends the grace time.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle { clock: self.clock, stop: self.stop.clone() }
    }

    fn finish(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(log) = self.access_log.take() {
            log.close();
        }
    }
}

/// See [`RunningServer::stop_handle`].
#[derive(Clone, Debug)]
pub struct StopHandle {
    clock: Clock,
    stop: channel::Sender<ShutdownRequest>,
}

impl StopHandle {
    /// Stops accepting connections; pending responses have `grace` from now, in place of an earlier one. Returns at
    /// once.
    pub fn stop(&self, grace: Duration) {
        // An event loop without a receiver has stopped.
        let _ = self.stop.send(ShutdownRequest::DrainUntil(self.clock.now() + grace.into()));
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            let _ = self.stop.send(ShutdownRequest::Now);
        }
        self.finish();
    }
}
