//! Life cycle of a gateway: signals, reloads, access log, metrics.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the client's end of a test has a clock of its own")]

use std::net::TcpStream;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};
use rustix::process::Signal;
use serde_json::Value;
use weir_testing::{Authority, Gate, Reply, Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway to this server for these paths.
fn to(url: &str, paths: &[&str]) -> String {
    let routes = paths.iter().map(|path| format!("[[routes]]\nmatch = {{ path = \"{path}\" }}\n"));
    format!("upstreams.backend.urls = [\"{url}\"]\n{}", routes.collect::<String>())
}

/// A folder with this configuration.
fn with(config: &str) -> Weir {
    let weir = Weir::new();
    weir.write("gate.toml", config);
    weir
}

#[test]
fn requests_and_responses_are_forwarded() {
    let body = Serving::start(&["httpbin"]);
    let gate = Serving::gate(&["--upstream", &body.url]);
    assert!(gate.url.starts_with("http://127.0.0.1:"));
    let mut connection = gate.connect();
    assert_eq!(connection.get("/static?bytes=1000").body.len(), 1000);
    assert_eq!(connection.post("/echo", "hello").text(), "hello");
    assert_eq!(connection.get("/status/418").status, 418);
    let long = vec![b'x'; 300_000];
    assert_eq!(connection.post("/echo", &long).body, long);
    let output = gate.stop();
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
}

#[test]
fn the_listen_address_is_used() {
    for (listen, host) in [("0", "127.0.0.1"), (":0", "127.0.0.1"), ("[::1]:0", "[::1]")] {
        let gate = Serving::gate(&["--upstream", "http://127.0.0.1:9", "--listen", listen, "-w", "2"]);
        assert!(gate.url.starts_with(&format!("http://{host}:")), "{listen}: {}", gate.url);
        assert_eq!(gate.get("/healthz").status, 200);
    }
    let first = Serving::gate(&["--upstream", "http://127.0.0.1:9"]);
    let weir = with(&format!("listen = \"{}\"\n{}", first.address, to("http://127.0.0.1:9", &["/a"])));
    let output = weir.run(&["gate", "--config", "gate.toml"]);
    assert!(output.code == 2 && output.one_line().contains(&first.address), "{output:?}");
    let gate = Serving::gate_in(weir, &["--config", "gate.toml", "--listen", "0"]);
    assert_eq!(gate.get("/b").status, 404);
}

#[test]
fn a_port_in_use_is_a_one_line_error() {
    let first = Serving::gate(&["--upstream", "http://127.0.0.1:9"]);
    let output = Weir::new().run(&["gate", "--upstream", "http://127.0.0.1:9", "--listen", &first.address]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    let line = output.one_line();
    assert!(line.contains(&first.address) && line.contains("in use"), "{line}");
}

#[test]
fn sighup_reloads_the_file_without_dropping_a_call() {
    let held = Gate::default();
    let server = Server::start({
        let held = held.clone();
        move |seen| {
            if seen.line().contains("/slow") {
                Reply::nothing().wait_for(&held).send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")
            } else {
                Reply::ok("fast")
            }
        }
    });
    let url = server.url("");
    let gate = Serving::gate_in(with(&to(&url, &["/slow"])), &["--config", "gate.toml"]);
    assert_eq!(gate.get("/new").status, 404);
    let mut slow = gate.connect();
    slow.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the slow call", PATIENCE, || server.requests() == 1);
    gate.weir.write("gate.toml", to(&url, &["/new", "/other"]));
    gate.signal(Signal::HUP);
    until("the new route", PATIENCE, || gate.get("/new").status == 200);
    assert_eq!(gate.get("/slow").status, 404, "the old route is gone");
    held.open();
    assert_eq!(slow.answer().text(), "slow");
    assert_eq!(slow.get("/new").text(), "fast", "the connection goes on");
    let output = gate.stop();
    assert_eq!((output.code, output.one_line()), (0, "configuration reloaded: 2 routes, 1 upstream, 1 policy"));
}

#[test]
fn an_invalid_file_leaves_the_old_configuration() {
    let server = Server::hello();
    let good = to(&server.url(""), &["/a"]);
    let gate = Serving::gate_in(with(&good), &["--config", "gate.toml"]);
    // A write to a pipe returns when it is read.
    let file = gate.weir.path("gate.toml");
    std::fs::remove_file(&file).unwrap();
    rustix::fs::mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    gate.signal(Signal::HUP);
    std::fs::write(&file, format!("listen = 80\n{}", good.replace("/a", "a"))).unwrap();
    assert_eq!(gate.get("/a").status, 200);
    let output = gate.stop();
    assert_eq!(output.code, 0);
    let [first, second, last] = output.stderr.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(first.starts_with("weir: gate.toml:1:10: listen: "), "{first}");
    assert!(second.starts_with("weir: gate.toml:4:18: routes[0].match.path: "), "{second}");
    assert!(last.contains("the old one stays"), "{last}");
}

#[test]
fn settings_that_need_a_restart_are_logged() {
    let server = Server::hello();
    let good = to(&server.url(""), &["/a"]);
    let gate = Serving::gate_in(with(&good), &["--config", "gate.toml"]);
    gate.weir.write("gate.toml", format!("workers = 2\n{}", good.replace("/a", "/b")));
    gate.signal(Signal::HUP);
    until("the new route", PATIENCE, || gate.get("/b").status == 200);
    let output = gate.stop();
    assert!(output.stderr.lines().last().unwrap().contains("need a restart"), "{}", output.stderr);
}

#[test]
fn sighup_without_a_file_is_logged() {
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url("")]);
    gate.signal(Signal::HUP);
    assert_eq!(gate.get("/").text(), "hello");
    let output = gate.stop();
    assert_eq!(output.code, 0);
    assert_eq!(output.one_line(), "SIGHUP: no --config to reload");
}

