//! Cluster-wide rate limits and budgets of several gateways through a Redis server, also when a gateway or the server
//! fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the callers' clock is not the gates'")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_testing::{Over, RedisServer, Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(120);
const SHARE: &str = "weir_gate_cluster_fraction{cluster=\"test\"}";
const GATES: &str = "weir_gate_cluster_gates{cluster=\"test\"}";
const CLAIMS: &str = "weir_gate_cluster_allocations{cluster=\"test\"}";
const AWAY: &str = "weir_gate_cluster_disconnected{cluster=\"test\"}";

/// A service, a Redis server, and the configuration of gateways of one cluster.
struct Setting {
    service: Server,
    redis: RedisServer,
    route: &'static str,
    lease: &'static str,
}

impl Setting {
    /// None without a redis-server. The lease must not expire on a busy machine.
    fn new(route: &'static str, lease: &'static str) -> Option<Self> {
        Some(Self { redis: RedisServer::with(&[])?, service: Server::hello(), route, lease })
    }

    fn config(&self) -> String {
        format!(
            "cluster = \"{}\"\nupstreams.backend.urls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n{}\n",
            self.redis.url(&format!("name=test&lease={}&gates=4", self.lease)),
            self.service.url(""),
            self.route
        )
    }

    fn gate(&self) -> Serving {
        let weir = Weir::new();
        weir.write("gate.toml", self.config());
        Serving::gate_in(weir, &["--config", "gate.toml"])
    }

    /// N gateways, each with an even fraction.
    fn gates(&self, count: usize) -> Vec<Serving> {
        let gates: Vec<Serving> = (0..count).map(|_| self.gate()).collect();
        until("even shares", PATIENCE, || gates.iter().all(|gate| is_even(gate, count)));
        gates
    }
}

/// Whether a gateway has an even fraction of N.
fn is_even(gate: &Serving, gates: usize) -> bool {
    gate.metric(GATES) as usize == gates && (gate.metric(SHARE) - 1.0 / gates as f64).abs() < 1e-4
}

/// Number of a caller's calls that a gateway accepts within a time.
fn accepted(gate: &Serving, caller: &str, time: Duration) -> u64 {
    let (mut connection, begun, mut count) = (gate.connect(), Instant::now(), 0);
    loop {
        connection.send(format!("GET / HTTP/1.1\r\nHost: test\r\nX-Caller: {caller}\r\n\r\n"));
        let status = connection.answer().status;
        assert!(matches!(status, 200 | 429), "{status}");
        count += u64::from(status == 200);
        if begun.elapsed() >= time {
            return count;
        }
    }
}

