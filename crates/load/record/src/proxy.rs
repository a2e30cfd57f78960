//! Connections of clients, and where their requests go.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use weir_machine::executor::spawn_task;
use weir_net::local_executor::LocalExecutor;

use crate::connect::{OpenedTunnel, connect};
use crate::forward::{Route, forward};
use crate::local_response::local_response;
use crate::passing_body::PassingBody;
use crate::proxy_context::{ConnectionGuard, Entrance, ProxyContext};
use crate::reverse::ReverseAddresses;
use crate::upstreams::ServicePlace;

/// Time in which a client has to send the head of its next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum number of header fields of a request.
const MAX_HEADER_FIELDS: usize = 256;

/// Maximum size of the headers of a request over HTTP/2, in bytes.
const MAX_HEADER_LIST_BYTES: u32 = 256 << 10;

/// Serves a connection with HTTP/1.1, until it ends or the recording does.
pub(crate) async fn serve_http1<I>(context: &Rc<ProxyContext>, io: I, entrance: Entrance)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder
        .auto_date_header(false)
        .max_headers(MAX_HEADER_FIELDS)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    let service = service_fn(|request| handle(Rc::clone(context), entrance.clone(), request));
    let connection = builder.serve_connection(io, service).with_upgrades();
    serve_until_stop(context, connection, http1::UpgradeableConnection::graceful_shutdown).await;
}

/// Serves a connection with HTTP/2, until it ends or the recording does.
pub(crate) async fn serve_http2<I>(context: &Rc<ProxyContext>, io: I, entrance: Entrance)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let mut builder = http2::Builder::new(LocalExecutor);
    builder.auto_date_header(false).timer(TokioTimer::new());
    builder.max_header_list_size(MAX_HEADER_LIST_BYTES).max_concurrent_streams(250);
    let service = service_fn(|request| handle(Rc::clone(context), entrance.clone(), request));
    let connection = builder.serve_connection(io, service);
    serve_until_stop(context, connection, http2::Connection::graceful_shutdown).await;
}

/// Serves a connection until it ends; once the recording does, no further request of it begins.
async fn serve_until_stop<C: Future>(context: &ProxyContext, connection: C, end: impl Fn(Pin<&mut C>)) {
    let mut connection = pin!(connection);
    let mut stopping = context.stopping.clone();
    let mut is_told = false;
    loop {
        tokio::select! {
            // How a connection of a client ends does not matter to the recording.
            _ = &mut connection => return,
            _ = stopping.wait_for(|stops| *stops), if !is_told => {
                is_told = true;
                end(connection.as_mut());
            }
        }
    }
}

/// Response to a request of any connection.
async fn handle(
    context: Rc<ProxyContext>,
    entrance: Entrance,
    request: Request<Incoming>,
) -> Result<Response<PassingBody>, Infallible> {
    if *request.method() == Method::CONNECT {
        return Ok(match entrance {
            Entrance::Proxy => open_tunnel(&context, request).await,
            Entrance::Reverse(_) | Entrance::Tunnel(_) => local_response(
                StatusCode::METHOD_NOT_ALLOWED,
                "weir record: CONNECT is for a proxy, which this is not\n",
            ),
        });
    }
    let route = match entrance {
        Entrance::Tunnel(place) => Route { place, reverse: None },
        Entrance::Reverse(place) => {
            let host = request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok());
            let client = host.map_or_else(|| context.url.clone(), |host| format!("http://{host}"));
            let reverse = ReverseAddresses { upstream: place.origin(), client };
            Route { place, reverse: Some(reverse) }
        }
        Entrance::Proxy => match absolute(request.uri()) {
            Ok(Some(place)) if place.origin() != context.url => Route { place, reverse: None },
            Ok(_) => return Ok(own_page(&context, &request)),
            Err(why) => return Ok(local_response(StatusCode::BAD_REQUEST, format!("weir record: {why}\n"))),
        },
    };
    Ok(forward(&context, route, request).await)
}

/// Response to CONNECT, after which its tunnel begins.
async fn open_tunnel(context: &Rc<ProxyContext>, request: Request<Incoming>) -> Response<PassingBody> {
    match connect(context, request).await {
        Ok(tunnel) => {
            spawn(context, {
                let context = Rc::clone(context);
                async move {
                    match tunnel.open(&context).await {
                        Some(OpenedTunnel::Http1(io, place)) => {
                            serve_http1(&context, io, Entrance::Tunnel(place)).await;
                        }
                        Some(OpenedTunnel::Tls1(io, place)) => serve_http1(&context, io, Entrance::Tunnel(place)).await,
                        Some(OpenedTunnel::Tls2(io, place)) => serve_http2(&context, io, Entrance::Tunnel(place)).await,
                        None => {}
                    }
                }
            });
            Response::new(PassingBody::text(""))
        }
        Err(response) => *response,
    }
}

/// Runs a tunnel; its type is hidden, since it serves requests, which may have tunnels.
fn spawn(context: &Rc<ProxyContext>, tunnel: impl Future<Output = ()> + 'static) {
    let guard = ConnectionGuard::new(&context.open);
    spawn_task(async move {
        let _guard = guard;
        tunnel.await;
    });
}

/// Place of an absolute URI; `None` if there is only a path.
fn absolute(uri: &Uri) -> Result<Option<ServicePlace>, String> {
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Ok(None) };
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        other => return Err(format!("the scheme {other} does not pass here; use http or https")),
    };
    ServicePlace::of(authority, tls).map(Some).ok_or_else(|| format!("{authority} is not a host with a port"))
}

/// Page of the recorder itself: how it is used, and its certificate.
fn own_page(context: &ProxyContext, request: &Request<Incoming>) -> Response<PassingBody> {
    if request.uri().path() == "/ca.pem"
        && let Some(authority) = &context.authority
    {
        let mut response = local_response(StatusCode::OK, authority.pem().to_owned());
        let media_type = http::HeaderValue::from_static("application/x-x509-ca-cert");
        response.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
        return response;
    }
    let url = &context.url;
    let text = format!(
        "weir record is a proxy: set {url} as the proxy of a client, e.g. curl -x {url} http://localhost:8080/\n\
         Certificate for HTTPS: {url}/ca.pem\n"
    );
    local_response(StatusCode::BAD_REQUEST, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_request_is_in_its_uri() {
        let place = |uri: &str| absolute(&uri.parse().unwrap()).map(|place| place.map(|place| place.origin()));
        assert_eq!(place("http://Shop.example:8080/a"), Ok(Some("http://shop.example:8080".to_owned())));
        assert_eq!(place("https://shop.example/"), Ok(Some("https://shop.example".to_owned())));
        assert_eq!(place("/a?b"), Ok(None));
        assert!(place("ftp://h/").is_err());
    }
}
