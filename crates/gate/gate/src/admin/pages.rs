//! Responses of the admin listener.

use http::{HeaderValue, Method, Response, StatusCode, header};
use serde_json::{Value, json};

use super::AdminState;
use super::call_in_flight::call_in_flight;
use crate::local_responses;
use weir_server::{MetricsHandle, RequestInFlight, ResponseBody};

const INDEX: &str = "weir gate: admin listener

GET  /metrics                            metrics (OpenMetrics)
GET  /healthz                            200 while the process runs
GET  /readyz                             200, or 503 while it drains
GET  /config                             configuration in use
GET  /upstreams                          upstreams: hosts, ejections, counts
GET  /limits                             concurrency limits and queues
GET  /calls                              calls in flight, the oldest first
GET  /live                               all of it on a page, each second
POST /drain                              make /readyz fail; DELETE undoes it
POST /upstreams/NAME/eject?host=HOST     no attempts to a host
POST /upstreams/NAME/restore?host=HOST   end of an ejection";

pub(super) fn index() -> Response<ResponseBody> {
    local_responses::text(StatusCode::OK, INDEX)
}

/// A response with JSON, and a line end for terminals.
pub(super) fn json(value: &Value) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(format!("{value:#}\n")));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn metrics(state: &AdminState) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(state.metrics.render()));
    let kind = HeaderValue::from_static(MetricsHandle::CONTENT_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Whether the gateway wants further calls.
pub(super) fn readiness(state: &AdminState) -> Response<ResponseBody> {
    match state.gateway.is_draining() {
        false => local_responses::text(StatusCode::OK, "ready"),
        true => local_responses::text(StatusCode::SERVICE_UNAVAILABLE, "draining"),
    }
}

/// Begins or ends draining. Calls are served all the while.
pub(super) fn drain(state: &AdminState, method: &Method) -> Response<ResponseBody> {
    let drains = match *method {
        Method::POST => true,
        Method::DELETE => false,
        _ => return local_responses::not_allowed("POST, DELETE"),
    };
    state.gateway.set_draining(drains);
    state.live.forget();
    state.logger.log(if drains { "admin: draining: /readyz responds 503" } else { "admin: ready again" });
    json(&json!({ "draining": drains }))
}

/// Calls in flight.
pub(super) fn calls(calls: &[RequestInFlight]) -> Response<ResponseBody> {
    json(&calls.iter().map(|call| call_in_flight(call, &call.target)).collect())
}
