//! The HTTP client for upstreams: real sockets, and a scripted peer.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the test's clock is not the client's")]

mod answers;
mod begun;
mod cancelled;
mod connections;
mod http2;
mod stalls;
mod steps;
mod uploads;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use http_body_util::BodyExt;
use tokio::task::LocalSet;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::timer::Timer;
use weir_net::client::{
    Client, ConnectOptions, IncomingBody, Options, Origin, OutgoingBody, OutgoingRequest, SendError, WireOptions,
};
use weir_net::target::Target;
use weir_serve::httpbin;
use weir_server::RunningServer;
use weir_testing::Server;

/// Runs a test on an event loop of its own.
fn run(test: impl AsyncFnOnce(Client)) {
    run_with(Options::default(), test);
}

fn run_with(options: Options, test: impl AsyncFnOnce(Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let (timer, rings) = Timer::new(Clock::starting_in(Nanos::ZERO)).unwrap();
        tokio::task::spawn_local(rings);
        let test = tokio::time::timeout(Duration::from_secs(120), test(Client::new(timer, options)));
        test.await.unwrap();
    });
}

fn origin(url: &str, reach: &ConnectOptions) -> Arc<Origin> {
    Arc::new(Origin::new(&Target::parse(url).unwrap(), reach).unwrap())
}

fn to(server: &Server) -> Arc<Origin> {
    origin(&server.url("/"), &ConnectOptions::default())
}

async fn send(
    client: &Client,
    to: &Arc<Origin>,
    method: Method,
    body: OutgoingBody,
) -> Result<Response<IncomingBody>, SendError> {
    send_to_path(client, to, (method, "/x?y"), body).await
}

async fn send_to_path(
    client: &Client,
    to: &Arc<Origin>,
    (method, target): (Method, &str),
    body: OutgoingBody,
) -> Result<Response<IncomingBody>, SendError> {
    let headers = HeaderMap::new();
    let request = OutgoingRequest {
        method: &method,
        target,
        headers: &headers,
        extra_headers: &[],
        body,
        upgrade: false,
        wire: WireOptions::default(),
    };
    client.send(to, request).await
}

async fn whole(mut answer: Response<IncomingBody>) -> Result<(u16, Bytes), SendError> {
    let status = answer.status().as_u16();
    let bytes = match answer.body_mut().take_complete() {
        Some(bytes) => bytes,
        None => answer.into_body().collect().await?.to_bytes(),
    };
    Ok((status, bytes))
}

/// Response of `/echo` to a body.
async fn echoed(client: &Client, to: &Arc<Origin>, body: Bytes) -> (u16, Bytes) {
    let answer = send_to_path(client, to, (Method::POST, "/echo"), OutgoingBody::Bytes(body)).await.unwrap();
    whole(answer).await.unwrap()
}

async fn get(client: &Client, to: &Arc<Origin>) -> Result<(u16, Bytes), SendError> {
    whole(send(client, to, Method::GET, OutgoingBody::Empty).await?).await
}

/// The test server with bodies of all kinds.
fn httpbin() -> RunningServer {
    let service = httpbin::Service::new(httpbin::Options { seed: 0, max_body_bytes: 64 << 20 }).unwrap();
    weir_server::start(service, &weir_server::Options::default()).unwrap()
}

fn hello() -> (u16, Bytes) {
    (200, "hello".into())
}

/// Waits for a condition while the event loop runs.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "timed out waiting for {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Bytes behind a response may come a little later.
async fn until_nothing_is_open(client: &Client) {
    until("the close", || {
        client.sweep(Nanos::ZERO);
        client.counts().open == 0
    })
    .await;
}
