//! TLS: whom to trust, who we are, and what can go wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use weir_testing::{Authority, Reply, Server, Weir};

const NAME: &str = "service.test";

/// A folder with `ca.pem`, a service for NAME, and the flags that lead there.
struct Setting {
    weir: Weir,
    authority: Authority,
}

impl Setting {
    fn new() -> Self {
        let (weir, authority) = (Weir::new(), Authority::new());
        authority.file(&weir, "ca.pem");
        Self { weir, authority }
    }

    fn server(&self) -> Server {
        Server::build().tls(self.authority.service(NAME)).start(|_| Reply::ok("hello"))
    }

    fn load(&self, server: &Server, flags: &[&str]) -> weir_measure::Run {
        self.weir.load(
            "https://service.test/",
            &[&["--connect-to", &server.address(), "--cacert", "ca.pem"], flags].concat(),
        )
    }

    /// The one line on stderr of a load that cannot start or gets no answer.
    fn refused(&self, server: &Server, flags: &[&str]) -> String {
        let address = server.address();
        let flags = [&["load", "https://service.test/", "-n", "3", "--connect-to", &address], flags].concat();
        let output = self.weir.run(&flags);
        // Before the start it is 2; where the service refuses in TLS 1.3 only after that, no request succeeds.
        assert!(matches!(output.code, 2 | 3), "{output:?}");
        output.one_line().to_owned()
    }
}

#[test]
fn a_service_with_a_certificate_of_our_own_authority_is_believed() {
    let setting = Setting::new();
    let server = setting.server();
    let run = setting.load(&server, &["-n", "100", "-c", "4", "-t", "2"]);
    assert_eq!((run.requests.ok, run.requests.failed, server.requests()), (100, 0, 100));
    assert!(run.target.tls.as_deref().is_some_and(|tls| tls.starts_with("TLSv1.3,")), "{:?}", run.target.tls);
    assert_eq!(server.counts().connections, 5);
}

#[test]
fn both_versions_of_tls_work_in_both_loops_and_with_a_pipeline() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let setting = Setting::new();
        let config = setting.authority.service_of(NAME, &[version]);
        let server = Server::build().tls(config).start(|_| Reply::ok("hello"));
        for flags in [
            ["-n", "200", "-c", "4"].as_slice(),
            &["-n", "20", "-c", "2", "--no-keepalive"],
            &["-n", "200", "-c", "2", "--pipeline", "8"],
            // Few, since each one that finds no idle connection makes one: beside others they must not wait for handshakes.
            &["-r", "40", "-d", "500ms"],
        ] {
            let run = setting.load(&server, flags);
            assert_eq!(run.requests.failed, 0, "{version:?} {flags:?}: {:?}", run.target.failure_details);
        }
    }
}

#[test]
fn an_address_as_host_is_checked_and_asked_without_a_name() {
    let setting = Setting::new();
    let server = Server::build().tls(setting.authority.service("127.0.0.1")).start(|_| Reply::ok("hello"));
    let run = setting.weir.load(&server.url("/"), &["-n", "3", "-c", "1", "--cacert", "ca.pem"]);
    assert_eq!(run.requests.ok, 3);
    assert_eq!(server.names(), [None, None]);
}

#[test]
fn the_service_is_told_the_name_that_is_wanted() {
    let setting = Setting::new();
    let server = setting.server();
    setting.load(&server, &["-n", "1"]);
    assert_eq!(server.names(), [Some(NAME.to_owned()), Some(NAME.to_owned())], "the probe's and the run's");
    assert_eq!(server.seen()[0].header("host"), Some(NAME));

    let run = setting.weir.load(&server.url("/"), &["-n", "1", "--sni", NAME, "--cacert", "ca.pem"]);
    assert_eq!(run.requests.ok, 1, "--sni is asked for and checked in place of the URL's host");
    assert_eq!(server.names().last(), Some(&Some(NAME.to_owned())));
    assert_eq!(server.seen()[1].header("host"), Some(server.address().as_str()));
}

