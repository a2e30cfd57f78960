//! The admin listener of a gateway, and the end of a gateway as operators and load balancers see it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use weir_testing::{Answer, Gate, Raw, Reply, Server, Serving, Weir, over_http2, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// Address of the admin listener.
pub(super) fn admin(gate: &Serving) -> String {
    gate.announced["admin"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned()
}

pub(super) fn get(gate: &Serving, path: &str) -> Answer {
    admin_request(gate, "GET", path, "")
}

pub(super) fn admin_request(gate: &Serving, method: &str, path: &str, headers: &str) -> Answer {
    let address = admin(gate);
    let mut connection = Raw::connect(&address);
    connection.send(format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n{headers}\r\n"));
    connection.answer()
}

/// A server that holds its responses until the gate is open.
pub(super) fn holding() -> (Gate, Server) {
    let held = Gate::default();
    let server = Server::start({
        let held = held.clone();
        move |_| Reply::nothing().wait_for(&held).send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    });
    (held, server)
}

#[test]
fn nothing_of_the_admin_listener_is_public() {
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url(""), "--admin", "0"]);
    assert_eq!((gate.get("/metrics").text(), gate.get("/healthz").text()), ("hello", "hello"));
    let metrics = get(&gate, "/metrics");
    assert!(metrics.text().contains("weir_gate_calls_total{route=\"/{*rest}\",outcome=\"succeeded\"} 2"));
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert_eq!((get(&gate, "/healthz").text(), get(&gate, "/readyz").text()), ("ok\n", "ready\n"));
    assert!(get(&gate, "/").text().contains("/upstreams"));
    assert_eq!((get(&gate, "/other").status, admin_request(&gate, "POST", "/config", "").status), (404, 405));
    gate.stop();
    // Pages that the file names stay public.
    let url = server.url("");
    let weir = Weir::new();
    weir.write(
        "gate.toml",
        format!("admin = \"127.0.0.1:0\"\nhealth = \"/healthz\"\nupstreams.backend.urls = [\"{url}\"]\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n"),
    );
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    assert_eq!((gate.get("/metrics").text(), gate.get("/healthz").text()), ("hello", "ok\n"));
    gate.stop();
}

#[test]
fn calls_in_flight_are_listed_with_age_and_stage() {
    let (held, server) = holding();
    let gate = Serving::gate(&["--upstream", &server.url(""), "--admin", "0", "-w", "2"]);
    assert_eq!(get(&gate, "/calls").json(), Value::Array(Vec::new()));
    let mut waiting = gate.connect();
    waiting.send("GET /slow?a=b HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the call", PATIENCE, || server.requests() == 1);
    let mut uploading = gate.connect();
    uploading.send("POST /upload HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nab");
    until("both", PATIENCE, || get(&gate, "/calls").json().as_array().unwrap().len() == 2);
    let calls = get(&gate, "/calls").json();
    let shown: Vec<_> =
        ["target", "stage", "method", "route"].iter().map(|key| calls[0][key].as_str().unwrap()).collect();
    assert_eq!(shown, ["/slow?a=b", "calling", "GET", "/{*rest}"]);
    assert_eq!((calls[1]["stage"].as_str(), calls[1]["target"].as_str()), (Some("reading_body"), Some("/upload")));
    assert!(calls[0]["age_ms"].as_f64().unwrap() >= calls[1]["age_ms"].as_f64().unwrap(), "{calls}");
    assert!(calls[0]["client"].as_str().unwrap().starts_with("127.0.0.1:"));
    uploading.send("cde");
    held.open();
    assert_eq!((waiting.answer().status, uploading.answer().status), (200, 200));
    until("the end of both", PATIENCE, || get(&gate, "/calls").json() == Value::Array(Vec::new()));
    gate.stop();
}

#[test]
fn a_host_is_ejected_and_restored_by_hand() {
    let (first, second) = (Server::hello(), Server::hello());
    let gate = Serving::gate(&["--upstream", &first.url(""), "--upstream", &second.url(""), "--admin", "0"]);
    let host = first.address();
    let path = |action: &str| format!("/upstreams/upstream/{action}?host={host}");
    let answer = admin_request(&gate, "POST", &path("eject"), "");
    assert_eq!((answer.status, &answer.json()["ejected"]), (200, &true.into()), "{answer:?}");
    for _ in 0..6 {
        assert_eq!(gate.get("/").text(), "hello");
    }
    assert_eq!((first.requests(), second.requests()), (0, 6));
    let upstreams = get(&gate, "/upstreams").json();
    assert_eq!((&upstreams[0]["name"], &upstreams[0]["hosts"][0]["ejected"]), (&"upstream".into(), &true.into()));
    assert_eq!(upstreams[0]["attempts"]["won"], 6);
    // One host stays in use.
    let other = format!("/upstreams/upstream/eject?host={}", second.address());
    assert_eq!(admin_request(&gate, "POST", &other, "").status, 409);
    assert_eq!(admin_request(&gate, "POST", &path("restore"), "").status, 200);
    for _ in 0..4 {
        gate.get("/");
    }
    assert!(first.requests() > 0);
    for (wrong, status) in
        [("/upstreams/none/eject", 404), ("/upstreams/upstream/eject?host=a", 404), ("/upstreams/upstream/eject", 400)]
    {
        assert_eq!(admin_request(&gate, "POST", wrong, "").status, status, "{wrong}");
    }
    assert_eq!(get(&gate, &path("eject")).status, 405);
    let limits = get(&gate, "/limits").json();
    assert_eq!(
        (&limits["concurrency"][0]["upstream"], &limits["concurrency"][0]["in_flight"]),
        (&"upstream".into(), &0.into())
    );
    gate.stop();
}

