//! Opening of a connection before HTTP: a header of the PROXY protocol, a TLS handshake, and the choice of the HTTP
//! version.

use std::io;

use rustls::ProtocolVersion;
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;

use super::connection_state::{ConnectionState, TlsPeer};
use super::listen::ListenerRules;
use super::proxy_header::ProxyHeader;
use super::served_stream::ServedStream;
use super::socket::ConnectionSocket;
use super::tls::{ClientIdentity, ServerTls};
use weir_machine::executor::BoxedFuture;

/// A connection at the beginning of HTTP.
pub(super) struct OpenedConnection {
    pub(super) stream: ServedStream,
    pub(super) is_http2: bool,
}

/// Reason why a connection has not come to HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpeningFailure {
    /// The peer closed it, or the network failed.
    Closed,
    /// No valid header of the PROXY protocol.
    ProxyHeader,
    /// The TLS handshake failed.
    TlsHandshake,
    /// HTTP without TLS.
    PlainHttp,
}

impl OpeningFailure {
    /// Cause in metrics, if the end of the connection is counted as one before its time.
    pub(super) fn cause(self) -> Option<&'static str> {
        match self {
            Self::Closed => None,
            Self::ProxyHeader => Some("proxy_header"),
            Self::TlsHandshake => Some("tls_handshake"),
            Self::PlainHttp => Some("plain_http"),
        }
    }
}

impl From<io::Error> for OpeningFailure {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

/// Response to a request without TLS: it could not be understood otherwise.
const PLAIN_HTTP_RESPONSE: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 43\r\nConnection: close\r\n\r\nthis port speaks HTTPS; write https:// ...\n";

/// Reads what comes before HTTP; `is_timed` if the first bytes have the kernel's time.
pub(super) fn open<'a>(
    listener: &'a ListenerRules,
    connection: &'a ConnectionState,
    mut socket: ConnectionSocket,
    is_timed: bool,
) -> BoxedFuture<'a, Result<OpenedConnection, OpeningFailure>> {
    Box::pin(async move {
        if listener.proxy_protocol.contains(connection.peer().ip()) {
            read_proxy_header(&mut socket, connection).await?;
        }
        if let Some(tls) = &listener.tls {
            return open_tls(socket, tls, connection).await;
        }
        let opened = open_plain(socket).await?;
        if is_timed && let ServedStream::Plain(socket) = &opened.stream {
            connection.set_receive_delay(socket.receive_age());
        }
        Ok(opened)
    })
}

/// Reads the header by which a proxy names the client of its connection.
async fn read_proxy_header(socket: &mut ConnectionSocket, connection: &ConnectionState) -> Result<(), OpeningFailure> {
    loop {
        match ProxyHeader::parse(socket.prefetched()) {
            ProxyHeader::Complete { length, source } => {
                socket.discard_prefetched(length);
                if let Some(source) = source {
                    connection.set_peer(source);
                }
                return Ok(());
            }
            ProxyHeader::Invalid(_) => return Err(OpeningFailure::ProxyHeader),
            ProxyHeader::Incomplete if socket.prefetch().await? == 0 => return Err(OpeningFailure::Closed),
            ProxyHeader::Incomplete => {}
        }
    }
}

/// Finds out which version of HTTP a connection without TLS speaks.
async fn open_plain(mut socket: ConnectionSocket) -> Result<OpenedConnection, OpeningFailure> {
    let is_http2 = socket.detect_http2().await?;
    Ok(OpenedConnection { stream: ServedStream::Plain(socket), is_http2 })
}

/// Makes the TLS handshake.
async fn open_tls(
    mut socket: ConnectionSocket,
    tls: &ServerTls,
    connection: &ConnectionState,
) -> Result<OpenedConnection, OpeningFailure> {
    if socket.prefetched().is_empty() && socket.prefetch().await? == 0 {
        return Err(OpeningFailure::Closed);
    }
    // The first byte of TLS is 22; that of a method is a letter.
    if socket.prefetched().first().is_some_and(u8::is_ascii_alphabetic) {
        socket.write_all(PLAIN_HTTP_RESPONSE).await?;
        socket.shutdown().await?;
        return Err(OpeningFailure::PlainHttp);
    }
    let shaken = TlsAcceptor::from(tls.config()).accept(socket).await;
    let stream = shaken.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => OpeningFailure::TlsHandshake,
        _ => OpeningFailure::Closed,
    })?;
    let (socket, session) = stream.get_ref();
    connection.set_handshake_done(socket.now());
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    connection.set_tls(TlsPeer {
        client: certificate.and_then(ClientIdentity::of),
        version: if session.protocol_version() == Some(ProtocolVersion::TLSv1_3) { "TLSv1.3" } else { "TLSv1.2" },
        server_name: session.server_name().map(str::to_owned),
    });
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    Ok(OpenedConnection { stream: ServedStream::Tls(Box::new(stream)), is_http2 })
}
