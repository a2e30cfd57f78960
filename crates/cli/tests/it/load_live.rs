//! Loads that are watched and changed while they run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs::File;
use std::time::Duration;

use serde_json::{Value, json};
use weir_measure::Run;
use weir_testing::{Raw, Running, Server, Serving, Weir, until};

/// No answer of the page takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// A load with its page.
struct Live {
    weir: Weir,
    running: Running,
    address: String,
    operator: String,
    spectator: String,
}

impl Live {
    fn start(url: &str, flags: &[&str]) -> Self {
        Self::start_with(&[&[url], flags].concat())
    }

    fn start_with(flags: &[&str]) -> Self {
        let weir = Weir::new();
        let args = [&["load", "--web=127.0.0.1:0", "--out", "run.json"], flags].concat();
        let log = weir.path("stderr");
        let running = Running::new(weir.command(&args).stderr(File::create(&log).unwrap()));
        let line = || {
            std::fs::read_to_string(&log).unwrap().lines().find(|line| line.contains("live page")).map(str::to_owned)
        };
        until("the address of the page", PATIENCE, || line().is_some());
        let line = line().unwrap();
        let urls: Vec<&str> = line.split([' ', ')']).filter_map(|word| word.strip_prefix("http://")).collect();
        let [operator, spectator] = [0, 1].map(|i| urls[i].split_once("/#").unwrap().1.to_owned());
        Self { running, address: urls[0].split_once('/').unwrap().0.to_owned(), operator, spectator, weir }
    }

