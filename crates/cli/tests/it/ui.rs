//! The page of `weir ui`: runs are started, followed, saved and found by its requests.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs::{self, File};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use weir_testing::{Raw, Running, Server, Weir, children, until};

/// No answer of the page takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// A page; the process ends before its folder goes.
pub(super) struct Ui {
    running: Running,
    weir: Weir,
    address: String,
    pub(super) operator: String,
    spectator: String,
}

impl Ui {
    pub(super) fn start(flags: &[&str]) -> Self {
        Self::start_in(Weir::new(), flags)
    }

    pub(super) fn start_in(weir: Weir, flags: &[&str]) -> Self {
        let log = weir.path("stderr");
        let args = [&["ui", "--listen", "127.0.0.1:0"], flags].concat();
        let running = Running::new(weir.command(&args).stderr(File::create(&log).unwrap()));
        let line =
            || fs::read_to_string(&log).unwrap().lines().find(|line| line.contains("page http")).map(str::to_owned);
        until("the address of the page", PATIENCE, || line().is_some());
        let line = line().unwrap();
        let urls: Vec<&str> = line.split([' ', ')']).filter_map(|word| word.strip_prefix("http://")).collect();
        let [operator, spectator] = [0, 1].map(|i| urls[i].split_once("/#").unwrap().1.to_owned());
        Self { running, address: urls[0].split_once('/').unwrap().0.to_owned(), operator, spectator, weir }
    }

    /// Status and body of a request.
    pub(super) fn request(&self, (method, path): (&str, &str), token: &str, more: &str, body: &[u8]) -> (u16, String) {
        let host = if more.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let mut raw = Raw::connect(&self.address);
        let token = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let head = format!("{method} {path} HTTP/1.1\r\n{host}{token}{more}Content-Length: {}\r\n\r\n", body.len());
        raw.send([head.as_bytes(), body].concat());
        let answer = raw.answer();
        (answer.status, answer.text().to_owned())
    }

    /// Response to JSON of the operator.
    fn ask(&self, path: &str, value: &Value) -> (u16, Value) {
        let (status, body) = self.request(("POST", path), &self.operator, "", value.to_string().as_bytes());
        (status, serde_json::from_str(&body).unwrap_or_else(|why| panic!("{why}: {body}")))
    }

    pub(super) fn asked(&self, path: &str, value: &Value) -> Value {
        let (status, body) = self.ask(path, value);
        assert_eq!(status, 200, "{path} {value}: {body}");
        body
    }

    fn error(&self, path: &str, value: &Value) -> String {
        let (status, body) = self.ask(path, value);
        assert!((400..500).contains(&status), "{path} {value}: {status} {body}");
        body["error"].as_str().unwrap().to_owned()
    }

    fn events(&self, token: &str) -> Events {
        let mut raw = Raw::connect(&self.address);
        let host = &self.address;
        raw.send(format!("GET /api/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"));
        Events { raw, text: Vec::new() }
    }

    pub(super) fn runs(&self) -> Vec<Value> {
        self.asked("/api/runs", &json!({}))["runs"].as_array().unwrap().clone()
    }

    /// HTML of a report.
    fn document(&self, request: &Value) -> String {
        let path = self.asked("/api/documents", request)["path"].as_str().unwrap().to_owned();
        let (status, html) = self.request(("GET", &path), "", "", b"");
        assert_eq!(status, 200, "{html}");
        html
    }
}

struct Events {
    raw: Raw,
    text: Vec<u8>,
}

impl Events {
    /// Next event of any kind.
    fn any(&mut self) -> (String, Value) {
        loop {
            let byte = self.raw.take(1);
            self.text.push(byte[0]);
            if !self.text.ends_with(b"\n\n") {
                continue;
            }
            let block = String::from_utf8(std::mem::take(&mut self.text)).unwrap();
            if let Some((_, event)) = block.trim_end().split_once("event: ") {
                let (name, data) = event.split_once("\ndata: ").unwrap();
                return (name.to_owned(), serde_json::from_str(data).unwrap_or_else(|why| panic!("{why}: {event}")));
            }
        }
    }

