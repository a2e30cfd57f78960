//! `weir serve httpbin`: request and response bodies of all kinds, a small httpbin for load tests.
//!
//! - [`Service`]: routes of the service
//! - `order`, `validate`: `/validate`; `choice`: `/status/{code}`
//! - `chunks`, `drip`, `cut`: streamed bodies
//! - `query`: parameters of the query

mod chunks;
mod drip;
mod order;
mod query;
mod status;
mod truncate;
#[cfg(feature = "schema")]
mod validate;
#[cfg(not(feature = "schema"))]
mod validate_absent;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use serde_json::{Map, Value, json};

use self::chunks::ChunkedBody;
use self::drip::DripBody;
use self::query::{Query, number};
use self::status::{StatusChoice, status};
use self::truncate::TruncatedBody;
#[cfg(feature = "schema")]
use self::validate::OrderValidator;
#[cfg(not(feature = "schema"))]
use self::validate_absent::AbsentValidator as OrderValidator;
use super::responses::{
    CONTENT_TYPE_JSON, CONTENT_TYPE_TEXT, bad_request, method_not_allowed, not_found, payload_too_large, response,
};
use crate::number_range::check_number;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_server::{self as server, ReadBodyError, RequestBody, RequestContext, ResponseBody, ServiceReply, StaticBody};

/// Default length of `/static`, in bytes.
const DEFAULT_STATIC_BYTES: u64 = 5 << 20;
const MAX_BODY_BYTES: u64 = 1 << 40;
/// Length of the page that bodies are made of, in bytes.
const PAGE_BYTES: u64 = 1 << 20;
const MAX_CHUNKS: u64 = 1_000_000;
const MAX_DELAY_MS: u64 = 600_000;
/// Maximum body of `/close`, in bytes: half of it fits into any connection's buffer.
const MAX_TRUNCATED_BODY_BYTES: u64 = 1 << 16;

const CONTENT_TYPE_OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");
const INDEX_TEXT: &str = include_str!("index.txt");
/// Salt of the random numbers of `/status`.
const STATUS_DICE_SALT: u64 = 1;

/// Options of the service.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of the choices of `/status`.
    pub seed: u64,
    /// Maximum body of `/validate`, in bytes.
    pub max_body_bytes: usize,
}

impl Options {
    /// Checks the options.
    ///
    /// # Errors
    /// First invalid option, by its flag, in one line.
    pub fn check(&self) -> Result<(), String> {
        check_number("max-body", self.max_body_bytes, 1..=1 << 26)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, max_body_bytes: 1 << 20 }
    }
}

/// Service with all routes.
#[derive(Debug)]
pub struct Service {
    page: Arc<StaticBody>,
    validator: OrderValidator,
    rng: SeededRng,
    /// Number of draws: the k-th choice is the same on any number of event loops.
    draws: AtomicU64,
    max_body_bytes: usize,
}

impl Service {
    /// A service with its page filled and its schema read.
    ///
    /// # Errors
    /// When the system has no file for us.
    pub fn new(options: Options) -> io::Result<Self> {
        let line = b"weir: sixty-four bytes of a body that is the same in every line\n";
        Ok(Self {
            page: Arc::new(StaticBody::new(line.repeat(PAGE_BYTES as usize / line.len()))?),
            validator: OrderValidator::new().map_err(io::Error::other)?,
            rng: SeededRng::new(options.seed, STATUS_DICE_SALT),
            draws: AtomicU64::new(0),
            max_body_bytes: options.max_body_bytes,
        })
    }
}

impl server::StatelessService for Service {
    fn static_body(&self) -> Option<Arc<StaticBody>> {
        Some(Arc::clone(&self.page))
    }

    async fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> ServiceReply {
        let (head, body) = request.into_parts();
        match head.uri.path() {
            "/echo" => return echo(&head.headers, body).into(),
            "/validate" if head.method == Method::POST => return self.validate(body, context).await.into(),
            _ => {}
        }
        self.route(&head, context).await.unwrap_or_else(|expected| bad_request(expected).into())
    }
}

impl Service {
    /// Response of a route other than `/echo` and `POST /validate`.
    ///
    /// # Errors
    /// Invalid parameter with its expected range, in one line.
    async fn route(&self, head: &Parts, context: &RequestContext) -> Result<ServiceReply, String> {
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        let query = Query(head.uri.query());
        let reply = match (head.uri.path(), reads) {
            ("/static", true) => {
                let bytes = query.number("bytes", DEFAULT_STATIC_BYTES, 0..=MAX_BODY_BYTES)?;
                octet_stream_response(ResponseBody::repeated(&self.page, bytes))
            }
            ("/chunked", true) => self.chunked(query, context)?,
            ("/drip", true) => self.drip(query, context).await?,
            ("/headers", true) => response(StatusCode::OK, CONTENT_TYPE_JSON, headers(&head.headers).to_string()),
            ("/validate/schema", true) => response(StatusCode::OK, CONTENT_TYPE_JSON, order::SCHEMA),
            ("/validate/example", true) => response(StatusCode::OK, CONTENT_TYPE_JSON, order::EXAMPLE),
            ("/validate/invalid", true) => response(StatusCode::OK, CONTENT_TYPE_JSON, order::INVALID_EXAMPLE),
            ("/", true) => response(StatusCode::OK, CONTENT_TYPE_TEXT, INDEX_TEXT),
            ("/validate", _) => method_not_allowed("POST"),
            (
                "/static" | "/chunked" | "/drip" | "/headers" | "/validate/schema" | "/validate/example"
                | "/validate/invalid" | "/",
                false,
            ) => method_not_allowed("GET, HEAD"),
            ("/close", _) => return self.close(query, head.version),
            (path, _) => {
                if let Some(text) = path.strip_prefix("/status/") {
                    self.status(text)?
                } else if let Some(text) = path.strip_prefix("/delay/") {
                    let ms = number("delay", text, 0..=MAX_DELAY_MS)?;
                    context.sleep(Nanos::from_millis(ms)).await;
                    response(StatusCode::OK, CONTENT_TYPE_JSON, json!({ "delay_ms": ms }).to_string())
                } else {
                    not_found()
                }
            }
        };
        Ok(reply.into())
    }

