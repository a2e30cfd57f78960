//! A rate limit in tokens of language models that several gateways share through a Redis server.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the callers' clock is not the gates'")]

use std::time::{Duration, Instant};

use super::started::{Started, started};
use weir_testing::{Answer, RedisServer, Reply, Server, until};

const PATIENCE: Duration = Duration::from_secs(30);
const SHARE: &str = "weir_gate_cluster_fraction{cluster=\"test\"}";
const AWAY: &str = "weir_gate_cluster_disconnected{cluster=\"test\"}";
/// Tokens of a bucket.
const BURST: u64 = 1000;

/// A model whose responses use what the caller's name says, a Redis server, and two gateways, which are dropped first.
struct Setting {
    gates: Vec<Started>,
    redis: RedisServer,
    _model: Server,
}

impl Setting {
    /// None without a redis-server.
    fn new(rate: &str, lease: &str) -> Option<Self> {
        let redis = RedisServer::with(&[])?;
        let model = Server::start(|seen| {
            let used = seen.header("authorization").unwrap().rsplit('-').next().unwrap();
            Reply::ok(&format!("{{\"usage\":{{\"total_tokens\":{used}}}}}"))
        });
        let config = format!(
            "cluster = \"{}\"\nupstreams.model.urls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/v1/{{*rest}}\" }}\n\
             caller = {{ header = \"authorization\" }}\n\
             rate_limit = {{ rate = \"{rate}\", burst = {BURST}, weight = {{ tokens = \"usage\" }}, headers = true }}\n",
            redis.url(&format!("name=test&lease={lease}")),
            model.url("")
        );
        let gates = vec![started(&config), started(&config)];
        until("even shares", PATIENCE, || gates.iter().all(has_half));
        Some(Self { gates, redis, _model: model })
    }
}

fn has_half(gate: &Started) -> bool {
    (gate.metric(SHARE) - 0.5).abs() < 1e-4
}

/// A call that asks for this number of tokens, by a caller `NAME-USED` whose responses use USED.
fn ask(gate: &Started, caller: &str, tokens: u64) -> Answer {
    let body = format!("{{\"prompt\":\"four\",\"max_tokens\":{}}}", tokens - 1);
    let mut client = gate.connect();
    client.send(format!(
        "POST /v1/completions HTTP/1.1\r\nHost: t\r\nAuthorization: {caller}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    client.answer()
}

#[test]
fn what_responses_did_not_use_comes_back_at_each_gateway_also_without_redis() {
    // A token takes 36 s at a half of the rate.
    let Some(mut setting) = Setting::new("200/1h", "5s") else { return };
    // Of 500 tokens, nine calls that use 50 leave 50, and one more asks for 100. The last ones come at the end, since
    // rejections move allocations.
    let each = |setting: &Setting, caller: &str| {
        for (calls, expected) in [(9, 200), (1, 429)] {
            for gate in &setting.gates {
                assert!((0..calls).all(|_| ask(gate, caller, 100).status == expected), "{caller} {expected}");
            }
        }
    };
    each(&setting, "a-50");
    setting.redis.kill();
    until("a lease", PATIENCE, || setting.gates.iter().all(|gate| gate.metric(AWAY) == 1.0));
    each(&setting, "b-50");
    assert_eq!(ask(&setting.gates[0], "a-50", 100).status, 429);
    setting.redis.begin();
    until("the server", PATIENCE, || setting.gates.iter().all(|gate| gate.metric(AWAY) == 0.0 && has_half(gate)));
    assert_eq!(ask(&setting.gates[1], "b-50", 100).status, 429, "what was used stays used");
    each(&setting, "c-50");
}

#[test]
fn gateways_hold_a_limit_together_though_responses_use_more_than_was_estimated() {
    const USED: u64 = 600;
    let Some(setting) = Setting::new("50/1s", "4s") else { return };
    let (begun, mut calls, mut rejected) = (Instant::now(), 0, 0);
    // Without what is owed, a call that asks for a token is admitted every 40 ms.
    while begun.elapsed() < Duration::from_secs(3) {
        for gate in &setting.gates {
            match ask(gate, "a-600", 1).status {
                200 => calls += 1,
                429 => rejected += 1,
                other => panic!("{other}"),
            }
        }
    }
    // A burst, what came back, and each gateway's last call. A gateway that stood still for longer than a lease may have
    // been taken for one that has gone, and a third of a bucket is for that.
    let may = BURST as f64 * 4.0 / 3.0 + 50.0 * begun.elapsed().as_secs_f64() + 2.0 * USED as f64;
    assert!((calls * USED) as f64 <= may, "{calls} calls of {USED}, {may} at most");
    assert!(calls >= 2 && rejected > 0, "{calls} {rejected}");
}

#[test]
fn a_call_that_no_gateways_half_holds_goes_through_once_the_allocation_has_moved() {
    let Some(setting) = Setting::new("500/1s", "3s") else { return };
    let first = ask(&setting.gates[0], "a-1", 800);
    assert_eq!((first.status, first.header("x-should-retry"), first.header("retry-after")), (429, None, Some("1")));
    until("an allocation", PATIENCE, || ask(&setting.gates[0], "a-1", 800).status == 200);
    // More than all of them hold is never sent.
    let never = ask(&setting.gates[0], "a-1", 1001);
    assert_eq!((never.status, never.header("x-should-retry")), (429, Some("false")));
    assert!(never.text().contains("asks for 1001 tokens") && never.text().contains("allows 1000"), "{}", never.text());
}
