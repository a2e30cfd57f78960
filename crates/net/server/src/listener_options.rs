//! Options of a listener: address, TLS, PROXY protocol and limits.

use std::sync::Arc;

use super::connection_limits::ConnectionLimits;
use super::listen_address::ListenAddress;
use super::network::Proxies;
use super::tls::ServerTls;

/// An address to listen on, and the protocols below HTTP of its connections.
#[derive(Clone, Debug)]
pub struct ListenerOptions {
    /// Name among all that the process listens on, where the system chooses the port.
    pub name: String,
    /// The address.
    pub address: ListenAddress,
    /// TLS; None for connections without.
    pub tls: Option<Arc<ServerTls>>,
    /// Networks of the proxies whose connections begin with a header of the PROXY protocol.
    pub proxy_protocol: Proxies,
    /// Limits of its connections.
    pub connection_limits: ConnectionLimits,
}

impl ListenerOptions {
    /// An address whose connections begin with HTTP.
    pub fn plain(address: ListenAddress) -> Self {
        Self {
            name: String::new(),
            address,
            tls: None,
            proxy_protocol: Proxies::default(),
            connection_limits: ConnectionLimits::default(),
        }
    }

    /// Key of its sockets in a handover: the address as it is written, and the name where several may have the same.
    pub(super) fn key(&self) -> String {
        match &self.address {
            address @ ListenAddress::Tcp(_, 0) => format!("{address} {}", self.name),
            address => address.to_string(),
        }
    }
}
