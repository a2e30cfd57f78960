//! Timeouts of an exchange's steps, and heads as they are spelled.

use std::future::pending;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::clock::Clock;
use weir_machine::timer::Timer;
use weir_net::client::{
    ConnectOptions, OutgoingBody, OutgoingRequest, Protocol, ReceivedHead, StepTimeouts, TimedBody, WireOptions,
};

use super::{httpbin, origin, run};
use weir_testing::{Reply, Server};

const SHORT: Nanos = Nanos::from_millis(30);

fn request<'a>(
    headers: &'a HeaderMap,
    target: &'a str,
    body: OutgoingBody,
    wire: WireOptions<'a>,
) -> OutgoingRequest<'a> {
    OutgoingRequest { method: &Method::POST, target, headers, extra_headers: &[], body, upgrade: false, wire }
}

fn reach(protocol: Protocol) -> ConnectOptions {
    ConnectOptions { protocol, ..ConnectOptions::default() }
}

fn reading(read: Nanos) -> WireOptions<'static> {
    WireOptions { timeouts: StepTimeouts { read, ..StepTimeouts::default() }, ..WireOptions::default() }
}

#[test]
fn a_response_that_does_not_come_in_time_is_a_timeout() {
    let server = httpbin();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        run(async |client| {
            let (to, headers) = (origin(&server.url(), &reach(protocol)), HeaderMap::new());
            let late = request(&headers, "/delay/60", OutgoingBody::Empty, reading(SHORT));
            let error = client.send(&to, late).await.unwrap_err();
            assert_eq!((error.kind, &*error.text), (FailureKind::Timeout, "no response within 30ms"), "{protocol:?}");
        });
    }
}

#[test]
fn a_request_that_is_not_taken_in_time_is_a_timeout() {
    run(async |client| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = origin(&format!("http://{}/", listener.local_addr().unwrap()), &reach(Protocol::Http1));
        let (headers, body) = (HeaderMap::new(), OutgoingBody::Bytes(Bytes::from(vec![0; 64 << 20])));
        let timeouts = StepTimeouts { write: SHORT, ..StepTimeouts::default() };
        let wire = WireOptions { timeouts, ..WireOptions::default() };
        let error = client.send(&to, request(&headers, "/", body, wire)).await.unwrap_err();
        let text = "the request was not taken within 30ms";
        assert_eq!((error.kind, &*error.text), (FailureKind::Timeout, text));
    });
}

/// The timeouts count neither while the caller has not given the rest of its request, nor from its beginning.
#[test]
fn a_caller_that_is_slow_is_not_timed_out() {
    run(async |client| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = origin(&format!("http://{}/", listener.local_addr().unwrap()), &reach(Protocol::Http1));
        tokio::task::spawn_local(async move {
            let (mut peer, _) = listener.accept().await.unwrap();
            let mut seen = Vec::new();
            while !seen.ends_with(b"0\r\n\r\n") {
                peer.read_buf(&mut seen).await.unwrap();
            }
            peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            pending::<()>().await;
        });
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::task::spawn_local(async move {
            for _ in 0..3 {
                // Longer than the timeout of a write.
                tokio::time::sleep(Duration::from_millis(60)).await;
                let _ = sender.send(Bytes::from_static(b"piece")).await;
            }
        });
        let timeouts = StepTimeouts { write: SHORT, read: Nanos::from_secs(60), ..StepTimeouts::default() };
        let (headers, wire) = (HeaderMap::new(), WireOptions { timeouts, ..WireOptions::default() });
        let slow = OutgoingBody::Stream(Box::pin(Received(receiver)));
        let response = client.send(&to, request(&headers, "/", slow, wire)).await.unwrap();
        assert_eq!(response.status(), 204);
    });
}

/// A body whose pieces come by a channel.
struct Received(tokio::sync::mpsc::Receiver<Bytes>);

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

#[test]
fn a_body_whose_next_piece_does_not_come_in_time_is_a_timeout() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello").freeze());
    run(async |client| {
        let (to, headers) = (origin(&server.url("/"), &reach(Protocol::Http1)), HeaderMap::new());
        let response = client.send(&to, request(&headers, "/", OutgoingBody::Empty, reading(SHORT))).await.unwrap();
        let timer = Timer::new(Clock::starting_in(Nanos::ZERO)).unwrap();
        tokio::task::spawn_local(timer.1);
        let mut body = TimedBody::new(response.into_body(), &timer.0, reading(SHORT).timeouts);
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "hello");
        let error = body.frame().await.unwrap().unwrap_err();
        assert_eq!((error.kind, &*error.text), (FailureKind::Timeout, "nothing more of the response within 30ms"));
    });
}

