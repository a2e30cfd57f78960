//! A running server: its threads, its addresses, and its end.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use slab::Slab;
use tokio::sync::{Notify, mpsc, watch as channel};

use super::access_log::{AccessLog, AccessLogWriter};
use super::coarse_clock::CoarseClock;
use super::connection_limits::ConnectionCounts;
use super::event_loop::{self, ThreadListener, run_on_current_thread};
use super::handover::ListenSockets;
use super::http1::buffers::Http1Buffers;
use super::listen::{BoundAddress, BoundListener, CreatedSocket, ListenSocket};
use super::listener_options::ListenerOptions;
use super::metrics::{MetricsHandle, ServerMetrics};
use super::open_requests::{self, OpenRequests, OpenRequestsHandle, OpenRequestsQuery};
use super::request_log::RequestAccounting;
use super::server_state::{ServerState, ShutdownRequest, StopReport};
use super::thread_context::{MemoryReclaimer, ThreadContext};
use super::{MAX_OPEN_FILES, Options, ServerError, Service, Timer};
use weir_base::Nanos;
use weir_machine::executor::spawn_task;
use weir_machine::{self as machine, clock::Clock};

/// A running server; stops at once when dropped.
#[derive(Debug)]
pub struct RunningServer {
    addresses: Vec<BoundAddress>,
    clock: Clock,
    stop: channel::Sender<ShutdownRequest>,
    state: Arc<ServerState>,
    metrics: Arc<ServerMetrics>,
    open_requests: Vec<mpsc::UnboundedSender<OpenRequestsQuery>>,
    threads: Vec<JoinHandle<()>>,
    access_log: Option<AccessLog>,
    created_sockets: Vec<CreatedSocket>,
    listen_sockets: ListenSockets,
}

/// Starts a service on the host and port of its options; it accepts connections when this returns.
///
/// # Errors
/// See [`ServerError`].
pub fn start<S: Service>(service: S, options: &Options) -> Result<RunningServer, ServerError> {
    start_on(service, options, &[options.plain_listener()])
}

