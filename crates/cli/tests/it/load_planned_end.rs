//! The planned end holds: a load ends after its duration and its timeout, whatever a service announces.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the test's clock is not weir's")]

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use weir_testing::{Http2Manner, Http2Peer, Output, Raw, Reply, Server, Serving, Weir, frame, goaway, settings};

/// Far more than any of these loads takes, and far less than one without an end.
const PATIENCE: Duration = Duration::from_secs(60);
const TIMES: [&str; 4] = ["-d", "300ms", "--timeout", "500ms"];

fn manner(greeting: Vec<u8>) -> Http2Manner {
    Http2Manner { greeting, acknowledges: true, responds: true, ..Http2Manner::default() }
}

/// Peers by name: each setting at its ends, and connections that are of no use.
fn manners() -> Vec<(String, Http2Manner)> {
    let mut found = Vec::new();
    for id in [1, 2, 3, 4, 5, 6, 8, 0xff, 0xffff] {
        for value in [0, 1, (1 << 31) - 1, u32::MAX] {
            found.push((format!("setting {id} = {value}"), manner(settings(&[(id, value)]))));
        }
    }
    let silent = |greeting| Http2Manner { responds: false, ..manner(greeting) };
    let named = [
        ("no settings", manner(Vec::new())),
        ("settings that are never acknowledged", Http2Manner { acknowledges: false, ..manner(settings(&[])) }),
        ("no responses", silent(settings(&[]))),
        ("no responses, one stream", silent(settings(&[(3, 1)]))),
        ("GOAWAY at once", manner([settings(&[]), goaway(0)].concat())),
        ("GOAWAY at once, no stream", manner([settings(&[(3, 0)]), goaway(0)].concat())),
        ("GOAWAY before the settings", manner([goaway(0), settings(&[])].concat())),
        ("GOAWAY of the last stream", manner([settings(&[]), goaway(u32::MAX >> 1)].concat())),
        ("the end at once", Http2Manner { closes: true, ..manner(settings(&[(3, 0)])) }),
        ("no stream after the first", Http2Manner { after_response: settings(&[(3, 0)]), ..manner(settings(&[])) }),
        ("GOAWAY after the first", Http2Manner { after_response: goaway(1), ..manner(settings(&[])) }),
        ("a window of 0 after the first", Http2Manner { after_response: settings(&[(4, 0)]), ..manner(settings(&[])) }),
        ("a window that overflows", manner([settings(&[]), frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])].concat())),
    ];
    found.extend(named.map(|(name, manner)| (name.to_owned(), manner)));
    found
}

