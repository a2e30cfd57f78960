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

use self::book::{Book, Slot};
pub use self::headers::Headers;
pub use self::options::{Options, Way, keys};
use self::parameters::Parameters;
use super::answers::{JSON, TEXT, answer, bad_request, not_allowed, not_found};
use crate::decide::account::{self, Judgement};
use crate::decide::dice::Dice;
use crate::server::{self, Body, Reply, Timer, Turn, Unread};

/// The service.
#[derive(Debug)]
pub struct Service {
    options: Options,
    book: Arc<Book>,
    /// Requests so far: each has its own draws of the dice.
    asked: AtomicU64,
    way_in: Dice,
    way_out: Dice,
}

/// The longest form that is read.
const MOST_FORM: usize = 64 * 1024;

impl Service {
    /// An exchange that nobody has asked yet.
    ///
    /// # Errors
    /// Which option is not possible, in one line.
    pub fn new(options: Options) -> Result<Self, String> {
        let book = Arc::new(Book::new(&options)?);
        let (way_in, way_out) = (Dice::new(options.seed, 21), Dice::new(options.seed, 22));
        Ok(Self { options, book, asked: AtomicU64::new(0), way_in, way_out })
    }

    async fn routed(&self, request: Request<Incoming>, turn: &Turn) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if path != "/api/request" && path != "/stats" {
            return not_found();
        }
        if head.method != Method::GET && head.method != Method::HEAD {
            return not_allowed("GET, HEAD");
        }
        if path == "/stats" {
            return answer(StatusCode::OK, JSON, self.book.stats(self.book.now(turn)));
        }
        match form(&head, body, turn).await {
            Ok(form) => self.judged(&Parameters::new(head.uri.query().unwrap_or_default(), &form), turn).await,
            Err(Unread::TooLong) => answer(StatusCode::PAYLOAD_TOO_LARGE, TEXT, "a form of more than 64 KiB"),
            Err(Unread::Broken) => bad_request("a form that ends early"),
        }
    }

    /// `/api/request`.
    async fn judged(&self, asked: &Parameters<'_>, turn: &Turn) -> Response<Body> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let (answer, _until_answered) = self.decided(number, asked, turn).await;
        turn.sleep(self.options.way_out.at(&self.way_out, number)).await;
        answer
    }

    async fn decided(&self, number: u64, asked: &Parameters<'_>, turn: &Turn) -> (Response<Body>, Option<Slot<'_>>) {
        let Some(account) = self.book.account(asked.get("api_key").as_deref()) else {
            return (answers::INVALID_KEY.answer(), None);
        };
        turn.sleep(self.options.way_in.at(&self.way_in, number)).await;
        let Some(weight) = self.weight(asked) else {
            self.book.invalid_weight.fetch_add(1, Ordering::Relaxed);
            return (answers::INVALID_WEIGHT.answer(), None);
        };
        let nonce = asked.get("nonce").and_then(|text| account::nonce(&text));
        let judged = self.book.judge(account, (weight, nonce), self.options.headers.show_standings(), turn);
        let mut answer = match judged.judgement {
            Judgement::Blocked => answers::BLOCKED.answer(),
            Judgement::Exceeded(_) => answers::EXCEEDED.answer(),
            Judgement::InvalidNonce => answers::INVALID_NONCE.answer(),
            Judgement::Accepted => answers::accepted(asked.get("req_id").as_deref()),
        };
        self.options.headers.add_to(answer.headers_mut(), &judged);
        (answer, judged.slot)
    }

    /// What the request weighs; `None` if what it says is no weight.
    fn weight(&self, asked: &Parameters<'_>) -> Option<u64> {
        match self.options.weight_by.as_deref().and_then(|name| asked.get(name)) {
            Some(text) => text.parse().ok().filter(|weight| *weight > 0),
            None => Some(1),
        }
    }
}

/// A request's form; empty if it has none.
async fn form(head: &Parts, body: Incoming, turn: &Turn) -> Result<Bytes, Unread> {
    let kind = head.headers.get(http::header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    if !kind.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
        return Ok(Bytes::new());
    }
    turn.read(body, MOST_FORM).await
}

impl server::Service for Service {
    type Local = ();

    fn settle(&self, _: &Timer) -> io::Result<()> {
        Ok(())
    }

    async fn answer(&self, (): &(), request: Request<Incoming>, turn: &Turn) -> Reply {
        let version = request.version();
        let mut answer = self.routed(request, turn).await;
        if !self.options.keep_alive && version < Version::HTTP_2 {
            *answer.version_mut() = Version::HTTP_10;
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer.into()
    }

    fn count(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Arc::clone(&self.book)));
    }
}