    fn next(&mut self, kind: &str) -> Value {
        loop {
            let (name, data) = self.any();
            if name == kind {
                return data;
            }
        }
    }

    /// State of a run, once it is this one.
    fn state(&mut self, wanted: &str) -> Value {
        loop {
            let state = self.next("run");
            if state["state"] == wanted {
                return state;
            }
        }
    }
}

#[test]
fn a_run_is_started_changed_stopped_and_found() {
    let server = Server::hello();
    let ui = Ui::start(&[]);
    let mut events = ui.events(&ui.operator);
    assert_eq!(events.next("run")["state"], "none");
    assert!(ui.runs().is_empty(), "there is no store yet");
    let url = server.url("/items");
    let options =
        json!([["rate", "100"], ["duration", "60s"], ["slo", "p99<30s"], ["header", "Authorization: secret-7"]]);
    let form = json!({ "url": url, "label": "main", "options": options });
    let shown = ui.asked("/api/preview", &form);
    assert_eq!(
        shown["command"].as_str(),
        Some(&*format!("weir load {url} --rate 100 --duration 60s --slo 'p99<30s' --header 'Authorization: secret-7'"))
    );
    assert_eq!(shown["problem"], Value::Null, "{shown}");
    assert_eq!(ui.asked("/api/start", &form)["number"], 1);
    assert!(ui.error("/api/start", &form).contains("a run is going on"));
    assert_eq!(events.state("running")["command"].as_str().unwrap().matches("secret").count(), 0);
    let hello = events.next("hello");
    assert_eq!((hello["kind"].as_str(), hello["may_change"].as_bool()), (Some("rate"), Some(true)));
    assert_eq!(ui.events(&ui.spectator).next("hello")["may_change"].as_bool(), Some(false));
    server.wait_for("requests", |counts| counts.requests > 20);
    // All users of the machine see the arguments of its processes.
    let run = children(ui.running.pid()).into_iter().map(|pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap());
    let run: Vec<String> = run.map(|line| String::from_utf8_lossy(&line).into_owned()).collect();
    assert!(run.iter().any(|line| line.contains("load")), "{run:?}");
    assert!(run.iter().all(|line| !line.contains("secret-7")), "{run:?}");
    assert_eq!(server.seen()[0].header("authorization"), Some("secret-7"));
    assert!(ui.asked("/api/change", &json!({ "rate": 200 }))["at_s"].as_f64().unwrap() > 0.0);
    assert_eq!(ui.ask("/api/change", &json!({ "users": 2 })).0, 409);
    ui.asked("/api/change", &json!("stop"));
    assert!(events.next("end")["headline"].is_string());
    let state = events.state("ended");
    assert_eq!((state["saved"].as_i64(), state["code"].as_i64()), (Some(1), Some(0)), "{state}");
    assert!(ui.error("/api/change", &json!("stop")).contains("no run"));
    let runs = ui.runs();
    assert_eq!((runs.len(), runs[0]["label"].as_str()), (1, Some("main")), "{runs:?}");
    let html = ui.document(&json!({ "runs": [1] }));
    // The command is the one that was shown.
    assert!(html.contains("--rate=100 --duration=60s") && !html.contains("until-stdin-ends"), "{html}");
    assert!(!html.contains("secret-7") && !html.contains("--web"));
    let again = ui.asked("/api/form", &json!(1));
    assert_eq!((again["url"].as_str(), again["options"].as_array().unwrap().len()), (Some(&*url), 4), "{again}");
    assert_eq!(again["label"], "main");
}

