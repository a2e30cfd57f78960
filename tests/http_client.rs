//! Requests to upstreams over HTTP/1.1: real sockets, and a scripted peer.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::BodyExt;
use support::{Reply, Server};
use tokio::task::LocalSet;
use weir::decide::Nanos;
use weir::decide::policy::Kind;
use weir::http::client::{Client, Counts, Incoming, Options, Origin, OutBody, Outgoing, Reach, SendError};
use weir::http::target::Target;
use weir::machine::clock::Clock;
use weir::machine::timer::Timer;

use std::sync::Arc;

/// Runs a test on an event loop of its own.
fn run(test: impl AsyncFnOnce(Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let (timer, rings) = Timer::new(Clock::starting_in(Nanos::ZERO)).unwrap();
        tokio::task::spawn_local(rings);
        test(Client::new(timer, Options::default())).await;
    });
}

fn origin(url: &str, reach: &Reach) -> Arc<Origin> {
    Arc::new(Origin::new(&Target::parse(url).unwrap(), reach).unwrap())
}

fn to(server: &Server) -> Arc<Origin> {
    origin(&server.url("/"), &Reach::default())
}

async fn send(
    client: &Client,
    to: &Arc<Origin>,
    method: Method,
    body: OutBody,
) -> Result<Response<Incoming>, SendError> {
    let headers = HeaderMap::new();
    let request = Outgoing { method: &method, target: "/x?y", headers: &headers, more: &[], body, upgrade: false };
    client.send(to, request).await
}

async fn get(client: &Client, to: &Arc<Origin>) -> Result<(u16, Bytes), SendError> {
    let mut answer = send(client, to, Method::GET, OutBody::Empty).await?;
    let status = answer.status().as_u16();
    let bytes = match answer.body_mut().take_whole() {
        Some(bytes) => bytes,
        None => answer.into_body().collect().await?.to_bytes(),
    };
    Ok((status, bytes))
}

#[test]
fn a_connection_is_used_again() {
    let server = Server::hello();
    run(async |client| {
        let to = to(&server);
        for _ in 0..10 {
            assert_eq!(get(&client, &to).await.unwrap(), (200, "hello".into()));
        }
        assert_eq!(client.counts(), Counts { open: 1, idle: 1, dialled: 1, reused: 9, repeated: 0 });
        drop(client);
    });
    server.wait_for("the close", |counts| counts.open == 0);
    assert_eq!(server.seen()[9].line(), "GET /x?y HTTP/1.1");
    assert_eq!(server.seen()[9].header("host"), Some(server.address().as_str()));
}
