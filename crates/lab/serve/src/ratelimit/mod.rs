//! `weir serve ratelimit`: an API with rate limits per key, after the reference rate-limited API.
//!
//! `GET /api/request?api_key=&nonce=&req_id=` goes through these steps:
//!
//! 1. unknown key: 401, without the delay in
//! 2. one-way delay in
//! 3. key blocked after too many rate-limit rejections: 429, for good
//! 4. limiter: 429, which counts towards the block
//! 5. nonce not above the key's last one: 400; it counts in the limits
//! 6. one-way delay out, before errors, too
//!
//! Steps 3 to 5 are [`weir_limits::key_quota`]. `GET /stats` has the counts of
//! all outcomes.

mod accounts;
mod headers;
mod options;
mod parameters;
mod responses;
mod stats;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use prometheus_client::registry::Registry;

use self::accounts::{AccountSlot, KeyAccounts};
pub use self::headers::RateLimitHeaderSet;
pub use self::options::{OneWayDelay, Options};
use self::parameters::RequestParameters;
use super::responses::{CONTENT_TYPE_JSON, CONTENT_TYPE_TEXT, bad_request, method_not_allowed, not_found, response};
use weir_base::rng::SeededRng;
use weir_limits::key_quota;
use weir_limits::key_quota::QuotaDecision;
use weir_server::{self as server, ReadBodyError, RequestBody, RequestContext, ResponseBody, ServiceReply};

/// Service with `/api/request` and `/stats`.
#[derive(Debug)]
pub struct Service {
    options: Options,
    accounts: Arc<KeyAccounts>,
    /// Number of requests so far; indexes the random draws.
    requests: AtomicU64,
    latency_in_rng: SeededRng,
    latency_out_rng: SeededRng,
}

/// Maximum form, in bytes.
const MAX_FORM_BYTES: usize = 64 * 1024;

impl Service {
    /// Service with these options.
    pub fn new(options: Options) -> Self {
        let accounts = Arc::new(KeyAccounts::new(&options));
        let (latency_in_rng, latency_out_rng) = (SeededRng::new(options.seed, 21), SeededRng::new(options.seed, 22));
        Self { options, accounts, requests: AtomicU64::new(0), latency_in_rng, latency_out_rng }
    }

    async fn route(&self, request: Request<RequestBody>, context: &RequestContext) -> Response<ResponseBody> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if path != "/api/request" && path != "/stats" {
            return not_found();
        }
        if head.method != Method::GET && head.method != Method::HEAD {
            return method_not_allowed("GET, HEAD");
        }
        if path == "/stats" {
            return response(
                StatusCode::OK,
                CONTENT_TYPE_JSON,
                self.accounts.stats_json(self.accounts.unix_now(context)),
            );
        }
        match read_form(&head, body, context).await {
            Ok(form) => {
                self.respond(&RequestParameters::new(head.uri.query().unwrap_or_default(), &form), context).await
            }
            Err(ReadBodyError::TooLong) => {
                response(StatusCode::PAYLOAD_TOO_LARGE, CONTENT_TYPE_TEXT, "a form of more than 64 KiB")
            }
            Err(ReadBodyError::Broken) => bad_request("a form that ends early"),
        }
    }

    /// Handles `/api/request`.
    async fn respond(&self, parameters: &RequestParameters<'_>, context: &RequestContext) -> Response<ResponseBody> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let (reply, _slot) = self.decide(number, parameters, context).await;
        context.sleep(self.options.latency_out.at(&self.latency_out_rng, number)).await;
        reply
    }

    async fn decide(
        &self,
        number: u64,
        parameters: &RequestParameters<'_>,
        context: &RequestContext,
    ) -> (Response<ResponseBody>, Option<AccountSlot<'_>>) {
        let Some(account) = self.accounts.account(parameters.get("api_key").as_deref()) else {
            return (responses::INVALID_KEY.response(), None);
        };
        context.sleep(self.options.latency_in.at(&self.latency_in_rng, number)).await;
        let Some(weight) = self.weight(parameters) else {
            self.accounts.invalid_weight.fetch_add(1, Ordering::Relaxed);
            return (responses::INVALID_WEIGHT.response(), None);
        };
        let nonce = parameters.get("nonce").and_then(|text| key_quota::parse_nonce(&text));
        let judged =
            self.accounts.decide(account, (weight, nonce), self.options.headers.needs_window_usages(), context);
        let mut reply = match judged.decision {
            QuotaDecision::Blocked => responses::KEY_BLOCKED.response(),
            QuotaDecision::Exceeded(_) => responses::LIMIT_EXCEEDED.response(),
            QuotaDecision::InvalidNonce => responses::INVALID_NONCE.response(),
            QuotaDecision::Accepted => responses::accepted_response(parameters.get("req_id").as_deref()),
        };
        self.options.headers.add_to(reply.headers_mut(), &judged);
        (reply, judged.slot)
    }

    /// Weight of the request; none if it is invalid.
    fn weight(&self, parameters: &RequestParameters<'_>) -> Option<u64> {
        match self.options.weight_by.as_deref().and_then(|name| parameters.get(name)) {
            Some(text) => text.parse().ok().filter(|weight| *weight > 0),
            None => Some(1),
        }
    }
}

/// Form of the request; empty without one.
async fn read_form(head: &Parts, body: RequestBody, context: &RequestContext) -> Result<Bytes, ReadBodyError> {
    let kind = head.headers.get(http::header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    if !kind.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
        return Ok(Bytes::new());
    }
    context.read_body(body, MAX_FORM_BYTES).await
}

impl server::StatelessService for Service {
    async fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> ServiceReply {
        let version = request.version();
        let mut reply = self.route(request, context).await;
        if !self.options.keep_alive && version < Version::HTTP_2 {
            *reply.version_mut() = Version::HTTP_10;
            reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        reply.into()
    }

    fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Arc::clone(&self.accounts)));
    }
}
