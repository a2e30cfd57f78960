//! Events and changes of a run, passed on between its own page and those of `weir ui`.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, HOST};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::access::WebRole;
use super::child_run::{ChildPage, ChildRuns};
use super::event_body::event;
use weir_machine::executor::spawn_task;

/// Maximum size of the response to a change.
const MAX_CHANGE_RESPONSE_BYTES: usize = 64 << 10;

/// Sends a request to the page of a run.
async fn ask(
    page: &ChildPage,
    role: WebRole,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
    let socket = TcpStream::connect(&page.address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    // It ends with the response, or with its reader.
    spawn_task(async { drop(connection.await) });
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, &page.address)
        .header(AUTHORIZATION, format!("Bearer {}", page.token(role)))
        .body(Full::new(body))?;
    Ok(sender.send_request(request).await?)
}

/// Changes a run: status and text of the response of its page.
///
/// # Errors
/// The run is not there.
pub(crate) async fn change(page: &ChildPage, body: Bytes) -> io::Result<(StatusCode, Bytes)> {
    let sent = ask(page, WebRole::Operator, Method::POST, "/api/change", body).await.map_err(io::Error::other)?;
    let status = sent.status();
    let text = Limited::new(sent.into_body(), MAX_CHANGE_RESPONSE_BYTES).collect().await.map_err(io::Error::other)?;
    Ok((status, text.to_bytes()))
}

/// Sends the state of the last run whenever it changes, and the events of each run, until the page has gone. `query` is
/// what the page has had, of a run that may be over.
pub(crate) async fn relay(runs: Arc<ChildRuns>, role: WebRole, query: Option<String>, parts: mpsc::Sender<Bytes>) {
    let mut states = runs.subscribe();
    let path = query.map_or_else(|| "/api/events".to_owned(), |query| format!("/api/events?{query}"));
    let mut relayed = 0;
    loop {
        let state = states.borrow_and_update().clone();
        if parts.send(event("run", &state.json())).await.is_err() {
            return;
        }
        if let Some(page) = state.page.filter(|_| state.number != relayed) {
            relayed = state.number;
            match relay_run(&page, role, &path, &parts).await {
                RelayedEvents::Whole => {}
                // The run has ended, or is about to.
                RelayedEvents::Nothing => relayed = 0,
                // A page that has lost a run comes again, and gets what it has missed.
                RelayedEvents::Part if runs.state().is_running => return,
                RelayedEvents::Part => {}
            }
        }
        tokio::select! {
            changed = states.changed() => if changed.is_err() { return },
            () = parts.closed() => return,
        }
    }
}

/// Extent to which the events of a run were passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelayedEvents {
    Nothing,
    /// Not its end.
    Part,
    /// All, or as much as the page has waited for.
    Whole,
}

/// Passes the events of a run on. Events that are not whole are left out.
async fn relay_run(page: &ChildPage, role: WebRole, path: &str, parts: &mpsc::Sender<Bytes>) -> RelayedEvents {
    let Ok(response) = ask(page, role, Method::GET, path, Bytes::new()).await else { return RelayedEvents::Nothing };
    if response.status() != StatusCode::OK {
        return RelayedEvents::Nothing;
    }
    let mut body = response.into_body();
    let (mut unsent, mut relayed) = (BytesMut::new(), RelayedEvents::Nothing);
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = parts.closed() => return RelayedEvents::Whole,
        };
        let Some(Ok(frame)) = frame else { return relayed };
        let Ok(data) = frame.into_data() else { continue };
        // Only what is new, and the line break before it, may have the end of an event.
        let from = unsent.len().saturating_sub(1);
        unsent.extend_from_slice(&data);
        let Some(at) = unsent[from..].windows(2).rposition(|pair| pair == b"\n\n") else { continue };
        let whole = unsent.split_to(from + at + 2).freeze();
        let has_end = whole.starts_with(b"event: end\n") || whole.windows(12).any(|part| part == b"\nevent: end\n");
        relayed = if has_end { RelayedEvents::Whole } else { RelayedEvents::Part };
        if parts.send(whole).await.is_err() {
            return RelayedEvents::Whole;
        }
    }
}
