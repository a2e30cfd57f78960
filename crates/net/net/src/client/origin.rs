//! The origin of requests, and its connection options.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::pending::PendingAddresses;
use super::proxy_header::ProxyVersion;
use crate::address_race::AddressMemory;
use crate::target::Target;
use crate::tls::{Tls, TlsError, TlsOptions};
use weir_base::Nanos;

/// HTTP version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// With TLS by negotiation (ALPN), without it HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; without TLS by prior knowledge (RFC 9113, 3.3).
    Http2,
}

/// Limits of connections with HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2Limits {
    /// Maximum number of streams of a connection, beside the peer's; None: the peer's alone.
    pub streams: Option<usize>,
    /// Window of flow control of each stream, in bytes: how much of a response a host may send ahead; None: 2 MiB.
    pub window_bytes: Option<u32>,
}

/// Connection options of an origin.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Unix socket in place of host and port.
    pub socket: Option<PathBuf>,
    /// Address in place of the URL's host and port, which stay in Host header and certificate.
    pub address: Option<SocketAddr>,
    /// TLS configuration of an https origin (see [`Tls::shared`]); None: the default.
    pub tls: Option<Arc<ClientConfig>>,
    /// Server name, sent as SNI and verified; None: the URL's host.
    pub server_name: Option<String>,
    /// Header of the PROXY protocol that begins each connection; None: none.
    pub proxy_protocol: Option<ProxyVersion>,
    /// HTTP version.
    pub protocol: Protocol,
    /// Limits of connections with HTTP/2.
    pub http2: Http2Limits,
    /// Timeout of name resolution, connecting and TLS together.
    pub connect_timeout: Nanos,
    /// Progress timeout while a response is awaited: no byte of it comes, and none of the request is taken. Checked by
    /// [`Client::sweep`](super::Client::sweep), so its resolution is that of the sweeps. NEVER: none.
    pub stall_timeout: Nanos,
    /// Idle timeout of a connection; None: the client's.
    pub idle_timeout: Option<Nanos>,
    /// Maximum idle connections; None: the client's.
    pub max_idle: Option<usize>,
    /// Maximum number of connections; further requests wait for one. At least 1; None: unlimited.
    pub max_connections: Option<usize>,
    /// Requests after which a connection over HTTP/1.1 is closed; None: unlimited.
    pub max_requests: Option<u64>,
    /// Age from which a connection over HTTP/1.1 is closed after its request, to a second; None: unlimited.
    pub max_age: Option<Nanos>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            socket: None,
            address: None,
            tls: None,
            server_name: None,
            proxy_protocol: None,
            protocol: Protocol::Auto,
            http2: Http2Limits::default(),
            connect_timeout: Nanos::from_secs(5),
            stall_timeout: Nanos::from_secs(60),
            idle_timeout: None,
            max_idle: None,
            max_connections: None,
            max_requests: None,
            max_age: None,
        }
    }
}

/// An upstream, shared by all event loops; each has a pool for it.
#[derive(Debug)]
pub struct Origin {
    /// ID within the process, by which pools are found.
    pub(super) id: u64,
    pub(super) address: OriginAddress,
    /// Reachability of its addresses, for all event loops.
    pub(super) memory: Arc<Mutex<AddressMemory>>,
    /// Host and port, as text.
    name: String,
    /// Pools of the origin, one per event loop that has used it.
    pub(super) pools: AtomicUsize,
    /// Host header of requests without one.
    pub(super) host: HeaderValue,
    pub(super) tls: Option<Tls>,
    proxy_protocol: Option<ProxyVersion>,
    /// First bytes of each connection, before TLS.
    pub(super) preamble: Vec<u8>,
    pub(super) protocol: Protocol,
    pub(super) http2: Http2Limits,
    pub(super) connect_timeout: Nanos,
    pub(super) stall_timeout: Nanos,
    pub(super) idle_timeout: Option<Nanos>,
    pub(super) max_idle: Option<usize>,
    pub(super) max_connections: usize,
    pub(super) max_requests: u64,
    pub(super) max_age: Nanos,
}

#[derive(Clone, Debug)]
pub(super) enum OriginAddress {
    /// Host without brackets, port.
    Inet(String, u16),
    /// Name, and its addresses, which are found elsewhere.
    Pending(String, Arc<PendingAddresses>),
    Unix(PathBuf),
}

