//! `weir serve exchange`: an API that limits each of its keys, as the exchange of a trading bot does.
//!
//! `GET /api/request?api_key=&nonce=&req_id=` is answered in this order, and a client can tell the steps apart by what
//! each of them costs:
//!
//! 1. a key that is unknown: 401, without a way in
//! 2. the way in
//! 3. a key that was refused too often: 429, for ever
//! 4. the limiter: 429, and the refusal counts
//! 5. a nonce that is not above the key's last one: 400; its slot is spent
//! 6. the way out, before errors, too
//!
//! Steps 3 to 5 are [`decide::account`](crate::decide::account). `GET /stats` says what became of all requests.

mod answers;
mod book;
mod headers;
mod options;
mod parameters;
mod stats;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use prometheus_client::registry::Registry;

use self::book::{AccountSlot, KeyAccounts};
pub use self::headers::RateLimitHeaders;
pub use self::options::{OneWayDelay, Options, generate_keys};
use self::parameters::RequestParameters;
use super::answers::{CONTENT_TYPE_JSON, CONTENT_TYPE_TEXT, bad_request, method_not_allowed, not_found, response};
use crate::decide::account::{self, QuotaDecision};
use crate::decide::dice::Dice;
use crate::server::{self, ReadBodyError, RequestContext, ResponseBody, ServiceReply, Timer};

/// The service.
#[derive(Debug)]
pub struct Service {
    options: Options,
    accounts: Arc<KeyAccounts>,
    /// Requests so far: each has its own draws of the dice.
    requests: AtomicU64,
    latency_in_dice: Dice,
    latency_out_dice: Dice,
}

/// The longest form that is read.
const MAX_FORM_BYTES: usize = 64 * 1024;

impl Service {
    /// An exchange that nobody has asked yet.
    ///
    /// # Errors
    /// Which option is not possible, in one line.
    pub fn new(options: Options) -> Result<Self, String> {
        let book = Arc::new(KeyAccounts::new(&options)?);
        let (way_in, way_out) = (Dice::new(options.seed, 21), Dice::new(options.seed, 22));
        Ok(Self {
            options,
            accounts: book,
            requests: AtomicU64::new(0),
            latency_in_dice: way_in,
            latency_out_dice: way_out,
        })
    }

    async fn route(&self, request: Request<Incoming>, turn: &RequestContext) -> Response<ResponseBody> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if path != "/api/request" && path != "/stats" {
            return not_found();
        }
        if head.method != Method::GET && head.method != Method::HEAD {
            return method_not_allowed("GET, HEAD");
        }
        if path == "/stats" {
            return response(StatusCode::OK, CONTENT_TYPE_JSON, self.accounts.stats_json(self.accounts.unix_now(turn)));
        }
        match read_form(&head, body, turn).await {
            Ok(form) => self.respond(&RequestParameters::new(head.uri.query().unwrap_or_default(), &form), turn).await,
            Err(ReadBodyError::TooLong) => {
                response(StatusCode::PAYLOAD_TOO_LARGE, CONTENT_TYPE_TEXT, "a form of more than 64 KiB")
            }
            Err(ReadBodyError::Broken) => bad_request("a form that ends early"),
        }
    }

    /// `/api/request`.
    async fn respond(&self, asked: &RequestParameters<'_>, turn: &RequestContext) -> Response<ResponseBody> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let (answer, _until_answered) = self.decide(number, asked, turn).await;
        turn.sleep(self.options.latency_out.at(&self.latency_out_dice, number)).await;
        answer
    }

    async fn decide(
        &self,
        number: u64,
        asked: &RequestParameters<'_>,
        turn: &RequestContext,
    ) -> (Response<ResponseBody>, Option<AccountSlot<'_>>) {
        let Some(account) = self.accounts.account(asked.get("api_key").as_deref()) else {
            return (answers::INVALID_KEY.response(), None);
        };
        turn.sleep(self.options.latency_in.at(&self.latency_in_dice, number)).await;
        let Some(weight) = self.weight(asked) else {
            self.accounts.invalid_weight.fetch_add(1, Ordering::Relaxed);
            return (answers::INVALID_WEIGHT.response(), None);
        };
        let nonce = asked.get("nonce").and_then(|text| account::parse_nonce(&text));
        let judged = self.accounts.decide(account, (weight, nonce), self.options.headers.needs_window_usages(), turn);
        let mut answer = match judged.decision {
            QuotaDecision::Blocked => answers::KEY_BLOCKED.response(),
            QuotaDecision::Exceeded(_) => answers::LIMIT_EXCEEDED.response(),
            QuotaDecision::InvalidNonce => answers::INVALID_NONCE.response(),
            QuotaDecision::Accepted => answers::accepted_response(asked.get("req_id").as_deref()),
        };
        self.options.headers.add_to(answer.headers_mut(), &judged);
        (answer, judged.slot)
    }

    /// What the request weighs; `None` if what it says is no weight.
    fn weight(&self, asked: &RequestParameters<'_>) -> Option<u64> {
        match self.options.weight_by.as_deref().and_then(|name| asked.get(name)) {
            Some(text) => text.parse().ok().filter(|weight| *weight > 0),
            None => Some(1),
        }
    }
}

/// A request's form; empty if it has none.
async fn read_form(head: &Parts, body: Incoming, turn: &RequestContext) -> Result<Bytes, ReadBodyError> {
    let kind = head.headers.get(http::header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    if !kind.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
        return Ok(Bytes::new());
    }
    turn.read_body(body, MAX_FORM_BYTES).await
}

impl server::Service for Service {
    type Local = ();

    fn init_thread(&self, _: &Timer) -> io::Result<()> {
        Ok(())
    }

    async fn handle(&self, (): &(), request: Request<Incoming>, turn: &RequestContext) -> ServiceReply {
        let version = request.version();
        let mut answer = self.route(request, turn).await;
        if !self.options.keep_alive && version < Version::HTTP_2 {
            *answer.version_mut() = Version::HTTP_10;
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer.into()
    }

    fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Arc::clone(&self.accounts)));
    }
}
