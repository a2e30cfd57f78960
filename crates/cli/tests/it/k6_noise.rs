//! Scripts of k6 that do harm: others beside them have their turns, the load ends in time, and each is named.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_measure::Run;
use weir_testing::{Output, Reply, Server, Weir};

const HEAD: &str = "import http from 'k6/http';\nimport exec from 'k6/execution';\nimport { sleep } from 'k6';\n\
    const get = () => http.get(`${__ENV.HOST}/`);\n";
/// Longest time of a load that its script does not end, far above the time that it is meant to take.
const MAX_SECONDS: f64 = 60.0;

/// A load of the first user, who sends and does nothing else, and of three that do harm.
fn beside_others(server: &Server, harm: &str, args: &[&str]) -> (Output, Run) {
    let folder = Weir::new();
    let script = format!(
        "{HEAD}export default async () => {{ get();\nif (exec.vu.idInTest > 1) {{\n{harm}\n}} else sleep(0.01); }};\n"
    );
    folder.write("users.js", script);
    let host = format!("HOST={}", server.url(""));
    let flags = ["load", "-q", "-s", "users.js", "-e", &host, "-f", "json", "-t", "1", "--js-heap", "4MB"];
    let output = folder.run(&[&flags, args].concat());
    let run = output.json();
    (output, run)
}

#[test]
fn users_that_throw_in_all_ways_are_counted_with_their_reasons() {
    let server = Server::hello();
    for (harm, reason) in [
        ("throw null;", "null was thrown"),
        ("throw { code: 7 };", "code"),
        ("throw Object.assign(new Error('a\\nb'), { stack: '' });", "Error: a b"),
        ("await Promise.reject(new TypeError('rejected'));", "TypeError: rejected"),
        ("Promise.reject(new Error('not awaited'));", "Error: not awaited (in a promise)"),
        ("(async () => { await null; null.x; })();", "cannot read property 'x' of null (in a promise)"),
        ("await new Promise(() => {});", "is never settled"),
        ("await Promise.race([]);", "is never settled"),
        ("const o = { toString() { return `${o}`; } }; String(o);", "Maximum call stack"),
        ("const o = new Proxy({}, { get: (t, n, r) => r[n] }); o.x;", "Maximum call stack"),
        ("let deep = '['.repeat(1e5); JSON.parse(deep + ']'.repeat(1e5));", "Maximum call stack"),
        ("const a = []; a.push(a); JSON.stringify(a);", "circular"),
        ("let s = 'x'; for (;;) s += s;", ""),
        ("const all = []; for (;;) all.push('x'.repeat(1e6) + all.length);", "memory"),
        ("const all = []; for (;;) all.push(new ArrayBuffer(1e6));", "memory"),
        ("const all = []; for (;;) all.push(get().body + all.length);", ""),
        ("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);", "cannot block in this thread"),
        ("http.asyncRequest('GET', 'http://').catch(() => {}); http.get('nothing://x');", "nothing://x"),
        ("new Function('return process')();", "process"),
    ] {
        // What fills the memory by requests has some thousands of them.
        let length = if harm.contains("get().body") { ["-c", "4", "-d", "1s"] } else { ["-c", "4", "-n", "12"] };
        let (output, run) = beside_others(&server, harm, &length);
        let script = run.script.unwrap();
        let told: Vec<_> = script.exceptions.iter().map(|one| &one.message).collect();
        let is_told = told.iter().any(|message| message.contains(reason) && !message.contains('\n'));
        assert!(is_told || script.interrupted > 0 && reason.is_empty(), "{harm}: {told:?} {output:?}");
        assert!(run.requests.ok >= 4 && run.duration_s < MAX_SECONDS, "{harm}: {output:?}");
        assert!(matches!(output.code, 0 | 3), "{harm}: {output:?}");
    }
}

#[test]
fn users_that_never_end_are_cut_off_and_others_go_on() {
    let server = Server::hello();
    for (harm, place) in [
        ("for (;;) Math.sqrt(2);", Some("users.js:7")),
        ("const f = () => Promise.resolve().then(f); await f();", None),
        ("for (;;) await null;", None),
        ("for (;;) { try { for (;;) Math.sqrt(2); } catch { continue; } }", None),
        ("const f = function* () { for (;;) yield 1; }; for (const one of f()) one;", None),
        ("[...new Array(1e4).keys()].sort(() => { for (;;) {} });", None),
        ("/^(a+)+$/.test('a'.repeat(40) + 'b');", None),
        ("const f = () => setTimeout(f, 0); f();", None),
        ("setInterval(() => {}, 1); await new Promise(() => {});", None),
        ("sleep(1e9);", None),
        ("sleep(Infinity);", None),
        ("await new Promise((done) => setTimeout(done, 1e9));", None),
        ("for (;;) http.asyncRequest('GET', `${__ENV.HOST}/`).then(() => {}), sleep(0.001);", None),
    ] {
        let (output, run) = beside_others(&server, harm, &["-c", "4", "-d", "1s"]);
        let script = run.script.unwrap();
        assert!(run.duration_s < MAX_SECONDS && run.requests.ok >= 4, "{harm}: {output:?}");
        // One of those whose memory is full ends by that; one that is woken by a timer as the load ends is not cut off.
        let thrown: u64 = script.exceptions.iter().map(|one| one.count).sum();
        let unfinished = run.iterations.map_or(0, |iterations| iterations.unfinished);
        assert!(script.interrupted.max(unfinished) + thrown >= 3, "{harm}: {output:?}");
        assert!(script.interrupted + thrown >= 1, "{harm}: {output:?}");
        if let Some(place) = place {
            assert_eq!(script.interrupted_at, [place], "{harm}: {output:?}");
        }
    }
}

