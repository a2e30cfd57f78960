//! State shared by the connections of a recording.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::sync::watch;
use weir_net::client::Client;

use crate::certificate_authority::CertificateAuthority;
use crate::host_scope::HostScope;
use crate::leaf_cache::LeafCache;
use crate::recording_state::RecordingState;
use crate::upstreams::{ServicePlace, Upstreams};

/// All that connections share.
#[derive(Debug)]
pub(crate) struct ProxyContext {
    pub(crate) recording: Rc<RecordingState>,
    pub(crate) client: Client,
    pub(crate) upstreams: Upstreams,
    pub(crate) scope: HostScope,
    /// Only of a forward proxy.
    pub(crate) authority: Option<CertificateAuthority>,
    pub(crate) leaves: RefCell<LeafCache<Arc<ServerConfig>>>,
    /// Address of the recorder: `http://127.0.0.1:8888`.
    pub(crate) url: String,
    /// Whether the recording ends.
    pub(crate) stopping: watch::Receiver<bool>,
    /// Open connections and tunnels.
    pub(crate) open: Rc<Cell<usize>>,
}

/// Destination of a connection's requests.
#[derive(Clone, Debug)]
pub(crate) enum Entrance {
    /// Anywhere: the client uses a proxy.
    Proxy,
    /// The one upstream.
    Reverse(ServicePlace),
    /// The service of a tunnel.
    Tunnel(ServicePlace),
}

/// Count of an open connection, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(Rc<Cell<usize>>);

impl ConnectionGuard {
    pub(crate) fn new(open: &Rc<Cell<usize>>) -> Self {
        open.set(open.get() + 1);
        Self(Rc::clone(open))
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
