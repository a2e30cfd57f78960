//! A recorder, from its options to its end.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::LocalSet;
use weir_base::Nanos;

use weir_machine::executor::spawn_task;
use weir_machine::timer::Timer;
use weir_net::client;
use weir_net::client::Client;
use weir_net::target::Target;
use weir_net::tls::TlsOptions;
use weir_server::listen_on_host;

use crate::body_capture::CaptureBudget;
use crate::certificate_authority::{CertificateAuthority, date};
use crate::error::RecordError;
use crate::host_scope::HostScope;
use crate::journal::HarJournal;
use crate::leaf_cache::LeafCache;
use crate::proxy::serve_http1;
use crate::proxy_context::{ConnectionGuard, Entrance, ProxyContext};
use crate::recording_state::{RecordCounts, RecordObserver, RecordingState};
use crate::upstreams::{ServicePlace, Upstreams};

/// Interval in which the recorder looks whether it has to end.
const TICK: Duration = Duration::from_millis(50);
/// Ticks between two sweeps of connections and two reports.
const TICKS_PER_SWEEP: u32 = 5;
/// Time for responses in flight when the recording ends.
const GRACE: Duration = Duration::from_secs(1);
/// Connections of clients at a time; others wait.
const MAX_CONNECTIONS: usize = 2000;
/// Bytes that copies of bodies may have together.
const MAX_CAPTURED_BYTES: usize = 64 << 20;
/// Hosts whose certificates are kept.
const MAX_LEAVES: usize = 1000;

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address to listen on, or a name: at all of its addresses.
    pub host: String,
    /// Port; 0 lets the system choose.
    pub port: u16,
    /// Whether other machines may use the proxy.
    pub allows_remote: bool,
    /// The one service of a reverse proxy; `None` for a forward proxy.
    pub upstream: Option<Target>,
    /// Hosts that are recorded, of a forward proxy.
    pub scope: HostScope,
    /// Folder of the certificate authority.
    pub ca_dir: PathBuf,
    /// HAR file that is written while the recording goes on.
    pub journal: PathBuf,
    /// Whether a journal that is there is written over.
    pub overwrites: bool,
    /// Maximum size of a body that is kept, in bytes.
    pub max_body_bytes: usize,
    /// Whether static files count as requests.
    pub keeps_static: bool,
    /// Time after which the recording ends; [`Nanos::NEVER`] for none.
    pub duration: Nanos,
    /// Recorded requests after which it ends.
    pub max_requests: Option<u64>,
    /// Trust in services.
    pub tls: TlsOptions,
}

/// A recorder that listens and has not begun to accept connections.
pub struct RecordingProxy {
    listeners: Vec<std::net::TcpListener>,
    entrance: Entrance,
    context: ContextParts,
    duration: Nanos,
}

/// Parts of the shared state that exist before there is an event loop.
struct ContextParts {
    recording: Rc<RecordingState>,
    upstreams: Upstreams,
    scope: HostScope,
    authority: Option<CertificateAuthority>,
    url: String,
}

impl fmt::Debug for RecordingProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingProxy").field("url", &self.context.url).finish_non_exhaustive()
    }
}

