//! Requests with bodies.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use weir_base::failure::FailureKind;
use weir_net::client::{OutgoingBody, OutgoingRequest, WireOptions};

use super::{echoed, get, hello, httpbin, run, send, to, whole};
use weir_testing::{Reply, Server};

/// A body with pieces one by one, which then ends or stays pending.
struct Pieces {
    left: VecDeque<Bytes>,
    endless: bool,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.left.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.endless => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

/// A body that stays pending, and shows whether it was dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "it is counted, not read")]
pub(crate) struct Endless(pub(crate) std::rc::Rc<()>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

fn pieces(pieces: &[&'static str], endless: bool) -> OutgoingBody {
    OutgoingBody::Stream(Box::pin(Pieces { left: pieces.iter().map(|piece| Bytes::from(*piece)).collect(), endless }))
}

#[test]
fn a_streamed_body_is_never_sent_again_in_part() {
    let server = Server::start(|seen| if seen.number == 1 { Reply::nothing().close() } else { Reply::ok("hello") });
    run(async |client| {
        let to = to(&server);
        assert_eq!(get(&client, &to).await.unwrap(), hello());
        // The body is consumed by the time the connection turns out to be closed; it cannot be restarted.
        let error = send(&client, &to, Method::PUT, pieces(&["abc", "de"], false)).await.unwrap_err();
        assert!(matches!(error.kind, FailureKind::Closed | FailureKind::Reset), "{error}");
        assert_eq!(client.counts().resent, 0);
    });
}

#[test]
fn bodies_of_all_sizes_arrive() {
    let server = Server::hello();
    run(async |client| {
        let to = to(&server);
        for size in [0, 1, 8192, 8193, 3_000_000] {
            let body = Bytes::from(vec![b'x'; size]);
            let full = Full::new(body.clone()).map_err(|never: Infallible| match never {});
            for body in [OutgoingBody::Bytes(body.clone()), OutgoingBody::Stream(Box::pin(full))] {
                let answer = send(&client, &to, Method::POST, body).await.unwrap();
                assert_eq!(whole(answer).await.unwrap(), hello());
                let seen = server.seen().pop().unwrap();
                assert_eq!((seen.body.len(), seen.header("content-length")), (size, Some(&*size.to_string())));
            }
        }
        assert_eq!(client.counts().connected, 1);
    });
}

#[test]
fn a_body_of_unknown_length_goes_in_chunks() {
    let server = Server::start(|_| Reply::ok("hello"));
    run(async |client| {
        let answer = send(&client, &to(&server), Method::POST, pieces(&["he", "", "llo"], false)).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(server.seen()[0].header("transfer-encoding"), Some("chunked"));
        // The scripted service takes the rest for another request, with this head.
        server.wait_for("the chunks", |counts| counts.requests == 2);
        assert_eq!(server.seen()[1].head, "2\r\nhe\r\n3\r\nllo\r\n0\r\n");
    });
}

#[test]
fn headers_are_sent_as_given_except_framing() {
    let server = Server::hello();
    run(async |client| {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "elsewhere"),
            ("x-many", "1"),
            ("x-many", "2"),
            ("content-length", "999"),
            ("transfer-encoding", "chunked"),
            ("connection", "close"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let more = [(HeaderName::from_static("x-more"), HeaderValue::from_static("3"))];
        let method = Method::PUT;
        for (target, fine) in
            [("/a?b=%20", true), ("/a b", false), ("/a\r\nX: y", false), ("", false), ("/\u{7f}", false)]
        {
            let body = OutgoingBody::Bytes("abc".into());
            let request = OutgoingRequest {
                method: &method,
                target,
                headers: &headers,
                extra_headers: &more,
                body,
                upgrade: false,
                wire: WireOptions::default(),
            };
            let answer = client.send(&to(&server), request).await;
            let answer = answer.map(|answer| answer.status().as_u16()).map_err(|error| error.kind);
            assert_eq!(answer, if fine { Ok(200) } else { Err(FailureKind::Request) });
        }
        assert_eq!(
            server.seen()[0].head,
            "PUT /a?b=%20 HTTP/1.1\r\nhost: elsewhere\r\nx-many: 1\r\nx-many: 2\r\nx-more: 3\r\nconnection: close\r\n\
             content-length: 3\r\n"
        );
        assert_eq!(server.requests(), 1);
    });
}

#[test]
fn an_early_response_is_returned_at_once() {
    for (body, status) in [(OutgoingBody::Bytes(vec![b'x'; 30_000_000].into()), 413), (pieces(&["x"], true), 503)] {
        let reply = Reply::status(status, "no").freeze();
        let server = Server::build().answers_heads(reply.clone()).start(move |_| reply.clone());
        run(async |client| {
            let answer = send(&client, &to(&server), Method::POST, body).await.unwrap();
            assert_eq!(whole(answer).await.unwrap(), (status, "no".into()));
            assert_eq!(client.counts().open, 0, "the rest of the request is not sent");
        });
    }
}

#[test]
fn a_good_response_may_begin_before_its_request_has_ended() {
    let echo = httpbin();
    run(async |client| {
        let to = super::origin(&echo.url(), &weir_net::client::ConnectOptions::default());
        let body: Bytes = (0..8_000_000_u32).map(|k| (k % 253) as u8).collect();
        let (status, got) = echoed(&client, &to, body.clone()).await;
        assert!(status == 200 && got == body, "{status}, {} bytes", got.len());
        assert_eq!(client.counts().idle, 1);
    });
}

#[test]
fn a_body_that_fails_is_not_taken_for_a_complete_one() {
    let server = Server::hello();
    run(async |client| {
        let to = to(&server);
        let headers = HeaderMap::from_iter([(http::header::CONTENT_LENGTH, HeaderValue::from_static("9"))]);
        let method = Method::POST;
        for parts in [&["short"][..], &["much too long"]] {
            let request = OutgoingRequest {
                method: &method,
                target: "/",
                headers: &headers,
                extra_headers: &[],
                body: pieces(parts, false),
                upgrade: false,
                wire: WireOptions::default(),
            };
            let error = client.send(&to, request).await.unwrap_err();
            assert_eq!((error.kind, client.counts().open), (FailureKind::Request, 0), "{error}");
        }
        assert_eq!(server.requests(), 0);
    });
}
