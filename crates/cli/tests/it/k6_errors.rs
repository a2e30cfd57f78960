//! Scripts of k6 that fail: the load ends in time, each fault has its line, nothing hangs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use weir_measure::Run;
use weir_testing::{Gate, Output, Reply, Server, Weir, until};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

fn play(server: &Server, body: &str, args: &[&str]) -> Output {
    let folder = Weir::new();
    folder.write("users.js", body);
    let host = format!("HOST={}", server.url(""));
    folder.run(&[&["load", "-q", "-s", "users.js", "-e", &host], args].concat())
}

/// Output and run of a load.
fn measured(server: &Server, body: &str, args: &[&str]) -> (Output, Run) {
    let output = play(server, body, &[args, &["-f", "json"]].concat());
    let run = output.json();
    (output, run)
}

const GET: &str = "import http from 'k6/http';\nconst get = () => http.get(`${__ENV.HOST}/`);\n";

fn script(body: &str) -> String {
    format!("{GET}{body}")
}

#[test]
fn mistakes_before_the_load_are_one_line() {
    let server = Server::hello();
    for (body, reason) in [
        ("export default function ( {", "users.js:1: SyntaxError"),
        ("throw new TypeError('bad');\nexport default () => {};", "users.js:1: TypeError: bad"),
        ("import x from 'lodash';\nexport default () => {};", "no module 'lodash'"),
        ("import { browser } from 'k6/browser';\nexport default () => {};", "'k6/browser' is not supported"),
        ("import sql from 'k6/x/sql';\nexport default () => {};", "extensions of k6 (xk6)"),
        ("import { x } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';\nexport default () => {};", "--js-lib"),
        ("import { x } from './missing.js';\nexport default () => {};", "missing.js"),
        ("import http from 'k6/http';\nhttp.get('http://127.0.0.1:1/');\nexport default () => {};", "init context"),
        ("export function other() {}", "no function is exported by default"),
        ("export const options = { vuss: 3 };\nexport default () => {};", "'vuss'"),
        (
            "export const options = { scenarios: { a: { executor: 'constant-vus', duration: '1s', exec: 'b' } } };\nexport default () => {};",
            "needs the function 'b'",
        ),
        (
            "export const options = { thresholds: { nothing: ['count>1'] } };\nexport default () => {};",
            "no metric 'nothing'",
        ),
        (
            "export const options = { thresholds: { checks: ['rate>'] } };\nexport default () => {};",
            "invalid threshold 'rate>'",
        ),
        (
            "export const options = { thresholds: { checks: ['count>5'] } };\nexport default () => {};",
            "'count>5' does not fit checks; compare one of rate",
        ),
        (
            "import { Trend } from 'k6/metrics';\nnew Trend('a-b');\nexport default () => {};",
            "invalid metric name 'a-b'",
        ),
        ("import { Trend } from 'k6/metrics';\nnew Trend();\nexport default () => {};", "a metric needs a name"),
        ("throw undefined;\nexport default () => {};", "users.js: undefined was thrown"),
        ("throw 'a text\\nof two lines';\nexport default () => {};", "users.js: a text of two lines"),
        ("throw { get message() { throw 1; } };\nexport default () => {};", "users.js: "),
        ("throw new Error('\\x1b[31m' + 'x'.repeat(1e6));\nexport default () => {};", "characters more)"),
        ("JSON.parse('{');\nexport default () => {};", "users.js:1: SyntaxError"),
        ("export default () => {};\0", "users.js:1: a NUL character"),
        (
            "import * as own from './users.js';\nexport const b = own.c, c = 1;\nexport default () => b;",
            "users.js:2: ReferenceError",
        ),
        ("export const setup = 5;\nexport default () => {};", "the export 'setup' is not a function"),
        ("export const options = { vus: NaN, iterations: 1 };\nexport default () => {};", "options: invalid vus NaN"),
        (
            "export const options = { tags: { a: 1n } };\nexport default () => {};",
            "options: invalid a 1; write a number",
        ),
        ("export const options = () => ({ vus: 1 });\nexport default () => {};", "options: it is a function"),
        ("export const options = {};\noptions.tags = options;\nexport default () => {};", "options: "),
        (
            "export const options = { hosts: { 'a.test': 'b.test' } };\nexport default () => {};",
            "'b.test'; write an IP",
        ),
    ] {
        let output = play(&server, body, &["-c", "1", "-n", "1"]);
        assert_eq!(output.code, 2, "{body}: {output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
        assert!(output.stderr.contains(reason), "{body}: {output:?}");
        assert!(output.stderr.len() < 1200 && !output.stderr.contains('\x1b'), "{body}: {output:?}");
    }
    assert!(server.seen().is_empty());
    for (args, reason) in [
        (&["-s", "a.js", "--check", "status == 200"][..], "--check cannot be used with a k6 script"),
        (&["-s", "a.js", "-s", "b.hurl"], "a k6 script must be the only scenario"),
        (&["http://127.0.0.1:1/", "-e", "A=1"], "--env needs a k6 script"),
        (&["http://127.0.0.1:1/", "-f", "k6"], "need a k6 script"),
        (&["-s", "a.js", "-e", "A"], "NAME=VALUE"),
        (&["-s", "a.js", "--ramp-up", "1s"], "--ramp-up needs --users"),
    ] {
        let output = Weir::new().run(&[&["load"], args].concat());
        assert!(output.code == 2 && output.stderr.contains(reason), "{args:?}: {output:?}");
    }
}

#[test]
fn exceptions_end_their_iteration_and_are_counted_with_their_place() {
    let server = Server::hello();
    for (body, line) in [
        ("export default () => { get(); null.x; };", "users.js:3: TypeError: cannot read property 'x' of null"),
        ("export default async () => { get(); throw new Error('later'); };", "users.js:3: Error: later"),
        ("const f = (n) => f(n + 1) + 1;\nexport default () => { get(); f(0); };", "RangeError: Maximum call stack"),
        ("export default async () => { get(); await new Promise(() => {}); };", "is never settled"),
        (
            "const later = async () => { throw new Error('alone'); };\nexport default () => { get(); later(); };",
            "users.js:3: Error: alone (in a promise)",
        ),
        ("import { fail } from 'k6';\nexport default () => { get(); fail('no'); };", "users.js:4: Error: no"),
    ] {
        let (output, run) = measured(&server, &script(body), &["-c", "2", "-n", "6"]);
        let script = run.script.unwrap();
        assert_eq!(
            (run.requests.ok, script.exceptions.iter().map(|it| it.count).sum()),
            (6, 6_u64),
            "{body} {output:?}"
        );
        assert!(script.exceptions[0].message.contains(line), "{:?}", script.exceptions);
        assert_eq!((run.iterations.unwrap().failed, output.code), (6, 3));
        assert!(output.stderr.contains(line), "{output:?}");
    }
}

#[test]
fn exceptions_whose_messages_all_differ_are_counted_whole() {
    let server = Server::hello();
    let body = "import exec from 'k6/execution';
    export default () => { get(); throw new Error(`number ${exec.scenario.iterationInTest}`); };";
    for agents in [&[][..], &["--on", "local", "--agents", "2"]] {
        let (output, run) = measured(&server, &script(body), &[&["-c", "4", "-n", "100"], agents].concat());
        let exceptions = run.script.unwrap().exceptions;
        assert_eq!(exceptions.iter().map(|it| it.count).sum::<u64>(), 100, "{exceptions:?} {output:?}");
        assert!(exceptions.len() <= 41, "{exceptions:?}");
    }
}

#[test]
fn memory_of_a_script_is_bounded() {
    let server = Server::hello();
    let body = "export default () => { get(); const all = []; for (;;) all.push(new Array(1000).fill(0)); };";
    let (output, run) = measured(&server, &script(body), &["-c", "2", "-n", "4", "--js-heap", "16MB"]);
    let exceptions = run.script.unwrap().exceptions;
    assert!(exceptions.iter().all(|it| it.message.contains("memory")), "{output:?}");
    assert_eq!(run.iterations.unwrap().failed, 4);
}

#[test]
fn a_script_that_does_not_return_ends_with_the_load() {
    let server = Server::hello();
    let body = "export default () => { get();\n  for (;;) { Math.sqrt(2); }\n};";
    let (output, run) = measured(&server, &script(body), &["-c", "3", "-d", "500ms", "-t", "1"]);
    let script = run.script.unwrap();
    // Each user had its turn, and what computed is named.
    assert_eq!((run.requests.ok, script.interrupted), (3, 3), "{output:?}");
    assert_eq!(script.interrupted_at, ["users.js:4"]);
    let sleeps = format!("import {{ sleep }} from 'k6';\n{GET}export default () => {{ get(); sleep(100); }};");
    let (output, run) = measured(&server, &sleeps, &["-c", "3", "-d", "300ms"]);
    assert_eq!((run.requests.ok, run.duration_s.round()), (3, 0.0), "{output:?}");
}

#[test]
fn a_script_or_a_threshold_ends_the_run() {
    let server = Server::hello();
    let body = "import exec from 'k6/execution';\nexport default () => { get(); if (exec.scenario.iterationInTest === 5) exec.test.abort('enough'); };";
    let (output, run) = measured(&server, &script(body), &["-c", "1", "-d", "60s"]);
    assert_eq!((output.code, run.aborted.as_deref()), (1, Some("test aborted: enough")), "{output:?}");
    let body = "export const options = { vus: 1, duration: '60s', thresholds: { http_reqs: [{ threshold: 'count<1', abortOnFail: true }] } };\nexport default () => { get(); };";
    let (output, run) = measured(&server, &script(body), &[]);
    assert_eq!((output.code, run.aborted.as_deref()), (1, Some("threshold http_reqs: count<1")), "{output:?}");
    assert!(run.duration_s < 30.0);
    let output = play(&server, &script(body), &["-f", "k6"]);
    assert_eq!(output.code, 99, "as k6 says it to those who ask for its summary: {output:?}");
}

#[test]
fn ten_thousand_requests_at_once_are_sent_in_turn() {
    let server = Server::hello();
    let body = "export default async () => {
      const all = []; for (let at = 0; at < 10000; at += 1) all.push(http.asyncRequest('GET', `${__ENV.HOST}/`));
      await Promise.all(all);
    };";
    let (output, run) = measured(&server, &script(body), &["-c", "1", "-n", "1"]);
    assert_eq!((output.code, run.requests.ok), (0, 10_000), "{output:?}");
    assert!(run.connections.opened <= 24, "{}", run.connections.opened);
}

