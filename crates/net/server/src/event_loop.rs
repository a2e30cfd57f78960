//! One thread of a server: it accepts connections, drives them, and closes those that exceed their timeouts.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch::Receiver;
use tokio::task::LocalSet;

use super::Service;
use super::accepted_socket::AcceptedSocket;
use super::connection::drive;
use super::connection_limits::{ConnectionCounts, ConnectionPlaces};
use super::connection_state::{CloseMode, ConnectionOrigin};
use super::listen::{ListenSocket, ListenerRules};
use super::listener_options::ListenerOptions;
use super::server_state::ShutdownRequest;
use super::thread_context::ThreadContext;
use crate::timeouts::{TimeoutKind, Timeouts};
use weir_base::Nanos;
use weir_machine::executor::spawn_task;

/// Interval of an event loop's checks of its connections.
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);

/// Streams below which a connection does not crowd others out.
const MIN_CROWDING_STREAMS: usize = 4;
/// Stall timeout of the streams of a connection that crowds others out, if it is less than the configured one.
const CROWDING_STALL: Nanos = Nanos::from_secs(2);

/// A listener of one event loop.
#[derive(Debug)]
pub(super) struct ThreadListener {
    rules: Rc<ListenerRules>,
    socket: EventSocket,
    /// Connections of the server, and of the listener.
    counts: [Arc<ConnectionCounts>; 2],
}

#[derive(Debug)]
enum EventSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl ThreadListener {
    /// Registers a socket with this thread's runtime.
    pub(super) fn new(
        index: usize,
        socket: ListenSocket,
        options: ListenerOptions,
        counts: [Arc<ConnectionCounts>; 2],
    ) -> io::Result<Self> {
        let socket = match socket {
            ListenSocket::Tcp(socket) => EventSocket::Tcp(TcpListener::from_std(socket)?),
            ListenSocket::Unix(socket) => EventSocket::Unix(UnixListener::from_std(socket)?),
        };
        let ListenerOptions { tls, proxy_protocol, .. } = options;
        Ok(Self { rules: Rc::new(ListenerRules { index, tls, proxy_protocol }), socket, counts })
    }

    async fn accept(&self) -> io::Result<(AcceptedSocket, ConnectionOrigin)> {
        match &self.socket {
            EventSocket::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                Ok((AcceptedSocket::Tcp(stream), ConnectionOrigin::Tcp(peer)))
            }
            EventSocket::Unix(socket) => {
                let (stream, _) = socket.accept().await?;
                Ok((AcceptedSocket::Unix(stream), ConnectionOrigin::Unix))
            }
        }
    }
}

impl ThreadListener {
    /// Places of a new connection within the limits. If there is none, an idle connection of this event loop ends for
    /// it, which is one that a client would have to expect to be closed anyway.
    fn place<S: Service>(&self, home: &ThreadContext<S>, origin: ConnectionOrigin) -> Option<ConnectionPlaces> {
        let address = match origin {
            // Addresses of clients come with the header.
            ConnectionOrigin::Tcp(peer) if self.rules.proxy_protocol.contains(peer.ip()) => None,
            ConnectionOrigin::Tcp(peer) => Some(peer.ip()),
            ConnectionOrigin::Unix => None,
        };
        let [server, listener] = &self.counts;
        let exceeded = match (server.open(address), listener.open(address)) {
            (Ok(of_server), Ok(of_listener)) => return Some((of_server, of_listener)),
            (Err(limit), _) => (server, limit),
            (_, Err(limit)) => (listener, limit),
        };
        let (counts, limit) = exceeded;
        let of_listener = std::ptr::eq(counts, listener).then_some(self.rules.index);
        let now = home.accounting.clock.now();
        if home.end_idle_connection(now, limit, of_listener) {
            home.accounting.metrics.record_end("evicted");
            return Some((server.open_beyond(address), listener.open_beyond(address)));
        }
        home.accounting.metrics.record_end(limit.cause());
        if let Some(line) = counts.record_closed(now, limit) {
            home.logger.log(&line);
        }
        None
    }
}

/// Runs until the server stops and its connections have ended.
pub(super) async fn run<S: Service>(
    home: Rc<ThreadContext<S>>,
    listeners: Vec<ThreadListener>,
    stop: Receiver<ShutdownRequest>,
) {
    let rounds = spawn_task(sweep(Rc::clone(&home)));
    let accept = |listener| spawn_task(accept_all(Rc::clone(&home), listener, stop.clone()));
    for accepting in listeners.into_iter().map(accept).collect::<Vec<_>>() {
        // It ends with the server, and is not cancelled.
        let _ = accepting.await;
    }
    drain(&home, stop).await;
    rounds.abort();
}

