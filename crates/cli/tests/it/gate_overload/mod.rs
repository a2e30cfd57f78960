//! `weir gate` under overload: queueing, rejections, metrics and logs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the callers' clock is not the gate's")]

mod queue;
mod rejections;
use std::time::Duration;

use weir_testing::{Answer, Gate, Raw, Reply, Server, Serving, Weir};

const PATIENCE: Duration = Duration::from_secs(120);
const WAITING: &str = "weir_gate_queue_length{upstream=\"backend\"}";
const IN_FLIGHT: &str = "weir_gate_in_flight{upstream=\"backend\"}";

/// A configuration with one upstream and one route for all paths, each with extra lines.
fn config(url: &str, upstream: &str, route: &str) -> String {
    format!(
        "[upstreams.backend]\nurls = [\"{url}\"]\n{upstream}\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n{route}\n"
    )
}

fn start(server: &Server, upstream: &str, route: &str, more: &[&str]) -> Serving {
    let weir = Weir::new();
    weir.write("gate.toml", config(&server.url(""), upstream, route));
    Serving::gate_in(weir, &[&["--config", "gate.toml"], more].concat())
}

/// A server that responds once the gate is opened.
fn held() -> (Gate, Server) {
    let opens = Gate::default();
    let held = opens.clone();
    (
        opens,
        Server::start(move |_| Reply::nothing().wait_for(&held).send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
    )
}

/// A connection on which a request was sent.
fn asks(gate: &Serving, headers: &str) -> Raw {
    let mut client = gate.connect();
    client.send(format!("GET / HTTP/1.1\r\nHost: test\r\n{headers}\r\n"));
    client
}

fn with(gate: &Serving, headers: &str) -> Answer {
    asks(gate, headers).answer()
}

fn retry_after(answer: &Answer) -> u64 {
    answer.header("retry-after").unwrap().parse().unwrap()
}

/// Sum of all series of a metric.
fn sum(gate: &Serving, name: &str) -> f64 {
    let answer = gate.get("/metrics");
    let of = answer.text().lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')));
    of.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}
