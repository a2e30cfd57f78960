//! Callers that do harm: floods and dribbles, among callers that have to be served all the same; and files that are
//! half written.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a test has a clock of its own")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_testing::{Authority, Raw, Server, Serving, TlsClient, Weir, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway over TLS with a certificate of this authority.
fn secure(authority: &Authority, server: &Server, args: &[&str]) -> Serving {
    let weir = Weir::new();
    authority.issue("localhost").files(&weir, "site");
    weir.write(
        "gate.toml",
        format!(
            "admin = \"127.0.0.1:0\"\n[[listeners]]\nname = \"public\"\naddress = \"127.0.0.1:0\"\n\
             tls = {{ certificates = [{{ cert = \"site.pem\", key = \"site-key.pem\" }}] }}\n\
             upstreams.backend.urls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n",
            server.url("")
        )
        .replace("upstreams.backend.urls", "[upstreams.backend]\nurls"),
    );
    Serving::gate_file(weir, args)
}

#[test]
fn callers_that_dribble_over_tls_are_closed_and_others_served() {
    const SLOW: usize = 100;
    let (authority, server) = (Authority::new(), Server::hello());
    let gate = secure(&authority, &server, &["--head-timeout", "1s"]);
    let client = TlsClient::build().trusting(&authority);
    let began = Instant::now();
    // Half of them never finish a handshake, half never a head: a byte now and then.
    let mut handshakes: Vec<TcpStream> = (0..SLOW).map(|_| TcpStream::connect(&gate.address).unwrap()).collect();
    let mut heads: Vec<Raw> = (0..SLOW).map(|_| client.connect(&gate.address, "localhost")).collect();
    let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let head =
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    for round in 0.. {
        for stream in &mut handshakes {
            let _ = stream.write_all(&[hello.get(round).copied().unwrap_or(0)]);
        }
        for connection in &mut heads {
            let _ = connection.try_send([head.get(round).copied().unwrap_or(b'a')]);
        }
        let mut good = client.connect(&gate.address, "localhost");
        assert_eq!(good.get("/").text(), "hello");
        if began.elapsed() > Duration::from_millis(2500) {
            break;
        }
        thread::yield_now();
    }
    for mut stream in handshakes {
        let mut rest = Vec::new();
        // An alert, and the end.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < 64, "{rest:?}");
    }
    assert!(heads.iter_mut().all(|connection| connection.has_ended(PATIENCE)));
    assert_eq!(client.connect(&gate.address, "localhost").get("/").text(), "hello");
    assert_eq!(gate.stop().code, 0);
}

#[test]
fn half_written_certificates_change_nothing() {
    let (old, new, server) = (Authority::new(), Authority::new(), Server::hello());
    let gate = secure(&old, &server, &[]);
    let (old_client, new_client) = (TlsClient::build().trusting(&old), TlsClient::build().trusting(&new));
    let pair = new.issue("localhost");
    let (cert, key): (&[u8], &[u8]) = (pair.cert.as_ref(), pair.key.as_ref());
    for (name, whole) in [("site.pem", cert), ("site-key.pem", key)] {
        for part in [0, 1, whole.len() / 2, whole.len() - 30, whole.len() - 1] {
            gate.weir.write(name, &whole[..part]);
            gate.signal(Signal::HUP);
            if name == "site.pem" || part < whole.len() - 30 {
                assert_eq!(old_client.connect(&gate.address, "localhost").get("/").text(), "hello", "{name} {part}");
            }
        }
    }
    gate.weir.write("site-key.pem", key);
    gate.weir.write("site.pem", cert);
    until("the new certificate", PATIENCE, || new_client.try_connect(&gate.address, "localhost").is_ok());
    assert_eq!(gate.stop().code, 0);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The preface, and an empty SETTINGS.
fn greeting() -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[])].concat()
}

/// GET / of `h` over HTTP.
const GET: [u8; 6] = [0x82, 0x86, 0x84, 0x41, 1, b'h'];

