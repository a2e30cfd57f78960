//! Requests and responses byte by byte.

use std::fmt::Write;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};

use super::{configured, configured_with, to};
use weir_testing::{Reply, Server, Serving, over_http2};

fn plain(server: &Server) -> Serving {
    configured(&to(&server.url(""), "", ""))
}

fn asked(gate: &Serving, bytes: &str) -> u16 {
    let mut client = gate.connect();
    client.send(bytes);
    client.head().status
}

#[test]
fn an_absolute_target_becomes_its_path() {
    let server = Server::hello();
    let gate = plain(&server);
    for (target, seen) in [
        ("http://b?x=1", "/?x=1"),
        ("http://b", "/"),
        ("http://b/?x=1", "/?x=1"),
        ("HTTP://b:81/a/../c?d", "/c?d"),
        ("/?x=1", "/?x=1"),
    ] {
        assert_eq!(asked(&gate, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")), 200, "{target}");
        assert_eq!(server.seen().pop().unwrap().line(), format!("GET {seen} HTTP/1.1"), "{target}");
    }
    let before = server.requests();
    for target in ["https://b/", "ftp://b/", "ws://b/?x", "http://", "http:///x", "http://u@b/"] {
        assert_eq!(asked(&gate, &format!("GET {target} HTTP/1.1\r\nHost: b\r\n\r\n")), 400, "{target}");
    }
    // RFC 9112, 3.2: also with a host in the target.
    assert_eq!(asked(&gate, "GET http://b/ HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(asked(&gate, "GET / HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(server.requests(), before);
    assert_eq!(asked(&gate, "GET http://b/ HTTP/1.0\r\n\r\n"), 200);
}

/// RFC 9113, 8.2.1.
#[test]
fn a_value_with_white_space_at_an_end_is_rejected_over_http2() {
    let server = Server::hello();
    let gate = plain(&server);
    over_http2(&gate.address, async |mut sender| {
        for (value, expected) in [("a b", 200), (" a", 400), ("a\t", 400), ("", 200), (" ", 400)] {
            let request = Request::builder().uri(format!("http://{}/", gate.address)).header("x-own", value);
            let answer = sender.send_request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
            assert_eq!(answer.status(), expected, "{value:?}");
        }
    });
    assert_eq!(server.requests(), 2);
}

#[test]
fn a_status_without_a_known_reason_has_none() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 520 Web Server Error\r\nContent-Length: 0\r\n\r\n"));
    let gate = plain(&server);
    let mut client = gate.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    assert!(client.rest().starts_with(b"HTTP/1.1 520 \r\n"));
}

#[test]
fn transfer_codings_other_than_chunked_are_rejected() {
    let server = Server::hello();
    let gate = plain(&server);
    let service = Serving::start(&["httpbin"]);
    for front in [&gate, &service] {
        for (coding, status) in [
            ("gzip, chunked", 501),
            ("x, chunked", 501),
            ("gzip\r\nTransfer-Encoding: chunked", 501),
            ("chunked, chunked", 400),
            ("chunked\r\nTransfer-Encoding: chunked", 400),
        ] {
            let inner = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
            let head = format!("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: {coding}\r\n\r\n");
            let mut client = front.connect();
            client.send(format!("{head}5\r\nfirst\r\n0\r\n\r\n{inner}"));
            let answer = client.answer();
            assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{coding}");
            assert!(client.leftovers().is_empty(), "{coding}: nothing is read behind it");
        }
    }
    assert_eq!(server.requests(), 0);
    assert_eq!(asked(&gate, "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: , Chunked\r\n\r\n0\r\n\r\n"), 200);
}

/// A head with this number of fields beside Host, one of them of this length.
fn head(fields: usize, length: usize) -> String {
    let mut head = "GET / HTTP/1.1\r\nHost: test\r\n".to_owned();
    for k in 0..fields {
        let _ = write!(head, "X-Field-{k}: {}\r\n", if k == 0 { "v".repeat(length) } else { "v".to_owned() });
    }
    head + "\r\n"
}

#[test]
fn heads_of_256_fields_and_64_kib_are_forwarded_and_both_bounds_can_be_set() {
    let server = Server::hello();
    let gate = plain(&server);
    let text = to(&server.url(""), "", "");
    let narrow = configured_with(&text, &["--max-headers", "20", "--max-head", "8192"]);
    let wide = configured_with(&text, &["--max-headers", "1000", "--max-head", "200000"]);
    let service = Serving::start(&["httpbin"]);
    for (front, fields, length, status) in [
        (&gate, 255, 10, 200),
        (&gate, 256, 10, 431),
        (&gate, 10, 65_000, 200),
        (&gate, 10, 66_000, 431),
        (&narrow, 19, 7_000, 200),
        (&narrow, 20, 10, 431),
        (&narrow, 10, 9_000, 431),
        (&wide, 999, 150_000, 200),
        (&wide, 1000, 10, 431),
        (&service, 255, 60_000, 200),
        (&service, 256, 10, 431),
    ] {
        assert_eq!(asked(front, &head(fields, length)), status, "{fields} fields, {length} bytes");
    }
    assert_eq!(server.seen().pop().unwrap().head.lines().filter(|line| line.starts_with("x-field-")).count(), 999);
    over_http2(&gate.address, async |mut sender| {
        for (fields, status) in [(200, 200), (257, 431)] {
            let mut request = Request::builder().uri(format!("http://{}/", gate.address));
            for k in 0..fields {
                request = request.header(format!("x-field-{k}"), "v");
            }
            let answer = sender.send_request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{fields} fields over HTTP/2");
        }
    });
}

#[test]
fn responses_with_many_fields_are_forwarded() {
    let fields: String = (0..250).map(|k| format!("X-Field-{k}: v\r\n")).collect();
    let server = Server::start(move |_| Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n")));
    let gate = plain(&server);
    let mut client = gate.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    let text = String::from_utf8(client.rest()).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("x-field-249: v"), "{text:.100}");
}

#[test]
fn content_length_follows_rfc_9110() {
    let server = Server::start(|seen| {
        let length = match seen.line().split(' ').nth(1) {
            Some("/none") => "",
            Some("/chunked") => "Transfer-Encoding: chunked\r\n",
            Some("/zero" | "/204-zero") => "Content-Length: 0\r\n",
            _ => "Content-Length: 7\r\n",
        };
        let status = match seen.line().split(' ').nth(1) {
            Some(path) if path.starts_with("/204") => "204 No Content",
            Some(path) if path.starts_with("/304") => "304 Not Modified",
            _ => "200 OK",
        };
        Reply::raw(format!("HTTP/1.1 {status}\r\n{length}\r\n"))
    });
    let gate = plain(&server);
    let mut client = gate.connect();
    for (method, path, expected) in [
        ("HEAD", "/", Some("7")),
        ("HEAD", "/zero", Some("0")),
        ("HEAD", "/none", None),
        ("HEAD", "/chunked", None),
        ("HEAD", "/304", Some("7")),
        // Content-Length is optional here, and left out.
        ("GET", "/304", None),
        ("HEAD", "/204", None),
        ("GET", "/204", None),
        ("GET", "/204-zero", None),
    ] {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let head = client.head();
        assert_eq!(head.header("content-length"), expected, "{method} {path}: {:?}", head.headers);
        assert_eq!(head.header("transfer-encoding").filter(|_| head.status == 204), None, "{method} {path}");
    }
    over_http2(&gate.address, async |mut sender| {
        for (method, path, expected) in [("HEAD", "/", Some("7")), ("HEAD", "/none", None), ("GET", "/204", None)] {
            let request = Request::builder().method(method).uri(format!("http://{}{path}", gate.address));
            let answer = sender.send_request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
            let length = answer.headers().get("content-length").map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(length.as_deref(), expected, "{method} {path}");
            assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
        }
    });
}
