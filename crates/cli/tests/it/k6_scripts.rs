//! Scripts of k6: what a service gets, what a script gets, and what is measured.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_measure::Run;
use weir_testing::{Output, Reply, Seen, Server, Weir};

/// Service that answers with the request as JSON; `/login` sets cookies, `/away` redirects, `/missing` is 404.
fn service() -> Server {
    Server::start(|seen: &Seen| {
        let line = seen.line();
        if line.contains(" /login ") {
            let cookies = "Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2; HttpOnly\r\n";
            return Reply::raw(format!("HTTP/1.1 200 OK\r\n{cookies}Content-Length: 16\r\n\r\n{{\"token\": \"t1\"}} "));
        }
        if line.contains(" /away ") {
            return Reply::raw("HTTP/1.1 302 Found\r\nLocation: /home?x=1\r\nContent-Length: 0\r\n\r\n");
        }
        if line.contains(" /missing ") {
            return Reply::status(404, "none");
        }
        let path = line.split(' ').nth(1).unwrap_or_default();
        Reply::ok(&format!("{{\"path\": \"{path}\", \"items\": [{{\"id\": 7}}, {{\"id\": 8}}]}}"))
    })
}

/// Runs a script; returns what it printed, and the run.
pub(crate) fn play(server: &Server, script: &str, args: &[&str]) -> (Output, Run) {
    let folder = Weir::new();
    folder.write("users.js", script);
    let host = format!("HOST={}", server.url(""));
    let flags = ["load", "-q", "-s", "users.js", "-e", &host, "-o", "run.json"];
    let output = folder.run(&[&flags, args].concat());
    let run = folder.read("run.json");
    assert!(!run.is_empty(), "{output:?}");
    (output, Run::from_json(&run).unwrap())
}

/// Imports of most scripts.
const HEAD: &str = "import http from 'k6/http';\nimport { check, group, sleep } from 'k6';\n\
                    import exec from 'k6/execution';\nconst HOST = __ENV.HOST;\n";

fn script(body: &str) -> String {
    format!("{HEAD}{body}")
}

/// Results of checks, as name, passed and failed.
fn checks(run: &Run) -> Vec<(String, u64, u64)> {
    let checks = run.script.as_ref().unwrap().checks.iter();
    checks.map(|check| (format!("{}::{}", check.group, check.name), check.passed, check.failed)).collect()
}

fn lines(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.line().to_owned()).collect()
}

#[test]
fn requests_are_those_that_the_script_says() {
    let server = service();
    let body = "export default function () {
      http.get(`${HOST}/a?q=1`, { headers: { 'X-One': '1' } });
      http.post(`${HOST}/form`, { name: 'x y', list: ['1', '2'] });
      http.put(`${HOST}/json`, JSON.stringify({ a: 1 }), { headers: { 'Content-Type': 'application/json' } });
      http.patch(`${HOST}/bytes`, new Uint8Array([0, 255]).buffer);
      http.del(`${HOST}/gone`);
      http.request('OPTIONS', `${HOST}/options`);
      http.post(`${HOST}/file`, { f: http.file('content', 'a.txt', 'text/plain'), k: 'v' });
    }";
    let (output, run) = play(&server, &script(body), &["-c", "1", "-n", "1"]);
    assert_eq!((output.code, run.requests.ok), (0, 7), "{output:?}");
    let seen = server.seen();
    let named = |line: &str| seen.iter().find(|seen| seen.line().starts_with(line)).unwrap();
    assert_eq!(named("GET /a?q=1 ").header("x-one"), Some("1"));
    let form = named("POST /form");
    assert_eq!(form.body, b"name=x+y&list=1&list=2");
    assert_eq!(form.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(named("PUT /json").header("content-type"), Some("application/json"));
    assert_eq!(named("PATCH /bytes").body, [0, 255]);
    assert_eq!(named("DELETE /gone").body, b"");
    named("OPTIONS /options");
    let file = String::from_utf8(named("POST /file").body.clone()).unwrap();
    assert!(file.contains("name=\"f\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\ncontent\r\n"), "{file}");
    assert!(file.contains("name=\"k\"\r\n\r\nv\r\n"), "{file}");
}

