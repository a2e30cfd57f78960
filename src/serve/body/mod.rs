//! `weir serve body`: bodies to send and to take, a small httpbin for load tests.
//!
//! - [`Service`]: which path does what
//! - `order`: `/validate`; `choice`: `/status/{code}`
//! - `chunks`, `drip`, `cut`: bodies that are made while they are sent
//! - `query`: what stands behind the question mark

mod choice;
mod chunks;
mod cut;
mod drip;
mod order;
mod query;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use serde_json::{Map, Value, json};

use self::choice::{Choice, status};
use self::chunks::Chunks;
use self::cut::Cut;
use self::drip::Drip;
use self::order::Clerk;
use self::query::{Query, number};
use super::answers::{JSON, TEXT, answer, bad_request, not_allowed, not_found, too_large};
use crate::decide::Nanos;
use crate::decide::dice::Dice;
use crate::server::{self, Body, Page, Reply, RequestBody, Timer, Turn, Unread};

/// What /static sends unless asked for another length.
const STATIC_BYTES: u64 = 5 << 20;
const MOST_BYTES: u64 = 1 << 40;
/// A page; so long a part of a body comes at once.
const PAGE_BYTES: u64 = 1 << 20;
const MOST_CHUNKS: u64 = 1_000_000;
const MOST_MS: u64 = 600_000;
/// /close may cut so much in half: what is sent by then fits into any connection's buffer.
const MOST_CUT: u64 = 1 << 16;

const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const INDEX: &str = include_str!("index.txt");
/// Dice of this service.
const CHOICES: u64 = 1;

/// What is asked of the service.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Of the choices of /status.
    pub seed: u64,
    /// The longest body that /validate reads, in bytes.
    pub most_body: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, most_body: 1 << 20 }
    }
}

/// The service.
#[derive(Debug)]
pub struct Service {
    page: Arc<Page>,
    clerk: Clerk,
    dice: Dice,
    /// How often the dice were rolled: the k-th choice is the same on any number of event loops.
    rolls: AtomicU64,
    most_body: usize,
}

impl Service {
    /// A service with its page filled and its schema read.
    ///
    /// # Errors
    /// When the system has no file for us.
    pub fn new(options: Options) -> io::Result<Self> {
        let line = b"weir: sixty-four bytes of a body that is the same in every line\n";
        Ok(Self {
            page: Arc::new(Page::new(line.repeat(PAGE_BYTES as usize / line.len()))?),
            clerk: Clerk::new().map_err(io::Error::other)?,
            dice: Dice::new(options.seed, CHOICES),
            rolls: AtomicU64::new(0),
            most_body: options.most_body,
        })
    }
}

impl server::Service for Service {
    type Local = Timer;

    fn settle(&self, timer: &Timer) -> io::Result<Timer> {
        Ok(timer.clone())
    }

    fn page(&self) -> Option<Arc<Page>> {
        Some(Arc::clone(&self.page))
    }

    async fn answer(&self, timer: &Timer, request: Request<Incoming>, turn: &Turn) -> Reply {
        let (head, body) = request.into_parts();
        match head.uri.path() {
            "/echo" => return echo(&head.headers, body).into(),
            "/validate" if head.method == Method::POST => return self.validate(body, turn).await.into(),
            _ => {}
        }
        self.route(&head, timer, turn).await.unwrap_or_else(|expected| bad_request(expected).into())
    }
}

impl Service {
    /// # Errors
    /// What is expected of a parameter, in words.
    async fn route(&self, head: &Parts, timer: &Timer, turn: &Turn) -> Result<Reply, String> {
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        let query = Query(head.uri.query());
        let answer = match (head.uri.path(), reads) {
            ("/static", true) => {
                let bytes = query.number("bytes", STATIC_BYTES, 0..=MOST_BYTES)?;
                of_bytes(Body::repeated(&self.page, bytes))
            }
            ("/chunked", true) => self.chunked(query, timer, turn)?,
            ("/drip", true) => self.drip(query, timer, turn).await?,
            ("/headers", true) => answer(StatusCode::OK, JSON, headers(&head.headers).to_string()),
            ("/validate/schema", true) => answer(StatusCode::OK, JSON, order::SCHEMA),
            ("/validate/example", true) => answer(StatusCode::OK, JSON, order::EXAMPLE),
            ("/validate/invalid", true) => answer(StatusCode::OK, JSON, order::WRONG),
            ("/", true) => answer(StatusCode::OK, TEXT, INDEX),
            ("/validate", _) => not_allowed("POST"),
            (
                "/static" | "/chunked" | "/drip" | "/headers" | "/validate/schema" | "/validate/example"
                | "/validate/invalid" | "/",
                false,
            ) => not_allowed("GET, HEAD"),
            ("/close", _) => return self.close(query, head.version),
            (path, _) => {
                if let Some(text) = path.strip_prefix("/status/") {
                    self.status(text)?
                } else if let Some(text) = path.strip_prefix("/delay/") {
                    let ms = number("delay", text, 0..=MOST_MS)?;
                    turn.sleep(Nanos::from_millis(ms)).await;
                    answer(StatusCode::OK, JSON, json!({ "delay_ms": ms }).to_string())
                } else {
                    not_found()
                }
            }
        };
        Ok(answer.into())
    }

