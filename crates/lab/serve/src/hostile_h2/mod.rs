//! `weir serve hostile-h2`: a service that breaks the rules of HTTP/2 on purpose, and checks what its clients do.

mod connection;
mod counts;
mod options;

pub use options::Options;

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::connection::HostileConnection;
use self::counts::HostileCounts;
use weir_machine::lock::lock;
use weir_server::listen_on_host;

/// Maximum number of connections at the same time; each has a thread.
const MAX_CONNECTIONS: usize = 1000;
/// Size of the stack of a connection's thread.
const STACK_BYTES: usize = 256 << 10;

/// State that all connections share.
#[derive(Debug)]
struct Shared {
    options: Options,
    counts: Mutex<HostileCounts>,
    /// Number of the next request.
    next: AtomicU64,
    /// Number of the next violation.
    violations: AtomicU64,
    stopped: AtomicBool,
    streams: Mutex<HashMap<u64, TcpStream>>,
}

/// A running service; it ends when it is dropped.
#[derive(Debug)]
pub struct HostileServer {
    /// At least one.
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    acceptors: Vec<JoinHandle<()>>,
}

impl HostileServer {
    /// Starts the service; it accepts connections when this returns.
    ///
    /// # Errors
    /// If it cannot listen, or no violation has the name that the options ask for.
    pub fn start(options: Options, host: &str, port: u16) -> io::Result<Self> {
        if options.violations().is_empty() {
            let name = options.only.unwrap_or_default();
            return Err(io::Error::other(format!("no violation has '{name}' in its name; --list names all")));
        }
        let listeners = listen_on_host(host, port)?;
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let shared = Arc::new(Shared {
            options,
            counts: Mutex::default(),
            next: AtomicU64::new(0),
            violations: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let mut acceptors = Vec::new();
        // Connections of all listeners are in one map.
        for (first, listener) in (0..).step_by(1 << 40).zip(listeners) {
            let accepting = Arc::clone(&shared);
            let thread = thread::Builder::new().name("hostile-h2".into());
            acceptors.push(thread.spawn(move || accept(&listener, first, &accepting))?);
        }
        Ok(Self { addresses, shared, acceptors })
    }

    /// Listening address; the first one, of a name with several.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Ends all connections.
    pub fn stop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        if self.acceptors.is_empty() {
            return;
        }
        // They wait for a connection, and this is one.
        for address in &self.addresses {
            let _ = TcpStream::connect_timeout(address, Duration::from_secs(1));
        }
        for acceptor in self.acceptors.drain(..) {
            let _ = acceptor.join();
        }
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn accept(listener: &TcpListener, first_number: u64, shared: &Arc<Shared>) {
    let mut threads = Vec::<JoinHandle<()>>::new();
    for (number, stream) in (first_number..).zip(listener.incoming()) {
        if shared.stopped.load(Ordering::SeqCst) {
            break;
        }
        threads.retain(|thread| !thread.is_finished());
        let Ok(stream) = stream else { continue };
        if threads.len() >= MAX_CONNECTIONS {
            continue;
        }
        let Ok(copy) = stream.try_clone() else { continue };
        lock(&shared.streams).insert(number, copy);
        let of_thread = Arc::clone(shared);
        let spawned = thread::Builder::new().name("hostile-h2".into()).stack_size(STACK_BYTES).spawn(move || {
            // Clients may end a connection at any time.
            let _ = HostileConnection::new(stream, &of_thread).and_then(HostileConnection::run);
            lock(&of_thread.streams).remove(&number);
        });
        threads.extend(spawned);
    }
    for stream in lock(&shared.streams).values() {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for thread in threads {
        let _ = thread.join();
    }
}