#[test]
fn responses_have_what_scripts_look_at() {
    let server = service();
    let body = "export default function () {
      const r = http.get(`${HOST}/a`);
      check(r, {
        status: (r) => r.status === 200 && r.status_text === '200 Said' && r.proto === 'HTTP/1.1',
        json: (r) => r.json('items.#.id').join() === '7,8' && r.json('items.1.id') === 8 && r.json().path === '/a',
        timings: (r) => r.timings.duration > 0 && r.timings.waiting <= r.timings.duration,
        headers: (r) => r.headers['Content-Length'] === String(r.body.length),
        request: (r) => r.request.method === 'GET' && r.url === `${HOST}/a`,
      });
      const away = http.get(`${HOST}/away`);
      const stays = http.get(`${HOST}/away`, { redirects: 0 });
      const missing = http.get(`${HOST}/missing`);
      const bytes = http.get(`${HOST}/a`, { responseType: 'binary' });
      check(null, {
        redirects: () => away.json('path') === '/home?x=1' && away.url.endsWith('/home?x=1') && stays.status === 302,
        missing: () => missing.status === 404 && missing.error_code === 1404 && missing.body === 'none',
        bytes: () => bytes.body instanceof ArrayBuffer && new Uint8Array(bytes.body)[0] === 123,
        'a false one': () => false,
      });
    }";
    let (output, run) = play(&server, &script(body), &["-c", "1", "-n", "2"]);
    let failed: Vec<_> = checks(&run).into_iter().filter(|(_, _, failed)| *failed > 0).collect();
    assert_eq!(failed, [("::a false one".to_owned(), 0, 2)], "{output:?}");
    assert_eq!(checks(&run).len(), 9);
    // A failed check fails nothing; a 404 does, unless the script expects it.
    assert_eq!((run.requests.failed, run.iterations.as_ref().unwrap().failed), (2, 2));
    let body = "http.setResponseCallback(http.expectedStatuses(404, { min: 200, max: 299 }));
      export default function () { http.get(`${HOST}/missing`); }";
    let (_, run) = play(&server, &script(body), &["-c", "1", "-n", "2"]);
    assert_eq!((run.requests.failed, run.iterations.unwrap().ok), (0, 2));
}

#[test]
fn a_user_keeps_cookies_within_its_iteration() {
    let server = service();
    let body = "export default function () {
      const r = http.get(`${HOST}/login`);
      check(r, { cookies: (r) => r.cookies.a[0].value === '1' && r.cookies.b[0].http_only });
      http.get(`${HOST}/a`, { cookies: { own: 'c' } });
      http.cookieJar().set(HOST, 'set', 'd');
      check(http.cookieJar().cookiesForURL(HOST), { jar: (all) => all.a[0] === '1' && all.set[0] === 'd' });
    }";
    let (output, run) = play(&server, &script(body), &["-c", "1", "-n", "2"]);
    assert!(checks(&run).iter().all(|(_, passed, failed)| (*passed, *failed) == (2, 0)), "{output:?}");
    let cookies: Vec<Option<String>> =
        server.seen().iter().map(|seen| seen.header("cookie").map(str::to_owned)).collect();
    let own = Some("a=1; b=2; own=c".to_owned());
    assert_eq!(cookies, [None, own.clone(), None, own], "each iteration begins without any");
}