#[test]
fn a_signal_ends_the_gateway_gracefully() {
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let held = Gate::default();
        let server = Server::start({
            let held = held.clone();
            move |_| Reply::nothing().wait_for(&held).send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        });
        let gate = Serving::gate(&["--upstream", &server.url(""), "--grace", "30s"]);
        let mut owed = gate.connect();
        owed.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        until("the call", PATIENCE, || server.requests() == 1);
        gate.signal(signal);
        until("the end of its listening", PATIENCE, || TcpStream::connect(&gate.address).is_err());
        // SIGHUP does not count as a second signal.
        gate.signal(Signal::HUP);
        held.open();
        assert_eq!(owed.answer().text(), "ok");
        let output = gate.finish();
        assert_eq!((output.code, output.stderr.as_str()), (code, ""));
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = Server::start(|_| Reply::nothing());
    let gate = Serving::gate(&["--upstream", &server.url(""), "--grace", "1h"]);
    let mut owed = gate.connect();
    owed.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the call", PATIENCE, || server.requests() == 1);
    gate.signal(Signal::TERM);
    until("the end of its listening", PATIENCE, || TcpStream::connect(&gate.address).is_err());
    gate.signal(Signal::TERM);
    assert!(owed.rest().is_empty());
    assert_eq!(gate.finish().code, 0);
}

