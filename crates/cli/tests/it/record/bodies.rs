//! Bodies of any size and coding, and connections that go over to another protocol.

use std::io::Write;
use std::thread;

use weir_testing::{Reply, Server, Serving};

use super::{lines, recorder, send};

/// Bytes without a pattern that a proxy might keep by chance.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn large_bodies_pass_unchanged_in_little_memory_and_are_not_kept() {
    const LENGTH: usize = 48 << 20;
    let body = noise(LENGTH);
    let sent = body.clone();
    let server = Server::start(move |seen| match seen.line().starts_with("GET") {
        true => {
            Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {LENGTH}\r\n\r\n"))
                .send(&sent)
        }
        false => Reply::ok(if seen.body == sent { "same" } else { "other" }),
    });
    let mut recorder = recorder(&["--max-body", "64KiB"]);
    let down = send(&recorder, &format!("GET {}", server.url("/down")), "", "");
    assert!(down.body == body, "{} bytes", down.body.len());
    let mut connection = recorder.connect();
    connection.send(format!(
        "PUT {} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: {LENGTH}\r\n\r\n",
        server.url("/up")
    ));
    assert_eq!(connection.head().status, 100);
    connection.send(&body);
    assert_eq!(connection.answer().text(), "same");
    let echo = Serving::start(&["httpbin"]);
    let mut connection = recorder.connect();
    connection.send(format!("POST {}/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", echo.url));
    let (mut upload, bytes) = (connection.twin(), body.clone());
    let sender = thread::spawn(move || {
        for piece in bytes.chunks(1 << 20) {
            upload.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
        }
        upload.send("0\r\n\r\n");
    });
    assert!(connection.answer().body == body);
    sender.join().unwrap();
    let peak = recorder.running().status_kib("VmHWM");
    assert!(peak < 100 << 10, "{peak} KiB for bodies of {LENGTH} bytes");
    let (output, weir) = recorder.interrupt();
    let all = lines(&output);
    let cut_response = "1 response was not searched for values to capture: longer than --max-body, or too late in a long \
        recording";
    let cut = format!("  request: PUT {}: its body of {LENGTH} bytes is not kept; see --max-body", server.url("/up"));
    assert!(all.contains(&cut.as_str()) && all.contains(&"left out: 2 requests"), "{output:?}");
    assert!(all.contains(&cut_response), "{output:?}");
    assert!(weir.read("shop.hurl").starts_with("GET {{base_url}}/down\nHTTP 200\n"));
}

#[test]
fn compressed_responses_pass_as_they_are_and_their_values_are_found() {
    // {"token": "t1-0-59ea4717472f1c4b"} by zstd, stored in one block.
    let text = br#"{"token": "t1-0-59ea4717472f1c4b"}"#;
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, (text.len() << 3 | 1) as u8, (text.len() >> 5) as u8, 0];
    let zstd = [&head[..], text].concat();
    let sent = zstd.clone();
    let server = Server::start(move |seen| match seen.line().contains("/login") {
        true => Reply::raw(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: zstd\r\nContent-Length: {}\r\n\r\n",
            sent.len()
        ))
        .send(&sent),
        false => Reply::ok("[]"),
    });
    let recorder = recorder(&[]);
    let login = send(&recorder, &format!("GET {}", server.url("/login")), "Accept-Encoding: zstd\r\n", "");
    assert_eq!((login.body, login.headers.iter().any(|(name, _)| name == "content-encoding")), (zstd, true));
    send(&recorder, &format!("GET {}", server.url("/items?t=t1-0-59ea4717472f1c4b")), "", "");
    let (_, weir) = recorder.interrupt();
    let hurl = weir.read("shop.hurl");
    assert!(hurl.contains("token: jsonpath \"$.token\"") && hurl.contains("/items?t={{token}}"), "{hurl}");
}

#[test]
fn a_response_that_breaks_off_breaks_off_for_the_client_and_is_not_played() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").close());
    let recorder = recorder(&[]);
    let mut connection = recorder.connect();
    connection.send(format!("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", server.url("/half")));
    assert_eq!(connection.cut_answer().text(), "half");
    let (output, _) = recorder.interrupt();
    assert!(
        output.stderr.contains(&format!("request: GET {}: the response broke off: ", server.url("/half"))),
        "{output:?}"
    );
}