#[test]
fn requests_that_are_not_awaited_are_sent_and_end_with_their_iteration() {
    let server = Server::hello();
    let harm = "for (let at = 0; at < 200; at += 1) http.asyncRequest('GET', `${__ENV.HOST}/`);";
    let (output, run) = beside_others(&server, harm, &["-c", "4", "-n", "8"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(run.requests.ok >= 208 && run.requests.failed == 0, "{output:?}");
    assert_eq!(run.iterations.unwrap().failed, 0);
    assert!(run.connections.opened <= 4 * 24, "{}", run.connections.opened);
}

#[test]
fn functions_around_the_load_that_never_end_are_named() {
    let server = Server::hello();
    let play = |body: &str| {
        let folder = Weir::new();
        folder.write("users.js", format!("{HEAD}{body}\nexport default () => {{ get(); }};\n"));
        folder.run(&["load", "-q", "-s", "users.js", "-e", &format!("HOST={}", server.url("")), "-n", "1", "-c", "1"])
    };
    for (body, reason) in [
        (
            "export const options = { setupTimeout: '2s' };\nexport const setup = () => { for (;;) {} };",
            "setup() has not",
        ),
        ("export const options = { setupTimeout: '2s' };\nexport const setup = () => sleep(1e6);", "setup() has not"),
        (
            "export const options = { teardownTimeout: '2s' };\nexport const teardown = () => { for (;;) {} };",
            "teardown() has not",
        ),
        (
            "export const options = { handleSummaryTimeout: '2s' };\nexport const handleSummary = () => { for (;;) {} };",
            "handleSummary() has not",
        ),
        ("export const teardown = () => { throw new Error('left'); };", "teardown(): users.js:5: Error: left"),
        (
            "export const handleSummary = () => { const f = () => f() + 1; return f(); };",
            "handleSummary(): users.js:5: RangeError",
        ),
        ("const f = () => f() + 1;\nf();", "users.js:5: RangeError"),
    ] {
        let output = play(body);
        assert!(output.stderr.contains(reason), "{body}: {output:?}");
        assert_eq!(output.code, 2, "{body}: {output:?}");
        assert!(output.stderr.lines().count() == 1 || reason.contains("RangeError"), "{body}: {output:?}");
        if body.contains("for (;;)") {
            assert!(output.stderr.starts_with("weir: users.js:6: "), "{body}: {output:?}");
        }
        // What the load has measured is there, whatever its end was.
        let has_load = body.contains("teardown") || body.contains("handleSummary");
        assert_eq!(output.stdout.contains("1 total"), has_load, "{body}: {output:?}");
    }
}

#[test]
fn requests_that_cannot_be_sent_end_at_once_and_others_have_their_turns() {
    let server = Server::hello();
    // Far more than frames of a stack.
    let harm = "for (let at = 0; at < 50_000; at += 1) http.request('NO METHOD', `${__ENV.HOST}/`);";
    let (output, run) = beside_others(&server, harm, &["-c", "2", "-n", "4"]);
    assert_eq!((output.code, run.iterations.unwrap().ok), (0, 4), "{output:?}");
    let harm = "for (;;) http.request('NO METHOD', `${__ENV.HOST}/`);";
    let (output, run) = beside_others(&server, harm, &["-c", "4", "-d", "1s"]);
    let script = run.script.unwrap();
    let thrown: u64 = script.exceptions.iter().map(|one| one.count).sum();
    assert!(script.interrupted + thrown >= 3 && run.requests.ok >= 4, "{output:?}");
    assert!(run.duration_s < MAX_SECONDS);
}

#[test]
fn a_batch_ends_though_its_responses_come_while_the_script_computes() {
    let server = Server::hello();
    // Others have their turns while the arguments are made, and responses come meanwhile.
    let harm = "const busy = (ms) => { for (const end = Date.now() + ms; Date.now() < end; ) Math.sqrt(2); };
        const url = `${__ENV.HOST}/`;
        const one = () => ['GET', url, null, { get headers() { busy(4); return {}; } }];
        const all = http.batch([...Array(40).keys()].map(one).concat(Array(1000).fill(url)));
        if (all.length !== 1040 || all.some((one) => one.status !== 200)) throw new Error(`${all.length}`);";
    let (output, run) = beside_others(&server, harm, &["-c", "2", "-n", "4"]);
    assert_eq!((output.code, run.iterations.unwrap().ok), (0, 4), "{output:?}");
}

#[test]
fn a_batch_has_each_response_under_its_name_whatever_their_hosts_are() {
    let (server, other) = (Server::hello(), Server::hello());
    let folder = Weir::new();
    let script = format!(
        "{HEAD}export const options = {{ batch: 3, batchPerHost: 2 }};\nexport default () => {{
        const of = (host, at) => ['GET', `${{host}}/${{at}}`];
        const all = http.batch([...Array(30).keys()].map((at) => of(at % 3 ? __ENV.HOST : __ENV.OTHER, at)));
        if (all.some((one, at) => !one.url.endsWith(`/${{at}}`))) throw new Error('mixed up');
        const named = http.batch({{ a: of(__ENV.OTHER, 'a'), b: of(__ENV.HOST, 'b') }});
        if (Object.keys(named).join() !== 'a,b' || !named.b.url.endsWith('/b')) throw new Error('no names');
        if (http.batch([]).length !== 0) throw new Error('not empty');
        }};\n"
    );
    folder.write("users.js", script);
    let hosts = [format!("HOST={}", server.url("")), format!("OTHER={}", other.url(""))];
    let output = folder.run(&["load", "-q", "-s", "users.js", "-e", &hosts[0], "-e", &hosts[1], "-n", "1", "-c", "1"]);
    assert_eq!((output.code, server.requests(), other.requests()), (0, 21, 11), "{output:?}");
    for (requests, reason) in [
        ("5", "batch() takes an array or an object"),
        ("null", "batch() takes an array or an object"),
        ("[[]]", "the request '0' has no URL"),
        ("{ a: ['GET'] }", "the request 'a' has no URL"),
    ] {
        folder.write("users.js", format!("{HEAD}export default () => {{ http.batch({requests}); }};\n"));
        let output = folder.run(&["load", "-q", "-s", "users.js", "-n", "1", "-c", "1"]);
        assert!(output.stderr.contains(reason), "{requests}: {output:?}");
    }
}