#[test]
fn runs_are_compared_and_have_trends() {
    let (server, weir) = (Server::hello(), Weir::new());
    for label in ["main", "main", "other"] {
        let args = ["load", &server.url("/"), "-n", "200", "-c", "2", "-q", "--save", "--label", label];
        assert_eq!(weir.run(&args).code, 0);
    }
    assert_eq!(weir.run(&["load", &server.url("/"), "-n", "200", "--rate", "400", "-q", "--save"]).code, 0);
    let ui = Ui::start_in(weir, &[]);
    let ids = |query: &Value| -> Vec<i64> {
        let body = ui.asked("/api/runs", query);
        body["runs"].as_array().unwrap().iter().map(|run| run["run"].as_i64().unwrap()).collect()
    };
    assert_eq!(ids(&json!({})), [4, 3, 2, 1]);
    assert_eq!(ids(&json!({ "label": "main" })), [2, 1]);
    assert_eq!(ids(&json!({ "target": "open loop" })), [4]);
    assert_eq!(ids(&json!({ "commit": "zzz" })), [] as [i64; 0]);
    let groups = ui.asked("/api/trends", &json!({}))["groups"].clone();
    // On a busy machine some are not trusted, and left out.
    let [shown, left_out] = ["runs", "left_out"].map(|key| groups[0][key].as_u64().unwrap());
    assert_eq!((shown + left_out, groups[0]["points"].as_array().unwrap().len() as u64), (3, shown), "{groups}");
    let html = ui.document(&json!({ "runs": [1, 2] }));
    assert!(html.contains("#1") && html.contains("#2"), "{html}");
    assert!(ui.error("/api/documents", &json!({ "runs": [1, 4] })).contains("--force compares them anyway"));
    assert!(ui.document(&json!({ "runs": [1, 4], "force": true })).contains("weir compare"));
    assert!(ui.error("/api/documents", &json!({ "runs": [99] })).contains("unknown run '#99'"));
    assert!(ui.error("/api/documents", &json!({ "runs": [] })).contains("no run"));
}

