//! Scripts of k6 on their way to hosts: times of connections, TLS, names, rates, and what the log shows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the service's end of a test has a clock of its own")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use weir_measure::Run;
use weir_testing::{Authority, Http2Reply, Http2Service, Output, Reply, Seen, Server, Serving, Weir, spawn_tied};

use super::k6_scripts::play;
use super::name_addresses::run_with_hosts;

pub(crate) const ONCE: [&str; 4] = ["-c", "1", "-n", "1"];
const HEAD: &str = "import http from 'k6/http';\nimport { check, sleep } from 'k6';\nconst HOST = __ENV.HOST;\n";

pub(crate) fn script(body: &str) -> String {
    format!("{HEAD}{body}")
}

/// Names of checks that have failed, and the number of those that have passed.
pub(crate) fn checks(run: &Run) -> (Vec<String>, u64) {
    let checks = &run.script.as_ref().unwrap().checks;
    let failed = checks.iter().filter(|check| check.failed > 0).map(|check| check.name.clone());
    (failed.collect(), checks.iter().map(|check| check.passed).sum())
}

/// Plays a script in a folder against a URL; the certificate of its authority is in the folder.
pub(crate) fn play_in(folder: &Weir, url: &str, script: &str, args: &[&str]) -> (Output, Run) {
    folder.write("users.js", script);
    let host = format!("HOST={url}");
    let flags = ["load", "-q", "-s", "users.js", "-e", &host, "-o", "run.json"];
    let output = folder.run(&[&flags, args].concat());
    let run = folder.read("run.json");
    assert!(!run.is_empty(), "{output:?}");
    (output, Run::from_json(&run).unwrap())
}

/// A relay to a service that holds what the service sends first: the answer to the first message of TLS.
fn slow_to_answer(to: String, wait: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let Ok(mut service) = TcpStream::connect(&to) else { return };
            let (mut from_client, mut to_service) = (client.try_clone().unwrap(), service.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from_client, &mut to_service));
            thread::spawn(move || {
                let mut first = [0; 1];
                if service.read_exact(&mut first).is_ok() {
                    thread::sleep(wait);
                    let _ = client.write_all(&first).and_then(|()| std::io::copy(&mut service, &mut client).map(drop));
                }
            });
        }
    });
    port
}

#[test]
fn a_request_has_the_times_of_its_connection_and_the_next_one_has_none() {
    let (authority, folder) = (Authority::new(), Weir::new());
    authority.file(&folder, "ca.pem");
    let server = Server::build().tls(authority.service("127.0.0.1")).start(|_| Reply::ok("hello"));
    let port = slow_to_answer(server.address(), Duration::from_millis(200));
    let body = script(
        "export const options = { thresholds: { http_req_tls_handshaking: ['max>=200'], http_req_sending: ['max>0'],
          http_req_connecting: ['max>0'], http_req_blocked: ['max>=200'] }, summaryTrendStats: ['max'] };
        export default () => {
          const [first, second] = [http.get(HOST).timings, http.get(HOST).timings];
          const sum = (t) => Math.abs(t.sending + t.waiting + t.receiving - t.duration) < 1e-6;
          check(first, {
            connecting: (t) => t.connecting > 0 && t.connecting < t.tls_handshaking,
            handshaking: (t) => t.tls_handshaking >= 200,
            blocked: (t) => t.blocked + 1e-6 >= t.connecting + t.tls_handshaking,
            sending: (t) => t.sending > 0 && t.sending < t.duration,
            parts: sum,
          });
          check(second, { reused: (t) => t.connecting === 0 && t.tls_handshaking === 0 && t.blocked === 0, again: sum,
            'sent as well': (t) => t.sending > 0 });
        };",
    );
    let url = format!("https://127.0.0.1:{port}/");
    let (output, run) = play_in(&folder, &url, &body, &[&["--cacert", "ca.pem"][..], &ONCE].concat());
    assert_eq!(checks(&run), (vec![], 8), "{output:?}");
    assert!(run.slo.iter().all(|held| held.ok), "{:?}", run.slo);
}

#[test]
fn sending_is_the_time_until_the_service_takes_the_last_byte() {
    // The buffers of the kernel take some hundred kilobytes; the rest waits for the service.
    let server = Server::build().reads_every(Duration::from_millis(2)).start(|_| Reply::ok("taken"));
    let body = script(
        "const large = 'x'.repeat(16 * 1024 * 1024);
        export default () => {
          const { sending, waiting, receiving, duration } = http.post(HOST, large).timings;
          check(null, { sending: () => sending > 50 && sending < duration, rest: () => waiting > 0,
            parts: () => Math.abs(sending + waiting + receiving - duration) < 1e-6 });
        };",
    );
    let (output, run) = play(&server, &body, &ONCE);
    assert_eq!(checks(&run), (vec![], 3), "{output:?}");
}

