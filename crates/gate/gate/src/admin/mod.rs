//! The admin listener: what the gateway is and does, and what an operator may change while it runs. It is a server of
//! its own, so that it responds when the public listeners are overloaded, and has a thread of its own.
//!
//! - `pages`: the responses; `upstream_page`: upstreams, their hosts and limits; `config_page`: the configuration;
//!   `live_page`: a page in a browser, and `live_state`: what it reads; `browser_guard`: requests of other web pages,
//!   which are rejected

mod browser_guard;
mod call_in_flight;
mod config_page;
mod live_page;
mod live_state;
mod pages;
mod upstream_page;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use serde_json::Value;

use self::live_state::LiveState;
use super::config::Config;
use super::config_cell::ConfigCell;
use super::local_responses;
use weir_machine::lock::lock;
use weir_server::{
    self as server, BuiltinPaths, ConnectionLimits, ListenAddress, ListenSockets, ListenerOptions, MetricsHandle,
    OpenRequestsHandle, Options, RequestBody, RequestContext, ResponseBody, RunningServer, ServerError, ServiceReply,
    StopHandle,
};

/// Time for admin requests in flight when another process takes the gateway's place.
const HANDOVER_GRACE: Duration = Duration::from_secs(1);

/// Access to the gateway.
#[derive(Debug)]
pub(super) struct AdminState {
    config_cell: Arc<ConfigCell>,
    /// The configuration as it is shown; a reload replaces it.
    config_page: Mutex<Value>,
    gateway: StopHandle,
    metrics: MetricsHandle,
    open_requests: OpenRequestsHandle,
    live: LiveState,
    logger: weir_machine::logger::Logger,
}

/// The running admin listener; it stops at once when it is dropped.
#[derive(Debug)]
pub(super) struct AdminServer {
    server: RunningServer,
    state: Arc<AdminState>,
}

#[derive(Debug)]
struct AdminService {
    state: Arc<AdminState>,
    /// Whether only this machine reaches the listener, so that a request for another name comes from a web page.
    is_local: bool,
}

impl AdminServer {
    /// Starts the listener of a running gateway.
    ///
    /// # Errors
    /// The address is not available.
    pub(super) fn start(
        address: &ListenAddress,
        config: &Config,
        config_cell: Arc<ConfigCell>,
        gateway: &RunningServer,
        options: &Options,
    ) -> Result<Self, ServerError> {
        let state = Arc::new(AdminState {
            config_cell,
            config_page: Mutex::new(config_page::describe(config)),
            gateway: gateway.stop_handle(),
            metrics: gateway.metrics(),
            open_requests: gateway.open_requests(),
            live: LiveState::new(),
            logger: options.logger.clone(),
        });
        let options = Options {
            workers: 1,
            access_log: None,
            builtin_paths: BuiltinPaths { metrics: String::new(), health: String::new() },
            uses_receive_timestamps: false,
            lists_requests: false,
            connection_limits: ConnectionLimits::default(),
            ..options.clone()
        };
        let is_local = match address {
            ListenAddress::Tcp(host, _) => browser_guard::is_local_name(host),
            ListenAddress::Unix(_) | ListenAddress::Systemd(_) => false,
        };
        let service = AdminService { state: Arc::clone(&state), is_local };
        let listener = ListenerOptions { name: "admin".to_owned(), ..ListenerOptions::plain(address.clone()) };
        let server = server::start_boxed_on(service, &options, &[listener])?;
        Ok(Self { server, state })
    }

    /// URL of the listener.
    pub(super) fn url(&self) -> String {
        match self.server.addresses().first() {
            Some(address @ server::BoundAddress::Unix(_)) => address.to_string(),
            _ => self.server.url(),
        }
    }

    /// Copies of its sockets.
    pub(super) fn listen_sockets(&self) -> ListenSockets {
        self.server.listen_sockets()
    }

    /// Leaves its requests to another process, which has its sockets.
    pub(super) fn hand_over(self) {
        self.server.hand_over(HANDOVER_GRACE);
    }

    /// Shows a configuration from now on.
    pub(super) fn show(&self, config: &Config) {
        *lock(&self.state.config_page) = config_page::describe(config);
    }
}

impl server::StatelessService for AdminService {
    async fn handle(&self, request: Request<RequestBody>, _: &RequestContext) -> ServiceReply {
        let (method, uri) = (request.method(), request.uri());
        let mut response = match browser_guard::rejection(method, request.headers(), uri, self.is_local) {
            Some(why) => local_responses::text(StatusCode::FORBIDDEN, why),
            None => self.respond(method, uri.path(), uri.query()).await,
        };
        // A browser must not take a page of text for a script, nor one of a minute ago for the state now.
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response.into()
    }
}

impl AdminService {
    async fn respond(&self, method: &Method, path: &str, query: Option<&str>) -> Response<ResponseBody> {
        let state = &*self.state;
        if path == "/drain" {
            return pages::drain(state, method);
        }
        let action = path.strip_prefix("/upstreams/").and_then(|rest| rest.rsplit_once('/'));
        if let Some((upstream, action @ ("eject" | "restore"))) = action {
            return match *method {
                Method::POST => upstream_page::set_ejected(state, upstream, query, action == "eject"),
                _ => local_responses::not_allowed("POST"),
            };
        }
        let page = match path {
            "/" => pages::index(),
            "/metrics" => pages::metrics(state),
            "/healthz" => local_responses::text(StatusCode::OK, "ok"),
            "/readyz" => pages::readiness(state),
            "/config" => pages::json(&lock(&state.config_page)),
            "/upstreams" => pages::json(&upstream_page::upstreams(&state.config_cell)),
            "/limits" => pages::json(&upstream_page::limits(&state.config_cell)),
            "/calls" => pages::calls(&state.open_requests.list().await),
            "/live.json" => state.live.response(state).await,
            _ => match live_page::file(path) {
                Some(file) => file,
                None => return local_responses::text(StatusCode::NOT_FOUND, "no such page; GET / lists them"),
            },
        };
        match *method {
            Method::GET | Method::HEAD => page,
            _ => local_responses::not_allowed("GET, HEAD"),
        }
    }
}
