//! Requests of the page of `weir ui`.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::access::{WebRole, new_token};
use super::assets::ui_asset;
use super::event_body::EventBody;
use super::event_relay::{change, relay};
use super::live_service::{MAX_CHANGE_BYTES, MAX_UNREAD_PARTS};
use super::page_service::{PageReplies, PageRequest, StreamCount};
use super::ui_backend::{DocumentRequest, RunForm, RunQuery, UiBackend};
use super::ui_shared::UiShared;
use super::upload_folder::{MAX_UPLOAD_BYTES, UploadFolder};
use super::web_reply::{OpenStream, access_headers, admit, document, error, json_reply, query_value, reply};
use weir_machine::executor::spawn_task;
use weir_machine::lock::lock;
use weir_server::{RequestBody, RequestContext, ResponseBody};

/// Service of the page.
#[derive(Debug)]
pub(crate) struct UiService(pub(crate) Arc<UiShared>);

/// Maximum size of a form, in bytes; a body may be in it.
const MAX_FORM_BYTES: usize = 1 << 20;
/// Folder of reports.
const DOCUMENTS: &str = "/documents/";

// Its thread has the priority of any process: runs have that of the thread that starts them.
impl PageReplies for UiService {
    async fn reply(&self, PageRequest { request, streams, context }: PageRequest<'_>) -> Response<ResponseBody> {
        if let Some(reply) = self.shown_document(&request) {
            return reply;
        }
        let role = match admit(&self.0.rules, &request, ui_asset) {
            Ok(role) => role,
            Err(reply) => return *reply,
        };
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        match (&method, path.as_str()) {
            (&Method::GET, "/api/events") => self.events(streams, role, request.uri().query()),
            (&Method::GET, "/api/options") => {
                let value = json!({ "may_start": role == WebRole::Operator, "groups": self.0.backend.options() });
                json_reply(StatusCode::OK, &value)
            }
            // A report is read only; so spectators may open it, and the request has the numbers in its body.
            (&Method::POST, "/api/runs") => {
                self.with_json(request, context, |backend, query: RunQuery| backend.runs(&query)).await
            }
            (&Method::POST, "/api/trends") => {
                self.with_json(request, context, |backend, query: RunQuery| backend.trends(&query)).await
            }
            (&Method::POST, "/api/documents") => self.document(request, context).await,
            (
                &Method::POST,
                "/api/change" | "/api/start" | "/api/end" | "/api/preview" | "/api/form" | "/api/files",
            ) if role == WebRole::Spectator => error(403, "this address is read-only; runs are started at another"),
            (&Method::POST, "/api/change") => self.change(request, context).await,
            (&Method::POST, "/api/start") => self.start(request, context).await,
            (&Method::POST, "/api/end") => {
                self.0.runs.end();
                json_reply(StatusCode::OK, &json!({}))
            }
            (&Method::POST, "/api/preview") => {
                self.with_json(request, context, |backend, form: RunForm| backend.preview(&form)).await
            }
            (&Method::POST, "/api/form") => {
                self.with_json(request, context, |backend, run: i64| backend.form_of(run)).await
            }
            (&Method::POST, "/api/files") => self.upload(request, context).await,
            (_, path) if path.starts_with("/api/") => error(405, "the path does not allow this method"),
            _ => error(404, "no such path"),
        }
    }
}

impl UiService {
    /// A report for a frame, which sends no token: its address is the secret.
    fn shown_document(&self, request: &Request<RequestBody>) -> Option<Response<ResponseBody>> {
        let name = request.uri().path().strip_prefix(DOCUMENTS)?;
        if let Err(denial) = self.0.rules.check_site(access_headers(request.headers())) {
            let (status, text) = denial.response();
            return Some(error(status, text));
        }
        let html = lock(&self.0.documents).get(name).map(str::to_owned);
        Some(html.map_or_else(|| error(404, "this report is no longer in memory; open it again"), document))
    }

