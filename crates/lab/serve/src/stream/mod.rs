//! `weir serve stream`: server-sent events, lines of JSON and raw chunks with known gaps, and with faults on purpose.
//!
//! A response is a [`StreamScript`], a function of seed and request number; this module plays it on the event loop's
//! exact timer, and records when each event was really written.

mod counts;
mod event_text;
mod options;
mod play_end;
mod play_record;
mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use prometheus_client::registry::Registry;

use self::counts::{PlayedStreams, StreamCollector};
pub use self::options::{LineEnd, Options, SseOptions, StreamFaults};
use self::play_end::PlayEnd;
use self::play_record::{PlayRecord, PlayStart};
pub use self::script::{StreamFault, StreamScript, StreamWrite};
use crate::record_log::RecordLog;
use crate::responses::{
    CONTENT_TYPE_JSON, CONTENT_TYPE_JSON_LINES, bad_request, method_not_allowed, not_found, payload_too_large, response,
};
use crate::written_body::written;
use weir_events::StreamFormat;
use weir_server::{self as server, ReadBodyError, RequestBody, RequestContext, ResponseBody, ServiceReply};

/// Service with `/sse`, `/ndjson`, `/chunks`, `/record` and `/stats`.
#[derive(Debug)]
pub struct Service {
    shared: Arc<SharedPlays>,
}

/// State shared by all responses.
#[derive(Debug)]
struct SharedPlays {
    options: Options,
    counts: PlayedStreams,
    log: RecordLog,
    /// Number of the next request, over all event loops; indexes the random draws.
    number: AtomicU64,
}

/// Maximum body of a request, in bytes.
const MAX_BODY_BYTES: usize = 1 << 20;

impl Service {
    /// Service with these options.
    ///
    /// # Errors
    /// The file of records cannot be created, in one line.
    pub fn new(options: Options) -> Result<Self, String> {
        let log = RecordLog::new(options.record.as_deref())?;
        let shared = SharedPlays { options, counts: PlayedStreams::default(), log, number: AtomicU64::new(0) };
        Ok(Self { shared: Arc::new(shared) })
    }

    fn play(&self, format: StreamFormat, events: u64, context: &RequestContext) -> ServiceReply {
        let shared = Arc::clone(&self.shared);
        let k = shared.number.fetch_add(1, Ordering::Relaxed);
        let (timer, began) = (context.timer().clone(), context.began());
        let body = written(move |writer| async move {
            let script = StreamScript::new(&shared.options, format, events, k);
            let fault = script.fault();
            let start = PlayStart { number: k, began_ns: timer.clock().monotonic_at(began).0 };
            let mut record = PlayRecord::new(&shared.counts, &shared.log, start, format, fault);
            for write in script {
                timer.sleep_until(began + write.due).await;
                writer.write(write.bytes);
                record.add(write.completes, write.due, timer.now() - began);
                writer.taken().await;
            }
            match fault {
                Some((StreamFault::Cut, _)) => {
                    record.end(PlayEnd::Cut);
                    Err("cut on purpose".into())
                }
                Some((StreamFault::Half, _)) => {
                    record.end(PlayEnd::Half);
                    Ok(())
                }
                _ => {
                    record.end(PlayEnd::Complete);
                    Ok(())
                }
            }
        });
        stream_response(format, body).into()
    }
}

/// 200 with the content type of a format.
fn stream_response(format: StreamFormat, body: ResponseBody) -> Response<ResponseBody> {
    let content_type = match format {
        StreamFormat::Sse => HeaderValue::from_static("text/event-stream"),
        StreamFormat::JsonLines => CONTENT_TYPE_JSON_LINES,
        StreamFormat::Chunks | StreamFormat::Grpc => HeaderValue::from_static("application/octet-stream"),
        StreamFormat::Json => CONTENT_TYPE_JSON,
    };
    let mut reply = Response::new(body);
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    reply
}

/// Number of events that a query asks for; the default without one.
///
/// # Errors
/// An invalid number, with the valid ones.
fn events(query: Option<&str>, default: u64) -> Result<u64, String> {
    let value = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).find(|(name, _)| name == "events");
    let Some((_, text)) = value else { return Ok(default) };
    let number = text.parse().ok().filter(|number| *number <= Options::MAX_EVENTS);
    number.ok_or_else(|| format!("events: a whole number from 0 to {}", Options::MAX_EVENTS))
}

impl server::StatelessService for Service {
    async fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> ServiceReply {
        let (head, body) = request.into_parts();
        let format = match head.uri.path() {
            "/sse" => StreamFormat::Sse,
            "/ndjson" => StreamFormat::JsonLines,
            "/chunks" => StreamFormat::Chunks,
            "/record" | "/stats" if head.method != Method::GET => return method_not_allowed("GET").into(),
            "/record" => return response(StatusCode::OK, CONTENT_TYPE_JSON_LINES, self.shared.log.recent()).into(),
            "/stats" => return response(StatusCode::OK, CONTENT_TYPE_JSON, self.shared.counts.json()).into(),
            _ => return not_found().into(),
        };
        if !matches!(head.method, Method::GET | Method::POST) {
            return method_not_allowed("GET, POST").into();
        }
        match context.read_body(body, MAX_BODY_BYTES).await {
            Ok(_) => {}
            Err(ReadBodyError::TooLong) => return payload_too_large(MAX_BODY_BYTES).into(),
            Err(ReadBodyError::Broken) => return bad_request("a body that ends early").into(),
        }
        match events(head.uri.query(), self.shared.options.events) {
            Ok(events) => self.play(format, events, context),
            Err(reason) => bad_request(reason).into(),
        }
    }

    fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(StreamCollector(Arc::clone(&self.shared))));
    }
}