/// Numbers of accepted calls at several gateways at once, and the elapsed time in seconds.
fn accepted_by_all(gates: &[&Serving], caller: &str, time: Duration) -> (Vec<u64>, f64) {
    let begun = Instant::now();
    let counts = thread::scope(|scope| {
        let ask = move |gate: &&Serving| accepted(gate, caller, time);
        let threads: Vec<_> = gates.iter().map(|gate| scope.spawn(move || ask(gate))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (counts, begun.elapsed().as_secs_f64())
}

const RATE: &str = "caller = { header = \"x-caller\" }\nrate_limit = { rate = \"100/1s\", burst = 20 }";

#[test]
fn gateways_join_and_the_allocation_of_a_killed_one_expires() {
    let Some(setting) = Setting::new(RATE, "10s") else { return };
    let mut gates = setting.gates(1);
    gates.push(setting.gate());
    // It accepts connections once it has its fraction.
    assert!(is_even(&gates[1], 2), "{}", gates[1].metric(SHARE));
    assert!(is_even(&gates[0], 2), "{}", gates[0].metric(SHARE));
    let killed = gates.remove(0);
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish().code, -1);
    until("its part", PATIENCE, || is_even(&gates[0], 1));
    // The allocation of a gateway that ends gracefully is free at once.
    let other = setting.gate();
    until("even shares", PATIENCE, || is_even(&gates[0], 2));
    other.stop();
    until("its part", PATIENCE, || is_even(&gates[0], 1));
}

#[test]
fn without_redis_each_gateway_keeps_its_allocation() {
    let Some(mut setting) = Setting::new(RATE, "5s") else { return };
    let gates = setting.gates(2);
    setting.redis.kill();
    until("a lease", PATIENCE, || gates.iter().all(|gate| gate.metric(AWAY) == 1.0));
    assert!(gates.iter().all(|gate| (gate.metric(SHARE) - 0.5).abs() < 1e-4));
    let (counts, took) = accepted_by_all(&gates.iter().collect::<Vec<_>>(), "a", Duration::from_secs(1));
    let sum: u64 = counts.iter().sum();
    assert!(sum > 0 && sum as f64 <= 22.0 + 100.0 * took, "{counts:?} within {took} s");
    // The server has lost its data; the gateways report what they use.
    setting.redis.begin();
    until("the server", PATIENCE, || gates.iter().all(|gate| gate.metric(AWAY) == 0.0 && is_even(gate, 2)));
    for gate in gates {
        let output = gate.stop();
        let [away, again] = output.stderr.lines().collect::<Vec<_>>().try_into().unwrap();
        assert!(away.contains("redis.sock") && away.contains("is unreachable"), "{away}");
        assert!(away.ends_with("this gateway keeps 50.000% of each limit"), "{away}");
        assert!(again.ends_with("is reachable again"), "{again}");
    }
}

#[test]
fn a_gateway_that_starts_without_redis_has_the_assumed_fraction() {
    let Some(mut setting) = Setting::new(RATE, "5s") else { return };
    setting.redis.kill();
    let gate = setting.gate();
    assert_eq!((gate.metric(SHARE), gate.metric(GATES), gate.metric(AWAY)), (0.25, 0.0, 1.0));
    assert!(accepted(&gate, "a", Duration::from_millis(1)) > 0);
    setting.redis.begin();
    until("the server", PATIENCE, || is_even(&gate, 1));
    let output = gate.stop();
    assert_eq!(output.stderr.lines().count(), 2, "{}", output.stderr);
    assert!(output.stderr.contains("this gateway keeps 25.000% of each limit"), "{}", output.stderr);
}

#[test]
fn the_minimum_of_a_budget_is_shared() {
    let route = "policy = { retries = 1, budget = \"0% + 4/1h\" }";
    let Some(setting) = Setting::new(route, "10s") else { return };
    let gates = setting.gates(2);
    let left = "weir_gate_retry_budget_remaining{route=\"/{*rest}\"}";
    // What one gateway has given up is usable by another after a window: the first had all four, and keeps two.
    assert_eq!((gates[0].metric(left), gates[1].metric(left)), (2.0, 2.0));
}

#[test]
fn an_invalid_cluster_is_one_line_and_a_change_needs_a_restart() {
    for (url, why) in
        [("http://me:secret@h", "write e.g. redis://HOST:PORT"), ("redis://me:secret@h?lease=1ms", "invalid lease 1ms")]
    {
        let output = Weir::new().run(&["gate", "--upstream", "http://127.0.0.1:9", "--cluster", url]);
        let line = output.one_line();
        assert!(output.code == 2 && line.contains(why) && line.contains("--cluster"), "{line}");
        assert!(!line.contains("secret"), "{line}");
    }
    let Some(setting) = Setting::new(RATE, "1s") else { return };
    let gate = setting.gate();
    gate.weir.write("gate.toml", setting.config().replace("lease=1s", "lease=2s").replace("{*rest}", "b"));
    gate.signal(Signal::HUP);
    until("the new route", PATIENCE, || gate.get("/b").status == 200);
    let output = gate.stop();
    assert!(output.stderr.lines().last().unwrap().contains("need a restart"), "{}", output.stderr);
}

#[test]
fn all_gateways_know_of_a_caller_of_one_and_others_are_not_affected() {
    let Some(setting) = Setting::new(RATE, "5s") else { return };
    let gates = setting.gates(4);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                accepted(&gates[1], "one", Duration::from_millis(100));
            }
        });
        until("all to know of it", PATIENCE, || gates.iter().all(|gate| gate.metric(CLAIMS) == 1.0));
        assert!(accepted(&gates[1], "other", Duration::from_millis(1)) > 0);
    });
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn a_caller_of_one_gateway_has_its_whole_rate_there() {
        let Some(setting) = Setting::new(RATE, "1s") else { return };
        let gates = setting.gates(4);
        // After three leases the allocation is complete. Its even fraction would be a quarter.
        accepted(&gates[1], "one", Duration::from_secs(4));
        let (counts, took) = accepted_by_all(&[&gates[1]], "one", Duration::from_secs(2));
        assert!(counts[0] as f64 <= 24.0 + 100.0 * took, "{counts:?} within {took} s");
        assert!(counts[0] as f64 >= 0.6 * 100.0 * took, "{counts:?} within {took} s");
    }

    #[test]
    fn three_gateways_share_one_rate_limit() {
        let Some(setting) = Setting::new(RATE, "2s") else { return };
        let gates = setting.gates(3);
        let (counts, took) = accepted_by_all(&gates.iter().collect::<Vec<_>>(), "all", Duration::from_secs(3));
        let sum: u64 = counts.iter().sum();
        let most = 20.0 + 3.0 + 100.0 * took;
        assert!(sum as f64 <= most, "{counts:?} within {took} s, and {most} at most");
        assert!(sum as f64 >= 0.6 * 100.0 * took, "{counts:?} within {took} s: most of it is used");
        assert!(counts.iter().all(|count| *count > 30), "each lets some in: {counts:?}");
    }
}
