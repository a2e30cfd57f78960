//! Requests of the page: its files, the stream of events, and changes of the load.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;
use tokio::sync::mpsc;

use super::access::{AccessHeaders, WebRole};
use super::assets::{PageAsset, asset};
use super::event_body::{EventBody, event};
use super::live_shared::LiveShared;
use weir_decide::load::live_load::LoadChange;
use weir_server::{RequestContext, ResponseBody, Service, ServiceReply, Timer};

/// Service of the page.
#[derive(Debug)]
pub(crate) struct LiveService(pub(crate) Arc<LiveShared>);

/// Maximum number of open streams of events.
const MAX_STREAMS: usize = 200;
/// Maximum size of a change, in bytes.
const MAX_CHANGE_BYTES: usize = 1024;
/// Number of parts that a slow page may lag behind before it gets fewer, larger ones.
const MAX_UNREAD_PARTS: usize = 4;
/// Decrease of the priority of the thread, so that it takes no time from those that generate the load.
const NICENESS: i32 = 10;

/// What a page may do: no script, style or connection but those of this server, and no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

impl Service for LiveService {
    type Local = Rc<Cell<usize>>;

    fn init_thread(&self, _: &Timer) -> io::Result<Self::Local> {
        // A thread's own, on Linux. Without it the page works as well.
        let _ = rustix::process::nice(NICENESS);
        Ok(Rc::default())
    }

    async fn handle(&self, streams: &Self::Local, request: Request<Incoming>, turn: &RequestContext) -> ServiceReply {
        self.reply(streams, request, turn).await.into()
    }
}

impl LiveService {
    async fn reply(
        &self,
        streams: &Rc<Cell<usize>>,
        request: Request<Incoming>,
        turn: &RequestContext,
    ) -> Response<ResponseBody> {
        let headers = access_headers(request.headers());
        if let Err(denial) = self.0.rules.check_site(headers) {
            let (status, text) = denial.response();
            return error(status, text);
        }
        let path = request.uri().path();
        if let Some(PageAsset { content_type, text }) = asset(path) {
            return match *request.method() {
                Method::GET => reply(StatusCode::OK, content_type, Bytes::from_static(text.as_bytes()).into()),
                _ => error(405, "only GET"),
            };
        }
        let role = match self.0.rules.role(headers) {
            Ok(role) => role,
            Err(denial) => {
                let (status, text) = denial.response();
                return error(status, text);
            }
        };
        match (request.method(), path) {
            (&Method::GET, "/api/events") => self.events(streams, role, since(request.uri().query())),
            (&Method::POST, "/api/change") if role == WebRole::Operator => self.change(request, turn).await,
            (&Method::POST, "/api/change") => error(403, "this address is for reading; the load is changed by another"),
            (_, "/api/events" | "/api/change") => error(405, "the method does not go with the path"),
            _ => error(404, "no such path"),
        }
    }

    fn events(&self, streams: &Rc<Cell<usize>>, role: WebRole, since: Option<u64>) -> Response<ResponseBody> {
        if streams.get() >= MAX_STREAMS {
            return error(503, "too many pages are open");
        }
        let (parts, body) = mpsc::channel(MAX_UNREAD_PARTS);
        let (shared, open) = (Arc::clone(&self.0), OpenStream::new(streams));
        tokio::task::spawn_local(async move {
            let _open = open;
            // The page has gone.
            let _ = send_events(&shared, role, since, &parts).await;
        });
        reply(StatusCode::OK, "text/event-stream", ResponseBody::from_stream(EventBody(body)))
    }

    async fn change(&self, request: Request<Incoming>, turn: &RequestContext) -> Response<ResponseBody> {
        let Ok(body) = turn.read_body(request.into_body(), MAX_CHANGE_BYTES).await else {
            return error(413, "a change is no longer than a line");
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
    parts.send(event("hello", &shared.hello(role))).await?;
    let mut version = None;
    loop {
        wakes.borrow_and_update();
        // Before the last look, so that nothing that came before the end is left out.
        let end = shared.end();
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

/// Stream of events that is open.
struct OpenStream(Rc<Cell<usize>>);

impl OpenStream {
    fn new(streams: &Rc<Cell<usize>>) -> Self {
        streams.set(streams.get() + 1);
        Self(Rc::clone(streams))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

fn access_headers(headers: &HeaderMap) -> AccessHeaders<'_> {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    AccessHeaders {
        host: text(&header::HOST),
        origin: text(&header::ORIGIN),
        fetch_site: text(&HeaderName::from_static("sec-fetch-site")),
        authorization: text(&header::AUTHORIZATION),
    }
}

/// Number of the first interval that a page lacks.
fn since(query: Option<&str>) -> Option<u64> {
    query?.split('&').find_map(|pair| pair.strip_prefix("since="))?.parse().ok()
}

fn error(status: u16, text: &str) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    json_reply(status, &json!({ "error": text }))
}

fn json_reply(status: StatusCode, value: &serde_json::Value) -> Response<ResponseBody> {
    reply(status, "application/json", value.to_string().into())
}

fn reply(status: StatusCode, content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    let fields = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in fields {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::since;

    #[test]
    fn what_a_page_has_is_in_the_query() {
        assert_eq!([since(Some("since=17")), since(Some("a=b&since=0"))], [Some(17), Some(0)]);
        assert_eq!([since(None), since(Some("")), since(Some("since=")), since(Some("since=-1"))], [None; 4]);
    }
}