    async fn validate(&self, body: Incoming, turn: &Turn) -> Response<Body> {
        match turn.read(body, self.most_body).await {
            Ok(body) => self.clerk.judge(&body),
            Err(Unread::TooLong) => too_large(self.most_body),
            Err(Unread::Broken) => bad_request("the body ends early, or is not framed as HTTP demands"),
        }
    }

    fn chunked(&self, query: Query<'_>, timer: &Timer, turn: &Turn) -> Result<Response<Body>, String> {
        let count = query.number("chunks", 10, 0..=MOST_CHUNKS)?;
        let bytes = query.number("bytes", 1024, 1..=PAGE_BYTES)?;
        let interval = Nanos::from_millis(query.number("delay_ms", 0, 0..=MOST_MS)?);
        let chunk = self.page.bytes().slice(..bytes as usize);
        Ok(of_bytes(Body::made(Chunks::new(timer, chunk, count, turn.now(), interval))))
    }

    async fn drip(&self, query: Query<'_>, timer: &Timer, turn: &Turn) -> Result<Response<Body>, String> {
        let length = Nanos::from_millis(query.number("duration_ms", 2000, 0..=MOST_MS)?);
        let bytes = query.number("bytes", 10, 1..=MOST_BYTES)?;
        let delay = Nanos::from_millis(query.number("delay_ms", 0, 0..=MOST_MS)?);
        let status = query.word("code").map_or(Ok(StatusCode::OK), |code| status("code", &code))?;
        let begin = turn.now() + delay;
        turn.sleep_until(begin).await;
        if !has_body(status) {
            return Ok(empty(status));
        }
        let mut answer = of_bytes(Body::made(Drip::new(timer, self.page.bytes(), bytes, begin, length)));
        *answer.status_mut() = status;
        Ok(answer)
    }

    /// In HTTP/2 a connection is not one answer's to close: there it is the stream that breaks.
    fn close(&self, query: Query<'_>, version: Version) -> Result<Reply, String> {
        let bytes = query.number("bytes", 1024, 2..=MOST_CUT)?;
        let body = match query.word("at").as_deref() {
            None | Some("end") => Body::from(self.page.bytes().slice(..bytes as usize)),
            Some("middle") => Body::made(Cut::new(self.page.bytes(), bytes)),
            Some("start") => return Ok(Reply::Reset),
            Some(_) => return Err("at: expected start, middle or end".to_owned()),
        };
        let mut answer = of_bytes(body);
        if version < Version::HTTP_2 {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(answer.into())
    }

    fn status(&self, text: &str) -> Result<Response<Body>, String> {
        let choice = Choice::read(text)?;
        let roll = || choice.pick(self.dice.unit_at(self.rolls.fetch_add(1, Ordering::Relaxed)));
        let status = choice.only().unwrap_or_else(roll);
        let mut answer = match has_body(status) {
            true => answer(status, TEXT, status.canonical_reason().unwrap_or("Unknown")),
            false => empty(status),
        };
        if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
        }
        Ok(answer)
    }
}

/// The body that came, while it comes.
fn echo(headers: &HeaderMap, body: Incoming) -> Response<Body> {
    let mut answer = Response::new(Body::from(RequestBody(body)));
    if let Some(kind) = headers.get(CONTENT_TYPE) {
        answer.headers_mut().insert(CONTENT_TYPE, kind.clone());
    }
    answer
}

/// The headers by name; one that came several times is a list.
fn headers(headers: &HeaderMap) -> Value {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let values = |name| match headers.get_all(name).iter().map(text).collect::<Vec<_>>() {
        one if one.len() == 1 => json!(one[0]),
        several => json!(several),
    };
    Value::Object(headers.keys().map(|name| (name.to_string(), values(name))).collect::<Map<_, _>>())
}

fn of_bytes(body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, BYTES);
    answer
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}

/// Whether an answer of this status carries a body (RFC 9110, 15).
fn has_body(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
}