#[test]
fn the_access_log_has_the_attempt_log() {
    let server = Server::start(|seen| if seen.number == 0 { Reply::status(503, "") } else { Reply::ok("again") });
    let gate = Serving::gate(&["--upstream", &server.url(""), "--retries", "1", "--access-log", "-"]);
    assert_eq!(gate.get("/a").text(), "again");
    let output = gate.stop();
    let line: Value = serde_json::from_str(&output.stderr).unwrap_or_else(|why| panic!("{why}: {}", output.stderr));
    assert_eq!((line["target"].as_str(), line["status"].as_u64()), (Some("/a"), Some(200)));
    let [first, second] = line["attempt_log"].as_array().unwrap().as_slice() else { panic!("{line}") };
    assert_eq!((first["reason"].as_str(), first["outcome"].as_str()), (Some("first"), Some("failed")));
    assert_eq!((first["status"].as_u64(), second["status"].as_u64()), (Some(503), Some(200)));
    assert_eq!((second["reason"].as_str(), second["outcome"].as_str()), (Some("retry"), Some("won")));
    assert_eq!(second["upstream"], server.address());
    let ms = |attempt: &Value, name: &str| attempt[name].as_f64().unwrap();
    assert!(ms(first, "ended_ms") <= ms(second, "started_ms"), "{line}");
}

#[test]
fn metrics_and_health_have_the_configured_paths() {
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url("")]);
    assert_eq!((gate.get("/healthz").text(), gate.get("/x").text()), ("ok\n", "hello"));
    assert_eq!(gate.metric("weir_gate_calls_total{route=\"/{*rest}\",outcome=\"succeeded\"}"), 1.0);
    assert_eq!(gate.metric("weir_gate_attempts_total{upstream=\"upstream\",reason=\"first\"}"), 1.0);
    assert!(gate.get("/metrics").text().ends_with("# EOF\n"));
    drop(gate);
    let config = format!("metrics = \"/own/metrics\"\nhealth = \"\"\n{}", to(&server.url(""), &["/{*rest}"]));
    let gate = Serving::gate_in(with(&config), &["--config", "gate.toml"]);
    assert!(gate.get("/own/metrics").text().contains("weir_gate_calls_total"));
    assert_eq!((gate.get("/metrics").text(), gate.get("/healthz").text()), ("hello", "hello"));
}

#[test]
fn a_reload_keeps_what_is_spent_of_a_budget() {
    let server = Server::start(|_| Reply::status(503, ""));
    let config = |path: &str, budget: &str| {
        let policy =
            format!("[policies.p]\nretries = {{ times = 1, backoff = \"1ms..1ms\" }}\nbudget = \"{budget}\"\n");
        let url = server.url("");
        let route = format!("[[routes]]\nmatch = {{ path = \"{path}\" }}\npolicy = \"p\"\n");
        format!("upstreams.backend.urls = [\"{url}\"]\n{policy}{route}")
    };
    let gate = Serving::gate_in(with(&config("/a", "0% + 1/1h")), &["--config", "gate.toml"]);
    assert_eq!((gate.get("/a").status, server.requests()), (503, 2));
    for (path, budget, expected) in [("/b", "0% + 1/1h", 3), ("/c", "0% + 2/1h", 5)] {
        gate.weir.write("gate.toml", config(path, budget));
        gate.signal(Signal::HUP);
        let left = format!("weir_gate_retry_budget_remaining{{route=\"{path}\"}}");
        until("the new route", PATIENCE, || gate.get("/metrics").text().contains(&left));
        assert_eq!((gate.get(path).status, server.requests()), (503, expected), "{path}");
    }
    gate.stop();
}

#[test]
fn a_reload_reads_changed_certificates_and_keeps_idle_connections() {
    let (first, second) = (Authority::new(), Authority::new());
    let server = Server::build().tls(second.service("127.0.0.1")).start(|_| Reply::ok("hello"));
    let config = |path: &str, idle: &str| {
        let url = server.url("");
        format!(
            "[upstreams.backend]\nurls = [\"{url}\"]\nprotocol = \"http1\"\nidle_timeout = \"{idle}\"\ntls.cacert = \"ca.pem\"\n\
             [[routes]]\nmatch = {{ path = \"{path}\" }}\n"
        )
    };
    let weir = with(&config("/a", "1h"));
    first.file(&weir, "ca.pem");
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    assert_eq!(gate.get("/a").status, 502);
    second.file(&gate.weir, "ca.pem");
    gate.signal(Signal::HUP);
    until("the other certificate", PATIENCE, || gate.get("/a").status == 200);
    assert_eq!(server.counts().open, 1);
    gate.weir.write("gate.toml", config("/b", "1s"));
    gate.signal(Signal::HUP);
    until("the new route", PATIENCE, || gate.get("/b").status == 200);
    server.wait_for("the end of idle connections", |counts| counts.open == 0);
    gate.stop();
}