    /// Status and body of a request.
    fn ask(&self, method: &str, path: &str, token: &str, more: &str, body: &str) -> (u16, String) {
        let host = if more.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let mut raw = Raw::connect(&self.address);
        raw.send(format!(
            "{method} {path} HTTP/1.1\r\n{host}Authorization: Bearer {token}\r\n{more}Content-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let answer = raw.answer();
        (answer.status, answer.text().to_owned())
    }

    fn change(&self, change: &Value) -> (u16, Value) {
        let (status, body) = self.ask("POST", "/api/change", &self.operator, "", &change.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }

    /// Changes the load; the time from which it holds.
    fn changed(&self, change: &Value) -> f64 {
        let (status, answer) = self.change(change);
        assert_eq!(status, 200, "{answer}");
        answer["at_s"].as_f64().unwrap()
    }

    /// Whether a change is rejected since nothing has started.
    fn is_unstarted(&self) -> bool {
        self.change(&json!("resume")).1["error"] == "the load has not started yet"
    }

    fn wait_for_start(&self) {
        until("the load to start", PATIENCE, || !self.is_unstarted());
    }

    /// Stream of events, with those since an interval.
    fn events(&self, token: &str, since: Option<u64>) -> EventStream {
        let mut raw = Raw::connect(&self.address);
        let since = since.map_or(String::new(), |since| format!("?since={since}"));
        let (address, path) = (&self.address, format!("/api/events{since}"));
        raw.send(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"));
        EventStream { raw, text: String::new() }
    }

    fn finish(self) -> (i32, Run) {
        let output = self.running.finish();
        let run = Run::from_json(&self.weir.read("run.json"));
        (output.code, run.unwrap_or_else(|error| panic!("{error}: {output:?}")))
    }
}

/// Events of a page.
struct EventStream {
    raw: Raw,
    text: String,
}

impl EventStream {
    /// Next event of a kind.
    fn next(&mut self, kind: &str) -> Value {
        loop {
            let byte = self.raw.take(1);
            self.text.push(char::from(byte[0]));
            // An event ends here or not at all: to look for the end in all of it at each byte took seconds.
            if !self.text.ends_with("\n\n") {
                continue;
            }
            let event = std::mem::take(&mut self.text);
            if let Some((_, data)) = event.trim_end().split_once(&format!("event: {kind}\ndata: ")) {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

#[test]
fn a_load_that_is_changed_by_hand_is_the_one_of_its_stages() {
    let server = Server::hello();
    let live = Live::start(&server.url("/"), &["--rate", "100", "-d", "60s"]);
    live.wait_for_start();
    let first = live.changed(&json!({ "rate": 400 }));
    let mut events = live.events(&live.operator, None);
    let hello = events.next("hello");
    assert_eq!((hello["kind"].as_str(), hello["may_change"].as_bool()), (Some("rate"), Some(true)), "{hello}");
    assert!(!events.next("bins")["bins"].as_array().unwrap().iter().any(|bin| bin["w"] != 1));
    assert_eq!(live.change(&json!("pause")).0, 200);
    let (status, why) = live.change(&json!("pause"));
    assert_eq!((status, why["error"].as_str()), (409, Some("the load is paused already")));
    assert_eq!(live.change(&json!("resume")).0, 200);
    assert_eq!(live.change(&json!({ "users": 3 })).0, 409);
    let end = live.changed(&json!("stop"));
    let end_event = events.next("end");
    assert!(end_event["report"].as_str().unwrap().contains("<!doctype html>"), "{end_event}");
    let (code, run) = live.finish();
    assert_eq!((code, run.interrupted), (0, false));
    let changes = run.changes.clone().unwrap();
    assert!(changes.made.len() >= 4 && changes.stages.starts_with("100/") && first > 0.0, "{changes:?}");
    assert!((run.duration_s - end).abs() < 0.2, "{} and {end}", run.duration_s);
    // The same again, by the stages: all arrivals are there. A worker that is late may have sent more before it knew of a
    // lower rate.
    let again = weir_testing::load(&server.url("/"), &["--stages", &changes.stages]);
    assert!(run.requests.total >= again.requests.total, "{} {}", run.requests.total, changes.stages);
    assert_eq!(run.duration_s, again.duration_s);
}

#[test]
fn users_come_and_go_while_a_closed_loop_runs() {
    let server = Server::hello();
    let live = Live::start(&server.url("/"), &["--users", "2", "-d", "60s", "-t", "2"]);
    live.wait_for_start();
    live.changed(&json!({ "users": 9 }));
    server.wait_for("nine connections at a time", |counts| counts.most_open >= 9);
    live.changed(&json!({ "users": 1 }));
    let mut events = live.events(&live.spectator, None);
    assert_eq!(events.next("hello")["may_change"].as_bool(), Some(false));
    // Intervals after the change have one user's requests in flight.
    until("one user to be left", PATIENCE, || {
        events.next("bins")["bins"].as_array().unwrap().last().is_some_and(|bin| bin["in_flight"] == 1)
    });
    live.changed(&json!("stop"));
    let (code, run) = live.finish();
    assert_eq!((code, run.requests.failed, run.connections.max), (0, 0, 9));
    assert!(run.changes.unwrap().stages.contains("9u/"));
}

#[test]
fn users_of_scenarios_end_with_their_iterations() {
    let server = Server::hello();
    let files = Weir::new();
    let steps = ["one", "two"].map(|path| format!("GET {{{{host}}}}/{path}\nHTTP 200\n"));
    let file = files.write("visit.hurl", steps.join("\n"));
    let host = format!("host={}", server.url("").trim_end_matches('/'));
    let file = file.to_str().unwrap();
    let flags = ["-s", file, "--variable", &host, "--users", "2", "--think", "1ms..5ms", "-d", "60s"];
    let live = Live::start_with(&flags);
    live.wait_for_start();
    live.changed(&json!({ "users": 7 }));
    server.wait_for("seven connections at a time", |counts| counts.most_open >= 7);
    live.changed(&json!("pause"));
    let mut events = live.events(&live.operator, None);
    let is_quiet = |bin: &Value| bin["in_flight"] == 0 && bin["iterations"] == 0;
    until("nothing to be in flight", PATIENCE, || {
        events.next("bins")["bins"].as_array().unwrap().last().is_some_and(is_quiet)
    });
    let before = server.requests();
    live.changed(&json!("resume"));
    server.wait_for("requests after the pause", |counts| counts.requests > before + 20);
    live.changed(&json!("stop"));
    let (code, run) = live.finish();
    assert_eq!((code, run.requests.failed, run.connections.max), (0, 0, 7));
    assert!(run.changes.unwrap().stages.starts_with("2u/"));
}

#[test]
fn a_load_that_may_be_changed_ends_by_itself() {
    let server = Server::hello();
    for (flags, requests) in [
        (["--users", "2", "--loops", "3"].as_slice(), 6),
        (&["-c", "2", "-n", "30"], 30),
        (&["--rate", "100", "-n", "30"], 30),
        (&["--rate", "100", "-d", "300ms"], 30),
    ] {
        let (code, run) = Live::start(&server.url("/"), flags).finish();
        assert_eq!((code, run.requests.total, run.changes), (0, requests, None), "{flags:?}");
    }
}

#[test]
fn the_users_of_some_loads_are_fixed() {
    let server = Server::hello();
    for (flags, why) in [
        (["--users", "2", "--loops", "1000000000"].as_slice(), "--loops"),
        (&["-c", "2", "-n", "1000000000"], "--requests"),
        (&["-c", "2", "--pipeline", "4", "-d", "60s"], "--pipeline"),
    ] {
        let live = Live::start(&server.url("/"), flags);
        live.wait_for_start();
        let (status, answer) = live.change(&json!({ "users": 5 }));
        assert!(status == 409 && answer["error"].as_str().unwrap().contains(why), "{flags:?}: {answer}");
        assert_eq!(live.change(&json!("pause")).0, 200);
        assert_eq!(live.change(&json!("resume")).0, 200);
        live.changed(&json!("stop"));
        assert_eq!(live.finish().0, 0, "{flags:?}");
    }
}

#[test]
fn agents_take_changes_over() {
    let server = Server::hello();
    let live = Live::start(&server.url("/"), &["--rate", "100", "-d", "60s", "--on", "local", "--agents", "2"]);
    live.wait_for_start();
    let from = live.changed(&json!({ "rate": 300 }));
    let mut events = live.events(&live.operator, None);
    let interval = events.next("hello")["interval_s"].as_f64().unwrap();
    // A change of the same millisecond would take its place.
    until("the change to hold", PATIENCE, || {
        events.next("bins")["bins"].as_array().unwrap().iter().any(|bin| bin["n"].as_f64().unwrap() * interval > from)
    });
    live.changed(&json!("stop"));
    let (code, run) = live.finish();
    assert_eq!((code, run.agents.len()), (0, 2));
    assert_eq!(run.changes.unwrap().stages.matches("300/").count(), 1);
}

#[test]
fn a_page_is_for_those_who_have_its_address() {
    let server = Server::hello();
    let live = Live::start(&server.url("/"), &["--rate", "20", "-d", "60s"]);
    live.wait_for_start();
    let (operator, spectator) = (&live.operator, &live.spectator);
    let status = |method, path, token: &str, more| live.ask(method, path, token, more, "\"pause\"").0;
    assert_eq!(live.ask("GET", "/", "", "", "").0, 200);
    assert_eq!([status("GET", "/api/events", "", ""), status("POST", "/api/change", "wrong", "")], [401, 401]);
    assert_eq!(status("POST", "/api/change", spectator, ""), 403);
    assert_eq!(status("POST", "/api/change", operator, "Host: evil.example\r\n"), 421);
    assert_eq!(status("POST", "/api/change", operator, "Origin: http://evil.example\r\n"), 403);
    assert_eq!(status("POST", "/api/change", operator, "Sec-Fetch-Site: cross-site\r\n"), 403);
    assert_eq!([status("DELETE", "/api/change", operator, ""), status("GET", "/nothing", operator, "")], [405, 404]);
    for wrong in ["", "{}", "[]", "{\"rate\":\"x\"}", "{\"rate\":1,\"users\":2}", "\u{0}"] {
        assert_eq!(live.ask("POST", "/api/change", operator, "", wrong).0, 400, "{wrong}");
    }
    assert_eq!(live.ask("POST", "/api/change", operator, "", &"x".repeat(5000)).0, 413);
    for wrong in ["-5", "0", "1e300"] {
        assert_eq!(live.ask("POST", "/api/change", operator, "", &format!("{{\"rate\":{wrong}}}")).0, 409, "{wrong}");
    }
    live.changed(&json!("stop"));
    let tokens = [operator.clone(), spectator.clone()];
    let (_, run) = live.finish();
    assert!(!tokens.iter().any(|token| run.to_json().contains(token.as_str())));
    assert_eq!(run.changes.unwrap().made.len(), 1, "nothing else has changed the load");
}

#[test]
fn an_address_of_other_machines_needs_a_token() {
    let weir = Weir::new();
    for (flags, expected) in [
        (["--web=0.0.0.0:0", "-d", "1s"].as_slice(), "--web-token"),
        (&["--web=nowhere"], "HOST:PORT"),
        (&["--web=127.0.0.1:0", "--web-token", "short"], "too short"),
        (&["--web-token", "0123456789abcdef"], "--web"),
    ] {
        let output = weir.run(&[&["load", "http://127.0.0.1:1/"], flags].concat());
        assert!(output.code == 2 && output.stderr.contains(expected), "{output:?}");
    }
}

#[test]
fn a_page_that_comes_back_has_missed_nothing() {
    let server = Server::hello();
    let live = Live::start(&server.url("/"), &["--rate", "50", "-d", "4s"]);
    let ok = |bins: &Value| bins["bins"].as_array().unwrap().iter().map(|bin| bin["ok"].as_u64().unwrap()).sum::<u64>();
    let mut first = live.events(&live.operator, None);
    let mut sum = 0;
    let mut since = loop {
        let bins = first.next("bins");
        sum += ok(&bins);
        if sum > 0 {
            break bins["next"].as_u64().unwrap();
        }
    };
    drop(first);
    let mut second = live.events(&live.operator, Some(since));
    while since < 4 {
        let bins = second.next("bins");
        assert_eq!(bins["all"], false);
        sum += ok(&bins);
        since = bins["next"].as_u64().unwrap();
    }
    let _ = second.next("end");
    let (_, run) = live.finish();
    // A response in the moment of the end has an interval of its own.
    let count = usize::try_from(since).unwrap();
    assert_eq!(sum, run.series.iter().take(count).map(|point| point.ok).sum::<u64>());
}

#[test]
fn the_page_gets_connections_of_websocket_as_the_result_has_them() {
    let serving = Serving::start(&["ws"]);
    let url = format!("ws://{}/", serving.address);
    let flags = ["--rate", "50", "-d", "3s", "-c", "6", "--ramp-up", "1s", "-b", "x"];
    let live = Live::start(&url, &flags);
    let mut events = live.events(&live.operator, None);
    let mut bins = Vec::new();
    while bins.len() < 3 {
        bins.extend(events.next("bins")["bins"].as_array().unwrap().iter().map(|bin| bin["websocket"].clone()));
    }
    let _ = events.next("end");
    let (_, run) = live.finish();
    let points = run.series.iter().map(|point| json!(point.websocket.unwrap()));
    assert_eq!(bins[..3], points.take(3).collect::<Vec<_>>());
    assert_eq!(bins[2]["held"], 6, "{bins:?}");
    let plain = Server::hello();
    let live = Live::start(&plain.url("/"), &["--rate", "50", "-d", "2s"]);
    let bins = live.events(&live.operator, None).next("bins");
    assert!(!bins.to_string().contains("websocket"), "{bins}");
    let _ = live.finish();
}

#[test]
fn the_page_gets_the_checks_and_metrics_of_a_script() {
    let server = Server::hello();
    let folder = Weir::new();
    let script = "import http from 'k6/http';\nimport { check, group, sleep } from 'k6';\nimport { Trend } from 'k6/metrics';\n\
        const pay = new Trend('pay', true);\nexport const options = { vus: 2, duration: '60s' };\n\
        export default () => group('shop', () => {\nconst r = http.get(__ENV.HOST);\n\
        check(r, { ok: (r) => r.status === 200 });\npay.add(r.timings.duration);\nsleep(0.05);\n});\n";
    let path = folder.write("users.js", script);
    let host = format!("HOST={}", server.url("/"));
    let live = Live::start_with(&["-s", path.to_str().unwrap(), "-e", &host]);
    let mut events = live.events(&live.spectator, None);
    let script = loop {
        let load = events.next("load");
        if !load["script"].is_null() {
            break load["script"].clone();
        }
    };
    assert_eq!((&script["checks"][0][0], &script["checks"][0][2]), (&json!("shop / ok"), &json!(0)), "{script}");
    let metrics = script["metrics"].as_array().unwrap();
    let own = metrics.iter().find(|metric| metric[0] == "pay").unwrap();
    assert_eq!((&own[1], &own[2]), (&json!("trend"), &json!("milliseconds")), "{own}");
    assert!(own[3]["p(95)"].as_f64().unwrap() > 0.0, "{own}");
    let checks = metrics.iter().find(|metric| metric[0] == "checks").unwrap();
    assert_eq!(checks[3]["rate"], json!(1.0), "{checks}");
    drop(live.running);
}

/// What judges when changes reach the workers, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn a_load_that_is_changed_has_the_arrivals_of_its_stages() {
        let server = Server::hello();
        for agents in [&[][..], &["--on", "local", "--agents", "2"]] {
            let live = Live::start(&server.url("/"), &[&["--rate", "100", "-d", "60s"], agents].concat());
            live.wait_for_start();
            live.changed(&json!({ "rate": 300 }));
            live.changed(&json!("stop"));
            let (_, run) = live.finish();
            let stages = run.changes.unwrap().stages;
            let again = weir_testing::load(&server.url("/"), &["--stages", &stages]);
            assert_eq!(run.requests.total, again.requests.total, "{agents:?} {stages}");
        }
    }
}
