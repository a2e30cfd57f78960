//! Messages that the two ends of a gateway could read differently, and possible deadlocks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use weir_base::Nanos;
use weir_gate::config::{Config, HostConfig, PolicyConfig, RouteConfig, UpstreamConfig};
use weir_gate::{self as gate, Gate};
use weir_resilience::policy::Policy;
use weir_retry::backoff::Backoff;
use weir_retry::policy::RetryPolicy;
use weir_server::Options;
use weir_testing::{Raw, Reply, Server, until};

/// Timeout of waits; far above all expected times.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway to one upstream, with some changes of the default configuration.
fn fronted(server: &Server, change: impl FnOnce(&mut UpstreamConfig, &mut RouteConfig)) -> Gate {
    let host = HostConfig { url: server.url("/"), socket: None, weight: 1 };
    let mut upstream = UpstreamConfig { hosts: vec![host], ..UpstreamConfig::new("upstream") };
    let policy = PolicyConfig { policy: Policy::default(), ..PolicyConfig::new("default") };
    let mut route = RouteConfig { policy, ..RouteConfig::forward_all("upstream", "/{*rest}") };
    change(&mut upstream, &mut route);
    let config = Config { upstreams: vec![upstream], routes: vec![route], ..Config::default() };
    gate::start(&config, gate::Options::default(), &Options::default()).unwrap()
}

fn plain(server: &Server) -> Gate {
    fronted(server, |_, _| {})
}

fn connect(gate: &Gate) -> Raw {
    Raw::connect(gate.url().trim_start_matches("http://"))
}

#[test]
fn the_end_of_a_tunnel_is_passed_on() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello";
    let server = Server::start(move |_| Reply::raw(switch).close());
    let gate = plain(&server);
    let mut client = connect(&gate);
    client.send("GET /ws HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(client.head().status, 101);
    assert_eq!(client.take(5), b"hello");
    assert!(client.has_ended(PATIENCE), "the client still waits");
}

#[test]
fn a_retry_does_not_wait_for_the_connection_of_the_failed_response() {
    let server = Server::start(|seen| match seen.number {
        0 => Reply::raw("HTTP/1.1 503 Busy\r\nContent-Length: 100000\r\n\r\nbusy").freeze(),
        _ => Reply::ok("hello"),
    });
    let gate = fronted(&server, |upstream, route| {
        upstream.max_connections = Some(1);
        let backoff = Backoff { min: Nanos::MILLI, max: Nanos::MILLI };
        let retry = RetryPolicy { max_retries: 1, backoff, ..RetryPolicy::default() };
        route.policy.policy = Policy { deadline: Nanos::from_secs(10), retry, budget: None, ..Policy::default() };
    });
    assert_eq!(connect(&gate).get("/").text(), "hello");
}

#[test]
fn an_ambiguous_host_is_rejected() {
    let server = Server::hello();
    let gate = plain(&server);
    for (target, host) in [
        ("/", "a@b"),
        ("/", "a/b"),
        ("/", "a b"),
        ("/", "a, b"),
        ("/", "a:80:b"),
        ("/", "a:80@b"),
        ("http://a@c.example/", "c.example"),
    ] {
        let mut client = connect(&gate);
        client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(client.answer().status, 400, "{target} {host}");
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn checked_bodies_are_requested_uncompressed() {
    let server = Server::start(|_| Reply::ok("{}"));
    for (json, expected) in [(false, Some("gzip")), (true, None)] {
        let gate = fronted(&server, |_, route| route.policy.success.json = json);
        let mut client = connect(&gate);
        client.send("GET / HTTP/1.1\r\nHost: test\r\nAccept-Encoding: gzip\r\n\r\n");
        assert_eq!(client.answer().status, 200);
        assert_eq!(server.seen().last().unwrap().header("accept-encoding"), expected);
    }
}

#[test]
fn members_are_merged_into_a_response_with_trailers() {
    let server = Server::start(|_| {
        Reply::raw(
            "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}\r\n0\r\nX-Sum: 1\r\n\r\n",
        )
    });
    let gate = fronted(&server, |_, route| {
        route.response.merge = vec![("message".to_owned(), "SUCCESS".into())];
    });
    let mut client = connect(&gate);
    client.send("GET / HTTP/1.1\r\nHost: test\r\nTE: trailers\r\nConnection: close\r\n\r\n");
    let all = String::from_utf8(client.rest()).unwrap();
    assert!(all.contains(r#"{"a":1,"message":"SUCCESS"}"#), "{all}");
    assert!(all.to_ascii_lowercase().contains("x-sum: 1\r\n"), "{all}");
}

#[test]
fn trailers_have_no_fields_of_a_head() {
    // Bytes after the head are read as a next request, as a deceived upstream would.
    let server = Server::start(|seen| if seen.number == 0 { Reply::nothing() } else { Reply::ok("hello") });
    let gate = plain(&server);
    let mut client = connect(&gate);
    client.send(
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nX-Sum: 1\r\n\
         Content-Length: 7\r\nTransfer-Encoding: x\r\nHost: evil\r\nX-Forwarded-For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n\
         X_Original_URL: /a\r\nX_Forwarded_For: 6.6.6.6\r\nContent_Length: 7\r\nTransfer_Encoding: x\r\n\r\n",
    );
    until("the body has come", PATIENCE, || server.requests() == 2);
    assert_eq!(server.seen()[1].head, "5\r\nabcde\r\n0\r\nx-sum: 1\r\n");
}

#[test]
fn a_response_without_a_body_has_no_length() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"));
    let gate = plain(&server);
    let answer = connect(&gate).get("/");
    assert_eq!(answer.status, 204);
    assert!(!answer.headers.iter().any(|(name, _)| name == "content-length"), "{:?}", answer.headers);
}

#[test]
fn a_disconnect_during_an_upload_is_detected() {
    // The upstream does not read, so the gateway neither reads the caller's body nor sees its end.
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let gate =
        fronted(&Server::hello(), |to, _| to.hosts[0].url = format!("http://{}/", upstream.local_addr().unwrap()));
    let mut client = TcpStream::connect(gate.url().trim_start_matches("http://")).unwrap();
    client.write_all(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000000\r\n\r\n").unwrap();
    let _taken = upstream.accept().unwrap();
    client.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    client.write_all(&vec![0; 100_000_000]).unwrap_err();
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    let in_flight =
        || connect(&gate).get("/metrics").text().contains("weir_gate_attempts_in_flight{upstream=\"upstream\"} 1");
    assert!(in_flight());
    drop(client);
    until("its attempt is over", PATIENCE, || !in_flight());
}