#[test]
fn metrics_checks_and_thresholds_have_tags() {
    let server = service();
    let body = "import { Trend, Counter, Rate, Gauge } from 'k6/metrics';
    const own = new Trend('own', true), count = new Counter('count'), rate = new Rate('rate'), gauge = new Gauge('gauge');
    export const options = { vus: 2, iterations: 10, thresholds: {
      'http_reqs{kind:a}': ['count==10'], http_reqs: ['count==20'], checks: ['rate>0.4'], own: ['p(95)<=10', 'max<5'],
      'count{of:x}': ['count==30'],
    } };
    export default function () {
      http.get(`${HOST}/a`, { tags: { kind: 'a', name: 'A' } });
      group('outer', () => group('inner', () => check(http.get(http.url`${HOST}/b/${exec.vu.idInTest}`), { half: () => exec.scenario.iterationInTest % 2 === 0 })));
      own.add(10); count.add(3, { of: 'x' }); count.add(1); rate.add(true); gauge.add(7);
    }";
    let (output, run) = play(&server, &script(body), &[]);
    assert_eq!(output.code, 1, "{output:?}");
    let held: Vec<(&str, bool)> = run.slo.iter().map(|held| (held.objective.as_str(), held.ok)).collect();
    assert_eq!(held.iter().filter(|(_, ok)| !ok).collect::<Vec<_>>(), [&("own: max<5", false)], "{held:?}");
    assert_eq!(held.len(), 6);
    assert_eq!(checks(&run), [("::outer::inner::half".to_owned(), 5, 5)]);
    let metric = |name: &str| run.script.as_ref().unwrap().metrics.iter().find(|metric| metric.name == name).unwrap();
    assert_eq!((metric("own").values["avg"], metric("count").values["count"]), (10.0, 40.0));
    assert_eq!((metric("rate").values["rate"], metric("gauge").values["value"]), (1.0, 7.0));
    assert_eq!(metric("count{of:x}").values["count"], 30.0);
    let steps: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
    assert!(steps.contains(&"A") && steps.iter().any(|name| name.ends_with("/b/${}")), "{steps:?}");
}

#[test]
fn scenarios_have_their_executors() {
    let server = service();
    let body = "export const options = { scenarios: {
      shared: { executor: 'shared-iterations', vus: 3, iterations: 7, exec: 'one', env: { NAME: 'shared' } },
      each: { executor: 'per-vu-iterations', vus: 2, iterations: 3, exec: 'one', startTime: '100ms', env: { NAME: 'each' } },
      rate: { executor: 'constant-arrival-rate', rate: 20, duration: '500ms', preAllocatedVUs: 3, exec: 'one', env: { NAME: 'rate' } },
      ramp: { executor: 'ramping-arrival-rate', startRate: 0, stages: [{ target: 40, duration: '500ms' }], preAllocatedVUs: 3, exec: 'one', env: { NAME: 'ramp' } },
      users: { executor: 'constant-vus', vus: 2, duration: '300ms', exec: 'slow', env: { NAME: 'users' } },
      wave: { executor: 'ramping-vus', startVUs: 0, stages: [{ target: 4, duration: '200ms' }, { target: 0, duration: '200ms' }], exec: 'slow', env: { NAME: 'wave' }, gracefulRampDown: '5s' },
    }, thresholds: { 'iterations{scenario:shared}': ['count==7'] } };
    export function one() { http.get(`${HOST}/${__ENV.NAME}/${exec.scenario.iterationInTest}/${exec.scenario.name}`); }
    export function slow() { one(); sleep(0.05); }";
    let (output, run) = play(&server, &script(body), &[]);
    assert_eq!((output.code, run.requests.failed), (0, 0), "{output:?}");
    let seen = lines(&server);
    let of = |name: &str| seen.iter().filter(|line| line.starts_with(&format!("GET /{name}/"))).count();
    assert_eq!((of("shared"), of("each"), of("rate"), of("ramp")), (7, 6, 10, 10));
    assert!((2..=14).contains(&of("users")) && of("wave") >= 2, "{seen:?}");
    for number in 0..7 {
        assert!(seen.contains(&format!("GET /shared/{number}/shared HTTP/1.1")), "{seen:?}");
    }
    // It ends with its scenarios, and not with the time that they would have had to finish.
    assert!(run.duration_s < 20.0, "{}", run.duration_s);
    assert_eq!(run.scenarios.len(), 6);
}

