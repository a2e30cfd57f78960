//! What is asked of whom: methods, headers, bodies, and the ways to the service.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::net::{SocketAddr, ToSocketAddrs};

use weir_testing::{Reply, Seen, Server, Weir, load};

/// The only request that the service gets with these flags.
fn asked(path: &str, flags: &[&str]) -> Seen {
    let server = Server::hello();
    load(&server.url(path), &[&["-n", "1", "-c", "1"], flags].concat());
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    seen[0].clone()
}

#[test]
fn a_plain_request_is_a_get_with_host_agent_and_accept() {
    let server = Server::hello();
    load(&server.url("/a/b?c=d#e"), &["-n", "1"]);
    let seen = &server.seen()[0];
    let agent = concat!("weir/", env!("CARGO_PKG_VERSION"));
    let head = format!("GET /a/b?c=d HTTP/1.1\r\nHost: {}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n", server.address());
    assert_eq!((seen.head.as_str(), seen.body.len()), (head.as_str(), 0));
}

#[test]
fn headers_are_added_replaced_and_taken_away() {
    let seen = asked("/", &["-H", "X-One: 1", "-H", "x-two:2", "-H", "User-Agent: me/1 (a: b)", "-H", "accept:"]);
    assert_eq!(seen.header("X-One"), Some("1"));
    assert_eq!(seen.header("x-two"), Some("2"));
    assert_eq!(seen.header("user-agent"), Some("me/1 (a: b)"));
    assert_eq!(seen.header("accept"), None);
    assert_eq!(asked("/", &["-H", "Host: example.org"]).header("host"), Some("example.org"));
}

#[test]
fn a_repeated_header_is_sent_as_often() {
    let seen = asked("/", &["-H", "X-Tag: a", "-H", "X-Tag: b"]);
    assert!(seen.head.contains("X-Tag: a\r\nX-Tag: b\r\n"), "{}", seen.head);
}

#[test]
fn basic_authentication_comes_from_the_flag_or_from_the_url() {
    // RFC 7617, section 2.
    let known = Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_eq!(asked("/", &["--auth", "Aladdin:open sesame"]).header("authorization"), known);
    let server = Server::hello();
    let run = load(&format!("http://Aladdin:open%20sesame@{}/x", server.address()), &["-n", "1"]);
    assert_eq!(server.seen()[0].header("authorization"), known);
    assert_eq!(server.seen()[0].header("host"), Some(server.address().as_str()));
    assert_eq!(run.target.url, server.url("/x"));
}

#[test]
fn any_method_can_be_asked_for() {
    for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"] {
        let server = Server::start(|seen| {
            // To a HEAD, a length and no body.
            if seen.line().starts_with("HEAD") {
                Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
            } else {
                Reply::ok("hello")
            }
        });
        let run = load(&server.url("/"), &["-n", "3", "-c", "1", "-m", method]);
        assert_eq!((run.requests.ok, run.target.method.as_str()), (3, method));
        assert!(server.seen().iter().all(|seen| seen.line() == format!("{method} / HTTP/1.1")));
    }
}

#[test]
fn a_body_makes_it_a_post_and_may_come_from_a_file() {
    let seen = asked("/", &["-b", "a=b"]);
    assert_eq!((seen.line(), seen.body.as_slice()), ("POST / HTTP/1.1", b"a=b".as_slice()));
    assert_eq!(seen.header("content-length"), Some("3"));

    let (weir, server) = (Weir::new(), Server::hello());
    // Every byte, and more of them than a socket takes at once.
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    weir.write("body.bin", &bytes);
    let run = weir.load(&server.url("/"), &["-n", "2", "-c", "1", "-m", "PUT", "-b", "@body.bin"]);
    let seen = server.seen();
    assert!(seen.len() == 2 && seen.iter().all(|seen| seen.body == bytes && seen.line().starts_with("PUT")));
    assert_eq!(run.bytes.written, 2 * (seen[0].head.len() + 2 + bytes.len()) as u64);
}