#[test]
fn an_upgraded_connection_is_forwarded_and_left_out() {
    let server = Server::start(|seen| match seen.header("upgrade") {
        Some("websocket") => {
            Reply::raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nwelcome")
        }
        _ => Reply::ok("hello"),
    });
    let ws = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let recorder = recorder(&[]);
    let mut direct = recorder.connect();
    direct.send(format!("GET {} HTTP/1.1\r\nHost: h\r\n{ws}\r\n", server.url("/chat")));
    let head = direct.head();
    assert_eq!((head.status, head.header("upgrade")), (101, Some("websocket")));
    assert_eq!(direct.take(7), b"welcome");
    // As browsers open a WebSocket through a proxy.
    let mut tunnel = recorder.connect();
    tunnel.send(format!("CONNECT {} HTTP/1.1\r\nHost: h\r\n\r\n", server.address()));
    assert_eq!(tunnel.head().status, 200);
    tunnel.send(format!("GET /live HTTP/1.1\r\nHost: {}\r\n{ws}\r\n", server.address()));
    assert_eq!(tunnel.head().status, 101);
    assert_eq!(tunnel.take(7), b"welcome");
    // HTTP/2 is no other protocol for the recorder: the offer is not passed on.
    let plain = send(
        &recorder,
        &format!("GET {}", server.url("/")),
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n",
        "",
    );
    assert_eq!(plain.text(), "hello");
    assert_eq!(server.seen()[2].header("upgrade"), None);
    let (output, weir) = recorder.interrupt();
    for url in ["/chat", "/live"] {
        let line = format!("  request: GET ws://{}{url}: the scheme ws, weir sends http and https", server.address());
        assert!(lines(&output).contains(&line.as_str()), "{output:?}");
    }
    assert!(weir.read("shop.hurl").contains("GET {{base_url}}/\nHTTP 200\n"));
}

#[test]
fn a_tunnel_with_another_protocol_passes_unread() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let service = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = [0; 9];
        std::io::Read::read_exact(&mut stream, &mut first).unwrap();
        stream.write_all(&first).unwrap();
    });
    let recorder = recorder(&[]);
    let mut tunnel = recorder.connect();
    tunnel.send(format!("CONNECT {address} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(tunnel.head().status, 200);
    tunnel.send("SSH-2.0-x");
    assert_eq!(tunnel.rest(), b"SSH-2.0-x");
    service.join().unwrap();
    let (output, _) = recorder.interrupt();
    assert!(lines(&output).contains(&"left out: 1 connection that passed unread"), "{output:?}");
    assert!(lines(&output).contains(&"  passed unread: 127.0.0.1"), "{output:?}");
}

#[test]
fn responses_without_a_body_keep_their_headers() {
    let server = Server::start(|seen| match seen.line().split(' ').next() {
        Some("HEAD") => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nETag: \"a\"\r\n\r\n"),
        Some("GET") => Reply::raw("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
        _ => Reply::raw("HTTP/1.1 204 No Content\r\nETag: \"a\"\r\n\r\n"),
    });
    let recorder = recorder(&[]);
    let mut connection = recorder.connect();
    let mut statuses = Vec::new();
    for (method, headers) in [("HEAD", ""), ("GET", "If-None-Match: \"a\"\r\n"), ("DELETE", "")] {
        connection.send(format!("{method} {} HTTP/1.1\r\nHost: h\r\n{headers}\r\n", server.url("/x")));
        let head = connection.head();
        assert_eq!(head.header("etag"), Some("\"a\""), "{head:?}");
        assert_eq!(head.header("date"), None, "nothing is added");
        statuses.push((head.status, head.header("content-length").map(str::to_owned)));
    }
    assert_eq!(statuses, [(200, Some("5000".to_owned())), (304, None), (204, None)]);
    let (_, weir) = recorder.interrupt();
    // A load has no cache, so that what was not modified is there.
    let expected = "HEAD {{base_url}}/x\nHTTP 200\n\nGET {{base_url}}/x\nHTTP 200\n\nDELETE {{base_url}}/x\nHTTP 204\n";
    assert_eq!(weir.read("shop.hurl"), expected);
}
