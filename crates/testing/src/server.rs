//! A service that does what a script says, request by request, and remembers what it was asked.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use rustls::ServerConfig;

use super::closed_port::keep_closed;
use super::connection::Connection;
use super::reply::Reply;
use super::seen::Seen;
use super::shared::{Counts, Shared};
use super::weir::until;
use super::wire::{Listener, Wire};

/// How a service is to be, before it starts.
#[derive(Default)]
pub struct Builder {
    tls: Option<Arc<ServerConfig>>,
    greeting: Option<Reply>,
    to_head: Option<Reply>,
    idle: Option<Duration>,
    reads_every: Option<Duration>,
    batch: usize,
}

impl Builder {
    pub fn tls(mut self, config: Arc<ServerConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Sets the steps at the start of each connection, before any request; the probe's too.
    pub fn greeting(mut self, greeting: Reply) -> Self {
        self.greeting = Some(greeting);
        self
    }

    /// Sets the reply to a head whose body has not arrived.
    pub fn answers_heads(mut self, reply: Reply) -> Self {
        self.to_head = Some(reply);
        self
    }

    /// Reads 64 KiB, then nothing for so long.
    pub fn reads_every(mut self, pause: Duration) -> Self {
        self.reads_every = Some(pause);
        self
    }

    /// Closes a connection that is idle after a response for this time.
    pub fn closes_idle_after(mut self, idle: Duration) -> Self {
        self.idle = Some(idle);
        self
    }

    /// Answers only once so many requests lie on a connection, all in one write; what comes after waits for as many.
    pub fn answers_in_batches_of(mut self, batch: usize) -> Self {
        self.batch = batch;
        self
    }

    pub fn start(self, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        self.listen_tcp(listener, script)
    }

    /// On this address; None if it is taken.
    pub fn start_at(self, address: &str, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Option<Server> {
        let listener = TcpListener::bind(address).ok()?;
        Some(self.listen_tcp(listener, script))
    }

    pub fn start_v6(self, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("[::1]:0").unwrap();
        self.listen_tcp(listener, script)
    }

    pub fn start_unix(self, path: &Path, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Server {
        let listener = UnixListener::bind(path).unwrap();
        self.listen(Listener::Unix(listener), Place::Unix(path.to_owned()), script)
    }

    fn listen_tcp(self, listener: TcpListener, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Server {
        let place = Place::Tcp(listener.local_addr().unwrap());
        self.listen(Listener::Tcp(listener), place, script)
    }

    fn listen(
        self,
        listener: Listener,
        place: Place,
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            script: Box::new(script),
            greeting: self.greeting,
            to_head: self.to_head,
            reads_every: self.reads_every,
            tls: self.tls,
            idle: self.idle,
            batch: self.batch.max(1),
        });
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Server { shared, place, acceptor: Mutex::new(Some(acceptor)) }
    }
}

#[derive(Clone, Debug)]
enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A running service; it ends when it is dropped.
pub struct Server {
    shared: Arc<Shared>,
    place: Place,
    acceptor: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Server {
    /// A plain one on 127.0.0.1.
    pub fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::build().start(script)
    }

    /// One that answers everything at once with a short body.
    pub fn hello() -> Self {
        Self::start(|_| Reply::ok("hello"))
    }

    pub fn build() -> Builder {
        Builder::default()
    }

    pub fn port(&self) -> u16 {
        match &self.place {
            Place::Tcp(address) => address.port(),
            Place::Unix(_) => panic!("a Unix socket has no port"),
        }
    }

    /// Where it listens, as HOST:PORT.
    pub fn address(&self) -> String {
        match &self.place {
            Place::Tcp(address) => address.to_string(),
            Place::Unix(path) => path.display().to_string(),
        }
    }

    pub fn url(&self, path: &str) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address())
    }

    pub fn counts(&self) -> Counts {
        self.shared.state.lock().unwrap().counts.clone()
    }

    pub fn requests(&self) -> u64 {
        self.counts().requests
    }

    /// The requests so far, in the order in which they came.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.state.lock().unwrap().seen.clone()
    }

    /// The names asked for in TLS, by connection.
    pub fn names(&self) -> Vec<Option<String>> {
        self.shared.state.lock().unwrap().names.clone()
    }

    /// Waits until the counts are as wanted; a minute at the most.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&Counts) -> bool) {
        let state = self.shared.state.lock().unwrap();
        let waited =
            self.shared.changed.wait_timeout_while(state, Duration::from_secs(60), |state| !wanted(&state.counts));
        let (state, timeout) = waited.unwrap();
        let counts = state.counts.clone();
        // A panic with the lock would be one of all threads, and of the end.
        drop(state);
        assert!(!timeout.timed_out(), "waited in vain for {what}: {counts:?}");
    }

    /// Waits until its connections are closed, and their other ends know it: the kernel of a busy machine delivers the
    /// close later than the next request.
    pub fn wait_for_close(&self) {
        self.wait_for("the close", |counts| counts.open == 0);
        let peer = format!("0100007F:{:04X}", self.port());
        until("the delivery of the close", Duration::from_secs(20), || {
            let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
            // The local end, the other end, and the state; 01 is established.
            !sockets.lines().any(|line| line.split_whitespace().skip(2).take(2).eq([peer.as_str(), "01"]))
        });
    }

    /// Takes no connections any more: they are refused from now on. Those that are open stay.
    pub fn stop_listening(&self) {
        self.shared.state.lock().unwrap().stopped = true;
        let Some(acceptor) = self.acceptor.lock().unwrap().take() else { return };
        // Wakes the acceptor.
        match &self.place {
            Place::Tcp(address) => drop(TcpStream::connect(address)),
            Place::Unix(path) => drop(UnixStream::connect(path)),
        }
        acceptor.join().unwrap();
        if let Place::Tcp(address) = self.place {
            // Who still sends to it, such as a gateway, is refused and no concern of another test.
            let _ = keep_closed(address);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_listening();
    }
}

fn accept(listener: &Listener, shared: &Arc<Shared>) {
    while let Ok(raw) = listener.accept() {
        let number = {
            let mut state = shared.state.lock().unwrap();
            if state.stopped {
                return;
            }
            let counts = &mut state.counts;
            counts.connections += 1;
            counts.open += 1;
            counts.most_open = counts.most_open.max(counts.open);
            counts.connections - 1
        };
        shared.changed.notify_all();
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // What a peer does to a connection, and what the script did, are no concern here.
            if let Ok((wire, name)) = Wire::new(raw, shared.tls.as_ref()) {
                shared.state.lock().unwrap().names.push(name);
                let _ = Connection::new(wire, number, &shared).serve();
            }
            shared.state.lock().unwrap().counts.open -= 1;
            shared.changed.notify_all();
        });
    }
}