#[test]
fn setup_is_called_once_and_all_users_have_its_value() {
    let body = "export const options = { vus: 3, iterations: 9, thresholds: {
      'http_reqs{group:::setup}': ['count==1'], 'http_reqs{group:::teardown}': ['count==1'], 'http_reqs{group:}': ['count==9'],
      'iteration_duration{group:::setup}': ['count==1'], iterations: ['count==9'] } };
    export function setup() { return { token: http.get(`${HOST}/login`).json('token') }; }
    export default function (data) { http.get(`${HOST}/${data.token}`); }
    export function teardown(data) { http.get(`${HOST}/bye/${data.token}`); }
    export function handleSummary(data) {
      return { 'sum.json': JSON.stringify(data), stdout: `requests ${data.metrics.http_reqs.values.count}\\n` };
    }";
    for agents in [&[][..], &["--on", "local", "--agents", "2"]] {
        let server = service();
        let (output, run) = play(&server, &script(body), &[&["-f", "k6"], agents].concat());
        assert_eq!((output.code, run.requests.ok), (0, 9), "{output:?}");
        let seen = lines(&server);
        let count = |line: &str| seen.iter().filter(|it| it.starts_with(line)).count();
        assert_eq!((count("GET /login "), count("GET /t1 "), count("GET /bye/t1 ")), (1, 9, 1), "{seen:?}");
        // Those of setup and teardown are none of the load, and in k6's sums.
        assert!(output.stdout.contains("http_reqs..") && output.stdout.ends_with("requests 11\n"), "{output:?}");
        assert!(run.slo.iter().all(|slo| slo.ok), "{:?}", run.slo);
    }
}

#[test]
fn a_user_sends_several_requests_at_a_time() {
    let server = Server::start(|seen: &Seen| {
        let path = seen.line().split(' ').nth(1).unwrap_or_default().to_owned();
        Reply::ok(&format!("\"{path}\"")).after(Duration::from_millis(if path.contains("slow") { 150 } else { 20 }))
    });
    let body = "export default async function () {
      const all = http.batch([`${HOST}/0`, ['POST', `${HOST}/1`, 'x'], { method: 'GET', url: `${HOST}/2` }, `${HOST}/slow`]);
      const named = http.batch({ a: `${HOST}/a`, b: `${HOST}/b` });
      const slow = http.asyncRequest('GET', `${HOST}/slow`), fast = http.asyncRequest('GET', `${HOST}/fast`);
      const first = await Promise.race([slow, fast]);
      const between = http.get(`${HOST}/between`);
      await slow;
      let timed = false;
      setTimeout(() => { timed = true; check(timed, { timer: () => true }); }, 5);
      check(null, {
        order: () => all.map((r) => r.json()).join() === '/0,/1,/2,/slow',
        named: () => named.a.json() === '/a' && named.b.json() === '/b',
        race: () => first.json() === '/fast' && between.json() === '/between',
      });
      http.asyncRequest('GET', `${HOST}/last`).then((r) => check(r, { last: (r) => r.status === 200 }));
    }";
    let (output, run) = play(&server, &script(body), &["-c", "3", "-n", "6"]);
    assert_eq!((output.code, run.requests.ok), (0, 60), "{output:?}");
    let all = checks(&run);
    assert!(all.len() == 5 && all.iter().all(|(_, passed, failed)| (*passed, *failed) == (6, 0)), "{all:?}");
}

#[test]
fn data_is_shared_and_files_are_opened_in_the_init_context() {
    let server = service();
    let folder = Weir::new();
    folder.write("data.json", "[{\"name\": \"ada\"}, {\"name\": \"bob\"}]");
    folder.write("names.js", "export const at = (list, index) => list[index % list.length].name;\n");
    let body = "import { SharedArray } from 'k6/data';
    import { at } from './names.js';
    const names = new SharedArray('names', () => JSON.parse(open('./data.json')));
    export default function () {
      http.get(`${HOST}/${at(names, exec.scenario.iterationInTest)}`);
      check(names, { shared: (all) => Array.isArray(all) && JSON.stringify(all) === JSON.stringify([...all]) && all.map((one) => one.name).join() === 'ada,bob' });
      check(() => { names[0].name = 'x'; }, { frozen: (set) => { try { set(); return false; } catch { return true; } } });
      check(null, { init: () => { try { open('./data.json'); return false; } catch (e) { return e.message.includes('init context'); } } });
    }";
    folder.write("users.js", script(body));
    let host = format!("HOST={}", server.url(""));
    let output = folder.run(&["load", "-q", "-s", "users.js", "-e", &host, "-c", "2", "-n", "4", "-f", "json"]);
    let run = output.json();
    assert_eq!(checks(&run).iter().filter(|(_, passed, failed)| (*passed, *failed) == (4, 0)).count(), 3, "{output:?}");
    let seen = lines(&server);
    assert_eq!(seen.iter().filter(|line| line.contains("/ada ")).count(), 2, "{seen:?}");
}

