//! Objects of responses in scripts of k6, and loads that send no request or have a rate.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use weir_measure::{LoadModel, Run};
use weir_testing::{Reply, Seen, Server, Weir};

use crate::k6_scripts::play;

/// Names of the checks that have failed.
fn failed_checks(run: &Run) -> Vec<String> {
    let checks = run.script.as_ref().unwrap().checks.iter();
    checks.filter(|check| check.failed > 0).map(|check| check.name.clone()).collect()
}

#[test]
fn a_response_is_an_object_with_all_its_fields() {
    let server = Server::start(|_: &Seen| {
        let cookie = "Set-Cookie: a=1; Path=/x; Max-Age=5; Expires=Thu, 01 Jan 2026 00:00:00 GMT; Secure; HttpOnly\r\n";
        Reply::raw(format!(
            "HTTP/1.1 200 OK\r\n{cookie}x-a: 1\r\nX-A: 2\r\nContent-Length: 15\r\n\r\n{{\"a\": {{\"b\": 7}}}}"
        ))
    });
    let script = "import http from 'k6/http';\nimport { check } from 'k6';\n\
      export default function () {
        const r = http.post(`${__ENV.HOST}/p`, 'sent', { headers: { 'x-b': 'c' }, cookies: { own: 'v' } });
        const text = JSON.parse(JSON.stringify(r));
        const own = Object.keys(r);
        const spread = { ...r };
        const body = r.body;
        r.body = 'other'; r.extra = 1; r.timings.own = 2;
        check(r, {
          names: () => own.length === 16 && own.includes('tls_version') && own.includes('status'),
          json: () => text.status === 200 && text.body === body && text.timings.duration > 0 && text.json === undefined,
          spread: () => spread.url === r.url && spread.error_code === 0 && spread.ocsp.status === 'unknown',
          headers: () => r.headers['X-A'] === '1, 2' && !('x-a' in r.headers) && r.proto === 'HTTP/1.1',
          cookies: () => { const c = r.cookies.a[0]; return c.value === '1' && c.path === '/x' && c.max_age === 5
            && c.secure && c.http_only && c.expires === 1767225600000; },
          request: () => r.request.method === 'POST' && r.request.body === 'sent' && r.request.headers['X-B'][0] === 'c'
            && r.request.cookies.own[0].value === 'v',
          set: () => r.body === 'other' && r.extra === 1 && r.timings.own === 2 && r.timings === r.timings,
          keys: () => Object.keys(r).length === 17,
          peer: () => r.remote_ip === '127.0.0.1' && `:${r.remote_port}` === __ENV.HOST.slice(-`${r.remote_port}`.length - 1)
            && r.tls_version === '' && r.tls_cipher_suite === '',
          class: () => r instanceof http.Response && 'status' in r && !('other' in r) && r.other === undefined,
        });
        check(http.get(`${__ENV.HOST}/j`), {
          whole: (r) => r.json().a.b === 7 && r.json() === r.json(),
          part: (r) => r.json('a.b') === 7 && r.json('a.c') === undefined && r.json('constructor') === undefined,
        });
      }";
    let (output, run) = play(&server, script, &["-c", "1", "-n", "2"]);
    assert_eq!((failed_checks(&run), run.requests.ok, output.code), (vec![], 4, 0), "{output:?}");
    let script = "import http from 'k6/http';\nexport default () => { new http.Response(); };";
    let (_, run) = play(&server, script, &["-c", "1", "-n", "1"]);
    assert!(run.script.unwrap().exceptions[0].message.contains("what a request returns"));
}

#[test]
fn what_is_wrong_in_parameters_is_named() {
    let server = Server::hello();
    for (params, reason) in [
        ("{ redirects: -1 }", "redirects: -1 is not a number of redirects"),
        ("{ timeout: 'soon' }", "invalid timeout 'soon'"),
        ("{ jar: {} }", "jar: not a cookie jar"),
        ("{ responseCallback: 200 }", "http.expectedStatuses()"),
        ("{ auth: 'ntlm' }", "auth: 'ntlm' is not supported"),
        ("{ compression: 'lz4' }", "compression: 'lz4' is not supported; write 'gzip', 'deflate', 'br' or 'zstd'"),
        ("7", "params is not an object"),
    ] {
        let script =
            format!("import http from 'k6/http';\nexport default () => {{ http.get(`${{__ENV.HOST}}/`, {params}); }};");
        let (output, run) = play(&server, &script, &["-c", "1", "-n", "1"]);
        let exceptions = run.script.unwrap().exceptions;
        assert!(exceptions.iter().any(|one| one.message.contains(reason)), "{params}: {output:?}");
    }
}

#[test]
fn bodies_are_compressed_as_the_parameters_say() {
    let server = Server::start(|seen: &Seen| {
        let of = |name: &str| seen.header(name).unwrap_or_default().to_owned();
        Reply::ok(&format!("{} {}", of("content-encoding"), seen.body.len()))
    });
    let script = "import http from 'k6/http';\nimport { check } from 'k6';\n\
      export default function () {
        const body = 'x'.repeat(10000);
        for (const compression of ['gzip', 'deflate', 'br', 'zstd', 'gzip, deflate', 'br,gzip']) {
          const [encoding, length] = http.post(`${__ENV.HOST}/`, body, { compression }).body.split(/ (?=[0-9]+$)/);
          check(null, { [compression]: () => encoding === compression.replace(',gzip', ', gzip') && Number(length) < 200 });
        }
      }";
    let (output, run) = play(&server, script, &["-c", "1", "-n", "1"]);
    assert_eq!((failed_checks(&run), run.requests.ok), (vec![], 6), "{output:?}");
}