#[test]
fn heads_keep_their_order_and_spelling() {
    let head = "HTTP/1.1 200 Fine, thanks\r\nX-Two: a\r\ncontent-LENGTH: 0\r\nx-one:b \r\nX-Two: c\r\n\r\n";
    let server = Server::start(move |_| Reply::raw(head));
    run(async |client| {
        let to = origin(&server.url("/"), &reach(Protocol::Http1));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("example.test"));
        headers.insert("x-lower", HeaderValue::from_static("1"));
        let lines = b"hOST: example.test\r\nX-Lower: 1\r\n";
        let wire = WireOptions { header_lines: Some(lines), keeps_head: true, ..WireOptions::default() };
        let response = client.send(&to, request(&headers, "/", OutgoingBody::Empty, wire)).await.unwrap();
        assert_eq!(response.extensions().get::<ReceivedHead>().unwrap().0, head);
        let plain = WireOptions::default();
        let response = client.send(&to, request(&headers, "/", OutgoingBody::Empty, plain)).await.unwrap();
        assert!(response.extensions().get::<ReceivedHead>().is_none());
    });
    let heads: Vec<_> = server.seen().iter().map(|seen| seen.head.clone()).collect();
    assert!(heads[0].contains("\r\nhOST: example.test\r\nX-Lower: 1\r\ncontent-length: 0"), "{}", heads[0]);
    assert!(heads[1].contains("\r\nhost: example.test\r\nx-lower: 1\r\n"), "{}", heads[1]);
}

/// A response says nothing about the rest of its request, unless it is an error (RFC 9112, 9.3).
#[test]
fn a_request_is_sent_to_its_end_after_a_response_that_came_early() {
    const LENGTH: usize = 16 << 20;
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n",
    ] {
        run(async |client| {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let to = origin(&format!("http://{}/", listener.local_addr().unwrap()), &reach(Protocol::Http1));
            let peer = tokio::task::spawn_local(async move {
                let (mut peer, _) = listener.accept().await.unwrap();
                let mut seen = Vec::new();
                peer.read_buf(&mut seen).await.unwrap();
                peer.write_all(text.as_bytes()).await.unwrap();
                while seen.len() < LENGTH && peer.read_buf(&mut seen).await.unwrap() > 0 {}
                seen.len()
            });
            let (headers, body) = (HeaderMap::new(), OutgoingBody::Bytes(Bytes::from(vec![0; LENGTH])));
            let response = client.send(&to, request(&headers, "/", body, WireOptions::default())).await.unwrap();
            let whole = response.into_body().collect().await.unwrap();
            assert_eq!(whole.trailers().is_some(), text.contains("x-sum"), "{text}");
            assert_eq!(whole.to_bytes(), "ok", "{text}");
            assert!(peer.await.unwrap() >= LENGTH, "{text}");
        });
    }
}

#[test]
fn streamed_requests_over_http2_have_the_timeouts_too() {
    let server = httpbin();
    run(async |client| {
        let (to, headers) = (origin(&server.url(), &reach(Protocol::Http2)), HeaderMap::new());
        let streamed = |wait: Duration| {
            let (sender, receiver) = tokio::sync::mpsc::channel(1);
            tokio::task::spawn_local(async move {
                tokio::time::sleep(wait).await;
                let _ = sender.send(Bytes::from_static(b"piece")).await;
            });
            OutgoingBody::Stream(Box::pin(Received(receiver)))
        };
        let late = request(&headers, "/delay/60", streamed(Duration::ZERO), reading(SHORT));
        let error = client.send(&to, late).await.unwrap_err();
        assert_eq!((error.kind, &*error.text), (FailureKind::Timeout, "no response within 30ms"));
        // Neither counts while the caller has not given the rest of its request.
        let timeouts = StepTimeouts { write: SHORT, read: Nanos::from_secs(60), ..StepTimeouts::default() };
        let wire = WireOptions { timeouts, ..WireOptions::default() };
        let slow = request(&headers, "/echo", streamed(Duration::from_millis(90)), wire);
        let response = client.send(&to, slow).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "piece");
    });
}
