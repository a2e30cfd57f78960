//! CONNECT: tunnels of clients, read with a certificate of the recorder's, or passed through.

use std::io;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use rustls::AlertDescription;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream as ServerTlsStream;

use crate::certificate_authority::date;
use crate::local_response::local_response;
use crate::passing_body::PassingBody;
use crate::prefixed_stream::PrefixedStream;
use crate::proxy_context::ProxyContext;
use crate::tunnel_content::TunnelContent;
use crate::upstreams::ServicePlace;

/// Time in which a client has to begin; later the service may be one that begins.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_secs(3);

/// Time for a handshake, and for a connection that is not read.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum first bytes that are read to detect a protocol.
const FIRST_BYTES: usize = 512;

/// A tunnel that begins after the response to its request.
pub(crate) struct ClientTunnel {
    switched: OnUpgrade,
    place: ServicePlace,
    /// Connection to a service that is not recorded.
    service: Option<TcpStream>,
}

/// A tunnel whose requests are read, by its protocol.
pub(crate) enum OpenedTunnel {
    /// HTTP/1.1 without TLS.
    Http1(TokioIo<TunnelStream>, ServicePlace),
    /// HTTP/1.1 in TLS.
    Tls1(TokioIo<ServerTlsStream<TunnelStream>>, ServicePlace),
    /// HTTP/2 in TLS.
    Tls2(TokioIo<ServerTlsStream<TunnelStream>>, ServicePlace),
}

/// Bytes of a tunnel.
type TunnelStream = PrefixedStream<TokioIo<Upgraded>>;

/// The tunnel of a CONNECT, or the response that says why there is none.
pub(crate) async fn connect(
    context: &ProxyContext,
    mut request: Request<Incoming>,
) -> Result<ClientTunnel, Box<Response<PassingBody>>> {
    let place = request.uri().authority().filter(|authority| authority.port().is_some());
    let Some(place) = place.and_then(|authority| ServicePlace::of(authority, true)) else {
        let response = local_response(StatusCode::BAD_REQUEST, "weir record: CONNECT needs HOST:PORT\n");
        return Err(Box::new(response));
    };
    let switched = hyper::upgrade::on(&mut request);
    if context.scope.is_recorded(&place.host, place.port) {
        return Ok(ClientTunnel { switched, place, service: None });
    }
    match dial(context, &place).await {
        Ok(service) => Ok(ClientTunnel { switched, place, service: Some(service) }),
        Err(error) => {
            let text = format!("weir record: no connection to {}: {error}\n", place.origin());
            Err(Box::new(local_response(StatusCode::BAD_GATEWAY, text)))
        }
    }
}

impl ClientTunnel {
    /// Reads what the tunnel has; `None` once it has ended, also after it has passed unread.
    pub(crate) async fn open(self, context: &ProxyContext) -> Option<OpenedTunnel> {
        let Self { switched, place, service } = self;
        let client = TokioIo::new(switched.await.ok()?);
        match service {
            Some(service) => {
                context.recording.count_tunnel(&place.host);
                copy(context, client, service).await;
                None
            }
            None => read_tunnel(context, client, place).await,
        }
    }
}

async fn dial(context: &ProxyContext, place: &ServicePlace) -> Result<TcpStream, String> {
    let connected = tokio::time::timeout(HANDSHAKE_TIMEOUT, context.client.connect_host(&place.host, place.port));
    match connected.await {
        Ok(connected) => connected.map_err(|error| error.text.into_owned()),
        Err(_) => Err("no response in time".to_owned()),
    }
}

/// Copies the bytes of both sides until both have ended, or the recording has.
async fn copy<C, S>(context: &ProxyContext, mut client: C, mut service: S)
where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stopping = context.stopping.clone();
    tokio::select! {
        // A failed end closes the other one, too.
        _ = tokio::io::copy_bidirectional(&mut client, &mut service) => {}
        _ = stopping.wait_for(|stops| *stops) => {}
    }
}

/// A tunnel to a host that is recorded, by what is in it.
async fn read_tunnel(
    context: &ProxyContext,
    mut client: TokioIo<Upgraded>,
    place: ServicePlace,
) -> Option<OpenedTunnel> {
    let mut first = Vec::with_capacity(FIRST_BYTES);
    let content = loop {
        match tokio::time::timeout(FIRST_BYTES_TIMEOUT, client.read_buf(&mut first)).await {
            Ok(Ok(0) | Err(_)) => return None,
            Ok(Ok(_)) => {}
            Err(_) => break TunnelContent::Other,
        }
        if let Some(content) = TunnelContent::of(&first) {
            break content;
        }
    };
    let client = PrefixedStream::new(first, client);
    match content {
        TunnelContent::Tls => accept_tls(context, client, place).await,
        TunnelContent::Http => Some(OpenedTunnel::Http1(TokioIo::new(client), ServicePlace { tls: false, ..place })),
        TunnelContent::Other => {
            context.recording.count_tunnel(&place.host);
            if let Ok(service) = dial(context, &place).await {
                copy(context, client, service).await;
            }
            None
        }
    }
}

