//! `weir serve ws`: a WebSocket server that echoes and pushes, with delays, cuts, closes and hostile frames.
//!
//! The peer of a connection is a future on its event loop (`tunnel`); what it does is a `conversation`.

mod conversation;
mod counts;
pub mod hostile;
mod options;
mod tunnel;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;

use self::conversation::{Conversation, Manner};
use self::counts::WebSocketStats;
use self::hostile::HostileReply;
pub use self::options::{Options, WebSocketFaults};
use self::tunnel::FutureTunnel;
use crate::responses::{CONTENT_TYPE_JSON, CONTENT_TYPE_TEXT, bad_request, method_not_allowed, not_found, response};
use weir_base::rng::SeededRng;
use weir_server::{self as server, RequestBody, RequestContext, ResponseBody, ServiceReply, Timer};
use weir_websocket::close_code::CloseCode;
use weir_websocket::deflate::DeflateAgreement;
use weir_websocket::handshake::{WEBSOCKET_VERSION, accept_value, is_valid_key};

/// Service with `/echo`, `/push`, `/silent`, `/close/CODE`, `/hostile/NAME` and `/stats`.
#[derive(Debug)]
pub struct Service {
    state: Arc<WebSocketState>,
}

/// State shared by all connections.
#[derive(Debug)]
struct WebSocketState {
    options: Options,
    stats: WebSocketStats,
    /// Number of the next upgrade, over all event loops; indexes the random draws.
    number: AtomicU64,
}

impl Service {
    /// Service with these options.
    pub fn new(options: Options) -> Self {
        let state = WebSocketState { options, stats: WebSocketStats::default(), number: AtomicU64::new(0) };
        Self { state: Arc::new(state) }
    }

    fn upgrade(&self, manner: Manner, request: &Request<RequestBody>, timer: &Timer) -> ServiceReply {
        let key = match upgrade_key(request) {
            Ok(key) => key,
            Err(reply) => return (*reply).into(),
        };
        let options = &self.state.options;
        let number = self.state.number.fetch_add(1, Ordering::Relaxed);
        if SeededRng::new(options.seed, 60 << 48).unit_at(number) <= options.faults.reject {
            self.state.stats.rejected();
            return response(StatusCode::SERVICE_UNAVAILABLE, CONTENT_TYPE_TEXT, "rejected on purpose\n").into();
        }
        let mut reply = Response::new(ResponseBody::from(""));
        *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = reply.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        // All are made of visible ASCII.
        let mut add = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        add(SEC_WEBSOCKET_ACCEPT, &accept_value(key.as_bytes()));
        let offered = list(request.headers(), SEC_WEBSOCKET_PROTOCOL);
        if let Some(selected) =
            offered.split(',').map(str::trim).find(|name| options.subprotocols.iter().any(|own| own == name))
        {
            add(SEC_WEBSOCKET_PROTOCOL, selected);
        }
        let own = DeflateAgreement { server_no_context: options.no_context, client_no_context: options.no_context };
        let offers = list(request.headers(), SEC_WEBSOCKET_EXTENSIONS);
        let deflate = options.deflate.then(|| DeflateAgreement::of_offers(&offers, own)).flatten();
        if let Some((_, text)) = &deflate {
            add(SEC_WEBSOCKET_EXTENSIONS, text);
        }
        let (state, timer) = (Arc::clone(&self.state), timer.clone());
        let manner = (manner, deflate.map(|(deflate, _)| deflate));
        let tunnel = FutureTunnel::new(|channel| Conversation::new(state, manner, number, timer, channel).play());
        ServiceReply::Upgrade(reply, Box::new(tunnel))
    }
}

/// Values of a header that is a list, joined.
fn list(headers: &HeaderMap, name: HeaderName) -> String {
    let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(", ")
}

/// Key of an upgrade; the response to a request that is none.
fn upgrade_key(request: &Request<RequestBody>) -> Result<String, Box<Response<ResponseBody>>> {
    let headers = request.headers();
    let has = |name: HeaderName, token: &str| {
        list(headers, name).split(',').any(|one| one.trim().eq_ignore_ascii_case(token))
    };
    if request.method() != Method::GET {
        return Err(Box::new(method_not_allowed("GET")));
    }
    if request.version() != Version::HTTP_11 || !has(UPGRADE, "websocket") || !has(CONNECTION, "upgrade") {
        let mut reply = response(StatusCode::UPGRADE_REQUIRED, CONTENT_TYPE_TEXT, "a WebSocket: ws://\n");
        reply.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        return Err(Box::new(reply));
    }
    if list(headers, SEC_WEBSOCKET_VERSION) != WEBSOCKET_VERSION {
        let mut reply = bad_request("Sec-WebSocket-Version: 13");
        reply.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(WEBSOCKET_VERSION));
        *reply.status_mut() = StatusCode::UPGRADE_REQUIRED;
        return Err(Box::new(reply));
    }
    let key = list(headers, SEC_WEBSOCKET_KEY);
    if is_valid_key(key.as_bytes()) {
        Ok(key)
    } else {
        Err(Box::new(bad_request("Sec-WebSocket-Key: 16 bytes in Base64")))
    }
}

/// What a connection to a path does; `None` for an unknown path.
fn manner(path: &str) -> Option<Manner> {
    match path {
        "/" | "/echo" => Some(Manner::Echo),
        "/push" => Some(Manner::Push),
        "/silent" => Some(Manner::Silent),
        _ => {
            let (kind, name) = path.strip_prefix('/')?.split_once('/')?;
            match kind {
                "close" => name.parse().ok().map(CloseCode).filter(|code| code.is_sendable()).map(Manner::Close),
                "hostile" => HostileReply::of(name).map(Manner::Hostile),
                _ => None,
            }
        }
    }
}

impl server::StatelessService for Service {
    async fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> ServiceReply {
        match request.uri().path() {
            "/stats" if request.method() != Method::GET => method_not_allowed("GET").into(),
            "/stats" => response(StatusCode::OK, CONTENT_TYPE_JSON, self.state.stats.json()).into(),
            path => match manner(path) {
                Some(manner) => self.upgrade(manner, &request, context.timer()),
                None => not_found().into(),
            },
        }
    }

    fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(WebSocketCollector(Arc::clone(&self.state))));
    }
}

/// Counts for `/metrics`.
#[derive(Debug)]
struct WebSocketCollector(Arc<WebSocketState>);

impl Collector for WebSocketCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let names = [
            ("websocket_connections", "WebSocket connections that were opened"),
            ("websocket_received_messages", "Messages received"),
            ("websocket_sent_messages", "Messages sent"),
        ];
        for ((name, help), count) in names.into_iter().zip(self.0.stats.totals()) {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(metric)?;
        }
        Ok(())
    }
}
