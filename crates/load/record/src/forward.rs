//! One request that passes through.

use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use weir_base::failure::FailureKind;
use weir_machine::executor::spawn_task;
use weir_net::client::{IncomingBody, OutgoingBody, OutgoingRequest, SendError, WireOptions};

use crate::body_capture::BodyCapture;
use crate::exchange::RecordedExchange;
use crate::forwarded_headers::{clean_request, clean_response, upgrade_protocol};
use crate::local_response::local_response;
use crate::open_exchange::OpenExchange;
use crate::passing_body::PassingBody;
use crate::proxy_context::{ConnectionGuard, ProxyContext};
use crate::reverse::ReverseAddresses;
use crate::upstreams::ServicePlace;

/// Body of a request that is read before it is sent, in bytes: it can be sent again if its connection was closed before
/// the service took anything of it.
const MAX_RESENDABLE_BYTES: u64 = 64 << 10;

/// Destination of a request.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) place: ServicePlace,
    /// Addresses that are exchanged, of a reverse proxy.
    pub(crate) reverse: Option<ReverseAddresses>,
}

/// Sends a request on, and returns its response as it comes.
pub(crate) async fn forward(
    context: &Rc<ProxyContext>,
    route: Route,
    mut request: Request<Incoming>,
) -> Response<PassingBody> {
    let Route { place, reverse } = route;
    let is_recorded = reverse.is_some() || context.scope.is_recorded(place.name(), place.port);
    let upgrade = upgrade_protocol(request.headers());
    let switched = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let (head, body) = request.into_parts();
    let mut headers = head.headers;
    clean_request(&mut headers);
    // The URI of a request decides (RFC 9112, 3.2.2), and over HTTP/2 there may be no other.
    let authority = head.uri.authority().map(http::uri::Authority::as_str);
    let host = authority.map(|authority| authority.rsplit_once('@').map_or(authority, |(_, host)| host));
    if let Some(host) = host.and_then(|host| HeaderValue::from_str(host).ok()) {
        headers.insert(header::HOST, host);
    }
    if let Some(reverse) = &reverse {
        reverse.rewrite_request(&mut headers);
    }
    let target = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
    let mut exchange = if is_recorded {
        Some(OpenExchange::new(&context.recording, recorded(&head.method, &place, &target, head.version, &headers)))
    } else {
        context.recording.count_other_host();
        None
    };
    let Ok(body) = outgoing(body, exchange.as_ref().map(OpenExchange::request_body)).await else {
        // The client is gone; nothing was sent.
        return local_response(StatusCode::BAD_REQUEST, "weir record: the request's body broke off\n");
    };
    let origins = match context.upstreams.get(&place) {
        Ok(origins) => origins,
        Err(error) => return failed(&place, exchange, &error.to_string()),
    };
    let extra: Vec<_> = upgrade.iter().map(|protocol| (header::UPGRADE, protocol.clone())).collect();
    let outgoing = OutgoingRequest {
        method: &head.method,
        target: &target,
        headers: &headers,
        extra_headers: &extra,
        body,
        upgrade: upgrade.is_some(),
        wire: WireOptions::default(),
    };
    let origin = if upgrade.is_some() { &origins.http1 } else { &origins.auto };
    let response = match context.client.send(origin, outgoing).await {
        Ok(response) => response,
        Err(error) => return failed(&place, exchange, &reason(&error)),
    };
    let (mut head, body) = response.into_parts();
    let protocol = head.headers.get(header::UPGRADE).cloned();
    clean_response(&mut head.headers);
    if let Some(exchange) = &mut exchange {
        exchange.set_response(head.status.as_u16(), &head.headers);
    }
    if let Some(reverse) = &reverse {
        reverse.rewrite_response(&mut head.headers);
    }
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        head.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        if let Some(protocol) = protocol {
            head.headers.insert(header::UPGRADE, protocol);
        }
        if let Some(switched) = switched {
            tunnel(context, switched, body, exchange);
        }
        return from_parts(head.status, head.headers, PassingBody::text(Bytes::new()));
    }
    let capture = exchange.as_ref().map(OpenExchange::response_body);
    from_parts(head.status, head.headers, PassingBody::new(body, capture, exchange))
}

fn from_parts(status: StatusCode, headers: HeaderMap, body: PassingBody) -> Response<PassingBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn recorded(
    method: &Method,
    place: &ServicePlace,
    target: &str,
    version: Version,
    headers: &HeaderMap,
) -> RecordedExchange {
    let mut headers = headers.clone();
    // Of the connection, like the length: HAR files need neither.
    headers.remove(header::TE);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    let named = host.and_then(|host| ServicePlace::of(&host, place.tls));
    if named.is_some_and(|named| named.host.eq_ignore_ascii_case(place.name()) && named.port == place.port) {
        headers.remove(header::HOST);
    }
    RecordedExchange {
        method: method.as_str().to_owned(),
        url: format!("{}{}", place.origin(), if target.starts_with('/') { target } else { "/" }),
        version: if version == Version::HTTP_2 { "HTTP/2.0" } else { "HTTP/1.1" }.to_owned(),
        headers,
        ..RecordedExchange::default()
    }
}

/// Body as it is sent on: a short one whole, others as they come.
async fn outgoing(body: Incoming, capture: Option<BodyCapture>) -> Result<OutgoingBody, hyper::Error> {
    if body.is_end_stream() {
        return Ok(OutgoingBody::Empty);
    }
    if body.size_hint().exact().is_some_and(|length| length <= MAX_RESENDABLE_BYTES) {
        let bytes = body.collect().await?.to_bytes();
        if let Some(capture) = capture {
            capture.push(&bytes);
        }
        return Ok(OutgoingBody::Bytes(bytes));
    }
    Ok(OutgoingBody::Stream(Box::pin(PassingBody::new(body, capture, None))))
}

/// Forwards the bytes of a connection that has switched to another protocol.
fn tunnel(
    context: &Rc<ProxyContext>,
    switched: hyper::upgrade::OnUpgrade,
    body: IncomingBody,
    exchange: Option<OpenExchange>,
) {
    let guard = ConnectionGuard::new(&context.open);
    let mut stopping = context.stopping.clone();
    spawn_task(async move {
        let _guard = guard;
        // It is a request of another protocol, so that it ends here for the recording.
        if let Some(mut exchange) = exchange {
            exchange.set_upgraded();
            exchange.set_complete();
        }
        let (Ok(client), Some(mut service)) = (switched.await, body.into_upgraded()) else { return };
        let mut client = TokioIo::new(client);
        tokio::select! {
            // A failed end closes the other one, too.
            _ = tokio::io::copy_bidirectional(&mut client, &mut service) => {}
            _ = stopping.wait_for(|stops| *stops) => {}
        }
    });
}

/// Response to a request whose service has not responded.
fn failed(place: &ServicePlace, exchange: Option<OpenExchange>, reason: &str) -> Response<PassingBody> {
    if let Some(mut exchange) = exchange {
        exchange.set_broken(reason);
    }
    local_response(StatusCode::BAD_GATEWAY, format!("weir record: no response of {}: {reason}\n", place.origin()))
}

/// Failure of a request, with what helps.
fn reason(error: &SendError) -> String {
    match error.kind {
        FailureKind::Tls => format!("{error}; trust its certificate with --cacert FILE, or any with --insecure"),
        _ => error.to_string(),
    }
}