impl RecordingProxy {
    /// Prepares a recording: listens, creates the journal, reads or makes the certificate authority.
    ///
    /// # Errors
    /// See [`RecordError`]; a journal that is created is empty.
    pub fn new(options: &Options, observer: Rc<dyn RecordObserver>) -> Result<Self, RecordError> {
        let upstreams = Upstreams::new(&options.tls).map_err(RecordError::Tls)?;
        let (listeners, addresses) = listen(options)?;
        let url = format!("http://{}", addresses[0]);
        let entrance = match &options.upstream {
            Some(target) if addresses.iter().any(|own| is_own(target, *own)) => {
                return Err(RecordError::OwnUpstream(target.url.clone()));
            }
            Some(Target { tls, host, port, .. }) => {
                Entrance::Reverse(ServicePlace { tls: *tls, host: host.clone(), port: *port, server_name: None })
            }
            None => Entrance::Proxy,
        };
        #[allow(clippy::cast_possible_truncation, reason = "seconds since 1970")]
        let today = date(weir_machine::clock::unix_s() as i64);
        let authority = match entrance {
            Entrance::Reverse(_) => None,
            _ => Some(CertificateAuthority::open(&options.ca_dir, today)?),
        };
        let journal = HarJournal::create(&options.journal, options.overwrites).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RecordError::JournalExists(options.journal.clone()),
            _ => RecordError::Journal(options.journal.clone(), error),
        })?;
        let budget = CaptureBudget::new(MAX_CAPTURED_BYTES, options.max_body_bytes);
        let recording =
            Rc::new(RecordingState::new(journal, budget, observer, options.keeps_static, options.max_requests));
        let context = ContextParts { recording, upstreams, scope: options.scope.clone(), authority, url };
        Ok(Self { listeners, entrance, context, duration: options.duration })
    }

    /// Address, the first one of a name: `http://127.0.0.1:8888`.
    pub fn url(&self) -> &str {
        &self.context.url
    }

    /// File with the certificate that clients have to trust; `None` for a reverse proxy.
    pub fn ca_file(&self) -> Option<PathBuf> {
        self.context.authority.as_ref().map(|authority| authority.path().to_owned())
    }

    /// Records until `is_stopped`, or until the time or number of the options; returns what the journal has.
    ///
    /// # Errors
    /// The system has no event loop left.
    pub fn run(self, is_stopped: impl Fn() -> bool) -> Result<RecordCounts, RecordError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let recording = Rc::clone(&self.context.recording);
        let local = LocalSet::new();
        let ended = local.block_on(&runtime, self.accept(is_stopped));
        // Requests that are still in flight are recorded as they are.
        drop(local);
        // A name that is being looked up would be waited for.
        runtime.shutdown_background();
        recording.report();
        ended?;
        Ok(recording.counts())
    }

    async fn accept(self, is_stopped: impl Fn() -> bool) -> io::Result<()> {
        let Self { listeners, entrance, context, duration } = self;
        let ContextParts { recording, upstreams, scope, authority, url } = context;
        let (timer, rings) = Timer::new(recording.clock())?;
        spawn_task(rings);
        let listeners = listeners.into_iter().map(TcpListener::from_std).collect::<io::Result<Vec<_>>>()?;
        let (stop, stopping) = watch::channel(false);
        let open = Rc::new(Cell::new(0));
        let context = Rc::new(ProxyContext {
            client: Client::new(timer, client::Options::default()),
            recording,
            upstreams,
            scope,
            authority,
            leaves: RefCell::new(LeafCache::new(MAX_LEAVES)),
            url,
            stopping,
            open: Rc::clone(&open),
        });
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut turn = 0_u32;
        loop {
            tokio::select! {
                accepted = accept_any(&listeners), if open.get() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let _ = stream.set_nodelay(true);
                        let (context, entrance) = (Rc::clone(&context), entrance.clone());
                        let guard = ConnectionGuard::new(&open);
                        spawn_task(async move {
                            let _guard = guard;
                            serve_http1(&context, TokioIo::new(stream), entrance).await;
                        });
                    }
                    // No file is left, or the client is gone: the next tick tries again.
                    Err(_) => { ticks.tick().await; }
                },
                _ = ticks.tick() => {
                    turn = turn.wrapping_add(1);
                    if turn.is_multiple_of(TICKS_PER_SWEEP) {
                        context.client.sweep(context.recording.now());
                        context.recording.report();
                    }
                    if is_stopped() || context.recording.is_complete() || context.recording.now() >= duration {
                        break;
                    }
                }
            }
        }
        drop(listeners);
        let _ = stop.send(true);
        let drained = async {
            while open.get() > 0 {
                ticks.tick().await;
            }
        };
        // A stream of events has no end of its own.
        let _ = tokio::time::timeout(GRACE, drained).await;
        Ok(())
    }
}

/// Next connection of any listener.
async fn accept_any(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    let accepted = |context: &mut Context<'_>| {
        let mut all = listeners.iter().map(|listener| listener.poll_accept(context));
        all.find(Poll::is_ready).unwrap_or(Poll::Pending)
    };
    std::future::poll_fn(accepted).await
}

/// Listens on all addresses of the host, as servers do; they are in the order of the sockets.
fn listen(options: &Options) -> Result<(Vec<std::net::TcpListener>, Vec<SocketAddr>), RecordError> {
    let name = match options.host.contains(':') {
        true => format!("[{}]:{}", options.host, options.port),
        false => format!("{}:{}", options.host, options.port),
    };
    let failed = |error: io::Error| RecordError::Listen(name.clone(), error);
    let listeners = listen_on_host(&options.host, options.port).map_err(failed)?;
    let addresses = listeners.iter().map(std::net::TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
    if addresses.iter().any(|address| !address.ip().is_loopback()) && !options.allows_remote {
        return Err(RecordError::Remote(name));
    }
    for listener in &listeners {
        listener.set_nonblocking(true)?;
    }
    Ok((listeners, addresses))
}

/// Whether a service is the recorder itself, which would send each request to itself without end.
fn is_own(target: &Target, address: SocketAddr) -> bool {
    let addresses = || (target.host.as_str(), target.port).to_socket_addrs().into_iter().flatten();
    target.port == address.port()
        && addresses()
            .any(|address| address.ip() == address.ip() || address.ip().is_unspecified() && address.ip().is_loopback())
}
