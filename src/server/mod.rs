//! What a service stands on: event loops (one per thread, on tokio and hyper), HTTP/1.1 and HTTP/2 without TLS,
//! patience with slow peers, exact timers, bodies without copies, an access log, metrics, and an end in good order.
//!
//! - [`Service`]: who answers; [`Turn`]: what it has at hand; [`Reply`], [`Body`], [`Page`]: what it answers with
//! - [`start`] a service, which then is [`Running`]
//! - `event_loop`: one thread; `framing`: what a request's head says of its body; `home`: what its connections share; `connection`, `socket`, `watch`: one connection; `ledger`: what is written down

mod access_log;
mod arrival;
mod body;
mod connection;
mod event_loop;
mod framing;
mod home;
mod ledger;
mod listen;
mod metrics;
mod page;
mod socket;
mod tick;
mod turn;
mod watch;

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
pub use self::body::{Body, BodyError, RequestBody};
use self::event_loop::on_this_thread;
use self::home::{Freed, Home};
use self::ledger::Ledger;
use self::metrics::Metrics;
pub use self::page::Page;
use self::tick::Tick;
pub use self::turn::{Taken, Turn, Unread, Upload};
use crate::decide::Nanos;
use crate::decide::patience::Limits;
pub use crate::machine::timer::Timer;
use crate::machine::{self, clock::Clock};

/// Who answers requests. One value serves all event loops.
pub trait Service: Send + Sync + 'static {
    /// What each event loop keeps for itself.
    type Local: 'static;

    /// Called once on each event loop, before its first request.
    ///
    /// # Errors
    /// When the system does not give what the service needs.
    fn settle(&self, timer: &Timer) -> io::Result<Self::Local>;

    /// Answers a request. The future is dropped when the client leaves.
    fn answer(&self, local: &Self::Local, request: Request<Incoming>, turn: &Turn) -> impl Future<Output = Reply>;

    /// Called when the server stops; it waits for this as it waits for answers that are owed.
    fn rest(&self, _local: &Self::Local) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// The path by which the server's own pages are looked for, of a request for this one.
    fn page_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        Cow::Borrowed(path)
    }

    /// Adds the service's own counters to `/metrics`.
    fn count(&self, _registry: &mut Registry) {}

    /// Bytes that answers are made of and that are worth sending without a copy.
    fn page(&self) -> Option<Arc<Page>> {
        None
    }
}

/// What becomes of a request; see also [`Turn::never`].
#[derive(Debug)]
pub enum Reply {
    /// It is answered.
    Answer(Response<Body>),
    /// Its connection is reset (in HTTP/2: its stream).
    Reset,
    /// It is answered with 101, and from then on its bytes go to the tunnel and come from there. Only for HTTP/1.1.
    Switch(Response<Body>, Box<dyn Tunnel>),
}

/// Where the bytes of a connection go that speaks another protocol by now.
pub trait Tunnel: AsyncRead + AsyncWrite + fmt::Debug + Unpin {}

impl<T: AsyncRead + AsyncWrite + fmt::Debug + Unpin> Tunnel for T {}

impl Reply {
    /// The answer's status, if there is an answer.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Answer(answer) | Self::Switch(answer, _) => Some(answer.status()),
            Self::Reset => None,
        }
    }
}

impl From<Response<Body>> for Reply {
    fn from(answer: Response<Body>) -> Self {
        Self::Answer(answer)
    }
}

/// Says something to whoever runs the server.
#[derive(Clone)]
pub struct Tell(Arc<dyn Fn(&str) + Send + Sync>);

impl Tell {
    /// Through `say`, one message at a time.
    pub fn new(say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(say))
    }

    /// Says it.
    pub fn say(&self, text: &str) {
        (self.0)(text);
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

/// Event loops at most.
pub const MOST_WORKERS: u16 = 256;

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address or name to listen on.
    pub host: String,
    /// The port; 0 lets the system choose.
    pub port: u16,
    /// Event loops, one thread each.
    pub workers: usize,
    /// Patience with slow peers.
    pub limits: Limits,
    /// The longest head of a request, in bytes; beyond it the answer is 431. At least 8,192.
    pub most_head: usize,
    /// The most fields of a request's head; beyond it the answer is 431.
    pub most_fields: usize,
    /// Where a line of JSON per request goes; `-` is stderr.
    pub access_log: Option<PathBuf>,
    /// The pages that the server answers itself.
    pub pages: Pages,
    /// Whether the kernel is asked, once per connection, when its first request came; else a request has come when it
    /// is read.
    pub asks_arrivals: bool,
    /// Who hears of troubles.
    pub tell: Tell,
}

