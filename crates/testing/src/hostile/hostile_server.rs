//! Server that breaks the rules of HTTP/2 on purpose, and checks what its client does.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::counts::HostileCounts;
use super::hostile_connection::HostileConnection;
use super::hostile_state::HostileState;
use super::options::HostileOptions;

/// Maximum number of connections at the same time; each has a thread.
const MAX_CONNECTIONS: usize = 1000;
/// Size of the stack of a connection's thread.
const STACK_BYTES: usize = 256 << 10;

/// A running service over plain TCP, with prior knowledge; it ends when it is dropped.
#[derive(Debug)]
pub struct HostileServer {
    address: SocketAddr,
    state: Arc<HostileState>,
    acceptor: Option<JoinHandle<()>>,
}

impl HostileServer {
    pub fn start(options: HostileOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(HostileState {
            options,
            counts: Mutex::default(),
            next: AtomicU64::new(0),
            violations: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let accepting = Arc::clone(&state);
        let acceptor = thread::spawn(move || accept(&listener, &accepting));
        Self { address, state, acceptor: Some(acceptor) }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits for the end of all connections, which are those of a client that has ended; returns what they were.
    pub fn finish(mut self) -> HostileCounts {
        self.stop_accepting();
        self.state.counts.lock().unwrap().clone()
    }

    fn stop_accepting(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        if let Some(acceptor) = self.acceptor.take() {
            // It waits for a connection, and this is one.
            let _ = TcpStream::connect(self.address);
            let _ = acceptor.join();
        }
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        for stream in self.state.streams.lock().unwrap().values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.stop_accepting();
    }
}

fn accept(listener: &TcpListener, state: &Arc<HostileState>) {
    let mut threads = Vec::<JoinHandle<()>>::new();
    for (number, stream) in (0_u64..).zip(listener.incoming()) {
        if state.stopped.load(Ordering::SeqCst) {
            break;
        }
        threads.retain(|thread| !thread.is_finished());
        let Ok(stream) = stream else { continue };
        if threads.len() >= MAX_CONNECTIONS {
            continue;
        }
        let Ok(copy) = stream.try_clone() else { continue };
        state.streams.lock().unwrap().insert(number, copy);
        let of_thread = Arc::clone(state);
        let spawned = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            // Clients may end a connection at any time.
            let _ = HostileConnection::new(stream, &of_thread).and_then(HostileConnection::run);
            of_thread.streams.lock().unwrap().remove(&number);
        });
        threads.extend(spawned);
    }
    for thread in threads {
        let _ = thread.join();
    }
}
