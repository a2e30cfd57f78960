//! What passes through a gateway unread: connections that switch to another protocol, and CONNECT. Only what a route
//! names may.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Version};
use http_body_util::{BodyExt, Full};
use weir_testing::{Raw, Reply, Server, Serving, Weir, over_http2};

/// A gateway whose only route has these further lines.
fn gate_to(server: &Server, route: &str) -> Serving {
    let weir = Weir::new();
    let config = format!(
        "[upstreams.backend]\nurls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n{route}\n",
        server.url("")
    );
    weir.write("gate.toml", config);
    Serving::gate_in(weir, &["--config", "gate.toml"])
}

/// A service that switches to whatever it is asked for, and then says "tunnel".
fn switching() -> Server {
    Server::start(|seen| {
        match seen.header("upgrade") {
        Some(protocol) => Reply::raw(format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-Hop\r\nX-Hop: 1\r\nX-Own: 2\r\nUpgrade: {protocol}\r\n\r\ntunnel"
        ))
        .freeze(),
        None => Reply::ok("ordinary"),
    }
    })
}

fn request(line: &str, fields: &str, body: &str) -> String {
    format!("{line}\r\nHost: api.example\r\n{fields}\r\n{body}")
}

#[test]
fn what_a_route_does_not_name_is_an_ordinary_request() {
    let server = switching();
    let gate = gate_to(&server, "");
    let get = |fields: &str| request("GET /ws HTTP/1.1", fields, "");
    let upgrade = |lines: &str| get(&format!("Connection: Upgrade\r\n{lines}"));
    let websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let cases = [
        // HTTP/2 in a tunnel: all rules for requests would be passed.
        get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"),
        upgrade("Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"),
        upgrade("Upgrade: H2C\r\n"),
        upgrade("Upgrade:\th2c \r\n"),
        upgrade("Upgrade: h2\r\n"),
        upgrade("Upgrade: HTTP/2.0\r\n"),
        upgrade("Upgrade: TLS/1.0\r\n"),
        upgrade("Upgrade: other\r\n"),
        // More than one protocol, of which each reader may take another one.
        upgrade("Upgrade: websocket, h2c\r\n"),
        upgrade("Upgrade: h2c, websocket\r\n"),
        upgrade("Upgrade: websocket\r\nUpgrade: h2c\r\n"),
        upgrade("Upgrade: h2c\r\nUpgrade: websocket\r\n"),
        upgrade("Upgrade: websocket,\r\n"),
        upgrade("Upgrade: websocket;h2c\r\n"),
        upgrade("Upgrade: websocket h2c\r\n"),
        upgrade("Upgrade:\r\n"),
        get("Upgrade: websocket\r\n"),
        get("Connection: close\r\nUpgrade: websocket\r\n"),
        // A body would be of the one protocol or of the other.
        request("GET /ws HTTP/1.1", &format!("{websocket}Content-Length: 4\r\n"), "body"),
        request("POST /ws HTTP/1.1", &format!("{websocket}Expect: 100-continue\r\nContent-Length: 4\r\n"), "body"),
        request("POST /ws HTTP/1.1", &format!("{websocket}Content-Length: 0\r\n"), ""),
        request("HEAD /ws HTTP/1.1", websocket, ""),
        // HTTP/1.0 has none.
        request("GET /ws HTTP/1.0", websocket, ""),
        // The last one: the scripted service takes chunks for a further request.
        request("GET /ws HTTP/1.1", &format!("{websocket}Transfer-Encoding: chunked\r\n"), "4\r\nbody\r\n0\r\n\r\n"),
    ];
    for (number, case) in cases.iter().enumerate() {
        let mut client = gate.connect();
        client.send(case);
        let mut status = client.head().status;
        if status == 100 {
            status = client.head().status;
        }
        assert_eq!(status, 200, "{case}");
        let seen = server.seen();
        assert!(seen.len() > number, "{case}");
        let sent = seen[number].head.to_ascii_lowercase();
        assert!(!sent.contains("upgrade") && !sent.contains("http2-settings"), "{case}\n{sent}");
    }
    gate.stop();
}