#[test]
fn requests_on_streams_have_their_times_too() {
    let (authority, folder) = (Authority::new(), Weir::new());
    authority.file(&folder, "ca.pem");
    let service = Http2Service::build().tls(&authority.service("127.0.0.1")).start(|_| Http2Reply::ok("hello"));
    let body = script(
        "export default () => {
          const [first, second] = [http.post(HOST, 'x'.repeat(100000)), http.get(HOST)];
          check(first, { protocol: (r) => r.proto === 'HTTP/2.0', sending: (r) => r.timings.sending > 0,
            handshaking: (r) => r.timings.tls_handshaking > 0, connecting: (r) => r.timings.connecting > 0 });
          check(second, { reused: (r) => r.timings.tls_handshaking === 0 && r.timings.connecting === 0,
            'without a body': (r) => r.timings.sending > 0 && r.timings.waiting > 0 });
        };",
    );
    let args = [&["--cacert", "ca.pem", "--http2"][..], &ONCE].concat();
    let (output, run) = play_in(&folder, &format!("https://{}/", service.address()), &body, &args);
    assert_eq!(checks(&run), (vec![], 6), "{output:?}");
}

/// `openssl s_server`, which responds to each request with the details of its connection.
struct OpensslServer {
    child: Child,
    port: u16,
}

impl OpensslServer {
    fn start(folder: &Weir, flags: &[&str]) -> Self {
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", "127.0.0.1:0", "-cert", "a.pem", "-key", "a-key.pem", "-www"]).args(flags);
        command.current_dir(folder.path("")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = spawn_tied(&mut command).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut accepts = lines.filter_map(|line| line.strip_prefix("ACCEPT")?.rsplit(':').next()?.trim().parse().ok());
        let port = accepts.next().expect("a port");
        thread::spawn(move || accepts.count());
        Self { child, port }
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}/", self.port)
    }
}

impl Drop for OpensslServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn versions_and_cipher_suites_are_those_that_openssl_sees() {
    let (authority, folder) = (Authority::new(), Weir::new());
    authority.file(&folder, "ca.pem");
    authority.issue("127.0.0.1").files(&folder, "a");
    let any = OpensslServer::start(&folder, &[]);
    let only_13 = OpensslServer::start(&folder, &["-tls1_3"]);
    let args = [&["--cacert", "ca.pem"][..], &ONCE].concat();
    let shown = |url: &str, options: &str| {
        let body = format!(
            "export const options = {options};\nexport default () => {{\nconst r = http.get(HOST);\n\
            const [, version, cipher] = r.body?.match(/New, (TLSv1[.][23]), Cipher is (\\S+)/) ?? [];\n\
            const own = `${{r.tls_version}} ${{r.tls_cipher_suite}}`;\nconsole.log(`${{version}} ${{cipher}} ${{own}}`);\n}};"
        );
        let (output, _) = play_in(&folder, url, &script(&body), &args);
        output.stderr.lines().next().unwrap_or_default().to_owned()
    };
    // As OpenSSL names the suite, then as its registered name is.
    let suite =
        |keys: &str| format!("ECDHE-{keys}-CHACHA20-POLY1305 tls1.2 TLS_ECDHE_{keys}_WITH_CHACHA20_POLY1305_SHA256");
    for (options, expected) in [
        ("{ tlsVersion: http.TLS_1_3 }", "TLSv1.3 TLS_AES_256_GCM_SHA384 tls1.3 TLS_AES_256_GCM_SHA384".to_owned()),
        (
            "{ tlsCipherSuites: ['TLS_CHACHA20_POLY1305_SHA256'] }",
            "TLSv1.3 TLS_CHACHA20_POLY1305_SHA256 tls1.3 TLS_CHACHA20_POLY1305_SHA256".to_owned(),
        ),
        (
            "{ tlsVersion: { min: http.TLS_1_0, max: http.TLS_1_2 }, tlsCipherSuites:
              ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305', 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305'] }",
            format!("TLSv1.2 {}", suite("ECDSA")),
        ),
    ] {
        assert_eq!(shown(&any.url(), options), expected, "{options}");
    }
    // OpenSSL refuses what it does not have.
    assert_eq!(shown(&only_13.url(), "{ tlsVersion: http.TLS_1_2 }"), "undefined undefined  ");
    assert!(shown(&only_13.url(), "{}").starts_with("TLSv1.3 "));
}