/// Handshake with a client, with a certificate for the host that it asks for.
async fn accept_tls(context: &ProxyContext, client: TunnelStream, mut place: ServicePlace) -> Option<OpenedTunnel> {
    let started = tokio::time::timeout(HANDSHAKE_TIMEOUT, LazyConfigAcceptor::new(Acceptor::default(), client)).await;
    let start = match started.ok()? {
        Ok(start) => start,
        Err(error) => {
            note_handshake(context, &place.host, &error);
            return None;
        }
    };
    // A client that has looked up the name itself asks for an address, and says the name here.
    let is_address = place.host.parse::<std::net::IpAddr>().is_ok();
    place.server_name = start.client_hello().server_name().filter(|_| is_address).map(str::to_owned);
    let authority = context.authority.as_ref()?;
    let today = date(context.recording.unix_ms(context.recording.now()) / 1000);
    let name = place.name().to_owned();
    let config = context.leaves.borrow_mut().get(&name, || authority.server_config(&name, today));
    let config = match config {
        Ok(config) => config,
        Err(why) => {
            context.recording.note_once(&format!("{name} cannot have a certificate: {why}"));
            return None;
        }
    };
    let client = match tokio::time::timeout(HANDSHAKE_TIMEOUT, start.into_stream(config)).await.ok()? {
        Ok(client) => client,
        Err(error) => {
            note_handshake(context, &name, &error);
            return None;
        }
    };
    let is_http2 = client.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(client);
    Some(if is_http2 { OpenedTunnel::Tls2(io, place) } else { OpenedTunnel::Tls1(io, place) })
}

/// Reports why a client has ended a handshake.
fn note_handshake(context: &ProxyContext, host: &str, error: &io::Error) {
    let file = context.authority.as_ref().map(|authority| authority.path().display().to_string()).unwrap_or_default();
    let text = match handshake_failure(error) {
        HandshakeFailure::Untrusted => format!(
            "{host}: the client does not trust weir's CA: add {file} to its certificates, or pass the host through with \
             --exclude {host}"
        ),
        HandshakeFailure::Closed => format!(
            "{host}: the client ended the TLS handshake: it may not trust weir's CA ({file}), or accept only the \
             service's own certificate (then --exclude {host})"
        ),
        HandshakeFailure::Other(why) => format!("{host}: no TLS with the client: {why}"),
    };
    context.recording.count_untrusted(host, &text);
}

/// Reason why a handshake with a client has failed.
#[derive(Debug, PartialEq, Eq)]
enum HandshakeFailure {
    /// The client says that it does not accept the certificate.
    Untrusted,
    /// The client says nothing.
    Closed,
    Other(String),
}

fn handshake_failure(error: &io::Error) -> HandshakeFailure {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRevoked, CertificateUnknown, UnknownCA,
        UnsupportedCertificate,
    };
    let is_closed = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    );
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::AlertReceived(
            AccessDenied
            | BadCertificate
            | CertificateExpired
            | CertificateRevoked
            | CertificateUnknown
            | UnknownCA
            | UnsupportedCertificate,
        )) => HandshakeFailure::Untrusted,
        Some(error) => HandshakeFailure::Other(error.to_string()),
        None if is_closed => HandshakeFailure::Closed,
        None => HandshakeFailure::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_of_clients_tell_that_they_do_not_trust_the_certificate() {
        let alert = |alert| io::Error::new(io::ErrorKind::InvalidData, rustls::Error::AlertReceived(alert));
        assert_eq!(handshake_failure(&alert(AlertDescription::UnknownCA)), HandshakeFailure::Untrusted);
        assert_eq!(handshake_failure(&alert(AlertDescription::CertificateUnknown)), HandshakeFailure::Untrusted);
        assert_eq!(handshake_failure(&io::ErrorKind::UnexpectedEof.into()), HandshakeFailure::Closed);
        assert!(matches!(handshake_failure(&alert(AlertDescription::ProtocolVersion)), HandshakeFailure::Other(_)));
    }
}
