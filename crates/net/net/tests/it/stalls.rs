//! Peers that stall.

use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_net::client::{Client, ConnectOptions, Origin, OutgoingBody, Protocol, WireOptions};

use super::uploads::Endless;
use super::{httpbin, origin, run, send, until_nothing_is_open};
use weir_testing::{Reply, Server};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";

/// Polls the future; a second passes with each sweep.
async fn as_time_passes<T>(client: &Client, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for second in 0.. {
        tokio::select! {
            done = &mut future => return done,
            () = tokio::time::sleep(Duration::from_millis(1)) => client.sweep(Nanos::from_secs(second)),
        }
    }
    unreachable!()
}

async fn is_pending(future: Pin<&mut impl Future>) -> bool {
    let mut future = future;
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

/// An origin that accepts connections and reads nothing; HTTP/2 on request.
async fn deaf(http2: bool) -> Arc<Origin> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::task::spawn_local(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            if !http2 {
                kept.push(stream);
                continue;
            }
            let answer = hyper::service::service_fn(async |request: http::Request<hyper::body::Incoming>| {
                let _unread = request;
                Ok::<_, Infallible>(pending::<Response<Full<Bytes>>>().await)
            });
            let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::task::spawn_local(async move { served.serve_connection(TokioIo::new(stream), answer).await });
        }
    });
    origin(&url, &reach(http2))
}

fn reach(http2: bool) -> ConnectOptions {
    ConnectOptions { protocol: if http2 { Protocol::Http2 } else { Protocol::Http1 }, ..ConnectOptions::default() }
}

fn large() -> [OutgoingBody; 2] {
    let bytes = Bytes::from(vec![b'x'; 32 << 20]);
    let streamed = Full::new(bytes.clone()).map_err(|never: Infallible| match never {});
    [OutgoingBody::Bytes(bytes), OutgoingBody::Stream(Box::pin(streamed))]
}

#[test]
fn a_peer_that_never_responds_or_reads_fails_after_a_minute() {
    for http2 in [false, true] {
        run(async |client| {
            let to = deaf(http2).await;
            let bodies = [OutgoingBody::Empty].into_iter().chain(large());
            for (number, body) in (1..).zip(bodies) {
                let error = as_time_passes(&client, send(&client, &to, Method::POST, body)).await.unwrap_err();
                assert_eq!((error.kind, &*error.text), (FailureKind::Timeout, "nothing went either way for 60s"));
                // Over HTTP/2, too: after a stalled stream the peer may be gone.
                assert_eq!(client.counts().connected, number, "{http2}");
                until_nothing_is_open(&client).await;
            }
        });
    }
}

#[test]
fn a_response_that_stalls_fails_after_a_minute() {
    let server = Server::start(|_| Reply::raw(format!("{HEAD}hello")).freeze());
    run(async |client| {
        let answer = send(&client, &origin(&server.url("/"), &reach(false)), Method::GET, OutgoingBody::Empty).await;
        let error = as_time_passes(&client, answer.unwrap().into_body().collect()).await.unwrap_err();
        assert_eq!(error.kind, FailureKind::Timeout, "{error}");
        assert_eq!(client.counts().open, 0);
    });
    let server = httpbin();
    run(async |client| {
        let to = origin(&server.url(), &reach(true));
        let headers = http::HeaderMap::new();
        let request = weir_net::client::OutgoingRequest {
            method: &Method::GET,
            target: "/drip?duration_ms=600000&bytes=3",
            headers: &headers,
            extra_headers: &[],
            body: OutgoingBody::Empty,
            upgrade: false,
            wire: WireOptions::default(),
        };
        let answer = client.send(&to, request).await.unwrap();
        let error = as_time_passes(&client, answer.into_body().collect()).await.unwrap_err();
        assert_eq!(error.kind, FailureKind::Timeout, "{error}");
    });
}

/// The peer's end of the connection with a request.
async fn peer(listener: &TcpListener) -> TcpStream {
    let (mut peer, _) = listener.accept().await.unwrap();
    let mut request = [0; 4096];
    assert!(peer.read(&mut request).await.unwrap() > 0);
    peer
}

#[test]
fn each_byte_restarts_the_timeout() {
    run(async |client| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = origin(&format!("http://{}/", listener.local_addr().unwrap()), &reach(false));
        let asked = client.clone();
        let mut asks = Box::pin(async move { send(&asked, &to, Method::GET, OutgoingBody::Empty).await.unwrap() });
        let mut peer = tokio::select! {
            peer = peer(&listener) => peer,
            _ = &mut asks => panic!("too early"),
        };
        peer.write_all(HEAD.as_bytes()).await.unwrap();
        let mut body = asks.await.into_body();
        let mut now = Nanos::ZERO;
        for _ in 0..5 {
            assert!(is_pending(pin!(body.frame())).await);
            client.sweep(now);
            now += Nanos::from_secs(59);
            client.sweep(now);
            peer.write_all(b"x").await.unwrap();
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "x");
        }
        assert!(is_pending(pin!(body.frame())).await);
        client.sweep(now);
        client.sweep(now + Nanos::from_secs(60));
        assert_eq!(body.frame().await.unwrap().unwrap_err().kind, FailureKind::Timeout);
    });
}

#[test]
fn a_caller_that_does_not_read_or_send_does_not_time_out() {
    let server = Server::start(|_| Reply::raw(HEAD).send(vec![b'x'; 1_000_000]));
    run(async |client| {
        let to = origin(&server.url("/"), &reach(false));
        let mut body = send(&client, &to, Method::GET, OutgoingBody::Empty).await.unwrap().into_body();
        assert!(body.frame().await.unwrap().is_ok());
        for hour in 1..10 {
            client.sweep(Nanos::from_secs(3600 * hour));
        }
        assert!(body.collect().await.is_ok());
    });
    for http2 in [false, true] {
        run(async |client| {
            let to = deaf(http2).await;
            let body = OutgoingBody::Stream(Box::pin(Endless(std::rc::Rc::default())));
            let mut sends = pin!(send(&client, &to, Method::POST, body));
            for second in 0..200 {
                tokio::select! {
                    sent = &mut sends => panic!("{sent:?}"),
                    () = tokio::time::sleep(Duration::from_millis(1)) => client.sweep(Nanos::from_secs(second)),
                }
            }
        });
    }
}
