//! Exchanges as values: what ends as one, and what goes on as a future.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use bytes::Bytes;
use http::{HeaderMap, Method};
use weir_base::failure::FailureKind;
use weir_net::client::{
    BegunExchange, Client, ConnectOptions, Origin, OutgoingBody, OutgoingRequest, SendError, WireOptions,
};
use weir_testing::{Gate, Reply, Server};

use super::{get, hello, origin, run, to, until, whole};

/// Begins a request; None if no connection is idle.
fn begin(client: &Client, to: &Arc<Origin>, method: &Method, body: impl Into<Bytes>) -> Option<BegunExchange> {
    let (headers, body) = (HeaderMap::new(), body.into());
    let request = OutgoingRequest {
        method,
        target: "/x?y",
        headers: &headers,
        extra_headers: &[],
        body: if body.is_empty() { OutgoingBody::Empty } else { OutgoingBody::Bytes(body) },
        upgrade: false,
        wire: WireOptions::default(),
    };
    client.begin(to, request)
}

/// Status and body of a begun request, and whether it has ended as a value.
async fn ended(client: &Client, to: &Arc<Origin>, mut begun: BegunExchange) -> Result<(u16, Bytes, bool), SendError> {
    if let Some(response) = poll_fn(|cx| begun.poll_whole(cx, |_| true)).await {
        return Ok((response.head.status.as_u16(), response.body, true));
    }
    let (status, body) = whole(client.complete(to, begun).await?).await?;
    Ok((status, body, false))
}

#[test]
fn nothing_begins_without_an_idle_connection() {
    let server = Server::hello();
    run(async |client| {
        let to = to(&server);
        assert!(begin(&client, &to, &Method::GET, "").is_none());
        get(&client, &to).await.unwrap();
        let first = begin(&client, &to, &Method::GET, "");
        assert!(first.is_some() && begin(&client, &to, &Method::GET, "").is_none());
        // Nothing was sent, but a connection may be in any state.
        drop(first);
        assert_eq!((client.counts().open, server.requests()), (0, 1));
    });
}

#[test]
fn a_response_ends_as_a_value_if_it_is_whole_and_its_connection_is_used_again_if_it_may_be() {
    let (get, head) = (Method::GET, Method::HEAD);
    for (method, response, body, is_value, is_idle) in [
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true, true),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true, true),
        (&head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "", true, true),
        (&head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "", true, true),
        (&get, "HTTP/1.1 204 No Content\r\n\r\n", "", true, true),
        (&get, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", true, true),
        (&get, "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno", "no", true, true),
        (&get, "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", true, true),
        (&get, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "ok", true, false),
        (&get, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", true, false),
        (&get, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", "ok", true, true),
        (&get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "ok", false, true),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more", "ok", false, false),
        (&head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "", false, false),
        (&get, "HTTP/1.1 204 No Content\r\n\r\nhello", "", false, false),
    ] {
        let server =
            Server::start(move |seen| if seen.number == 0 { Reply::ok("hello") } else { Reply::raw(response) });
        run(async |client| {
            let to = to(&server);
            super::get(&client, &to).await.unwrap();
            let begun = begin(&client, &to, method, "").unwrap();
            let found = ended(&client, &to, begun).await.unwrap();
            let status = if response.contains(" 103 ") { 200 } else { response[9..12].parse().unwrap() };
            assert_eq!(found, (status, body.into(), is_value), "{method} {response}");
            let counts = client.counts();
            assert_eq!((counts.open, counts.idle), (usize::from(is_idle), usize::from(is_idle)), "{method} {response}");
        });
    }
}

#[test]
fn a_failure_is_that_of_any_exchange() {
    for (response, kind) in [
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", FailureKind::Protocol),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", FailureKind::Protocol),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", FailureKind::Closed),
        ("HTTP/1.1 200 OK\r\nCont", FailureKind::Closed),
        ("", FailureKind::Closed),
    ] {
        let server =
            Server::start(move |seen| if seen.number == 0 { Reply::ok("hello") } else { Reply::raw(response).close() });
        run(async |client| {
            let to = to(&server);
            get(&client, &to).await.unwrap();
            let begun = begin(&client, &to, &Method::POST, "body").unwrap();
            let failed = ended(&client, &to, begun).await.unwrap_err();
            assert_eq!(failed.kind, kind, "{response}");
            let counts = client.counts();
            assert_eq!((counts.open, counts.resent, server.requests()), (0, 0, 2), "{response}");
        });
    }
}

#[test]
fn a_value_that_is_dropped_closes_its_connection() {
    let held = Gate::default();
    let gate = held.clone();
    let server = Server::start(move |seen| match seen.number {
        0 => Reply::ok("hello"),
        _ => Reply::nothing().wait_for(&gate),
    });
    run(async |client| {
        let to = to(&server);
        get(&client, &to).await.unwrap();
        let mut begun = begin(&client, &to, &Method::GET, "").unwrap();
        let first = poll_fn(|cx| std::task::Poll::Ready(begun.poll_whole(cx, |_| true).is_pending())).await;
        assert!(first, "there is no response yet");
        until("the request", || server.requests() == 2).await;
        drop(begun);
        assert_eq!(client.counts().open, 0);
    });
    held.open();
    server.wait_for("the close", |counts| counts.open == 0);
}

/// The event loop sees the close only after the request was written.
#[test]
#[cfg_attr(weir_portable, ignore = "what was acknowledged is known on Linux only")]
fn a_value_that_meets_a_close_goes_on_over_a_new_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (closes, closed) = (channel::<()>(), channel::<()>());
    let service = thread::spawn(move || {
        let mut seen = String::new();
        for k in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 1000];
            let n = stream.read(&mut bytes).unwrap();
            seen = String::from_utf8_lossy(&bytes[..n]).into_owned();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
            if k == 0 {
                closes.1.recv().unwrap();
                drop(stream);
                closed.0.send(()).unwrap();
            }
        }
        seen
    });
    run(async |client| {
        let to = origin(&url, &ConnectOptions::default());
        assert_eq!(get(&client, &to).await.unwrap(), hello());
        closes.0.send(()).unwrap();
        closed.1.recv().unwrap();
        // Nothing was awaited since: the connection looks healthy.
        let begun = begin(&client, &to, &Method::POST, "body").unwrap();
        assert_eq!(ended(&client, &to, begun).await.unwrap(), (200, "hello".into(), false));
        assert_eq!((client.counts().connected, client.counts().resent), (2, 1));
    });
    let seen = service.join().unwrap();
    assert!(seen.starts_with("POST /x?y ") && seen.ends_with("\r\n\r\nbody"), "{seen}");
}

/// A response to a request that is not sent to its end is not the end of the exchange.
#[test]
fn a_response_before_the_end_of_the_request_is_no_value() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let leaves = channel::<()>();
    let service = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 1000];
        for _ in 0..2 {
            assert!(stream.read(&mut bytes).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
        }
        // More is not read.
        leaves.1.recv().unwrap();
    });
    // More than all buffers of the system.
    let body = vec![b'x'; 64 << 20];
    run(async |client| {
        let to = origin(&url, &ConnectOptions::default());
        assert_eq!(get(&client, &to).await.unwrap(), hello());
        let mut begun = begin(&client, &to, &Method::POST, body).unwrap();
        assert!(poll_fn(|cx| begun.poll_whole(cx, |_| true)).await.is_none());
        let response = client.complete(&to, begun).await.unwrap();
        assert_eq!(response.status(), 200);
        drop(response);
    });
    leaves.0.send(()).unwrap();
    service.join().unwrap();
}