#[test]
fn a_websocket_is_passed_on_in_all_spellings() {
    let server = switching();
    let gate = gate_to(&server, "rewrite = { response_set = { \"x-own\" = \"3\" } }");
    for fields in [
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
        "Connection: keep-alive,UPGRADE\r\nUpgrade: WebSocket\r\n",
        "upgrade:   WEBSOCKET  \r\nconnection: x\r\nConnection: upgrade\r\nExpect: 100-continue\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 0\r\n",
    ] {
        let mut client = gate.connect();
        client.send(request("GET /ws HTTP/1.1", fields, ""));
        let head = client.head();
        assert_eq!(head.status, 101, "{fields}");
        let names = ["upgrade", "connection", "x-own", "x-hop"];
        assert_eq!(names.map(|name| head.header(name)), [Some("websocket"), Some("upgrade"), Some("3"), None]);
        assert_eq!(client.take(6), b"tunnel");
        let seen = server.seen().pop().unwrap();
        assert_eq!((seen.header("upgrade"), seen.header("connection")), (Some("websocket"), Some("upgrade")));
        assert_eq!((seen.header("http2-settings"), seen.header("expect")), (None, None));
    }
    gate.stop();
}

#[test]
fn a_switch_to_another_protocol_than_was_asked_for_is_a_502() {
    let answers = [
        "Upgrade: h2c\r\n",
        "",
        "Upgrade: websocket, h2c\r\n",
        "Upgrade: websocket\r\nUpgrade: h2c\r\n",
        "Upgrade: h2c\r\nUpgrade: websocket\r\n",
        "Upgrade:\r\n",
    ];
    let server = Server::start(move |seen| {
        let number: usize = seen.line().split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        let fields = answers[number];
        Reply::raw(format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{fields}\r\ntunnel")).freeze()
    });
    let gate = gate_to(&server, "");
    for (number, fields) in answers.iter().enumerate() {
        let mut client = gate.connect();
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
        let answer = client.answer();
        assert_eq!(answer.status, 502, "{fields}");
        assert!(answer.text().contains("protocol"), "{}", answer.text());
        // And the connection is one of HTTP still.
        assert_eq!(client.get("/healthz").status, 200);
    }
    gate.stop();
}

#[test]
fn a_route_names_its_protocols() {
    let server = switching();
    let ask = |gate: &Serving, method: &str, protocol: &str| {
        let mut client = gate.connect();
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"));
        client.head().status
    };
    let gate = gate_to(&server, "upgrades = [\"spdy/3.1\", \"tcp\"]");
    let statuses = [("GET", "SPDY/3.1"), ("POST", "tcp"), ("GET", "websocket"), ("GET", "h2c")];
    assert_eq!(statuses.map(|(method, protocol)| ask(&gate, method, protocol)), [101, 101, 200, 200]);
    gate.stop();
    let gate = gate_to(&server, "upgrades = []");
    assert_eq!(ask(&gate, "GET", "websocket"), 200);
    gate.stop();
    for (upgrades, expected) in [
        ("[\"h2c\"]", "carries requests"),
        ("[\"websocket\", \"TLS/1.0\"]", "carries requests"),
        ("[\"WebSocket\"]", "in lower case"),
        ("[\"a, b\"]", "in lower case"),
        ("[\"websocket\", \"websocket\"]", "duplicate"),
    ] {
        let weir = Weir::new();
        let route = format!("[[routes]]\nmatch = {{ path = \"/\" }}\nupgrades = {upgrades}\n");
        weir.write("gate.toml", format!("upstreams.backend.urls = [\"http://127.0.0.1:1\"]\n{route}"));
        let output = weir.run(&["gate", "check", "gate.toml"]);
        assert!(output.code == 2 && output.stderr.contains(expected), "{upgrades}: {output:?}");
    }
}

#[test]
fn an_upgrade_is_sent_once_and_not_to_a_mirror() {
    let (server, shadow) = (switching(), Server::hello());
    let weir = Weir::new();
    let config = format!(
        "[upstreams.backend]\nurls = [\"{}\"]\n[upstreams.shadow]\nurls = [\"{}\"]\n[policies.all]\n\
         hedge = [{{ after = \"0ms\" }}]\nretries = 3\nretry_methods = \"all\"\n[[routes]]\n\
         match = {{ path = \"/{{*rest}}\" }}\nupstream = \"backend\"\npolicy = \"all\"\nmirror = {{ upstream = \"shadow\" }}\n",
        server.url(""),
        shadow.url("")
    );
    weir.write("gate.toml", config);
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    for number in 1..4 {
        let mut client = gate.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        assert_eq!(client.head().status, 101);
        assert_eq!((server.requests(), shadow.requests()), (number, 0));
    }
    gate.stop();
}

#[test]
fn connect_is_rejected_in_all_forms() {
    let server = switching();
    let gate = gate_to(&server, "");
    for line in [
        "CONNECT /x HTTP/1.1",
        "CONNECT evil.example:443 HTTP/1.1",
        "CONNECT http://api.example/x HTTP/1.1",
        "CONNECT * HTTP/1.1",
        "CONNECT /x HTTP/1.0",
        "CONNECT /x?a=b HTTP/1.1",
        "connect /x HTTP/1.1",
        "Connect evil.example:443 HTTP/1.1",
    ] {
        for fields in ["", "Connection: Upgrade\r\nUpgrade: websocket\r\n", "Content-Length: 3\r\n"] {
            // What follows is a tunnel's to a reader that takes the request for accepted.
            let text = request(line, fields, "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n");
            let received = String::from_utf8_lossy(&gate.raw(text)).into_owned();
            let statuses: Vec<&str> = received.split("HTTP/1.").skip(1).map(|rest| &rest[2..5]).collect();
            assert!(matches!(statuses.as_slice(), ["501" | "400"]), "{line} {fields}: {received}");
            assert!(received.to_ascii_lowercase().contains("connection: close"), "{received}");
        }
    }
    over_http2(&gate.address, async |mut sender| {
        let request = Request::builder().method(Method::CONNECT).uri("evil.example:443").body(Full::default()).unwrap();
        let refused = sender.send_request(request).await;
        assert!(refused.is_err() || refused.is_ok_and(|response| response.status() == 501));
    });
    assert_eq!(server.requests(), 0);
    gate.stop();
}

/// A field of HPACK as a literal without an index.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |it: &str| [&[u8::try_from(it.len()).unwrap()], it.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

#[test]
fn an_extended_connect_of_http2_opens_no_tunnel() {
    let server = switching();
    let gate = gate_to(&server, "");
    for protocol in ["websocket", "h2c", "connect-udp"] {
        let fields = [
            (":method", "CONNECT"),
            (":protocol", protocol),
            (":scheme", "http"),
            (":path", "/ws"),
            (":authority", "api.example"),
        ];
        let block = fields.map(|(name, value)| literal(name, value)).concat();
        let mut stream = TcpStream::connect(&gate.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&frame(4, 0, 0, &[])).unwrap();
        stream.write_all(&frame(1, 4, 1, &block)).unwrap();
        stream.write_all(&frame(0, 0, 1, b"GET /hidden HTTP/1.1\r\n\r\n")).unwrap();
        // The end of the stream or of the connection, or a rejection.
        loop {
            let mut head = [0; 9];
            if stream.read_exact(&mut head).is_err() {
                break;
            }
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            stream.read_exact(&mut payload).unwrap();
            match head[3] {
                3 | 7 => break,
                // The first field of the head is its status: 501 is in no table.
                1 => {
                    assert!(payload.first().is_some_and(|byte| *byte != 0x88), "not a 200: {payload:?}");
                    break;
                }
                _ => {}
            }
        }
    }
    assert_eq!(server.requests(), 0);
    gate.stop();
}

#[test]
fn a_request_over_http2_names_its_host() {
    let server = Server::hello();
    let gate = gate_to(&server, "");
    over_http2(&gate.address, async |mut sender| {
        for (uri, host, expected) in [
            ("/a", None, 400),
            ("/a", Some("api.example"), 200),
            ("/a", Some("a, b"), 400),
            ("http://api.example/a", None, 200),
            ("http://api.example/a", Some("API.example"), 200),
            ("http://api.example/a", Some("evil.example"), 400),
        ] {
            let mut request = Request::builder().uri(uri).version(Version::HTTP_11);
            if let Some(host) = host {
                request = request.header("host", host);
            }
            let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
            assert_eq!(response.status(), expected, "{uri} {host:?}");
            response.into_body().collect().await.unwrap();
        }
    });
    assert_eq!(server.requests(), 3);
    gate.stop();
}

#[test]
fn a_head_with_lf_alone_is_rejected() {
    let server = Server::hello();
    let gate = gate_to(&server, "");
    for head in [
        "GET /a HTTP/1.1\nHost: a\n\n",
        "GET /a HTTP/1.1\r\nHost: a\nX-A: b\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\nX-A: b\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\n\n",
        "GET /a HTTP/1.1\nHost: a\r\n\r\n",
    ] {
        let mut client = Raw::connect(&gate.address);
        client.send(head);
        assert_eq!(client.answer().status, 400, "{head:?}");
    }
    assert_eq!(server.requests(), 0);
    gate.stop();
}
