//! `weir gate` between peers of all kinds: HTTP/2, TLS, tunnels, streams, and bodies larger than its memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use weir_testing::{Authority, Gate, Http2Reply, Http2Service, Reply, Server, Serving, Weir, load, over_http2, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway for all paths to one upstream, with extra lines in its table.
fn gate(weir: Weir, url: &str, more: &str) -> Serving {
    let all = "[[routes]]\nmatch = { path = \"/{*rest}\" }\n";
    weir.write("gate.toml", format!("[upstreams.backend]\nurls = [\"{url}\"]\n{more}\n{all}"));
    Serving::gate_in(weir, &["--config", "gate.toml"])
}

fn request(address: &str, path: &str, body: Bytes) -> Request<Full<Bytes>> {
    let method = if body.is_empty() { "GET" } else { "POST" };
    Request::builder().method(method).uri(format!("http://{address}{path}")).body(Full::new(body)).unwrap()
}

#[test]
fn http2_is_accepted_and_forwarded_as_either_version() {
    let body = Serving::start(&["httpbin"]);
    let large = Bytes::from(vec![b'y'; 1_000_000]);
    for protocol in ["http1", "http2"] {
        let gate = gate(Weir::new(), &body.url, &format!("protocol = \"{protocol}\""));
        over_http2(&gate.address, async |mut sender| {
            let ask = |path: String, body: Bytes| request(&gate.address, &path, body);
            // All at once on one connection.
            let asked: Vec<_> = (0..50)
                .map(|k| sender.send_request(ask(format!("/static?bytes={}", k * 1000), Bytes::new())))
                .collect();
            for (k, answer) in asked.into_iter().enumerate() {
                let answer = answer.await.unwrap();
                assert_eq!((answer.version(), answer.status().as_u16()), (Version::HTTP_2, 200), "{protocol}");
                assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), k * 1000, "{protocol}");
            }
            let answer = sender.send_request(ask("/echo".to_owned(), large.clone())).await.unwrap();
            assert!(answer.into_body().collect().await.unwrap().to_bytes() == large, "{protocol}");
            let answer = sender.send_request(ask("/status/418".to_owned(), Bytes::new())).await.unwrap();
            assert_eq!(answer.status().as_u16(), 418, "{protocol}");
        });
        assert_eq!(gate.get("/static?bytes=5").body.len(), 5, "and HTTP/1.1 on the same port");
    }
}

#[test]
fn a_connection_to_a_host_has_as_many_streams_as_it_may() {
    let server = Http2Service::build().start(|_| Http2Reply::after(Duration::from_millis(20)));
    let settings = "protocol = \"http2\"\nstreams = 3\nh2_window = 65536\nconcurrency_limit = \"none\"";
    let gate = gate(Weir::new(), &server.url("").replace("https:", "http:"), settings);
    let run = load(&format!("{}/", gate.url), &["-c", "12", "-n", "240"]);
    assert_eq!((run.requests.ok, run.requests.failed, server.requests()), (240, 0, 240));
    assert_eq!(server.most_streams(), 3);
    assert!(server.connections() >= 4, "{}", server.connections());
}

/// An HTTP/2 service that responds with trailers, as gRPC does, and with the request's TE.
fn with_trailers() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let service = hyper::service::service_fn(async |request: Request<Incoming>| {
                    let told = request.headers().get("te").cloned().unwrap_or(HeaderValue::from_static("none"));
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let trailers: HeaderMap = [("grpc-status", "0"), ("x-te", told.to_str().unwrap())]
                        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
                        .into_iter()
                        .collect();
                    let body = Full::new(body).with_trailers(async { Some(Ok::<_, Infallible>(trailers)) });
                    Ok::<_, Infallible>(Response::new(Box::pin(body)))
                });
                let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
            }
        });
    });
    url
}

#[test]
fn trailers_are_forwarded() {
    let gate = gate(Weir::new(), &with_trailers(), "protocol = \"http2\"");
    over_http2(&gate.address, async |mut sender| {
        let mut call = request(&gate.address, "/package.Service/Method", "message".into());
        call.headers_mut().insert("te", HeaderValue::from_static("trailers"));
        call.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
        let answer = sender.send_request(call).await.unwrap().into_body().collect().await.unwrap();
        let trailers = answer.trailers().cloned().unwrap();
        assert_eq!(
            (&trailers["grpc-status"], &trailers["x-te"]),
            (&"0".parse().unwrap(), &"trailers".parse().unwrap())
        );
        assert_eq!(answer.to_bytes(), "message");
    });
}

/// Status of a service with a certificate for `name`, by the upstream's `tls`.
fn status_of(authority: &Authority, name: &str, table: &str) -> (u16, Option<String>) {
    let server = Server::build().tls(authority.service(name)).start(|_| Reply::ok("hello"));
    let weir = Weir::new();
    authority.file(&weir, "ca.pem");
    Authority::new().file(&weir, "other.pem");
    let gate = gate(weir, &server.url(""), &format!("tls = {{ {table} }}"));
    let mut client = gate.connect();
    let status = client.get("/").status;
    if status == 200 {
        assert_eq!(client.get("/").text(), "hello");
        assert_eq!(server.counts().connections, 1, "connections are kept with TLS, too");
    }
    (status, server.names().first().cloned().flatten())
}