#[test]
fn files_are_read_whatever_their_bytes_are() {
    let server = Server::hello();
    let folder = Weir::new();
    let host = format!("HOST={}", server.url(""));
    let load = |bytes: &[u8]| {
        folder.write("users.js", bytes);
        folder.run(&["load", "-q", "-s", "users.js", "-e", &host, "-n", "1", "-c", "1"])
    };
    let output =
        load("\u{feff}import http from 'k6/http';\r\nexport default () => {\r\n  null.x;\r\n};\r\n".as_bytes());
    assert!(output.stderr.contains("users.js:3: TypeError"), "{output:?}");
    let output = load(b"#!/usr/bin/env k6\nexport default () => {};\n");
    assert_eq!(output.code, 0, "{output:?}");
    for bytes in [&b"const a = '\xff';\nexport default () => a;\n"[..], b"\xff\xfee\0x\0"] {
        let output = load(bytes);
        assert!(output.code == 2 && output.one_line().contains("users.js: not UTF-8"), "{output:?}");
    }
    std::fs::create_dir(folder.path("folder.js")).unwrap();
    let output = folder.run(&["load", "-q", "-s", "folder.js", "-n", "1", "-c", "1"]);
    assert!(output.code == 2 && output.one_line().contains("'folder.js': it is a folder"), "{output:?}");
}