    async fn validate(&self, body: RequestBody, context: &RequestContext) -> Response<ResponseBody> {
        match context.read_body(body, self.max_body_bytes).await {
            Ok(body) => self.validator.validate(&body),
            Err(ReadBodyError::TooLong) => payload_too_large(self.max_body_bytes),
            Err(ReadBodyError::Broken) => bad_request("the body ends early, or is not framed as HTTP demands"),
        }
    }

    fn chunked(&self, query: Query<'_>, context: &RequestContext) -> Result<Response<ResponseBody>, String> {
        let count = query.number("chunks", 10, 0..=MAX_CHUNKS)?;
        let bytes = query.number("bytes", 1024, 1..=PAGE_BYTES)?;
        let interval = Nanos::from_millis(query.number("delay_ms", 0, 0..=MAX_DELAY_MS)?);
        let chunk = self.page.bytes().slice(..bytes as usize);
        Ok(octet_stream_response(ResponseBody::from_stream(ChunkedBody::new(
            context.timer(),
            chunk,
            count,
            context.now(),
            interval,
        ))))
    }

    async fn drip(&self, query: Query<'_>, context: &RequestContext) -> Result<Response<ResponseBody>, String> {
        let length = Nanos::from_millis(query.number("duration_ms", 2000, 0..=MAX_DELAY_MS)?);
        let bytes = query.number("bytes", 10, 1..=MAX_BODY_BYTES)?;
        let delay = Nanos::from_millis(query.number("delay_ms", 0, 0..=MAX_DELAY_MS)?);
        let status = query.value("code").map_or(Ok(StatusCode::OK), |code| status("code", &code))?;
        let begin = context.now() + delay;
        context.sleep_until(begin).await;
        if !has_body(status) {
            return Ok(empty_response(status));
        }
        let mut reply = octet_stream_response(ResponseBody::from_stream(DripBody::new(
            context.timer(),
            self.page.bytes(),
            bytes,
            begin,
            length,
        )));
        *reply.status_mut() = status;
        Ok(reply)
    }

    /// Handles `/close`. In HTTP/2 only the stream is reset, since one response cannot close the connection.
    fn close(&self, query: Query<'_>, version: Version) -> Result<ServiceReply, String> {
        let bytes = query.number("bytes", 1024, 2..=MAX_TRUNCATED_BODY_BYTES)?;
        let body = match query.value("at").as_deref() {
            None | Some("end") => ResponseBody::from(self.page.bytes().slice(..bytes as usize)),
            Some("middle") => ResponseBody::from_stream(TruncatedBody::new(self.page.bytes(), bytes)),
            Some("start") => return Ok(ServiceReply::Reset),
            Some(_) => return Err("at: expected start, middle or end".to_owned()),
        };
        let mut reply = octet_stream_response(body);
        if version < Version::HTTP_2 {
            reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(reply.into())
    }

    fn status(&self, text: &str) -> Result<Response<ResponseBody>, String> {
        let choice = StatusChoice::read(text)?;
        let draw = || choice.pick(self.rng.unit_at(self.draws.fetch_add(1, Ordering::Relaxed)));
        let status = choice.single().unwrap_or_else(draw);
        let mut reply = match has_body(status) {
            true => response(status, CONTENT_TYPE_TEXT, status.canonical_reason().unwrap_or("Unknown")),
            false => empty_response(status),
        };
        if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            reply.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
        }
        Ok(reply)
    }
}

/// Response with the body of the request, streamed.
fn echo(headers: &HeaderMap, body: RequestBody) -> Response<ResponseBody> {
    let mut reply = Response::new(ResponseBody::from(body));
    if let Some(kind) = headers.get(CONTENT_TYPE) {
        reply.headers_mut().insert(CONTENT_TYPE, kind.clone());
    }
    reply
}

/// Headers by name; one that came several times is a list.
fn headers(headers: &HeaderMap) -> Value {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let values = |name| match headers.get_all(name).iter().map(text).collect::<Vec<_>>() {
        one if one.len() == 1 => json!(one[0]),
        several => json!(several),
    };
    Value::Object(headers.keys().map(|name| (name.to_string(), values(name))).collect::<Map<_, _>>())
}

fn octet_stream_response(body: ResponseBody) -> Response<ResponseBody> {
    let mut reply = Response::new(body);
    reply.headers_mut().insert(CONTENT_TYPE, CONTENT_TYPE_OCTET_STREAM);
    reply
}

fn empty_response(status: StatusCode) -> Response<ResponseBody> {
    let mut reply = Response::new(ResponseBody::empty());
    *reply.status_mut() = status;
    reply
}

/// Whether an reply of this status carries a body (RFC 9110, 15).
fn has_body(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
}