#[test]
fn the_certificate_of_a_tls_upstream_is_verified() {
    let authority = Authority::new();
    let asked = Some("service.example".to_owned());
    for (name, table, expected) in [
        ("127.0.0.1", "cacert = \"ca.pem\"", (200, None)),
        ("127.0.0.1", "cacert = \"other.pem\"", (502, None)),
        ("127.0.0.1", "insecure = true", (200, None)),
        ("service.example", "cacert = \"ca.pem\"", (502, None)),
        ("service.example", "cacert = \"ca.pem\", server_name = \"service.example\"", (200, asked)),
        ("127.0.0.1", "cacert = \"ca.pem\", server_name = \"service.example\"", (502, None)),
    ] {
        assert_eq!(status_of(&authority, name, table), expected, "{name}: {table}");
    }
}

/// A service that upgrades and echoes bytes until its peer has finished, or until it has read a `!`.
fn echo() -> (String, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let echoing = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
        stream.write_all(switch.as_bytes()).unwrap();
        echo_on(&mut stream)
    });
    (url, echoing)
}

fn echo_on(stream: &mut TcpStream) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), [0; 64 * 1024]);
    loop {
        let read = stream.read(&mut piece).unwrap_or(0);
        if read == 0 || stream.write_all(&piece[..read]).is_err() || piece[..read].contains(&b'!') {
            return all;
        }
        all.extend_from_slice(&piece[..read]);
    }
}

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

#[test]
fn a_tunnel_carries_bytes_both_ways_and_ends_when_either_end_does() {
    for caller_ends in [true, false] {
        let (url, echoing) = echo();
        let gate = gate(Weir::new(), &url, "");
        let before = gate.open_files();
        let mut client = gate.connect();
        client.send(UPGRADE);
        assert_eq!(client.head().status, 101);
        for k in 0..1000 {
            let message = format!("message {k}");
            client.send(&message);
            assert_eq!(client.take(message.len()), message.as_bytes());
        }
        // More than all buffers between the two ends, in both directions at once.
        let large: Vec<u8> = (0..8_u32 << 20).map(|k| (k % 31) as u8).collect();
        let mut twin = client.twin();
        let sent = large.clone();
        let sending = thread::spawn(move || twin.send(sent));
        assert!(client.take(large.len()) == large);
        sending.join().unwrap();
        if caller_ends {
            client.finish();
        } else {
            client.send("!");
            assert_eq!(client.take(1), b"!");
        }
        assert!(client.has_ended(PATIENCE), "{caller_ends}");
        drop(client);
        assert!(echoing.join().unwrap().len() >= large.len());
        until("the tunnel's end", PATIENCE, || gate.open_files() <= before);
    }
}

#[test]
fn an_event_arrives_before_the_next_is_sent() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    // Also with a policy that allows resends.
    for policy in [&[][..], &["--retries", "1", "--hedge", "p95"]] {
        let gates: [Gate; 3] = Default::default();
        let server = Server::start({
            let gates = gates.clone();
            move |_| {
                let event = |reply: Reply, gate| reply.send("9\r\ndata: x\n\n\r\n").wait_for(gate);
                gates.iter().fold(Reply::raw(head), event).send("0\r\n\r\n")
            }
        });
        let gate = Serving::gate(&[&["--upstream", &server.url("")], policy].concat());
        let mut client = gate.connect();
        client.send("GET /events HTTP/1.1\r\nHost: test\r\n\r\n");
        assert_eq!(client.head().header("content-type"), Some("text/event-stream"));
        for gate in &gates {
            assert_eq!(client.take(14), b"9\r\ndata: x\n\n\r\n");
            gate.open();
        }
        assert_eq!(client.take(5), b"0\r\n\r\n");
    }
}

#[test]
fn bodies_larger_than_memory_are_streamed() {
    let body = Serving::start(&["httpbin"]);
    let mut gate = gate(Weir::new(), &body.url, "");
    gate.get("/static?bytes=1000000");
    let before = gate.running().status_kib("VmHWM");
    let mut client = gate.connect();
    client.send("GET /static?bytes=200000000 HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(client.head().header("content-length"), Some("200000000"));
    for _ in 0..200 {
        client.take(1_000_000);
    }
    // And back and forth.
    let mut twin = client.twin();
    let sending = thread::spawn(move || {
        twin.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 100000000\r\n\r\n");
        let megabyte = vec![b'z'; 1_000_000];
        (0..100).for_each(|_| twin.send(&megabyte));
    });
    assert_eq!(client.head().status, 200);
    // The echo may be split into other chunks.
    for _ in 0..100 {
        client.take(1_000_000);
    }
    sending.join().unwrap();
    let after = gate.running().status_kib("VmHWM");
    assert!(after < before + 8 * 1024, "{before} KiB became {after} KiB");
}