impl Origin {
    /// The origin of a URL; its path and query do not matter.
    ///
    /// # Errors
    /// If its name is not valid in a certificate, or the system has no trusted certificates.
    pub fn new(target: &Target, reach: &ConnectOptions) -> Result<Self, TlsError> {
        let host_header = target.host_header();
        let named = || TlsError::Name(target.host.clone());
        let tls = if target.tls {
            let shared = match &reach.tls {
                Some(config) => Arc::clone(config),
                None => Tls::shared(&TlsOptions::default())?,
            };
            let name = reach.server_name.as_ref().unwrap_or(&target.host);
            let name = ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name.clone()))?;
            // The copy shares the session cache.
            let mut config = (*shared).clone();
            config.alpn_protocols = match reach.protocol {
                Protocol::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
                Protocol::Http1 => vec![b"http/1.1".to_vec()],
                Protocol::Http2 => vec![b"h2".to_vec()],
            };
            Some(Tls { config: Arc::new(config), name })
        } else {
            None
        };
        Ok(Self {
            id: next_id(),
            address: match (&reach.socket, reach.address) {
                (Some(path), _) => OriginAddress::Unix(path.clone()),
                (None, Some(address)) => OriginAddress::Inet(address.ip().to_string(), address.port()),
                (None, None) => OriginAddress::Inet(target.host.clone(), target.port),
            },
            memory: Arc::default(),
            name: reach.address.map_or_else(|| host_header.clone(), |address| address.to_string()),
            pools: AtomicUsize::new(0),
            host: HeaderValue::from_str(&host_header).map_err(|_| named())?,
            tls,
            proxy_protocol: reach.proxy_protocol,
            preamble: reach.proxy_protocol.map(|version| version.header(None)).unwrap_or_default(),
            protocol: reach.protocol,
            http2: reach.http2,
            connect_timeout: reach.connect_timeout,
            stall_timeout: reach.stall_timeout,
            idle_timeout: reach.idle_timeout,
            max_idle: reach.max_idle,
            max_connections: reach.max_connections.map_or(usize::MAX, |most| most.max(1)),
            max_requests: reach.max_requests.unwrap_or(u64::MAX),
            max_age: reach.max_age.unwrap_or(Nanos::NEVER),
        })
    }

    /// Names the origin, and lets its connections wait for addresses that are found elsewhere.
    #[must_use]
    pub fn with_pending(mut self, name: &str, addresses: Arc<PendingAddresses>) -> Self {
        name.clone_into(&mut self.name);
        self.address = OriginAddress::Pending(name.to_owned(), addresses);
        self
    }

    /// Whether connections name the client that they are for, by the PROXY protocol.
    pub fn names_clients(&self) -> bool {
        self.proxy_protocol.is_some()
    }

    /// Copy of the origin for one client, which its connections name. Each carries one request: another client's may
    /// not follow, and a pool for each client would keep connections that nothing uses again.
    #[must_use]
    pub fn for_client(&self, client: SocketAddr) -> Self {
        Self {
            id: next_id(),
            address: self.address.clone(),
            memory: Arc::clone(&self.memory),
            name: self.name.clone(),
            pools: AtomicUsize::new(0),
            host: self.host.clone(),
            tls: self.tls.clone(),
            proxy_protocol: self.proxy_protocol,
            preamble: self.proxy_protocol.map(|version| version.header(Some(client))).unwrap_or_default(),
            protocol: self.protocol,
            http2: self.http2,
            connect_timeout: self.connect_timeout,
            stall_timeout: self.stall_timeout,
            idle_timeout: self.idle_timeout,
            max_idle: self.max_idle,
            max_connections: self.max_connections,
            max_requests: 1,
            max_age: self.max_age,
        }
    }

    /// Host and port as text; of an origin with an address of its own the address.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Address of connections: HOST:PORT, or the path of a Unix socket.
    pub fn address_text(&self) -> String {
        display_address(&self.address)
    }

    /// Whether nothing but pools has the origin any more.
    pub(super) fn is_lost(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) <= self.pools.load(Ordering::Relaxed)
    }

    /// Whether connections are limited, so that a request may have to wait for one.
    pub fn is_limited(&self) -> bool {
        self.max_connections < usize::MAX
    }

    /// Host header for requests without one.
    pub fn host(&self) -> &HeaderValue {
        &self.host
    }
}

fn next_id() -> u64 {
    static NEXT_ID: AtomicU64 = AtomicU64::new(0);
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// An address as text.
pub(super) fn display_address(place: &OriginAddress) -> String {
    match place {
        OriginAddress::Inet(host, port) if host.contains(':') => format!("[{host}]:{port}"),
        OriginAddress::Inet(host, port) => format!("{host}:{port}"),
        OriginAddress::Pending(name, _) => name.clone(),
        OriginAddress::Unix(path) => path.display().to_string(),
    }
}
