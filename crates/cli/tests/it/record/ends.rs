//! How a recording ends, and what prevents that it begins.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use weir_testing::{Reply, Server, Serving, Weir, until};

use super::{PATIENCE, assert_plays, lines, recorder, send};

fn login(recorder: &Serving, server: &Server) {
    for path in ["/login", "/items"] {
        send(recorder, &format!("GET {}", server.url(path)), "", "");
    }
}

#[test]
fn a_recording_ends_after_a_number_of_requests_or_a_time() {
    let server = Server::hello();
    let first = recorder(&["-n", "2"]);
    login(&first, &server);
    let output = first.finish();
    assert_eq!((output.code, lines(&output)[2]), (0, "shop.hurl: 2 requests of the recording"), "{output:?}");
    let second = recorder(&["--for", "1s"]);
    login(&second, &server);
    assert_eq!(second.finish().code, 0);
}

#[test]
fn a_killed_recording_leaves_a_har_file_that_is_imported() {
    let server = Server::start(|seen| match seen.line().contains("/login") {
        true => Reply::ok(r#"{"token": "t1-0-59ea4717472f1c4b"}"#),
        false => Reply::ok("[]"),
    });
    let mut recorder = recorder(&[]);
    send(&recorder, &format!("GET {}", server.url("/login")), "", "");
    send(&recorder, &format!("GET {}", server.url("/items")), "Authorization: Bearer t1-0-59ea4717472f1c4b\r\n", "");
    let journal = recorder.weir.path("shop.recording.har");
    let entries = || fs::read_to_string(&journal).unwrap().matches("\"startedDateTime\"").count();
    until("the second entry", PATIENCE, || entries() == 2);
    assert_eq!(fs::metadata(&journal).unwrap().permissions().mode() & 0o777, 0o600);
    recorder.signal(Signal::KILL);
    let weir = std::mem::replace(&mut recorder.weir, Weir::new());
    assert_eq!(recorder.finish().code, -1);
    let again = weir.run(&["record", "--listen", "127.0.0.1:0", "--ca-dir", "ca", "-o", "shop.hurl"]);
    assert_eq!(again.code, 2);
    assert_eq!(
        again.one_line(),
        "shop.recording.har is there from a recording that did not end; make a scenario of it with weir import \
         shop.recording.har -o FILE.hurl, or add --force to write over it"
    );
    let import = weir.run(&["import", "shop.recording.har", "-o", "shop.hurl"]);
    assert_eq!(import.code, 0, "{import:?}");
    assert!(weir.read("shop.hurl").contains("Authorization: Bearer {{token}}"));
    assert_plays(&weir, 2, &[]);
}

#[test]
fn the_recording_is_kept_as_har_and_printed_without_a_file() {
    let server = Server::hello();
    let weir = Weir::new();
    let command = weir.start(&[
        "record",
        "--listen",
        "127.0.0.1:0",
        "--ca-dir",
        "ca",
        "--har",
        "own.har",
        "-n",
        "1",
        "--log-format",
        "json",
    ]);
    until("the recorder", PATIENCE, || weir.path("own.har").exists());
    // Its address is on stderr alone, which is read at its end: the port is that of the process.
    let port = listen_port(command.pid());
    let mut connection = weir_testing::Raw::connect(&format!("127.0.0.1:{port}"));
    super::send_on(&mut connection, &format!("GET {}", server.url("/a")), "", "");
    let output = command.finish();
    assert_eq!((output.code, output.stdout.as_str()), (0, "GET {{base_url}}/a\nHTTP 200\n"), "{output:?}");
    assert!(output.stderr.contains("own.har: the recording, with passwords and tokens"), "{output:?}");
    let har: serde_json::Value = serde_json::from_str(&weir.read("own.har")).unwrap();
    assert_eq!(har["log"]["entries"][0]["request"]["url"], server.url("/a"));
}

/// Port on which a process listens.
fn listen_port(pid: u32) -> u16 {
    let mut found = None;
    until("a listening socket", PATIENCE, || {
        let sockets: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok()?.to_str().map(str::to_owned))
            .collect();
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        found = table.lines().skip(1).find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_own = fields[3] == "0A" && sockets.contains(&format!("socket:[{}]", fields[9]));
            is_own.then(|| u16::from_str_radix(fields[1].split(':').nth(1).unwrap(), 16).unwrap())
        });
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn what_is_there_is_not_written_over_and_the_proxy_is_not_open() {
    let weir = Weir::new();
    weir.write("shop.hurl", "GET http://h\n");
    let wrong = |args: &[&str]| {
        let output = weir.run(&[&["record", "--ca-dir", "ca"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:?}");
        output.one_line().to_owned()
    };
    let there = "shop.hurl is there already; add --force to write over it, or choose another name";
    assert_eq!(wrong(&["-o", "shop.hurl"]), there);
    assert_eq!(wrong(&["-o", "none/x.hurl"]), "cannot write to none: no such folder");
    assert_eq!(
        wrong(&["--listen", "0.0.0.0:0"]),
        "--listen 0.0.0.0:0 lets other machines use this proxy, and read what is recorded; listen on 127.0.0.1, or add \
         --allow-remote"
    );
    assert!(
        wrong(&["--only", "http://h"]).contains("write a host, e.g. shop.example, *.shop.example or localhost:8080")
    );
    assert!(wrong(&["--max-body", "1GiB"]).contains("write a size of at most 64MiB, e.g. 512KiB"));
    assert!(wrong(&["--cacert", "none.pem"]).starts_with("--cacert none.pem: "));
    assert_eq!(weir.read("shop.hurl"), "GET http://h\n");
    // Values of an earlier recording are those of other users and hosts.
    weir.write("shop.env", "base_url=http://old\n");
    let server = Server::hello();
    let recorder = Serving::record_in(weir, &["-o", "shop.hurl", "--force"]);
    login(&recorder, &server);
    let (output, weir) = recorder.interrupt();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(weir.read("shop.env").contains(&format!("base_url={}\n", server.url(""))));
}

#[test]
fn requests_in_flight_are_finished_or_recorded_as_they_are() {
    let server = Server::start(|_| {
        Reply::raw(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\n\n\r\n",
        )
        .freeze()
    });
    let recorder = recorder(&[]);
    let mut events = recorder.connect();
    events.send(format!("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", server.url("/events")));
    assert_eq!(events.head().status, 200);
    assert_eq!(events.take(8), b"3\r\na\n\n\r\n", "events are not held back");
    let (output, weir) = recorder.interrupt();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(weir.read("shop.hurl"), "GET {{base_url}}/events\nHTTP 200\n");
}