#[test]
fn insecure_takes_any_certificate_for_any_name() {
    let setting = Setting::new();
    let server = Server::build().tls(Authority::new().service("someone.else")).start(|_| Reply::ok("hello"));
    let run = setting.weir.load(&server.url("/"), &["-n", "3", "-k"]);
    assert_eq!(run.requests.ok, 3);
}

#[test]
fn a_certificate_of_an_unknown_authority_is_one_line() {
    let setting = Setting::new();
    Authority::new().file(&setting.weir, "other.pem");
    let server = setting.server();
    let line = setting.refused(&server, &["--cacert", "other.pem"]);
    assert!(line.contains(NAME) && line.contains("--cacert") && line.contains("certificate"), "{line}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_certificate_for_another_name_is_one_line() {
    let setting = Setting::new();
    let server = Server::build().tls(setting.authority.service("someone.else")).start(|_| Reply::ok("hello"));
    let line = setting.refused(&server, &["--cacert", "ca.pem"]);
    assert!(line.contains("certificate") && line.contains(NAME), "{line}");
}

#[test]
fn a_service_that_knows_its_clients_is_shown_our_certificate() {
    let setting = Setting::new();
    let server = Server::build().tls(setting.authority.service_for_known_clients(NAME)).start(|_| Reply::ok("hello"));
    let pair = setting.authority.issue("client.test");
    setting.weir.write("client.pem", &pair.cert);
    setting.weir.write("client.key", &pair.key);
    let run = setting.load(&server, &["-n", "20", "-c", "2", "--cert", "client.pem", "--cert-key", "client.key"]);
    assert_eq!((run.requests.ok, run.requests.failed), (20, 0));

    let line = setting.refused(&server, &["--cacert", "ca.pem"]);
    assert!(line.to_lowercase().contains("certificate") || line.contains("tls"), "{line}");
    assert_eq!(server.requests(), 20);
}

#[test]
fn a_certificate_and_a_key_that_do_not_fit_are_one_line_each() {
    let setting = Setting::new();
    let server = setting.server();
    let (one, other) = (setting.authority.issue("one"), setting.authority.issue("other"));
    setting.weir.write("one.pem", &one.cert);
    setting.weir.write("one.key", &one.key);
    setting.weir.write("other.key", &other.key);
    setting.weir.write("text.pem", "no certificate at all");
    for (flags, words) in [
        (["--cert", "one.pem"].as_slice(), ["--cert", "--cert-key"]),
        (&["--cert-key", "one.key"], ["--cert", "--cert-key"]),
        (&["--cert", "one.pem", "--cert-key", "other.key"], ["--cert", "fit"]),
        (&["--cert", "one.pem", "--cert-key", "missing.key"], ["--cert-key", "missing.key"]),
        (&["--cert", "missing.pem", "--cert-key", "one.key"], ["--cert", "missing.pem"]),
        (&["--cert", "text.pem", "--cert-key", "one.key"], ["--cert", "text.pem"]),
        (&["--cacert", "missing.pem"], ["--cacert", "missing.pem"]),
        (&["--cacert", "text.pem"], ["--cacert", "text.pem"]),
        (&["--cacert", "one.key"], ["--cacert", "one.key"]),
        (&["--sni", "not a name"], ["not a name", "name"]),
    ] {
        let line =
            setting.refused(&server, &[&["-k"], flags].concat().as_slice()[usize::from(flags[0] == "--cacert")..]);
        assert!(words.iter().all(|word| line.contains(word)), "{flags:?}: {line}");
    }
    assert_eq!(server.counts().connections, 0, "nothing of this needs the service");
}

#[test]
fn plain_http_where_tls_is_expected_is_one_line() {
    let setting = Setting::new();
    let server =
        Server::build().greeting(Reply::raw("HTTP/1.1 400 Bad Request\r\n\r\n").close()).start(|_| Reply::nothing());
    let line = setting.refused(&server, &["-k"]);
    assert!(line.contains("TLS"), "{line}");
}

#[test]
fn a_service_that_never_answers_the_handshake_is_one_line_in_time() {
    let server = Server::start(|_| Reply::nothing());
    let url = server.url("/").replace("http:", "https:");
    let output = Weir::new().run(&["load", &url, "-k", "-n", "1", "--timeout", "200ms"]);
    assert_eq!(output.code, 2);
    assert!(output.one_line().contains("time"), "{}", output.stderr);
}

#[test]
fn ctrl_c_before_the_start_ends_at_once() {
    let server = Server::start(|_| Reply::nothing());
    let weir = Weir::new();
    let running = weir.start(&["load", &server.url("/").replace("http:", "https:"), "-k", "-n", "1"]);
    server.wait_for("the connection", |counts| counts.connections == 1);
    running.interrupt();
    let output = running.finish();
    assert_eq!((output.code, output.stdout.as_str()), (130, ""));
    output.one_line();
}

#[test]
fn tls_where_plain_http_is_expected_is_no_http() {
    let setting = Setting::new();
    let server = setting.server();
    let output = setting.weir.run(&["load", &format!("http://{}/", server.address()), "-n", "3"]);
    assert_eq!(output.code, 3, "{output:?}");
    output.one_line();
}

/// More than sockets hold, so that the client must wait for room.
const LARGE: usize = 10_000_000;

#[test]
fn large_answers_and_large_requests_come_through_whole() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let setting = Setting::new();
        let config = setting.authority.service_of(NAME, &[version]);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n{}", "x".repeat(3_000_000));
        // Slow to read, so that our side has to wait for room.
        let slow = Server::build().tls(config).reads_every(Duration::from_millis(1));
        let server = slow.start(move |_| Reply::raw(&answer));
        setting.weir.write("body", "y".repeat(LARGE));
        // A load that takes long shows its progress, also without a response.
        let flags = ["-n", "2", "-c", "2", "-b", "@body", "--timeout", "5m", "-q"];
        let run = setting.load(&server, &flags);
        assert_eq!((run.requests.ok, run.bytes.body_in), (2, 6_000_000), "{:?}", run.target.failure_details);
        assert!(server.seen().iter().all(|seen| seen.body.len() == LARGE));
    }
}