#[test]
fn a_challenge_of_digest_is_followed_by_credentials() {
    let server = Server::start(|seen: &Seen| match seen.header("authorization") {
        Some(given) if given.contains("response=\"6629fae49393a05397450978507c4ef1\"") => Reply::ok("in"),
        Some(given) if given.contains("qop=auth") && given.contains("username=\"Mufasa\"") => Reply::ok("cnonce"),
        Some(_) => Reply::status(401, "wrong"),
        None => Reply::raw(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"testrealm@host.com\", qop=\"auth\", \
             nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", opaque=\"5ccc\"\r\nContent-Length: 0\r\n\r\n",
        ),
    });
    let script = "import http from 'k6/http';\nimport { check } from 'k6';\n\
      export default function () {
        const url = __ENV.HOST.replace('http://', 'http://Mufasa:Circle%20Of%20Life@') + '/dir/index.html';
        check(http.get(url, { auth: 'digest' }), { ok: (r) => r.status === 200, body: (r) => r.body === 'cnonce' });
        check(http.get(`${__ENV.HOST}/`, { auth: 'digest' }), { 'no user': (r) => r.status === 401 });
      }";
    let (output, run) = play(&server, script, &["-c", "1", "-n", "1"]);
    assert_eq!(failed_checks(&run), Vec::<String>::new(), "{output:?}");
    assert!(server.seen()[1].header("authorization").unwrap().contains("uri=\"/dir/index.html\", "), "{output:?}");
}

#[test]
fn values_that_are_no_finite_numbers_are_left_out() {
    let server = Server::hello();
    let script = "import { Trend } from 'k6/metrics';
    const times = new Trend('times');
    export default () => {
      for (const value of ['x', NaN, Infinity, -Infinity, undefined, {}]) times.add(value);
      for (const value of [1, true, '3', null]) times.add(value);
    };";
    let (output, run) = play(&server, script, &["-c", "1", "-n", "2"]);
    assert_eq!(output.stderr.matches("is not a finite number; it is left out").count(), 12, "{output:?}");
    let metrics = run.script.unwrap().metrics;
    let times = metrics.iter().find(|metric| metric.name == "times").unwrap();
    assert_eq!(times.values["avg"], 1.25);
}

#[test]
fn a_script_without_requests_is_measured_by_its_own_metrics() {
    let server = Server::hello();
    let script = "import { Counter } from 'k6/metrics';\nconst own = new Counter('own');\n\
      export const options = { thresholds: { own: ['count>3'] } };\nexport default () => own.add(1);";
    let (output, run) = play(&server, script, &["-c", "1", "-n", "5"]);
    assert_eq!((output.code, run.trust.ok, run.requests.total), (0, true, 0), "{output:?}");
    assert!(output.stdout.contains("the script sent none"), "{output:?}");
    let (output, _) = play(&server, script, &["-c", "1", "-n", "2"]);
    assert_eq!(output.code, 1, "{output:?}");
}

#[test]
fn iterations_that_arrive_are_an_open_loop_and_options_are_consolidated() {
    let server = Server::hello();
    let script = "import http from 'k6/http';\nimport { check } from 'k6';\nimport exec from 'k6/execution';\n\
      export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 50, duration: '1s', preAllocatedVUs: 4 } } };
      export default () => {
        http.get(`${__ENV.HOST}/`);
        const { options } = exec.test;
        check(null, {
          options: () => options.scenarios.a.rate === 50 && options.scenarios.a.exec === 'default' && options.batch === 20,
          active: () => exec.instance.vusActive >= 1 && exec.instance.vusActive <= 4,
        });
      };";
    let (output, run) = play(&server, script, &[]);
    assert_eq!((failed_checks(&run), run.model), (vec![], LoadModel::Open), "{output:?}");
    assert!(output.stdout.contains("open loop, "), "{output:?}");
    let own = "import exec from 'k6/execution';\nimport { check } from 'k6';\nexport const options = { vus: 3, duration: '9s' };\n\
      export default () => check(exec.test.options.scenarios.default, { vus: (it) => it.vus === 1 && it.executor === 'constant-vus' });";
    let (output, run) = play(&server, own, &["-c", "1", "-n", "1"]);
    assert_eq!(failed_checks(&run), Vec::<String>::new(), "{output:?}");
}

#[test]
fn a_file_awaits_what_is_settled_and_nothing_of_the_load() {
    let folder = Weir::new();
    folder
        .write("settled.js", "const x = await Promise.resolve(5);\nexport default () => { console.log(`got ${x}`); };");
    let output = folder.run(&["load", "-q", "-s", "settled.js", "-c", "1", "-n", "1"]);
    assert!(output.stderr.contains("got 5"), "{output:?}");
    folder.write("timer.js", "await new Promise((resolve) => setTimeout(resolve, 10));\nexport default () => {};");
    let output = folder.run(&["load", "-q", "-s", "timer.js", "-c", "1", "-n", "1"]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("awaits a promise of a timer or a request"), "{output:?}");
}