#[test]
fn the_configuration_in_use_is_shown_without_secrets() {
    let server = Server::hello();
    let url = server.url("");
    let weir = Weir::new();
    let config = |path: &str| {
        format!(
            "admin = \"127.0.0.1:0\"\nupstreams.backend.urls = [\"{url}\"]\n[[routes]]\nmatch = {{ path = \"{path}\" }}\nrewrite = {{ set = {{ authorization = \"Bearer secret\" }} }}\n"
        )
    };
    weir.write("gate.toml", config("/a"));
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    let shown = get(&gate, "/config");
    assert!(!shown.text().contains("secret"), "{}", shown.text());
    assert_eq!(
        (&shown.json()["routes"][0]["path"], &shown.json()["upstreams"][0]["hosts"][0]["url"]),
        (&"/a".into(), &url.as_str().into())
    );
    gate.weir.write("gate.toml", config("/b"));
    gate.signal(Signal::HUP);
    until("the new route", PATIENCE, || get(&gate, "/config").json()["routes"][0]["path"] == "/b");
    gate.stop();
}

#[test]
fn web_pages_cannot_use_it() {
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url(""), "--admin", "0"]);
    for fields in [
        "Origin: https://evil.test\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Sec-Fetch-Site: none\r\n",
        "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-origin\r\nOrigin: https://evil.test\r\n",
        "Sec-Fetch-Site: cross-site\r\nOrigin: null\r\n",
    ] {
        for (method, path) in [("POST", "/drain"), ("DELETE", "/drain"), ("POST", "/upstreams/upstream/eject?host=h:1")]
        {
            assert_eq!(admin_request(&gate, method, path, fields).status, 403, "{method} {path} {fields}");
        }
    }
    let mut rebound = Raw::connect(&admin(&gate));
    rebound.send("GET /config HTTP/1.1\r\nHost: evil.test\r\n\r\n");
    assert_eq!(rebound.answer().status, 403);
    assert_eq!(get(&gate, "/readyz").status, 200);
    gate.stop();
}

#[test]
fn draining_by_hand_says_no_and_serves_on() {
    let server = Server::hello();
    let url = server.url("");
    let weir = Weir::new();
    let route = "[[routes]]\nmatch = { path = \"/{*rest}\" }\n";
    weir.write(
        "gate.toml",
        format!("admin = \"127.0.0.1:0\"\nhealth = \"/healthz\"\nupstreams.backend.urls = [\"{url}\"]\n{route}"),
    );
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    assert_eq!(admin_request(&gate, "POST", "/drain", "").json()["draining"], true);
    assert_eq!(
        (get(&gate, "/readyz").status, gate.get("/healthz").status, get(&gate, "/healthz").status),
        (503, 503, 200)
    );
    assert_eq!(gate.get("/").text(), "hello");
    assert_eq!(admin_request(&gate, "DELETE", "/drain", "").json()["draining"], false);
    assert_eq!((get(&gate, "/readyz").status, gate.get("/healthz").status), (200, 200));
    let output = gate.stop();
    assert_eq!(output.stderr.lines().count(), 2, "{}", output.stderr);
}

#[test]
fn readiness_says_no_before_the_end_of_listening() {
    let (held, server) = holding();
    let gate = Serving::gate(&["--upstream", &server.url(""), "--admin", "0", "--drain-delay", "2s", "--grace", "30s"]);
    let mut owed = gate.connect();
    owed.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the call", PATIENCE, || server.requests() == 1);
    gate.signal(Signal::TERM);
    until("its no", PATIENCE, || get(&gate, "/readyz").status == 503);
    // New connections are served until the delay is over.
    let mut late = gate.connect();
    late.send("GET /late HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the late call", PATIENCE, || server.requests() == 2);
    until("the end of its listening", PATIENCE, || std::net::TcpStream::connect(&gate.address).is_err());
    assert_eq!(get(&gate, "/calls").json().as_array().unwrap().len(), 2, "the admin listener goes on");
    held.open();
    for connection in [&mut owed, &mut late] {
        let answer = connection.answer();
        assert_eq!((answer.text(), answer.header("connection")), ("ok", Some("close")));
        assert_eq!(connection.rest(), b"");
    }
    let output = gate.finish();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}

#[test]
fn what_the_end_cuts_off_is_counted() {
    let server = Server::start(|seen| {
        if seen.header("upgrade").is_some() {
            Reply::raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n").freeze()
        } else {
            Reply::nothing()
        }
    });
    let gate = Serving::gate(&["--upstream", &server.url(""), "--grace", "300ms"]);
    let mut owed = gate.connect();
    owed.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut tunnel = gate.connect();
    tunnel.send("GET /ws HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(tunnel.head().status, 101);
    until("both", PATIENCE, || server.requests() == 2);
    let output = gate.stop();
    assert_eq!(output.code, 0);
    assert_eq!(
        output.one_line(),
        "stopped after the grace time: 1 requests in flight and 1 upgraded connections cut off"
    );
    assert_eq!((owed.rest(), tunnel.rest()), (Vec::new(), Vec::new()));
}

#[test]
fn http2_callers_are_told_to_go_away() {
    let (held, server) = holding();
    let gate = Serving::gate(&["--upstream", &server.url(""), "--grace", "30s"]);
    over_http2(&gate.address, async |mut sender| {
        let request = || http::Request::get("http://test/").body(http_body_util::Full::default()).unwrap();
        let pending = sender.send_request(request());
        while server.requests() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        gate.signal(Signal::TERM);
        held.open();
        assert_eq!(pending.await.unwrap().status(), 200);
        // A GOAWAY ends the connection in order, after which nothing can be sent.
        while sender.ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    let output = gate.finish();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}