#[test]
fn a_hanging_host_does_not_delay_health_checks_of_others() {
    let (hangs, well) = (Server::start(|_| Reply::nothing()), Server::hello());
    let config = format!(
        "[upstreams.backend]\nurls = [\"{}\", \"{}\"]\nhealth.check = {{ path = \"/\", interval = \"1s\", timeout = \"1h\" }}\n\
         [[routes]]\nmatch = {{ path = \"/a\" }}\n",
        hangs.url(""),
        well.url("")
    );
    let gate = Serving::gate_in(with(&config), &["--config", "gate.toml"]);
    hangs.wait_for("its check", |counts| counts.requests == 1);
    well.wait_for("its check", |counts| counts.requests == 1);
    gate.stop();
}

#[test]
fn a_disconnected_caller_is_logged_with_its_attempts() {
    let folder = Weir::new();
    for (number, http2) in [false, true].into_iter().enumerate() {
        let log = folder.path(&format!("{number}.log")).display().to_string();
        let server = Server::start(|_| Reply::nothing());
        let args = [
            "--upstream",
            &server.url(""),
            "--hedge",
            "1ms",
            "--budget",
            "none",
            "--access-log",
            &log,
            "--attempt-log",
        ];
        let gate = Serving::gate(&args);
        let reset = number == 0;
        for resets in [reset, false] {
            let before = server.requests();
            if http2 {
                http2_caller_that_leaves(&gate.address, || server.requests() == before + 2);
            } else {
                let mut client = gate.connect();
                client.send("GET /left HTTP/1.1\r\nHost: test\r\n\r\n");
                until("both attempts", PATIENCE, || server.requests() == before + 2);
                if resets { client.reset() } else { drop(client) }
            }
            until("the end of the attempts", PATIENCE, || server.counts().open == 0);
        }
        let output = gate.stop();
        assert_eq!(output.stderr.matches("GET /left -> no response after ").count(), 2, "{}", output.stderr);
        assert_eq!(output.stderr.matches(": the caller disconnected\n").count(), 2, "{}", output.stderr);
        assert!(output.stderr.contains("attempts 1 and 2 cancelled"), "{}", output.stderr);
        let log = std::fs::read_to_string(log).unwrap();
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{log}");
        for line in &lines {
            assert_eq!(
                (&line["status"], &line["client_closed"], &line["target"]),
                (&Value::Null, &true.into(), &"/left".into())
            );
            let ends: Vec<&str> =
                line["attempt_log"].as_array().unwrap().iter().map(|it| it["outcome"].as_str().unwrap()).collect();
            assert_eq!(ends, ["cancelled", "cancelled"], "{line}");
        }
    }
}

/// A request over HTTP/2, whose stream is reset when the condition holds.
fn http2_caller_that_leaves(address: &str, when: impl Fn() -> bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let executor = hyper_util::rt::TokioExecutor::new();
        let (mut sender, driver) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
        let driver = tokio::spawn(driver);
        let body = http_body_util::Empty::<bytes::Bytes>::new();
        let asked = http::Request::get(format!("http://{address}/left")).body(body).unwrap();
        let answer = sender.send_request(asked);
        tokio::select! {
            _ = answer => panic!("too early"),
            () = async { while !when() { tokio::time::sleep(Duration::from_millis(1)).await } } => {}
        }
        drop(sender);
        let _ = driver.await.unwrap();
    });
}
