//! Where requests go, and how it is reached.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::decide::Nanos;
use crate::http::target::Target;
use crate::http::tls::{Tls, TlsError, TlsOptions};

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// With TLS what both ends can do best (ALPN), without it HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; without TLS by prior knowledge (RFC 9113, 3.3).
    Http2,
}

/// How an origin is reached.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// A Unix socket in place of host and port.
    pub socket: Option<PathBuf>,
    /// What an https origin's connections share (see [`Tls::shared`]); None is the default configuration.
    pub tls: Option<Arc<ClientConfig>>,
    /// The name that certificates must bear, and that is asked for; None is the URL's host.
    pub server_name: Option<String>,
    /// Which HTTP is spoken.
    pub protocol: Protocol,
    /// How long name, connection and TLS may take together.
    pub connect_timeout: Nanos,
    /// How long nothing may go either way while an answer is waited for: no byte of it comes, and none of the request is
    /// taken. Looked at by [`Client::sweep`](super::Client::sweep), so it is that much coarse. NEVER is without limit.
    pub stall_timeout: Nanos,
    /// How long an idle connection is kept; None is as long as the client's options say.
    pub idle_timeout: Option<Nanos>,
    /// More connections than this are not opened: who needs one waits for its turn. At least 1; None is without limit.
    pub max_connections: Option<usize>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            socket: None,
            tls: None,
            server_name: None,
            protocol: Protocol::Auto,
            connect_timeout: Nanos::from_secs(5),
            stall_timeout: Nanos::from_secs(60),
            idle_timeout: None,
            max_connections: None,
        }
    }
}

/// An upstream service as connections see it. Shared by all event loops, each of which has a pool for it.
#[derive(Debug)]
pub struct Origin {
    /// Of this process; pools are looked up by it.
    pub(super) id: u64,
    pub(super) address: OriginAddress,
    /// The Host header of requests that bring none.
    pub(super) host: HeaderValue,
    pub(super) tls: Option<Tls>,
    pub(super) protocol: Protocol,
    pub(super) connect_timeout: Nanos,
    pub(super) stall_timeout: Nanos,
    pub(super) idle_timeout: Option<Nanos>,
    pub(super) max_connections: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OriginAddress {
    /// Host without brackets, port.
    Inet(String, u16),
    Unix(PathBuf),
}

impl Origin {
    /// The service that a URL names; its path and query do not matter here.
    ///
    /// # Errors
    /// When its name cannot be the name in a certificate, or this machine has none to check one with.
    pub fn new(target: &Target, reach: &ConnectOptions) -> Result<Self, TlsError> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let host_header = target.host_header();
        let named = || TlsError::Name(target.host.clone());
        let tls = if target.tls {
            let shared = match &reach.tls {
                Some(config) => Arc::clone(config),
                None => Tls::shared(&TlsOptions::default())?,
            };
            let name = reach.server_name.as_ref().unwrap_or(&target.host);
            let name = ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name.clone()))?;
            // What resumes sessions is shared by the copy.
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
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            address: match &reach.socket {
                Some(path) => OriginAddress::Unix(path.clone()),
                None => OriginAddress::Inet(target.host.clone(), target.port),
            },
            host: HeaderValue::from_str(&host_header).map_err(|_| named())?,
            tls,
            protocol: reach.protocol,
            connect_timeout: reach.connect_timeout,
            stall_timeout: reach.stall_timeout,
            idle_timeout: reach.idle_timeout,
            max_connections: reach.max_connections.map_or(usize::MAX, |most| most.max(1)),
        })
    }

    /// Host and port, for people.
    pub fn name(&self) -> &str {
        self.host.to_str().unwrap_or_default()
    }

    /// Whether there is a limit to its connections, so that a request may have to wait for one.
    pub fn is_limited(&self) -> bool {
        self.max_connections < usize::MAX
    }

    /// The value of the Host header for requests that bring none.
    pub fn host(&self) -> &HeaderValue {
        &self.host
    }
}