#[test]
fn options_that_weir_does_not_have_are_named_before_anything_is_sent() {
    let server = Server::hello();
    for (options, reason) in [
        (
            "{ tlsVersion: http.TLS_1_1 }",
            "options.tlsVersion: 'tls1.1' is not supported; weir has 'tls1.2' and 'tls1.3'",
        ),
        (
            "{ tlsCipherSuites: ['TLS_RSA_WITH_RC4_128_SHA'] }",
            "no cipher suite 'TLS_RSA_WITH_RC4_128_SHA'; choose TLS_",
        ),
        ("{ dns: { select: 'last' } }", "invalid options.dns.select 'last'"),
        ("{ rps: -1 }", "invalid options.rps -1"),
        ("{ localIPs: '127.0.0.1' }", "options.localIPs is not supported"),
        ("{ tlsAIAFetch: true }", "options.tlsAIAFetch is not supported; give the missing certificates by --cacert"),
    ] {
        let folder = Weir::new();
        folder.write("users.js", script(&format!("export const options = {options};\nexport default () => {{}};")));
        let output = folder.run(&["load", "-s", "users.js", "-e", &format!("HOST={}", server.url(""))]);
        assert_eq!((output.code, output.one_line().contains(reason)), (2, true), "{options}: {output:?}");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn a_limit_of_requests_holds_for_all_users_and_agents_together() {
    let server = Server::hello();
    let body = script(
        "export const options = { vus: 5, iterations: 10, rps: 20 };
        export default () => { http.get(HOST); http.batch([HOST, HOST]); };",
    );
    // The first of 30 is sent at once.
    for agents in [&[][..], &["--on", "local", "--agents", "2"]] {
        let (output, run) = play(&server, &body, agents);
        assert_eq!((output.code, run.requests.ok), (0, 30), "{output:?}");
        assert!(run.duration_s >= 29.0 / 20.0 - 0.1, "{}", run.duration_s);
    }
    // A wait of the script goes on meanwhile, and the end of the load ends the wait for the rate.
    let body = script(
        "export const options = { vus: 1, duration: '300ms', rps: 0.1 };
        export default async () => {
          http.asyncRequest('GET', HOST); http.asyncRequest('GET', HOST);
          sleep(0.05); console.log('slept'); };",
    );
    let (output, run) = play(&server, &body, &["-d", "300ms"]);
    assert!(output.stderr.contains("slept"), "{output:?}");
    assert_eq!((run.requests.ok, run.duration_s < 5.0), (1, true), "{output:?}");
}

/// Services at one port of two addresses.
fn two_services() -> Option<(Server, Server)> {
    for _ in 0..20 {
        let first = Server::hello();
        let second = Server::build().start_at(&format!("127.0.0.2:{}", first.port()), |_| Reply::ok("other"));
        if let Some(second) = second {
            return Some((first, second));
        }
    }
    None
}

#[test]
fn addresses_of_a_name_are_chosen_as_the_options_say() {
    let (first, second) = two_services().expect("a port");
    let hosts = "127.0.0.1 shop.test\n127.0.0.2 shop.test\n::1 shop.test\n";
    let played = |dns: &str| {
        let folder = Weir::new();
        folder.write("users.js", script(&format!(
            "export const options = {{ noConnectionReuse: true, dns: {dns} }};\n\
            export default () => {{ const all = []; for (let at = 0; at < 8; at += 1) all.push(http.get(HOST).remote_ip);\n\
            console.log(all.map((ip) => ip.split('.')[3] ?? ip).join('')); }};"
        )));
        let host = format!("HOST=http://shop.test:{}/", first.port());
        run_with_hosts(&folder, hosts, &["load", "-q", "-s", "users.js", "-e", &host, "-c", "1", "-n", "1"])
    };
    let Some(output) = played("{ select: 'first', policy: 'onlyIPv4' }") else { return };
    assert!(output.stderr.starts_with("11111111") || output.stderr.starts_with("22222222"), "{output:?}");
    let output = played("{ select: 'roundRobin', policy: 'preferIPv4' }").unwrap();
    assert!(output.stderr.starts_with("12121212") || output.stderr.starts_with("21212121"), "{output:?}");
    let output = played("{ select: 'random' }").unwrap();
    let chosen = output.stderr.lines().next().unwrap_or_default();
    assert!(chosen.contains('1') && chosen.contains('2') && chosen.len() == 8, "{output:?}");
    // Nothing listens there.
    let output = played("{ policy: 'onlyIPv6' }").unwrap();
    assert!(output.stderr.starts_with('\n') && output.code == 3, "{output:?}");
    assert!(first.requests() > 8 && second.requests() > 0);
}

#[test]
fn a_name_is_looked_up_again_when_its_time_is_over() {
    let (first, second) = two_services().expect("a port");
    let folder = Weir::new();
    folder.write("hosts", "127.0.0.1 shop.test\n");
    folder.write(
        "users.js",
        script(
            "export const options = { noConnectionReuse: true, dns: { ttl: '0' } };
        export default () => {
          console.log(http.get(HOST).body);
          for (let at = 0; at < 3000; at += 1) {
            if (http.get(HOST).body === 'other') return console.log('moved');
            sleep(0.02);
          }
        };",
        ),
    );
    let host = format!("HOST=http://shop.test:{}/", first.port());
    let args = ["load", "-q", "-s", "users.js", "-e", &host, "-c", "1", "-n", "1"];
    let mut command = Serving::command_with_hosts(&folder, &args);
    command.stdout(Stdio::piped());
    let mut child = spawn_tied(&mut command).unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let is_refused = |line: &String| line.starts_with("unshare") || line.starts_with("mount");
    let Some(line) = lines.next().filter(|line| !is_refused(line)) else {
        eprintln!("skipped: no namespace of mounts");
        let _ = child.wait();
        return;
    };
    assert_eq!(line, "hello");
    // In its place, as an editor of a mounted file does.
    fs::write(folder.path("hosts"), "127.0.0.2 shop.test\n").unwrap();
    assert_eq!(lines.next().as_deref(), Some("moved"));
    assert!(child.wait().unwrap().success());
    assert!(second.requests() > 0);
}

#[test]
fn requests_and_responses_are_in_the_log_on_demand() {
    let server = Server::start(|seen: &Seen| match seen.line().contains("/away") {
        true => Reply::raw("HTTP/1.1 302 Found\r\nLocation: /home\r\nContent-Length: 0\r\n\r\n"),
        false => Reply::ok("a body"),
    });
    for (debug, has_bodies) in [("full", true), ("headers", false)] {
        let body = format!(
            "export const options = {{ httpDebug: '{debug}' }};\n\
            export default () => {{ http.post(`${{HOST}}/away`, 'sent', {{ headers: {{ 'X-A': 'b' }} }}); }};"
        );
        let (output, _) = play(&server, &script(&body), &ONCE);
        let log = &output.stderr;
        let parts =
            ["Request:\nPOST /away HTTP/1.1\n", "X-A: b\n", "Response:\nHTTP/1.1 302 Found\n", "Location: /home\n"];
        assert!(parts.iter().all(|part| log.contains(part)), "{log}");
        assert!(
            log.contains("Request:\nGET /home HTTP/1.1\n") && log.contains("Response:\nHTTP/1.1 200 Said\n"),
            "{log}"
        );
        assert_eq!((log.contains("\n\nsent\n"), log.contains("\n\na body\n")), (has_bodies, has_bodies), "{log}");
    }
}

#[test]
fn a_body_in_brotli_is_read_and_a_stream_waits_for_timers() {
    // `token`, by the reference tool.
    let brotli = [0x0b, 0x02, 0x80, b't', b'o', b'k', b'e', b'n', 0x03];
    let server = Server::start(move |_| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: {}\r\n\r\n", brotli.len());
        Reply::raw(head).send(brotli)
    });
    let body = script(
        "import { ReadableStream } from 'k6/experimental/streams';
        export default async () => {
          let left = 3;
          const stream = new ReadableStream({
            pull: (controller) => new Promise((done) => setTimeout(() => {
              controller.enqueue(http.get(HOST).body);
              left -= 1;
              if (left === 0) controller.close();
              done();
            }, 1)),
          });
          const reader = stream.getReader(), all = [];
          for (let part; !(part = await reader.read()).done; ) all.push(part.value);
          check(all, { read: () => all.join() === 'token,token,token' });
        };",
    );
    let (output, run) = play(&server, &body, &ONCE);
    assert_eq!(checks(&run), (vec![], 1), "{output:?}");
}
