//! Requests of the page: its files, the stream of events, and changes of the load.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde_json::json;
use tokio::sync::mpsc;

use super::access::WebRole;
use super::assets::asset;
use super::event_body::{EventBody, event};
use super::live_shared::LiveShared;
use super::page_service::{PageReplies, PageRequest, StreamCount};
use super::web_reply::{OpenStream, admit, error, json_reply, reply, since};
use weir_machine::executor::spawn_task;
use weir_machine::lock::lock;
use weir_pace::live_load::LoadChange;
use weir_server::{RequestBody, RequestContext, ResponseBody};

/// Service of the page.
#[derive(Debug)]
pub(crate) struct LiveService(pub(crate) Arc<LiveShared>);

/// Maximum size of a change, in bytes.
pub(crate) const MAX_CHANGE_BYTES: usize = 1024;
/// Number of parts that a slow page may lag behind before it gets fewer, larger ones.
pub(crate) const MAX_UNREAD_PARTS: usize = 4;
/// Decrease of the priority of the thread, so that it takes no time from those that generate the load.
const NICENESS: i32 = 10;

impl PageReplies for LiveService {
    fn init_thread(&self) {
        // A thread's own, on Linux. Without it the page works as well.
        let _ = rustix::process::nice(NICENESS);
    }

    async fn reply(&self, PageRequest { request, streams, context }: PageRequest<'_>) -> Response<ResponseBody> {
        let role = match admit(&self.0.rules, &request, asset) {
            Ok(role) => role,
            Err(reply) => return *reply,
        };
        let path = request.uri().path();
        match (request.method(), path) {
            (&Method::GET, "/api/events") => self.events(streams, role, since(request.uri().query(), &self.0.run)),
            (&Method::POST, "/api/change") if role == WebRole::Operator => self.change(request, context).await,
            (&Method::POST, "/api/change") => error(403, "this address is read-only; the load is changed at another"),
            (_, "/api/events" | "/api/change") => error(405, "the path does not allow this method"),
            _ => error(404, "no such path"),
        }
    }
}

impl LiveService {
    fn events(&self, streams: &StreamCount, role: WebRole, since: Option<u64>) -> Response<ResponseBody> {
        let Some(open) = OpenStream::new(streams) else { return error(503, "too many pages are open") };
        let (parts, body) = mpsc::channel(MAX_UNREAD_PARTS);
        let shared = Arc::clone(&self.0);
        spawn_task(async move {
            let _open = open;
            // The page has gone.
            let _ = send_events(&shared, role, since, &parts).await;
        });
        reply(StatusCode::OK, "text/event-stream", ResponseBody::from_stream(EventBody(body)))
    }

    async fn change(&self, request: Request<RequestBody>, context: &RequestContext) -> Response<ResponseBody> {
        let Ok(body) = context.read_body(request.into_body(), MAX_CHANGE_BYTES).await else {
            return error(413, "a change must fit on one line");
        };
        let Ok(change) = serde_json::from_slice::<LoadChange>(&body) else {
            return error(400, r#"invalid change; write {"rate": 200}, {"users": 50}, "pause", "resume" or "stop""#);
        };
        match self.0.control.change(change) {
            Ok(at) => {
                self.0.wake();
                json_reply(StatusCode::OK, &json!({ "at_s": at.as_secs_f64() }))
            }
            Err(why) => error(409, &why.to_string()),
        }
    }
}

/// Sends what a page has missed, and then what comes, until the run is over or the page has gone.
async fn send_events(
    shared: &LiveShared,
    role: WebRole,
    mut since: Option<u64>,
    parts: &mpsc::Sender<Bytes>,
) -> Result<(), mpsc::error::SendError<Bytes>> {
    let mut wakes = shared.wakes.subscribe();
    // Counted before the greeting: a step between the two is sent twice, and not left out.
    let mut step_count = lock(&shared.steps).len();
    parts.send(event("hello", &shared.hello(role))).await?;
    let mut version = None;
    loop {
        wakes.borrow_and_update();
        // Before the last look, so that nothing that came before the end is left out.
        let end = shared.end();
        if let Some(steps) = shared.more_steps(&mut step_count) {
            parts.send(event("steps", &steps)).await?;
        }
        if let Some(missed) = shared.missed(&mut since) {
            parts.send(event("bins", &missed)).await?;
        }
        let now = shared.control.version() + shared.ticks.load(Ordering::Relaxed);
        if version.replace(now) != Some(now) || end.is_some() {
            parts.send(event("load", &shared.load())).await?;
        }
        if let Some(end) = end {
            return parts.send(event("end", &end)).await;
        }
        if wakes.changed().await.is_err() {
            return Ok(());
        }
    }
}
