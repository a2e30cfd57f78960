//! CONNECT: tunnels of clients, read with a certificate of the recorder's, or passed through.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use rustls::AlertDescription;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;

use crate::certificate_authority::date;
use crate::forward::local_response;
use crate::passing_body::PassingBody;
use crate::prefixed_stream::PrefixedStream;
use crate::proxy::{ConnectionGuard, Entrance, ProxyContext, serve_http1, serve_http2};
use crate::tunnel_content::TunnelContent;
use crate::upstreams::ServicePlace;

/// Time in which a client has to begin; later the service may be one that begins.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_secs(3);

/// Time for a handshake, and for a connection that is not read.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// First bytes that are read to tell a protocol.
const FIRST_BYTES: usize = 512;

/// Response to CONNECT; its tunnel begins after it.
pub(crate) async fn connect(context: &Rc<ProxyContext>, mut request: Request<Incoming>) -> Response<PassingBody> {
    let place = request.uri().authority().filter(|authority| authority.port().is_some());
    let Some(place) = place.and_then(|authority| ServicePlace::of(authority, true)) else {
        return local_response(StatusCode::BAD_REQUEST, "weir record: CONNECT needs HOST:PORT\n");
    };
    let switched = hyper::upgrade::on(&mut request);
    if !context.scope.is_recorded(&place.host, place.port) {
        let service = match dial(&place).await {
            Ok(service) => service,
            Err(error) => {
                let text = format!("weir record: no connection to {}: {error}\n", place.origin());
                return local_response(StatusCode::BAD_GATEWAY, text);
            }
        };
        spawn(context, pass_through(Rc::clone(context), switched, place, service));
    } else {
        spawn(context, read_tunnel(Rc::clone(context), switched, place));
    }
    Response::new(PassingBody::text(Bytes::new()))
}

/// Runs a tunnel; its type is hidden, since it serves requests, which may have tunnels.
fn spawn(context: &Rc<ProxyContext>, tunnel: impl Future<Output = ()> + 'static) {
    let guard = ConnectionGuard::new(&context.open);
    let tunnel: Pin<Box<dyn Future<Output = ()>>> = Box::pin(tunnel);
    tokio::task::spawn_local(async move {
        let _guard = guard;
        tunnel.await;
    });
}

async fn dial(place: &ServicePlace) -> io::Result<TcpStream> {
    let connected = tokio::time::timeout(HANDSHAKE_TIMEOUT, TcpStream::connect((place.host.as_str(), place.port)));
    let stream = connected.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // Without it responses are only slower.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// A tunnel to a host that is not recorded.
async fn pass_through(context: Rc<ProxyContext>, switched: OnUpgrade, place: ServicePlace, service: TcpStream) {
    context.recording.count_tunnel(&place.host);
    if let Ok(client) = switched.await {
        copy(&context, TokioIo::new(client), service).await;
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
async fn read_tunnel(context: Rc<ProxyContext>, switched: OnUpgrade, place: ServicePlace) {
    let Ok(client) = switched.await else { return };
    let mut client = TokioIo::new(client);
    let mut first = Vec::with_capacity(FIRST_BYTES);
    let content = loop {
        let read = tokio::time::timeout(FIRST_BYTES_TIMEOUT, client.read_buf(&mut first)).await;
        match read {
            Ok(Ok(0) | Err(_)) => return,
            Ok(Ok(_)) => {}
            Err(_) => break TunnelContent::Other,
        }
        if let Some(content) = TunnelContent::of(&first) {
            break content;
        }
    };
    let client = PrefixedStream::new(first, client);
    match content {
        TunnelContent::Tls => serve_tls(&context, client, place).await,
        TunnelContent::Http => {
            let place = ServicePlace { tls: false, ..place };
            serve_http1(&context, TokioIo::new(client), Entrance::Tunnel(place)).await;
        }
        TunnelContent::Other => {
            context.recording.count_tunnel(&place.host);
            if let Ok(service) = dial(&place).await {
                copy(&context, client, service).await;
            }
        }
    }
}

/// Requests within TLS, with a certificate for the host that the client asks for.
async fn serve_tls(context: &Rc<ProxyContext>, client: PrefixedStream<TokioIo<Upgraded>>, mut place: ServicePlace) {
    let started = tokio::time::timeout(HANDSHAKE_TIMEOUT, LazyConfigAcceptor::new(Acceptor::default(), client)).await;
    let start = match started {
        Ok(Ok(start)) => start,
        Ok(Err(error)) => return note_handshake(context, &place.host, &error),
        Err(_) => return,
    };
    // A client that has looked up the name itself asks for an address, and says the name here.
    let is_address = place.host.parse::<std::net::IpAddr>().is_ok();
    place.server_name = start.client_hello().server_name().filter(|_| is_address).map(str::to_owned);
    let Some(authority) = &context.authority else { return };
    let today = date(context.recording.unix_ms(context.recording.now()) / 1000);
    let name = place.name().to_owned();
    let config = context.leaves.borrow_mut().get(&name, || authority.server_config(&name, today));
    let config = match config {
        Ok(config) => config,
        Err(why) => return context.recording.note_once(&format!("{name} cannot have a certificate: {why}")),
    };
    let client = match tokio::time::timeout(HANDSHAKE_TIMEOUT, start.into_stream(config)).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return note_handshake(context, &name, &error),
        Err(_) => return,
    };
    let is_http2 = client.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(client);
    match is_http2 {
        true => serve_http2(context, io, Entrance::Tunnel(place)).await,
        false => serve_http1(context, io, Entrance::Tunnel(place)).await,
    }
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
