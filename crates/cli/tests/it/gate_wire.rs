//! Forwarding of valid and invalid HTTP, from either side.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the client's end of a test has a clock of its own")]

use std::thread;
use std::time::Duration;

use weir_gate::config::{Config, HostConfig, PolicyConfig, RouteConfig, UpstreamConfig};
use weir_gate::{self as gate, Gate};
use weir_resilience::policy::Policy;
use weir_retry::policy::RetryPolicy;
use weir_server::Options;
use weir_testing::{Raw, Reply, Server, Serving, until};

/// Timeout of waits; far above all expected times.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway to one upstream.
struct Fronted {
    gate: Gate,
}

impl Fronted {
    fn new(url: &str, policy: Policy) -> Self {
        let host = HostConfig { url: url.to_owned(), socket: None, weight: 1 };
        let upstream = UpstreamConfig { hosts: vec![host], ..UpstreamConfig::new("upstream") };
        let policy = PolicyConfig { policy, ..PolicyConfig::new("default") };
        let route = RouteConfig { policy, ..RouteConfig::forward_all("upstream", "/{*rest}") };
        let config = Config { upstreams: vec![upstream], routes: vec![route], ..Config::default() };
        Self { gate: gate::start(&config, gate::Options::default(), &Options::default()).unwrap() }
    }

    fn connect(&self) -> Raw {
        Raw::connect(self.gate.url().trim_start_matches("http://"))
    }
}

fn plain(server: &Server) -> Fronted {
    Fronted::new(&server.url("/"), Policy::default())
}

#[test]
fn a_request_is_forwarded_without_hop_by_hop_headers() {
    let server = Server::start(|_| {
        Reply::raw(
            "HTTP/1.1 203 Odd\r\nX-Two: 1\r\nX-Two: 2\r\nConnection: X-Own\r\nX-Own: y\r\nKeep-Alive: timeout=5\r\n\
             Content-Length: 4\r\n\r\nbody",
        )
    });
    let gate = plain(&server);
    let mut client = gate.connect();
    client.send(
        "PATCH /a%3Ab//x/../c?x=%20&y HTTP/1.1\r\nHost: api.example\r\nX-Odd: \u{e9}\r\nConnection: keep-alive, X-Hop\r\n\
         X-Hop: 1\r\nTE: trailers\r\nX-Forwarded-For: 6.6.6.6\r\nContent-Length: 5\r\n\r\nabcde",
    );
    let answer = client.answer();
    assert_eq!((answer.status, answer.text()), (203, "body"));
    let twice: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "x-two").collect();
    assert_eq!(twice.len(), 2, "{:?}", answer.headers);
    assert!(!answer.headers.iter().any(|(name, _)| name == "x-own" || name == "keep-alive"), "{:?}", answer.headers);
    let seen = &server.seen()[0];
    assert_eq!(seen.line(), "PATCH /a%3Ab/c?x=%20&y HTTP/1.1");
    assert_eq!(seen.body, b"abcde");
    assert_eq!(seen.header("host"), Some("api.example"));
    assert_eq!(seen.header("x-odd"), Some("\u{e9}"));
    assert_eq!(seen.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(seen.header("x-forwarded-host"), Some("api.example"));
    assert_eq!(seen.header("x-forwarded-proto"), Some("http"));
    assert_eq!(seen.header("x-hop"), None);
}

#[test]
fn connections_to_the_upstream_are_reused() {
    let server = Server::start(|seen| Reply::ok(&seen.number.to_string()));
    let gate = plain(&server);
    for k in 0..50 {
        assert_eq!(gate.connect().get("/").text(), k.to_string());
    }
    assert_eq!(server.counts().connections, 1);
}