#[test]
fn a_body_may_begin_with_a_dash_or_be_empty() {
    assert_eq!(asked("/", &["-b", "-1"]).body, b"-1");
    let seen = asked("/", &["-b", ""]);
    assert_eq!((seen.line(), seen.header("content-length")), ("POST / HTTP/1.1", Some("0")));
}

#[test]
fn a_unix_socket_is_asked_in_place_of_the_host() {
    let weir = Weir::new();
    let server = Server::build().start_unix(&weir.path("socket"), |_| Reply::ok("hello"));
    for flags in [["-n", "200", "-c", "4"].as_slice(), &["-r", "200", "-d", "500ms"], &["-n", "20", "--no-keepalive"]] {
        let run = weir.load("http://inside/x", &[&["--unix-socket", "socket"], flags].concat());
        assert_eq!(run.requests.failed, 0, "{flags:?}: {:?}", run.target.failure_details);
    }
    assert_eq!(server.requests(), 200 + 100 + 20);
    assert!(server.seen().iter().all(|seen| seen.header("host") == Some("inside")));
}

#[test]
fn a_unix_socket_with_a_full_queue_is_waited_for() {
    let weir = Weir::new();
    let _server = Server::build().start_unix(&weir.path("socket"), |_| Reply::ok("hello"));
    let output = weir.run(&[
        "load",
        "http://inside/",
        "--unix-socket",
        "socket",
        "-c",
        "600",
        "-n",
        "3000",
        "-t",
        "1",
        "--no-keepalive",
        "--format",
        "json",
    ]);
    let run = output.json();
    assert_eq!((run.requests.ok, run.requests.failed), (3000, 0), "{:?}", run.target.failure_details);
}

#[test]
fn ipv6_is_asked_with_brackets() {
    let server = Server::build().start_v6(|_| Reply::ok("hello"));
    let run = load(&server.url("/"), &["-n", "20", "-c", "2"]);
    assert_eq!((run.requests.ok, run.target.host.as_str()), (20, "::1"));
    assert_eq!(server.seen()[0].header("host"), Some(server.address().as_str()));
}

#[test]
fn localhost_finds_the_family_that_listens() {
    let families =
        |is: fn(&SocketAddr) -> bool| ("localhost", 0).to_socket_addrs().unwrap().any(|address| is(&address));
    let mut servers = Vec::new();
    // Where localhost has an address of that family at all.
    if families(SocketAddr::is_ipv4) {
        servers.push(Server::hello());
    }
    if families(SocketAddr::is_ipv6) {
        servers.push(Server::build().start_v6(|_| Reply::ok("hello")));
    }
    for server in servers {
        let run = load(&format!("http://localhost:{}/", server.port()), &["-n", "5"]);
        assert_eq!(run.requests.ok, 5);
    }
}

#[test]
fn connect_to_changes_the_way_and_not_the_request() {
    for server in [Server::hello(), Server::build().start_v6(|_| Reply::ok("hello"))] {
        let run = load("http://service.example:81/x", &["-n", "5", "--connect-to", &server.address()]);
        assert_eq!((run.requests.ok, run.target.host.as_str(), run.target.port), (5, "service.example", 81));
        assert!(server.seen().iter().all(|seen| seen.header("host") == Some("service.example:81")));
    }
}

#[test]
fn the_bytes_that_are_reported_are_those_on_the_wire() {
    let answer = "HTTP/1.1 200 OK\r\nServer: tiny/2\r\nContent-Length: 5\r\n\r\nhello";
    let server = Server::start(move |_| Reply::raw(answer));
    let run = load(&server.url("/"), &["-n", "10", "-c", "2"]);
    assert_eq!((run.bytes.read, run.bytes.body_in), (10 * answer.len() as u64, 50));
    assert_eq!(run.bytes.written, 10 * (server.seen()[0].head.len() as u64 + 2));
    assert_eq!((run.target.server.as_deref(), run.target.body_length), (Some("tiny/2"), Some(5)));
}