/// Starts a service on these addresses, in place of the options' host and port; it accepts connections when this
/// returns.
///
/// # Errors
/// See [`ServerError`].
pub fn start_on<S: Service>(
    service: S,
    options: &Options,
    listeners: &[ListenerOptions],
) -> Result<RunningServer, ServerError> {
    // Each connection is an open file; a limit that is too low is logged.
    let _ = machine::allow_open_files(machine::max_connections().min(MAX_OPEN_FILES));
    let workers = options.workers.max(1);
    let (mut addresses, mut created_sockets) = (Vec::new(), Vec::new());
    let listen_sockets = ListenSockets::default();
    let connection_counts = Arc::new(ConnectionCounts::new(options.connection_limits.clone()));
    let mut of_threads: Vec<Vec<ThreadSocket>> = (0..workers).map(|_| Vec::new()).collect();
    for (index, listener) in listeners.iter().enumerate() {
        let failed = |error| ServerError::Listen(listener.address.clone(), error);
        let bound = BoundListener::open(listener, workers, &options.handed).map_err(failed)?;
        for (address, error) in &bound.skipped {
            let (name, first) = (&listener.address, &bound.address);
            options.logger.log(&format!("{name}: not listening on {address}: {error}; listening on {first}"));
        }
        addresses.push(bound.address);
        created_sockets.extend(bound.created);
        let counts = Arc::new(ConnectionCounts::new(listener.connection_limits.clone()));
        for (number, socket) in bound.sockets.into_iter().enumerate() {
            listen_sockets.add(listener, &socket)?;
            of_threads[number % workers].push(ThreadSocket {
                index,
                socket,
                options: listener.clone(),
                counts: [Arc::clone(&connection_counts), Arc::clone(&counts)],
            });
        }
    }
    let service = Arc::new(service);
    let metrics = Arc::new(ServerMetrics::new(|registry| service.register_metrics(registry)));
    let log = match &options.access_log {
        Some(log) => {
            let failed = |error| ServerError::AccessLog(log.path.clone(), error);
            Some(AccessLog::open(log, &options.logger, &metrics.access_log_dropped).map_err(failed)?)
        }
        None => None,
    };
    let state = Arc::new(ServerState::default());
    let clock = Clock::starting_in(Nanos::ZERO);
    let (stop, stopped) = channel::channel(ShutdownRequest::Run);
    let mut running = RunningServer {
        addresses,
        clock,
        stop,
        state: Arc::clone(&state),
        metrics: Arc::clone(&metrics),
        open_requests: Vec::new(),
        threads: Vec::new(),
        access_log: log,
        created_sockets,
        listen_sockets,
    };
    let (ready, all_ready) = std::sync::mpsc::channel();
    for sockets in of_threads {
        let (query, queries) = mpsc::unbounded_channel();
        running.open_requests.push(query);
        let parts = ThreadParts {
            service: Arc::clone(&service),
            clock,
            metrics: Arc::clone(&metrics),
            state: Arc::clone(&state),
            access_log: running
                .access_log
                .as_ref()
                .zip(options.access_log.as_ref())
                .map(|(log, of)| log.writer(of, &options.logger)),
            queries,
            options: options.clone(),
        };
        let (stopped, ready) = (stopped.clone(), ready.clone());
        let thread = thread::Builder::new().name("event-loop".to_owned()).spawn(move || {
            let ended = run_on_current_thread(async || {
                let home = thread_context(parts)?;
                let open = |it: ThreadSocket| ThreadListener::new(it.index, it.socket, it.options, it.counts);
                let listeners = sockets.into_iter().map(open).collect::<io::Result<_>>()?;
                let _ = ready.send(Ok(()));
                event_loop::run(home, listeners, stopped).await;
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

/// A listening socket on its way to its thread.
struct ThreadSocket {
    index: usize,
    socket: ListenSocket,
    options: ListenerOptions,
    /// Connections of the server, and of the listener.
    counts: [Arc<ConnectionCounts>; 2],
}

/// Parts of a thread's context.
struct ThreadParts<S> {
    service: Arc<S>,
    clock: Clock,
    metrics: Arc<ServerMetrics>,
    state: Arc<ServerState>,
    access_log: Option<AccessLogWriter>,
    queries: mpsc::UnboundedReceiver<OpenRequestsQuery>,
    options: Options,
}

fn thread_context<S: Service>(parts: ThreadParts<S>) -> io::Result<Rc<ThreadContext<S>>> {
    let ThreadParts { service, clock, metrics, state, access_log, queries, options } = parts;
    let (timer, timer_task) = Timer::new(clock)?;
    spawn_task(timer_task);
    let requests = options.lists_requests.then(Rc::<OpenRequests>::default);
    if let Some(requests) = &requests {
        spawn_task(open_requests::respond(Rc::clone(requests), queries));
    }
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
            access_log,
            open_requests: requests,
        }),
        state,
        timer,
        logger: options.logger,
        connections: RefCell::new(Slab::new()),
        connection_ended: Notify::new(),
        memory_reclaimer: MemoryReclaimer::default(),
        http1_buffers: Rc::new(Http1Buffers::new()),
        next_inspected: Cell::new(0),
    }))
}

impl RunningServer {
    /// Listening address, the first one of TCP; unspecified if there is none.
    pub fn address(&self) -> SocketAddr {
        let tcp = self.addresses.iter().find_map(|address| match address {
            BoundAddress::Tcp(address) => Some(*address),
            BoundAddress::Unix(_) => None,
        });
        tcp.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into())
    }

    /// Listening addresses, in the order of the listeners.
    pub fn addresses(&self) -> &[BoundAddress] {
        &self.addresses
    }

    /// The server's metrics, for another server that shows them.
    pub fn metrics(&self) -> MetricsHandle {
        MetricsHandle(Arc::clone(&self.metrics))
    }

    /// Lists requests in flight, with [`Options::lists_requests`].
    pub fn open_requests(&self) -> OpenRequestsHandle {
        OpenRequestsHandle { clock: self.clock, event_loops: self.open_requests.clone() }
    }

    /// Opens the access log's file again: for a program that moves old files away (logrotate). If it cannot be opened,
    /// that is logged, the old file stays in use, and the path is tried again with the next lines. Returns whether there is an access log.
    pub fn reopen_access_log(&self) -> bool {
        self.access_log.as_ref().map(AccessLog::reopen).is_some()
    }

    /// `http://` and the address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Stops accepting connections, and awaits pending responses for `grace` at most.
    pub fn stop(mut self, grace: Duration) -> StopReport {
        self.stop_handle().stop(grace);
        self.finish();
        self.state.report()
    }

    /// Copies of the listening sockets, to be passed on to another process.
    pub fn listen_sockets(&self) -> ListenSockets {
        self.listen_sockets.clone()
    }

    /// Leaves the place to another process that has [`Self::listen_sockets`]: as [`Self::stop`], but no connection is
    /// closed on which a request may be on its way. Those of HTTP/1 end after their next response, which says so, and
    /// idle ones at the end of `grace`.
    pub fn hand_over(mut self, grace: Duration) -> StopReport {
        self.created_sockets.drain(..).for_each(CreatedSocket::keep);
        let handle = self.stop_handle();
        handle.close_connections_after_responses();
        handle.send(ShutdownRequest::LeaveUntil(self.clock.now() + grace.into()));
        self.finish();
        self.state.report()
    }

    /// Handle by which another thread stops the server, or ends the grace time.
    pub fn stop_handle(&self) -> StopHandle {
        let (state, listen_sockets) = (Arc::clone(&self.state), self.listen_sockets.clone());
        StopHandle { clock: self.clock, stop: self.stop.clone(), state, listen_sockets }
    }

    fn finish(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(log) = self.access_log.take() {
            log.close();
        }
        self.listen_sockets.close();
        self.created_sockets.clear();
    }
}

/// See [`RunningServer::stop_handle`].
#[derive(Clone, Debug)]
pub struct StopHandle {
    clock: Clock,
    stop: channel::Sender<ShutdownRequest>,
    state: Arc<ServerState>,
    listen_sockets: ListenSockets,
}

impl StopHandle {
    /// Stops accepting connections; pending responses have `grace` from now, in place of an earlier one. Returns at
    /// once.
    pub fn stop(&self, grace: Duration) {
        self.send(ShutdownRequest::DrainUntil(self.clock.now() + grace.into()));
    }

    fn send(&self, request: ShutdownRequest) {
        self.listen_sockets.close();
        // An event loop without a receiver has stopped.
        let _ = self.stop.send(request);
    }

    /// Has each HTTP/1 connection end after its next response, which says so: clients come again by new connections,
    /// which may reach another server. Requests are served all the same.
    pub fn close_connections_after_responses(&self) {
        self.state.closes_connections.store(true, Ordering::Relaxed);
    }

    /// Sets whether the health check says that nothing more is to be sent here. Requests are served all the same.
    pub fn set_draining(&self, is_draining: bool) {
        self.state.is_draining.store(is_draining, Ordering::Relaxed);
    }

    /// Whether the health check says that nothing more is to be sent here.
    pub fn is_draining(&self) -> bool {
        self.state.is_draining()
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