/// Sends until the other end has closed, or all is sent; whether it has closed.
fn flood(address: &str, pieces: impl Iterator<Item = Vec<u8>>) -> bool {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&greeting()).unwrap();
    // What comes back is read, so that nothing waits for it.
    let mut reader = stream.try_clone().unwrap();
    let read = thread::spawn(move || {
        let mut buffer = [0; 4096];
        while reader.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    let mut is_closed = pieces.into_iter().any(|piece| stream.write_all(&piece).is_err());
    // What was sent may not have been read yet.
    let end = Instant::now() + Duration::from_secs(2);
    while !is_closed && Instant::now() < end {
        is_closed = read.is_finished();
        thread::yield_now();
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
    read.join().unwrap();
    is_closed
}

#[test]
fn floods_over_http2_leave_the_others_served() {
    const FRAMES: u32 = 20_000;
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url(""), "--max-in-flight", "100"]);
    let streams = || (0..FRAMES).map(|number| 2 * number + 1);
    let batched = |pieces: Vec<Vec<u8>>| pieces.chunks(100).map(<[Vec<u8>]>::concat).collect::<Vec<_>>().into_iter();
    // Streams that are reset as soon as they are opened (CVE-2023-44487).
    let resets = streams().map(|id| [frame(1, 5, id, &GET), frame(3, 0, id, &[0, 0, 0, 8])].concat()).collect();
    // A head that never ends (CVE-2024-27316).
    let field = [&[0x40, 1, b'x', 100][..], &[b'v'; 100]].concat();
    let endless = std::iter::once(frame(1, 1, 1, &GET)).chain((0..FRAMES).map(|_| frame(9, 0, 1, &field))).collect();
    // Pings and settings, each of which has to be acknowledged (CVE-2019-9512, CVE-2019-9515).
    let pings = (0..FRAMES).map(|_| frame(6, 0, 0, &[0; 8])).collect();
    let settings = (0..FRAMES).map(|_| frame(4, 0, 0, &[0, 4, 0, 0, 0xff, 0xff])).collect();
    // Frames of nothing (CVE-2019-9518).
    let open = std::iter::once(frame(1, 4, 1, &GET));
    let empty = open.chain((0..FRAMES).map(|_| frame(0, 0, 1, &[]))).collect();
    let mut closed = Vec::new();
    for (name, pieces) in
        [("resets", resets), ("endless head", endless), ("pings", pings), ("settings", settings), ("empty", empty)]
    {
        let address = gate.address.clone();
        let pieces = batched(pieces);
        let flooding = thread::spawn(move || flood(&address, pieces));
        // The others are served meanwhile.
        for _ in 0..50 {
            assert_eq!(gate.get("/good").text(), "hello", "{name}");
        }
        if flooding.join().unwrap() {
            closed.push(name);
        }
    }
    assert!(closed.contains(&"endless head") && closed.contains(&"resets"), "{closed:?}");
    until("the end of all attempts", PATIENCE, || {
        gate.metric("weir_gate_attempts_in_flight{upstream=\"upstream\"}") == 0.0
            && gate.metric("weir_gate_in_flight{upstream=\"upstream\"}") == 0.0
    });
    assert_eq!(gate.get("/after").text(), "hello");
    assert_eq!(gate.stop().code, 0);
}

#[test]
fn floods_of_fields_are_rejected_and_cost_no_attempt() {
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url("")]);
    let many: String = (0..5000).map(|number| format!("x-{number}: v\r\n")).collect();
    let long = format!("x: {}\r\n", "v".repeat(1 << 20));
    for fields in [many, long] {
        for _ in 0..20 {
            let mut client = gate.connect();
            // The rest may not be read.
            let _ = client.try_send(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
            let text = String::from_utf8(client.leftovers()).unwrap();
            assert!(text.is_empty() || text.starts_with("HTTP/1.1 431"), "{text}");
        }
        assert_eq!(gate.get("/good").text(), "hello");
    }
    assert_eq!(server.requests(), 2);
    gate.stop();
}

/// Callers keep connections that they do not use. Such a connection is its socket and little else, with TLS or without,
/// and serves its next request as before: also one that comes in pieces.
#[test]
fn idle_connections_give_their_memory_back_and_go_on() {
    const COUNT: u64 = 200;
    let (authority, server) = (Authority::new(), Server::hello());
    let mut secured = secure(&authority, &server, &[]);
    let address = secured.address.clone();
    let client = TlsClient::build().trusting(&authority);
    let mut tls: Vec<Raw> = (0..20).map(|_| client.connect(&address, "localhost")).collect();
    let mut gate = Serving::gate(&["--upstream", &server.url("")]);
    let mut plain: Vec<Raw> = (0..COUNT).map(|_| gate.connect()).collect();
    for client in tls.iter_mut().chain(&mut plain) {
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    // On a busy machine the first ones may rest before the last ones have their responses.
    let mut busy = 0u64;
    for client in tls.iter_mut().chain(&mut plain) {
        assert_eq!(client.answer().text(), "hello");
        busy = busy.max(gate.running().status_kib("VmRSS"));
    }
    // A call in progress has more than 16 KiB.
    until("freed memory", PATIENCE, || gate.running().status_kib("VmRSS") + COUNT * 8 < busy);
    for client in tls.iter_mut().chain(&mut plain) {
        client.send("GET / HT");
        client.send("TP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!((client.answer().text(), client.answer().text()), ("hello", "hello"));
    }
    // And rests again; the end of either side is noticed.
    until("freed memory", PATIENCE, || gate.running().status_kib("VmRSS") + COUNT * 8 < busy);
    plain.truncate(1);
    until("closed connections", PATIENCE, || gate.metric("weir_connections_open") <= 2.0);
    gate.signal(Signal::TERM);
    assert!(plain[0].rest().is_empty());
    assert_eq!(gate.finish().code, 0);
    assert!(secured.running().is_alive());
}