#[test]
fn a_log_without_end_is_left_out_from_a_number_of_lines_on() {
    let server = Server::hello();
    let (output, run) = beside_others(&server, "for (;;) console.log('noise');", &["-c", "4", "-d", "500ms"]);
    assert!(output.stderr.lines().count() < 11_000, "{}", output.stderr.lines().count());
    assert!(output.stderr.contains("further ones are left out") && run.duration_s < MAX_SECONDS);
}

#[test]
fn every_iteration_that_begins_ends_once() {
    let server = Server::start(|_| Reply::ok("late").after(Duration::from_millis(30)));
    let options = "export const options = { scenarios: { soon: { executor: 'constant-vus', vus: 4, duration: '300ms', gracefulStop: '20ms' },
        later: { executor: 'per-vu-iterations', vus: 2, iterations: 50, startTime: '100ms', maxDuration: '200ms', gracefulStop: '50ms' },
        never: { executor: 'constant-vus', vus: 2, startTime: '400ms', duration: '1ms', gracefulStop: '1ms' } } };\n";
    for body in [
        "get();",
        "get(); get();",
        "sleep(0.07);",
        "http.asyncRequest('GET', `${__ENV.HOST}/`);",
        "http.batch([`${__ENV.HOST}/a`, `${__ENV.HOST}/b`]); sleep(0.001);",
        "if (Math.random() < 0.5) throw new Error('half'); get();",
        "setTimeout(() => get(), 10);",
    ] {
        for (options, flags) in [
            ("", ["-c", "6", "-d", "300ms"].as_slice()),
            ("", &["-r", "150", "-c", "4", "-d", "300ms"]),
            (options, &[]),
        ] {
            let folder = Weir::new();
            let count = "import { Counter } from 'k6/metrics';\nconst begun = new Counter('begun');\n";
            let begin = "export default () => { begun.add(1);";
            folder.write("users.js", format!("{HEAD}{count}{options}{begin}\n{body}\n}};\n"));
            let host = format!("HOST={}", server.url(""));
            let own = ["load", "-q", "-s", "users.js", "-e", &host, "-f", "json"];
            let run = folder.run(&[&own[..], flags].concat()).json();
            let iterations = run.iterations.as_ref().unwrap();
            let script = run.script.as_ref().unwrap();
            let begun =
                script.metrics.iter().find(|metric| metric.name == "begun").map(|metric| metric.values["count"]);
            let ended = iterations.total - iterations.dropped + iterations.unfinished;
            assert_eq!(begun, Some(ended as f64), "{body} {flags:?} {iterations:?}");
        }
    }
}