#[test]
fn responses_without_a_body_have_none() {
    let server = Server::start(|seen| match seen.line().split(' ').nth(1) {
        Some("/204") => Reply::raw("HTTP/1.1 204 No Content\r\n\r\n"),
        Some("/304") => Reply::raw("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n"),
        _ if seen.line().starts_with("HEAD") => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"),
        _ => Reply::raw("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    });
    let gate = plain(&server);
    let mut client = gate.connect();
    assert_eq!(client.get("/204").status, 204);
    assert_eq!(client.get("/304").status, 304);
    client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
    let head = client.head();
    assert!(head.headers.contains(&("content-length".to_owned(), "100".to_owned())), "{:?}", head.headers);
    assert_eq!(client.get("/").text(), "ok", "what comes before the answer itself is not passed on");
    assert_eq!(server.counts().connections, 1);
}

#[test]
fn large_bodies_stream_through_in_both_directions() {
    let body = Serving::start(&["httpbin"]);
    let gate = Fronted::new(&format!("http://{}", body.address), Policy::default());
    let megabytes: Vec<u8> = (0..8_u32 << 20).map(|k| (k % 251) as u8).collect();
    let mut client = gate.connect();
    let mut twin = client.twin();
    let sent = megabytes.clone();
    let sending = thread::spawn(move || {
        twin.send(format!("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", sent.len()));
        twin.send(&sent);
    });
    let answer = client.answer();
    sending.join().unwrap();
    assert!(answer.body == megabytes, "{} bytes came back", answer.body.len());
    // A chunked body, whose first chunk gets its response before the second is sent.
    client.send("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    let head = client.head();
    assert_eq!(head.status, 200);
    // Chunks that arrive together may be forwarded as one.
    let first = "5\r\nfirst\r\n";
    assert_eq!(client.take(first.len()), first.as_bytes());
    client.send("6\r\nsecond\r\n0\r\n\r\n");
    let rest = "6\r\nsecond\r\n0\r\n\r\n";
    assert_eq!(client.take(rest.len()), rest.as_bytes());
    assert_eq!(client.get("/status/200").status, 200);
}

/// gRPC-Web has its trailers in its body, whose last frame has 0x80 as its first byte. Nothing of it is gRPC to the
/// gateway: neither the content type nor the frames are changed, and a failed call is a response.
#[test]
fn grpc_web_passes_through_unchanged() {
    let frames = b"\x00\x00\x00\x00\x02hi\x80\x00\x00\x00\x10grpc-status: 14\r\n";
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: {}\r\n\r\n",
        frames.len()
    );
    let response = [head.as_bytes(), frames].concat();
    let server = Server::start(move |_| Reply::nothing().send(response.clone()));
    let gate = plain(&server);
    let mut client = gate.connect();
    client.send(
        "POST /echo.Echo/Say HTTP/1.1\r\nHost: test\r\nContent-Type: application/grpc-web+proto\r\nX-Grpc-Web: 1\r\n\
         Content-Length: 7\r\n\r\n\x00\x00\x00\x00\x02yo",
    );
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/grpc-web+proto")));
    assert_eq!(answer.body, frames);
    assert_eq!((server.requests(), answer.header("grpc-status")), (1, None));
}

/// Requests that two implementations may read differently. No part of them may reach the upstream as a separate
/// request, and the next caller must get its own response.
#[test]
fn request_smuggling_is_rejected() {
    let inner = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let size = inner.len();
    let chunk = format!("{size:x}\r\n{inner}\r\n0\r\n\r\n");
    let cases: Vec<(&str, String)> = vec![
        ("CL.TE", format!("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}")),
        ("TE.CL", format!("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n{chunk}")),
        ("TE twice", format!("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n{chunk}")),
        ("TE not last", format!("Transfer-Encoding: chunked, gzip\r\n\r\n{chunk}")),
        ("TE unknown", format!("Transfer-Encoding: xchunked\r\nContent-Length: {size}\r\n\r\n{inner}")),
        ("TE hidden by a tab", format!("Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{inner}")),
        ("TE hidden by a space", format!("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{inner}")),
        ("two lengths", format!("Content-Length: 0\r\nContent-Length: {size}\r\n\r\n{inner}")),
        ("a list of lengths", format!("Content-Length: 0, {size}\r\n\r\n{inner}")),
        ("a signed length", format!("Content-Length: +{size}\r\n\r\n{inner}")),
        ("a length in hex", format!("Content-Length: 0x{size:x}\r\n\r\n{inner}")),
        ("obs-fold", format!("Content-Length: 0\r\nX-A: b\r\n Transfer-Encoding: chunked\r\n\r\n{chunk}")),
        ("obs-fold in front", format!("\r\n Content-Length: {size}\r\n\r\n{inner}")),
        ("a bare CR", format!("X-A: b\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{inner}")),
        ("a NUL", format!("X-A: b\0Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{inner}")),
        ("a chunk size beyond", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx\r\n0\r\n\r\n".to_owned()),
        ("a chunk that is none", format!("Transfer-Encoding: chunked\r\n\r\nzz\r\n{inner}")),
    ];
    let server = Server::start(|seen| Reply::ok(seen.line()));
    let gate = plain(&server);
    for (name, rest) in cases {
        let mut client = gate.connect();
        // A following request in the same bytes is the peer's own only if it was sent as one.
        let _ = client.try_send(format!("POST /outer HTTP/1.1\r\nHost: test\r\n{rest}"));
        let _ = client.leftovers();
        let mut other = gate.connect();
        assert_eq!(other.get("/mine").text(), "GET /mine HTTP/1.1", "after {name}");
        for seen in server.seen() {
            let framed = seen.header("content-length").is_some() ^ seen.header("transfer-encoding").is_some();
            let bodyless = seen.body.is_empty() && seen.header("transfer-encoding").is_none();
            assert!(framed || bodyless, "{name}: {}", seen.head);
        }
    }
}

#[test]
fn a_request_names_one_host() {
    let server = Server::start(|seen| Reply::ok(seen.header("host").unwrap_or("none")));
    let gate = plain(&server);
    for (head, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", (400, "no Host header\n")),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", (400, "more than one Host header\n")),
        ("GET http://c.example/ HTTP/1.1\r\nHost: a\r\n\r\n", (200, "c.example")),
        ("GET / HTTP/1.1\r\nHost: a:81\r\n\r\n", (200, "a:81")),
    ] {
        let mut client = gate.connect();
        client.send(head);
        let answer = client.answer();
        assert_eq!((answer.status, answer.text()), expected, "{head}");
    }
    let mut old = gate.connect();
    old.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(old.answer().status, 200);
}

#[test]
fn an_invalid_response_is_a_502() {
    for nonsense in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked, gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nBad Header: x\r\n\r\n",
        "\0\0\0\0\0\0\0\0",
        "HTTP/1.1 200",
    ] {
        let server = Server::start(move |_| Reply::raw(nonsense).close());
        let gate = plain(&server);
        let answer = gate.connect().get("/");
        assert_eq!(answer.status, 502, "{nonsense:?}: {}", answer.text());
        assert!(answer.text().starts_with("no response from the upstream ("), "{}", answer.text());
    }
}

#[test]
fn a_truncated_response_is_visible_to_the_caller() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").close());
    let gate = plain(&server);
    assert_eq!(cut(&gate), b"half");
    let chunked =
        Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n").close());
    let gate = plain(&chunked);
    assert_eq!(cut(&gate), b"half");
}

/// A body that is shorter than its Content-Length.
fn cut(gate: &Fronted) -> Vec<u8> {
    let mut client = gate.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    client.cut_answer().body
}

#[test]
fn bytes_after_a_response_are_dropped() {
    let server = Server::start(|seen| {
        // In one piece with the response: later bytes are indistinguishable from a response to the next request.
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{:02}", seen.number);
        Reply::raw(answer + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    });
    let gate = plain(&server);
    let mut client = gate.connect();
    for k in 0..20 {
        assert_eq!(client.get("/").text(), format!("{k:02}"));
    }
}

#[test]
fn an_upgrade_is_forwarded() {
    let server = Server::start(|_| {
        Reply::raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello")
            .freeze()
    });
    let gate = plain(&server);
    let mut client = gate.connect();
    client.send(
        "GET /ws HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nX-Key: 1\r\n\r\n",
    );
    let head = client.head();
    assert_eq!(head.status, 101);
    assert!(head.headers.contains(&("upgrade".to_owned(), "websocket".to_owned())), "{:?}", head.headers);
    assert_eq!(client.take(5), b"hello");
    let seen = &server.seen()[0];
    assert_eq!(seen.header("upgrade"), Some("websocket"));
    assert_eq!(seen.header("connection"), Some("upgrade"));
}

#[test]
fn a_disconnect_cancels_the_attempt() {
    let server = Server::start(|_| Reply::nothing());
    let gate = plain(&server);
    let mut client = gate.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the upstream has the request", PATIENCE, || server.counts().requests == 1);
    drop(client);
    until("its connection is closed", PATIENCE, || server.counts().open == 0);
}

#[test]
fn expect_100_continue_is_handled() {
    let body = Serving::start(&["httpbin"]);
    let gate = Fronted::new(&format!("http://{}", body.address), Policy::default());
    let mut client = gate.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    assert_eq!(client.head().status, 100);
    client.send("body");
    assert_eq!(client.answer().text(), "body");
}

#[test]
fn responses_reach_their_own_callers() {
    // Some responses break off, some connections are reset, some callers disconnect; each caller gets its own response.
    let server = Server::start(|seen| {
        let path = seen.line().split(' ').nth(1).unwrap_or_default().to_owned();
        match seen.number % 7 {
            3 => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ncut").close(),
            5 => Reply::nothing().reset(),
            _ => Reply::ok(&path),
        }
    });
    let policy =
        Policy { retry: RetryPolicy { max_retries: 1, ..RetryPolicy::default() }, budget: None, ..Policy::default() };
    let gate = Fronted::new(&server.url("/"), policy);
    thread::scope(|scope| {
        for caller in 0..8 {
            let gate = &gate;
            scope.spawn(move || {
                for k in 0..60 {
                    let path = format!("/{caller}/{k}");
                    let mut client = gate.connect();
                    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
                    if k % 10 == 9 {
                        continue;
                    }
                    let (answer, whole) = client.answer_or_cut();
                    let text = String::from_utf8_lossy(&answer.body).into_owned();
                    let own = whole && answer.status == 200 && text == path;
                    let failed = !whole && text == "cut" || answer.status == 502;
                    assert!(own || failed, "{path}: {} {text}", answer.status);
                }
            });
        }
    });
}

#[test]
fn an_unreachable_upstream_is_a_502() {
    let gone = Server::start(|_| Reply::nothing()).url("/");
    let gate = Fronted::new(&gone, Policy::default());
    let answer = gate.connect().get("/");
    assert_eq!(answer.status, 502);
    assert_eq!(answer.text(), "no response from the upstream (connect); attempts: 1\n");
}