#[test]
fn iterations_are_counted_for_scripts_and_bytes_have_any_view() {
    let server = service();
    let body = "import { b64encode } from 'k6/encoding';
    export const options = { scenarios: { own: { executor: 'per-vu-iterations', vus: 1, iterations: 4 } } };
    export default function () {
      http.get(`${HOST}/`);
      check(exec.instance, {
        counted: (it) => it.iterationsCompleted === exec.vu.iterationInScenario && it.iterationsInterrupted === 0,
        tagged: () => exec.vu.metrics.tags.scenario === 'own',
      });
      const words = new Uint16Array([0x3030, 0x4241, 0x4443]).subarray(1);
      check(words, { words: (it) => b64encode(it) === 'QUJDRA==', view: (it) => b64encode(new DataView(it.buffer, 3, 2)) === 'QkM=' });
    }";
    let (output, run) = play(&server, &script(body), &[]);
    let all = checks(&run);
    assert!(all.len() == 4 && all.iter().all(|(_, passed, failed)| (*passed, *failed) == (4, 0)), "{all:?} {output:?}");
}

#[test]
fn the_command_line_replaces_the_load_of_the_script() {
    let server = service();
    let body = "export const options = { vus: 50, duration: '10m' };
    export default function () { http.get(`${HOST}/a`); }";
    let (_, run) = play(&server, &script(body), &["-c", "2", "-n", "6"]);
    assert_eq!((run.requests.ok, run.connections.max), (6, 2));
    let (_, run) = play(&server, &script(body), &["--rate", "50", "-d", "200ms"]);
    // On a busy machine the load ends late, and the rate that it has offered is lower.
    assert!(run.requests.ok == 10 && run.rate_per_s.offered <= 51.0, "{:?}", run.rate_per_s);
    let scenarios = "export const options = { scenarios: { a: { executor: 'constant-vus', vus: 9, duration: '9m' } } };
    export default function () { http.get(`${HOST}/u/${exec.vu.idInTest}`); }";
    let (_, run) = play(&server, &script(scenarios), &["-d", "200ms"]);
    assert_eq!((run.connections.max, run.steps[0].name.as_str()), (1, "GET /u/{id}"));
    // As in k6, the users are those of the script.
    let (_, run) = play(&server, &script(body), &["-n", "100"]);
    assert_eq!((run.requests.ok, run.connections.max), (100, 50));
}

#[test]
fn modules_of_common_js_and_numbers_as_texts() {
    let server = service();
    let folder = Weir::new();
    folder.write("own.js", "exports.path = '/own';\n");
    let script = "const http = require('k6/http');\nconst own = require('./own.js');\n\
        module.exports.options = { vus: __ENV.USERS, iterations: '4' };\n\
        module.exports.default = () => { http.get(__ENV.HOST + own.path); };\n";
    folder.write("users.js", script);
    let host = format!("HOST={}", server.url(""));
    let output = folder.run(&["load", "-q", "-s", "users.js", "-e", &host, "-e", "USERS=2"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(lines(&server), ["GET /own HTTP/1.1"; 4]);
}

#[test]
fn weir_run_plays_one_iteration_and_prints_it() {
    let server = service();
    let folder = Weir::new();
    let body = "export function setup() { return 'b'; }
    export default function (data) { check(http.get(`${HOST}/${data}`), { ok: (r) => r.status === 200 }); }";
    folder.write("users.js", script(body));
    let output = folder.run(&["run", "users.js", "-e", &format!("HOST={}", server.url(""))]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("> GET /b HTTP/1.1") && output.stdout.contains("✓ ok"), "{output:?}");
    assert_eq!(lines(&server), ["GET /b HTTP/1.1"]);
}
