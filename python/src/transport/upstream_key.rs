//! What tells the upstreams of a transport apart.

/// Address of an upstream, and how it is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct UpstreamKey {
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// Server name of TLS in place of the host.
    pub(super) server_name: Option<String>,
}