/// Does something for each of these, several at a time.
fn for_each<T: Send>(all: Vec<T>, check: impl Fn(T) + Sync) {
    let all = Mutex::new(all);
    let next = || all.lock().unwrap().pop();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    while let Some(one) = next() {
                        check(one);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Output of a command that ends in time.
fn ended(what: &str, args: &[&str]) -> Output {
    let begun = Instant::now();
    let output = Weir::new().run(args);
    assert!(begun.elapsed() < PATIENCE, "{what} {args:?} took {:?}", begun.elapsed());
    assert!([0, 1, 3].contains(&output.code), "{what} {args:?}: {output:?}");
    output
}

#[test]
fn a_load_over_http2_ends_whatever_the_service_announces() {
    let modes: [&[&str]; 6] = [
        &["-c", "2", "--streams", "10"],
        &["-r", "40", "-c", "2", "--streams", "3"],
        &["--users", "6", "--streams", "3"],
        &["-c", "2", "--streams", "3", "--method", "POST", "--body", "0123456789"],
        &["--users", "6", "--streams", "3", "--check", "status == 200"],
        &["-r", "40", "-c", "2", "--check", "status == 200"],
    ];
    for_each(manners(), |(name, manner)| {
        let peer = Http2Peer::start(manner);
        for mode in modes {
            ended(&name, &[&["load", &peer.url("/"), "--h2c", "-q"], &TIMES[..], mode].concat());
        }
    });
}

#[test]
fn a_number_of_requests_ends_without_a_stream_by_their_timeouts() {
    let modes =
        [["-c", "2", "--streams", "10"].as_slice(), &["--users", "6", "--streams", "3"], &["-r", "40", "-c", "2"]];
    let checks: [&[&str]; 2] = [&[], &["--check", "status == 200"]];
    let all = modes.iter().flat_map(|mode| checks.map(|check| [mode, check].concat())).collect();
    for_each(all, |mode: Vec<&str>| {
        let peer = Http2Peer::start(manner(settings(&[(3, 0)])));
        // Far longer than a connection and the service's settings take beside other tests.
        let flags = [&mode[..], &["--h2c", "-n", "4", "--timeout", "2s", "--format", "json"]].concat();
        let url = peer.url("/");
        let run = ended("no streams", &[&["load", url.as_str()], &flags[..]].concat()).json();
        // In the open loop an arrival that finds no connection in time is dropped.
        let late: u64 = ["timeout", "dropped"].iter().filter_map(|kind| run.failures.get(*kind)).sum();
        assert_eq!((run.requests.total, late), (4, 4), "{flags:?} {:?}", run.failures);
        let details = format!("{:?}", run.target.failure_details);
        assert!(details.contains("MAX_CONCURRENT_STREAMS"), "{flags:?} {details}");
        // A connection that permits none is not waited for again and again.
        assert!(peer.connections() > 2, "{flags:?} {}", peer.connections());
    });
}

#[test]
fn a_model_over_http2_that_permits_no_stream_ends_its_load() {
    for greeting in [settings(&[(3, 0)]), [settings(&[]), goaway(0)].concat()] {
        let peer = Http2Peer::start(manner(greeting));
        let url = peer.url("");
        let flags = ["--model", "m", "--h2c", "-q", "-c", "2", "--input-tokens", "4"];
        ended("llm", &[&["llm", url.as_str()], &flags[..], &TIMES].concat());
        ended("llm", &[&["llm", url.as_str()], &flags[..], &["-n", "2", "--timeout", "300ms"]].concat());
    }
}

#[test]
fn a_gate_responds_whatever_its_upstream_announces() {
    for_each(manners(), |(name, manner)| {
        let peer = Http2Peer::start(manner);
        let weir = Weir::new();
        weir.write(
            "gate.toml",
            format!(
                "[upstreams.a]\nurls = [\"{}\"]\nprotocol = \"http2\"\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n\
                 policy = {{ deadline = \"500ms\" }}\n",
                peer.url("")
            ),
        );
        let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
        let begun = Instant::now();
        for _ in 0..2 {
            let status = Raw::connect(&gate.address).get("/x").status;
            assert!(status == 200 || status >= 500, "{name}: {status}");
            let status = Raw::connect(&gate.address).post("/x", "0123456789").status;
            assert!(status == 200 || status >= 500, "{name}: {status}");
        }
        assert!(begun.elapsed() < PATIENCE, "{name} took {:?}", begun.elapsed());
    });
}

#[test]
fn a_load_over_http1_ends_whatever_time_or_size_a_header_has() {
    let numbers =
        ["0", "1", "-1", "4294967296", "9223372036854775807", "18446744073709551615", "99999999999999999999999"];
    let times = ["Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"];
    let mut heads = Vec::new();
    for number in numbers {
        for name in ["Retry-After: ", "Age: ", "Keep-Alive: timeout=", "Keep-Alive: max=", "Cache-Control: max-age="] {
            heads.push(format!("{name}{number}\r\nContent-Length: 0"));
        }
        heads.push(format!("Set-Cookie: a=b; Max-Age={number}\r\nContent-Length: 0"));
        heads.push(format!("Content-Length: {number}"));
        heads.push(format!("X-RateLimit-Reset: {number}\r\nContent-Length: 0"));
    }
    for time in times {
        for name in ["Retry-After: ", "Date: ", "Expires: ", "Last-Modified: ", "Set-Cookie: a=b; Expires="] {
            heads.push(format!("{name}{time}\r\nContent-Length: 0"));
        }
    }
    let modes: [&[&str]; 4] = [
        &["-c", "2"],
        &["-r", "40", "-c", "2"],
        &["--users", "2", "--check", "status == 200"],
        &["--users", "2", "--max-redirects", "3", "--check", "body == \"\""],
    ];
    for_each(heads, |head| {
        let server = Server::start({
            let head = head.clone();
            move |_| Reply::raw(format!("HTTP/1.1 503 Later\r\n{head}\r\n\r\n"))
        });
        for mode in modes {
            ended(&head, &[&["load", &server.url("/"), "-q"], &TIMES[..], mode].concat());
        }
    });
}