#[test]
fn an_answer_until_close_ends_with_the_close_notify() {
    let setting = Setting::new();
    let server = Server::build()
        .tls(setting.authority.service(NAME))
        .start(|_| Reply::raw("HTTP/1.1 200 OK\r\n\r\nuntil the end").close());
    let run = setting.load(&server, &["-n", "10", "-c", "2"]);
    assert_eq!((run.requests.ok, run.bytes.body_in), (10, 130), "{:?}", run.target.failure_details);
}

#[test]
fn an_invalid_record_behind_a_response_fails_the_next_request_at_once() {
    let setting = Setting::new();
    let config = setting.authority.service(NAME);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        // Each connection has one response, and in the same packet bytes that are no record; then it stays open.
        let mut kept = Vec::new();
        for mut socket in listener.incoming().map_while(Result::ok) {
            let mut tls = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut request = [0; 4096];
            let asked = rustls::Stream::new(&mut tls, &mut socket).read(&mut request).unwrap_or(0);
            if asked > 0 {
                tls.writer().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
                let mut bytes = Vec::new();
                while tls.wants_write() {
                    tls.write_tls(&mut bytes).unwrap();
                }
                bytes.extend_from_slice(b"these bytes are not a record of TLS");
                let _ = socket.write_all(&bytes);
            }
            kept.push(socket);
        }
    });
    let flags = ["-n", "4", "-c", "1", "--timeout", "20s", "--connect-to", &address, "--cacert", "ca.pem"];
    let run = setting.weir.load("https://service.test/", &flags);
    assert_eq!((run.requests.ok, run.failures.get("tls")), (2, Some(&2)), "{:?}", run.failures);
}
