//! Connection that a response has come on.

use std::net::SocketAddr;

use weir_net::stream::Stream;

/// Connection that a response has come on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// Address of the service; `None` of a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Version of TLS and its cipher suite, such as `TLSv1.3` and `AES_128_GCM_SHA256`; `None` without TLS.
    pub tls: Option<(String, String)>,
}

impl ConnectionFacts {
    /// Facts of a connection that is open.
    pub(crate) fn of(stream: &Stream) -> Self {
        let tls = stream.tls_description();
        let tls = tls.and_then(|text| text.split_once(',').map(|(version, suite)| (version.into(), suite.into())));
        Self { peer: stream.peer(), tls }
    }
}