#[test]
fn a_summary_of_the_script_may_be_sent() {
    let server = Server::hello();
    let body = "export async function handleSummary(data) {
      const response = await http.asyncRequest('POST', `${__ENV.HOST}/report`, String(data.metrics.http_reqs.values.count));
      await new Promise((done) => setTimeout(done, 1));
      return { stdout: `sent ${response.status}\\n` };
    }
    export default () => { get(); };";
    let output = play(&server, &script(body), &["-c", "1", "-n", "3"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.ends_with("sent 200\n") && output.stdout.contains("3 total"), "{output:?}");
    let seen = server.seen();
    let sent = seen.last().unwrap();
    assert_eq!((sent.line(), &sent.body[..]), ("POST /report HTTP/1.1", &b"3"[..]));
}

#[test]
fn a_setup_that_throws_ends_weir_before_the_load() {
    let server = Server::hello();
    let body = "export function setup() { throw new Error('not today'); }\nexport default () => { get(); };";
    let output = play(&server, &script(body), &["-c", "1", "-n", "1"]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("setup(): users.js:3: Error: not today"), "{output:?}");
    assert!(server.seen().is_empty());
}

#[test]
fn ctrl_c_during_setup_ends_weir_before_the_load_as_an_interrupt() {
    for args in [
        &["load", "-s"][..],
        &["load", "--on", "local", "--agents", "1", "-s"],
        &["load", "-f", "k6", "-s"],
        &["run"],
        &["capacity", "--slo", "p99<1s", "-s"],
    ] {
        for body in ["get()", "http.asyncRequest('GET', `${__ENV.HOST}/`); for (;;) Math.sqrt(2)"] {
            let held = Gate::default();
            let opens = held.clone();
            let server = Server::start(move |_| Reply::nothing().wait_for(&held));
            let folder = Weir::new();
            folder.write(
                "users.js",
                script(&format!("export const setup = () => {{ {body}; }};\nexport default get;\n")),
            );
            let running =
                folder.start(&[args, &["users.js", "-q", "-e", &format!("HOST={}", server.url(""))]].concat());
            until("the setup's request", PATIENCE, || server.requests() == 1);
            running.interrupt();
            let output = running.finish();
            let line = "interrupted during the setup; the load has not begun";
            assert_eq!((output.code, output.one_line()), (130, line), "{args:?}");
            assert_eq!((server.requests(), output.stdout.as_str()), (1, ""), "{args:?}");
            opens.open();
        }
    }
}

#[test]
fn a_script_that_computes_does_not_delay_the_responses_of_others() {
    let server = Server::hello();
    let body = "import exec from 'k6/execution';
    export default () => { get(); if (exec.vu.idInTest === 1) for (;;) Math.sqrt(2); };";
    let (output, run) = measured(&server, &script(body), &["-c", "2", "-d", "4s", "-t", "1"]);
    // Its turns are 10 ms long, and responses are read between them; without turns there would be two, at the end.
    assert!(run.requests.ok > 4, "{output:?}");
    assert!(run.response_ms.p50.unwrap() < 2000.0, "{output:?}");
}