/// Paths that the server answers itself; an empty one is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Metrics for Prometheus.
    pub metrics: String,
    /// `ok`, for whoever asks whether the server is there.
    pub health: String,
}

impl Default for Pages {
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
            limits: Limits::default(),
            most_head: 64 * 1024,
            most_fields: 256,
            access_log: None,
            pages: Pages::default(),
            asks_arrivals: false,
            tell: Tell::new(|_| {}),
        }
    }
}

/// Why a server could not start.
#[derive(Debug)]
pub enum ServerError {
    /// The address is not to be had: host, port, reason.
    Listen(String, u16, io::Error),
    /// The access log cannot be written.
    AccessLog(PathBuf, io::Error),
    /// The system has no thread, poller or timer for us.
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

/// Whether a server is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    No,
    /// Answers that are owed have until then.
    By(Nanos),
    Now,
}

/// A server that runs; it stops at once when it is dropped.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    clock: Clock,
    stop: channel::Sender<Stop>,
    threads: Vec<JoinHandle<()>>,
    log: Option<AccessLog>,
}

/// Starts a service; it takes connections when this returns.
///
/// # Errors
/// See [`ServerError`].
pub fn start<S: Service>(service: S, options: &Options) -> Result<Running, ServerError> {
    // Each connection is an open file; what the system allows is enough or is told when it is not.
    let _ = machine::allow_open_files(machine::most_connections().min(1 << 20));
    let (address, listeners) = listen::listeners(&options.host, options.port, options.workers.max(1))
        .map_err(|error| ServerError::Listen(options.host.clone(), options.port, error))?;
    let log = match &options.access_log {
        Some(path) => {
            Some(AccessLog::open(path, &options.tell).map_err(|error| ServerError::AccessLog(path.clone(), error))?)
        }
        None => None,
    };
    let service = Arc::new(service);
    let metrics = Arc::new(Metrics::new(|registry| service.count(registry)));
    let clock = Clock::starting_in(Nanos::ZERO);
    let (stop, stopped) = channel::channel(Stop::No);
    let mut running = Running { address, clock, stop, threads: Vec::new(), log };
    let (ready, all_ready) = mpsc::channel();
    for listener in listeners {
        let (service, metrics, options) = (Arc::clone(&service), Arc::clone(&metrics), options.clone());
        let (stopped, ready) = (stopped.clone(), ready.clone());
        let pen = running.log.as_ref().map(|log| log.pen(&options.tell));
        let thread = thread::Builder::new().name("event-loop".to_owned()).spawn(move || {
            let ended = on_this_thread(async || {
                let home = settle(service, clock, metrics, pen, options)?;
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

fn settle<S: Service>(
    service: Arc<S>,
    clock: Clock,
    metrics: Arc<Metrics>,
    pen: Option<access_log::Pen>,
    options: Options,
) -> io::Result<Rc<Home<S>>> {
    let (timer, rings) = Timer::new(clock)?;
    tokio::task::spawn_local(rings);
    Ok(Rc::new(Home {
        local: service.settle(&timer)?,
        page: service.page(),
        service,
        limits: options.limits,
        most_head: options.most_head.max(8192),
        most_fields: options.most_fields,
        pages: options.pages,
        asks_arrivals: options.asks_arrivals,
        ledger: Rc::new(Ledger { clock, tick: Tick::default(), metrics, pen }),
        timer,
        tell: options.tell,
        connections: RefCell::new(Slab::new()),
        ended: Notify::new(),
        freed: Freed::default(),
    }))
}

impl Running {
    /// Where it takes connections.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://` and the address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Takes no more connections, and waits for the answers that are owed, `grace` at most.
    pub fn stop(mut self, grace: Duration) {
        self.stopper().stop(grace);
        self.finish();
    }

    /// Lets another thread say when to stop, or that the grace is over.
    pub fn stopper(&self) -> Stopper {
        Stopper { clock: self.clock, stop: self.stop.clone() }
    }

    fn finish(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(log) = self.log.take() {
            log.close();
        }
    }
}

/// See [`Running::stopper`].
#[derive(Clone, Debug)]
pub struct Stopper {
    clock: Clock,
    stop: channel::Sender<Stop>,
}

impl Stopper {
    /// Takes no more connections; answers that are owed have `grace` from now, whatever was said before. Returns at
    /// once.
    pub fn stop(&self, grace: Duration) {
        // Who does not listen any more has stopped.
        let _ = self.stop.send(Stop::By(self.clock.now() + grace.into()));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            let _ = self.stop.send(Stop::Now);
        }
        self.finish();
    }
}