    fn events(&self, streams: &StreamCount, role: WebRole, query: Option<&str>) -> Response<ResponseBody> {
        let Some(open) = OpenStream::new(streams) else { return error(503, "too many pages are open") };
        let (parts, body) = mpsc::channel(MAX_UNREAD_PARTS);
        let (runs, query) = (Arc::clone(&self.0.runs), query.map(str::to_owned));
        spawn_task(async move {
            let _open = open;
            relay(runs, role, query, parts).await;
        });
        reply(StatusCode::OK, "text/event-stream", ResponseBody::from_stream(EventBody(body)))
    }

    async fn change(&self, request: Request<RequestBody>, context: &RequestContext) -> Response<ResponseBody> {
        let Ok(body) = context.read_body(request.into_body(), MAX_CHANGE_BYTES).await else {
            return error(413, "a change must fit on one line");
        };
        let state = self.0.runs.state();
        let Some(page) = state.page else {
            let why = if state.is_running { "the load has not started yet" } else { "no run is going on" };
            return error(409, why);
        };
        match change(&page, body).await {
            Ok((status, text)) => reply(status, "application/json", text.into()),
            Err(_) => error(409, "the run is over"),
        }
    }

    async fn start(&self, request: Request<RequestBody>, context: &RequestContext) -> Response<ResponseBody> {
        let runs = Arc::clone(&self.0.runs);
        self.with_json(request, context, move |backend, form: RunForm| {
            let command = backend.command(&form)?;
            runs.start(command, backend).map(|number| json!({ "number": number }))
        })
        .await
    }

    async fn document(&self, request: Request<RequestBody>, context: &RequestContext) -> Response<ResponseBody> {
        let shared = Arc::clone(&self.0);
        self.with_json(request, context, move |backend, document_request: DocumentRequest| {
            let html = backend.document(&document_request)?;
            let name = new_token().ok_or("the system has no random numbers")?;
            let path = format!("{DOCUMENTS}{name}");
            lock(&shared.documents).add(name, html);
            Ok(json!({ "path": path }))
        })
        .await
    }

    async fn upload(&self, request: Request<RequestBody>, context: &RequestContext) -> Response<ResponseBody> {
        let name = query_value(request.uri().query(), "name").unwrap_or_default().to_owned();
        let Ok(body) = context.read_body(request.into_body(), MAX_UPLOAD_BYTES).await else {
            return error(413, &format!("a file has {} MiB at most", MAX_UPLOAD_BYTES >> 20));
        };
        let folder = UploadFolder(self.0.uploads.0.clone());
        in_background(move || folder.save(&name, &body).map(|path| json!({ "path": path.display().to_string() }))).await
    }

    /// Reads a request as JSON, and responds with what the command line makes of it.
    async fn with_json<T: DeserializeOwned + Send + 'static>(
        &self,
        request: Request<RequestBody>,
        context: &RequestContext,
        act: impl FnOnce(&Arc<dyn UiBackend>, T) -> Result<Value, String> + Send + 'static,
    ) -> Response<ResponseBody> {
        let Ok(body) = context.read_body(request.into_body(), MAX_FORM_BYTES).await else {
            return error(
                413,
                &format!("a form has {} MiB at most; write a longer body as a file", MAX_FORM_BYTES >> 20),
            );
        };
        let read: T = match serde_json::from_slice(&body) {
            Ok(read) => read,
            Err(why) => return error(400, &format!("invalid JSON: {why}")),
        };
        let backend = Arc::clone(&self.0.backend);
        in_background(move || act(&backend, read)).await
    }
}

/// Work that takes time, on a thread of its own: the events of other pages go on meanwhile.
async fn in_background(work: impl FnOnce() -> Result<Value, String> + Send + 'static) -> Response<ResponseBody> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => json_reply(StatusCode::OK, &value),
        Ok(Err(why)) => error(422, &why),
        Err(_) => error(500, "weir has failed; the reason is on its stderr"),
    }
}