#[test]
fn a_folder_of_results_is_a_history() {
    let (server, weir) = (Server::hello(), Weir::new());
    fs::create_dir(weir.path("results")).unwrap();
    for name in ["a", "b"] {
        let out = format!("results/{name}.json");
        assert_eq!(weir.run(&["load", &server.url("/"), "-n", "150", "-c", "1", "-q", "--out", &out]).code, 0);
    }
    weir.write("results/notes.json", "{}");
    weir.write("results/readme.txt", "no result");
    let ui = Ui::start_in(weir, &["--store", "results"]);
    let labels = || ui.runs().iter().map(|run| run["label"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(labels(), ["b", "a"]);
    let mut events = ui.events(&ui.operator);
    let form = json!({ "url": server.url("/"), "options": [["requests", "150"]], "label": "../evil name" });
    ui.asked("/api/start", &form);
    let state = events.state("ended");
    let runs = ui.runs();
    assert_eq!((runs.len(), state["saved"].as_i64()), (3, runs[0]["run"].as_i64()), "{state}");
    assert!(runs[0]["label"].as_str().unwrap().starts_with("-evil-name-"), "{}", runs[0]);
    assert!(ui.document(&json!({ "runs": [runs[0]["run"]] })).contains("<!doctype html>"));
    // Numbers stay when files come and go.
    let of_a = ui.runs()[2]["run"].as_i64().unwrap();
    fs::remove_file(ui.weir.path("results/b.json")).unwrap();
    assert_eq!(ui.runs()[1]["run"].as_i64(), Some(of_a));
    assert!(ui.error("/api/documents", &json!({ "runs": [runs[1]["run"]] })).contains("unknown run"));
}

#[test]
fn the_toml_of_a_form_is_the_same_load() {
    let server = Server::hello();
    let ui = Ui::start(&[]);
    let options = json!([
        ["requests", "20"],
        ["connections", "2"],
        ["method", "PUT"],
        ["body", "{\"a\": 1}"],
        ["slo", "errors<50%"]
    ]);
    let shown = ui.asked("/api/preview", &json!({ "url": server.url("/x?y=z"), "options": options }));
    let weir = Weir::new();
    weir.write("mix.toml", shown["toml"].as_str().unwrap());
    weir.write("request.hurl", shown["request"].as_str().unwrap());
    let output = weir.run(&["load", "-s", "mix.toml", "-q", "--out", "run.json"]);
    assert_eq!(output.code, 0, "{output:?}");
    let run: Value = serde_json::from_str(&weir.read("run.json")).unwrap();
    let objective = run["slo"][0]["objective"].as_str().unwrap().replace(' ', "");
    assert_eq!((run["requests"]["total"].as_i64(), objective.as_str()), (Some(20), "errors<50%"));
    assert_eq!(server.requests(), 20);
}

#[test]
fn mistakes_are_shown_before_a_run_is_started_and_those_of_the_run_after_it() {
    let ui = Ui::start(&[]);
    let problem = |options: Value| {
        let shown = ui.asked("/api/preview", &json!({ "url": "http://127.0.0.1:1/", "options": options }));
        shown["problem"].as_str().unwrap_or_default().to_owned()
    };
    assert!(problem(json!([["rate", "fast"]])).contains("rate"));
    assert!(problem(json!([["rate", "5"], ["users", "5"]])).contains("--users"));
    assert!(problem(json!([["scenario", "none.hurl"]])).contains("none.hurl"));
    assert!(problem(json!([["slo", "items: p99<1s"]])).contains("items"));
    assert_eq!(problem(json!([["rate", "5"]])), "");
    for (name, value) in [
        ("out", "/tmp/x"),
        ("html", "x"),
        ("save", "x"),
        ("web", "0.0.0.0:1"),
        ("no-such", "1"),
        ("until-stdin-ends", "1"),
    ] {
        let form = json!({ "url": "http://127.0.0.1:1/", "options": [[name, value]] });
        assert!(ui.error("/api/start", &form).starts_with("unknown option"), "{name}");
    }
    assert!(ui.error("/api/start", &json!({ "url": "--out=x" })).contains("invalid URL"));
    assert!(ui.error("/api/start", &json!({ "what": 1 })).contains("invalid JSON"));
    let mut events = ui.events(&ui.operator);
    ui.asked("/api/start", &json!({ "url": "http://127.0.0.1:1/", "options": [["requests", "5"]] }));
    let state = events.state("ended");
    assert_eq!((state["code"].as_i64(), &state["saved"]), (Some(2), &Value::Null), "{state}");
    assert!(state["messages"][0].as_str().unwrap().contains("127.0.0.1:1"), "{state}");
}

#[test]
fn uploads_stay_in_their_folder_and_are_the_files_of_a_run() {
    let server = Server::hello();
    let ui = Ui::start(&[]);
    let upload =
        |name: &str, bytes: &[u8]| ui.request(("POST", &format!("/api/files?name={name}")), &ui.operator, "", bytes);
    let text = format!("GET {}\nHTTP 200\n", server.url("/visit"));
    let (status, body) = upload("visit.hurl", text.as_bytes());
    assert_eq!((status, body.as_str()), (200, r#"{"path":".weir/uploads/visit.hurl"}"#));
    assert_eq!(ui.weir.read(".weir/uploads/visit.hurl"), text);
    for name in ["..%2fevil.hurl", "../evil.hurl", ".hidden.hurl", "evil.py", "evil.lua", "evil", ""] {
        let (status, body) = upload(name, b"x");
        assert_eq!(status, 422, "{name}: {body}");
    }
    let mut raw = Raw::connect(&ui.address);
    raw.send(format!(
        "POST /api/files?name=big.csv HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        ui.address,
        ui.operator,
        (16 << 20) + 1
    ));
    assert_eq!(raw.answer().status, 413);
    assert_eq!(fs::read_dir(ui.weir.path(".weir/uploads")).unwrap().count(), 1);
    let mut events = ui.events(&ui.operator);
    let options = json!([["scenario", ".weir/uploads/visit.hurl"], ["requests", "12"], ["users", "2"]]);
    ui.asked("/api/start", &json!({ "options": options }));
    let state = events.state("ended");
    assert_eq!((state["saved"].as_i64(), server.requests()), (Some(1), 12), "{state}");
}

#[test]
fn a_spectator_and_a_foreign_site_start_nothing() {
    let server = Server::hello();
    let ui = Ui::start(&[]);
    let form = json!({ "url": server.url("/"), "options": [["requests", "5"]] }).to_string();
    let status = |path: &str, token: &str, more: &str| ui.request(("POST", path), token, more, form.as_bytes()).0;
    for path in ["/api/start", "/api/end", "/api/change", "/api/preview", "/api/form", "/api/files?name=a.csv"] {
        assert_eq!(
            [status(path, &ui.spectator, ""), status(path, "wrong", ""), status(path, "", "")],
            [403, 401, 401],
            "{path}"
        );
        assert_eq!(status(path, &ui.operator, "Host: evil.example\r\n"), 421, "{path}");
        for more in ["Origin: http://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
            assert_eq!(status(path, &ui.operator, more), 403, "{path} {more}");
        }
    }
    let get = |path: &str, token: &str, more: &str| ui.request(("GET", path), token, more, b"").0;
    assert_eq!([get("/", "", ""), get("/ui.js", "", ""), get("/api/options", "", "")], [200, 200, 401]);
    assert_eq!(get("/api/start", &ui.operator, ""), 405);
    assert_eq!([get("/documents/x", &ui.operator, ""), get("/documents/", "", "")], [404, 404]);
    let (_, body) = ui.request(("GET", "/api/options"), &ui.spectator, "", b"");
    assert!(body.contains(r#""may_start":false"#), "{body}");
    assert_eq!(server.requests(), 0);
    let weir = Weir::new();
    for (flags, expected) in [
        (["--listen", "0.0.0.0:0"].as_slice(), "--web-token"),
        (&["--listen", "nowhere"], "HOST:PORT"),
        (&["--listen", "127.0.0.1:0", "--web-token", "short"], "too short"),
        (&["--store", "stderr"], "not a store of runs"),
    ] {
        weir.write(
            "stderr",
            "not a store, but a text that is longer than its header would be: 0123456789 0123456789 0123456789",
        );
        let output = weir.run(&[&["ui"], flags].concat());
        assert!(output.code == 2 && output.one_line().contains(expected), "{output:?}");
    }
}

#[test]
fn a_run_ends_and_is_saved_with_the_page_however_that_ends() {
    let server = Server::hello();
    for (signal, code) in [(Signal::TERM, Some(0)), (Signal::INT, Some(130)), (Signal::KILL, None)] {
        let ui = Ui::start(&[]);
        let before = server.requests();
        ui.asked("/api/start", &json!({ "url": server.url("/"), "options": [["rate", "200"], ["duration", "10m"]] }));
        server.wait_for("requests", |counts| counts.requests > before + 150);
        ui.running.signal(signal);
        let Ui { weir, running, .. } = ui;
        let output = running.finish();
        assert!(code.is_none_or(|code| output.code == code), "{signal:?}: {output:?}");
        let saved = || weir.run(&["history", "--format", "json"]);
        until("the run to be saved", PATIENCE, || saved().stdout.contains("\"run\": 1"));
        assert!(saved().stdout.contains("\"interrupted\": true"), "{signal:?}: {}", saved().stdout);
    }
}

#[test]
fn a_page_that_comes_back_goes_on_with_the_next_run() {
    let server = Server::hello();
    let ui = Ui::start(&[]);
    let form = json!({ "url": server.url("/"), "options": [["rate", "100"], ["duration", "1s"]] });
    let mut events = ui.events(&ui.operator);
    let mut names = Vec::new();
    for number in 1..=2 {
        assert_eq!(ui.asked("/api/start", &form)["number"], number);
        names.push(events.next("hello")["run"].as_str().unwrap().to_owned());
        let _ = events.next("end");
        assert_eq!(events.state("ended")["saved"], number);
    }
    assert_ne!(names[0], names[1]);
    assert_eq!(ui.events(&ui.operator).next("run")["state"], "ended");
}