/// Accepts connections until the server stops.
async fn accept_all<S: Service>(
    home: Rc<ThreadContext<S>>,
    listener: ThreadListener,
    mut stop: Receiver<ShutdownRequest>,
) {
    let mut short_of_files = false;
    while *stop.borrow() == ShutdownRequest::Run {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => continue,
        };
        match accepted {
            Ok((stream, origin)) => {
                short_of_files = false;
                // A connection without a place is closed.
                if let Some(places) = listener.place(&home, origin) {
                    spawn_task(drive(Rc::clone(&home), Rc::clone(&listener.rules), stream, origin, places));
                }
            }
            Err(error) if is_connection_error(&error) => {}
            Err(error) => {
                if !std::mem::replace(&mut short_of_files, true) {
                    home.logger.log(&format!("connections have to wait: {error}"));
                }
                // Accepting again at once would only use CPU.
                home.timer.sleep(Nanos::from_millis(100)).await;
            }
        }
    }
}

/// Awaits the pending responses, up to the grace time.
async fn drain<S: Service>(home: &ThreadContext<S>, mut stop: Receiver<ShutdownRequest>) {
    let mut leaves = matches!(*stop.borrow(), ShutdownRequest::LeaveUntil(_));
    for (_, watch) in &*home.connections.borrow() {
        if leaves { watch.leave() } else { watch.drain() }
    }
    let mut rest = pin!(home.service.shutdown(&home.local));
    let mut rested = false;
    while !rested || !home.connections.borrow().is_empty() {
        let until = match *stop.borrow_and_update() {
            ShutdownRequest::LeaveUntil(until) => until,
            ShutdownRequest::DrainUntil(until) => {
                if std::mem::take(&mut leaves) {
                    home.connections.borrow().iter().for_each(|(_, watch)| watch.drain());
                }
                until
            }
            ShutdownRequest::Run | ShutdownRequest::Now => Nanos::ZERO,
        };
        if until <= home.accounting.clock.now() {
            break;
        }
        tokio::select! {
            () = &mut rest, if !rested => rested = true,
            () = home.connection_ended.notified() => {}
            () = home.timer.sleep_until(until) => {}
            _ = stop.changed() => {}
        }
    }
    for (_, watch) in &*home.connections.borrow() {
        home.state.cut_requests.fetch_add(watch.open_requests(), Ordering::Relaxed);
        home.state.cut_tunnels.fetch_add(u64::from(watch.is_tunnel()), Ordering::Relaxed);
        watch.set_close_mode(CloseMode::Abort);
    }
}

/// Periodic work: the clock, the log, and the timeouts of connections.
async fn sweep<S: Service>(home: Rc<ThreadContext<S>>) {
    let short = Timeouts {
        body: home.timeouts.body.min(CROWDING_STALL),
        write: home.timeouts.write.min(CROWDING_STALL),
        ..home.timeouts
    };
    let mut rounds = tokio::time::interval(SWEEP_INTERVAL);
    loop {
        rounds.tick().await;
        let now = home.accounting.clock.now();
        home.accounting.coarse_clock.set(now);
        home.memory_reclaimer.on_sweep();
        home.http1_buffers.update_date();
        if let Some(pen) = &home.accounting.access_log {
            pen.flush();
        }
        for (_, watch) in &*home.connections.borrow() {
            watch.check_peer();
            watch.rest_if_idle(now);
            watch.measure_stalled(now);
            let report = |expired| home.accounting.metrics.record_end(timeout_cause(expired));
            let is_crowding = watch.streams.len() >= MIN_CROWDING_STREAMS
                && home.service.crowds_out_others(&home.local, watch.number);
            watch.streams.cut_expired(now, if is_crowding { &short } else { &home.timeouts }, report);
            if let Some(expired) = watch.expired(now, &home.timeouts) {
                report(expired);
                watch.set_close_mode(CloseMode::Abort);
            }
        }
    }
}

/// Cause in metrics of an end by a timeout.
fn timeout_cause(expired: TimeoutKind) -> &'static str {
    match expired {
        TimeoutKind::Idle => "idle",
        TimeoutKind::Head => "slow_head",
        TimeoutKind::Body => "slow_body",
        TimeoutKind::Write => "slow_reader",
        TimeoutKind::Tunnel => "idle_tunnel",
    }
}

/// Errors of accept that concern only the one connection.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Runs `serve` on this thread's runtime, with all that it spawns.
pub(super) fn run_on_current_thread(serve: impl AsyncFnOnce() -> io::Result<()>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    LocalSet::new().block_on(&runtime, serve())
}
