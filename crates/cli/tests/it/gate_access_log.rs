//! Formats, samples and rotation of a gateway's access log.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use weir_testing::{Disk, Reply, Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway in front of a server, with these flags of the access log `log`.
fn gate(server: &Server, args: &[&str]) -> Serving {
    let url = server.url("");
    Serving::gate_in(Weir::new(), &[&["--upstream", &url, "--access-log", "log"], args].concat())
}

#[test]
fn lines_are_in_the_formats_of_other_servers() {
    let server =
        Server::start(|seen| if seen.line().contains("/no") { Reply::status(404, "no") } else { Reply::ok("hello") });
    let gate = gate(&server, &["--access-log-format", "combined"]);
    let mut connection = gate.connect();
    connection.send("GET /a?b=%22 HTTP/1.1\r\nHost: test\r\nUser-Agent: a \"b\"\r\nReferer: http://x/\r\n\r\n");
    connection.answer();
    connection.get("/no");
    until("both lines", PATIENCE, || gate.weir.path("log").exists() && gate.weir.read("log").lines().count() == 2);
    let log = gate.weir.read("log");
    let (first, second) = log.split_once('\n').unwrap();
    assert!(first.starts_with("127.0.0.1 - - ["), "{first}");
    assert!(first.ends_with(" +0000] \"GET /a?b=%22 HTTP/1.1\" 200 5 \"http://x/\" \"a \\x22b\\x22\""), "{first}");
    assert!(second.trim_end().ends_with("\"GET /no HTTP/1.1\" 404 2 \"-\" \"-\""), "{second}");
    // weir's own reader of logs reads it.
    let output = gate.weir.run(&["replay", "log", "--dry-run"]);
    assert!(output.code == 0, "{output:?}");
    gate.stop();
}

#[test]
fn a_template_names_the_caller_and_shows_no_key() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write(
        "gate.toml",
        format!(
            "[upstreams.a]\nurls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/keys/{{*rest}}\" }}\nupstream = \"a\"\n\
             caller = {{ header = \"x-api-key\" }}\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\nupstream = \"a\"\n",
            server.url("")
        ),
    );
    let format = "$status $caller $request_uri";
    let args = ["--config", "gate.toml", "--access-log", "log", "--access-log-format", format];
    let gate = Serving::gate_in(weir, &args);
    let mut connection = gate.connect();
    connection.send("GET /keys/a HTTP/1.1\r\nHost: test\r\nX-Api-Key: s3cr3t-of-ann-ABCD\r\n\r\n");
    connection.answer();
    connection.get("/b");
    until("both lines", PATIENCE, || gate.weir.path("log").exists() && gate.weir.read("log").lines().count() == 2);
    let log = gate.weir.read("log");
    let (first, second) = log.split_once('\n').unwrap();
    assert!(first.starts_with("200 ABCD-") && first.ends_with(" /keys/a") && !first.contains("s3cr3t"), "{first}");
    assert_eq!(second, "200 127.0.0.1 /b\n");
    gate.stop();
}

#[test]
fn a_template_has_what_the_operator_wants() {
    let server = Server::hello();
    let gate = gate(&server, &["--access-log-format", "$status $request_method $route $http_x_id $ssl_protocol"]);
    let mut connection = gate.connect();
    connection.send("GET /a HTTP/1.1\r\nHost: test\r\nX-Id: 7\r\n\r\n");
    connection.answer();
    until("the line", PATIENCE, || gate.weir.path("log").exists() && gate.weir.read("log").ends_with('\n'));
    let line = gate.weir.read("log");
    assert_eq!(line, "200 GET /{*rest} 7 -\n");
    gate.stop();
    for (format, expected) in [("clf", "write json, common, combined"), ("$stauts", "unknown variable '$stauts'")] {
        let url = server.url("");
        let args = ["gate", "--upstream", &url, "--access-log", "-", "--access-log-format", format];
        let output = Weir::new().run(&args);
        assert!(output.code == 2 && output.one_line().contains(expected), "{output:?}");
    }
}

#[test]
fn a_sample_has_its_fraction_and_every_failure() {
    let server =
        Server::start(|seen| if seen.line().contains("/bad") { Reply::status(500, "") } else { Reply::ok("hello") });
    let gate = gate(&server, &["--access-log-sample", "10%", "--access-log-format", "$request_uri"]);
    let mut connection = gate.connect();
    for _ in 0..500 {
        connection.get("/good");
    }
    for _ in 0..20 {
        connection.get("/bad");
    }
    let folder = gate.weir.path("log");
    until("the failures", PATIENCE, || fs::read_to_string(&folder).unwrap_or_default().matches("/bad").count() == 20);
    let good = gate.weir.read("log").matches("/good").count();
    assert!((25..=80).contains(&good), "{good} of 500");
    gate.stop();
}

#[test]
fn a_signal_opens_the_file_again() {
    let server = Server::hello();
    let gate = gate(&server, &["--access-log-format", "$request_uri"]);
    let lines = |name: &str| fs::read_to_string(gate.weir.path(name)).unwrap_or_default().lines().count();
    gate.get("/first");
    until("the first line", PATIENCE, || lines("log") == 1);
    fs::rename(gate.weir.path("log"), gate.weir.path("log.1")).unwrap();
    gate.get("/second");
    until("the second line", PATIENCE, || lines("log.1") == 2);
    gate.signal(Signal::HUP);
    until("the new file", PATIENCE, || gate.weir.path("log").exists());
    gate.get("/third");
    until("the third line", PATIENCE, || lines("log") == 1);
    assert_eq!(lines("log.1"), 2);
    let output = gate.stop();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}

const DROPPED: &str = "weir_access_log_dropped_total";

/// Lines of a log, of which each is whole; empty without a file.
fn targets(gate: &Serving, name: &str) -> Vec<String> {
    let text = fs::read_to_string(gate.weir.path(name)).unwrap_or_default();
    text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap().to_owned()).collect()
}

/// Each line of a log in the JSON format.
fn parsed(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect()
}

#[test]
fn a_disk_that_was_full_for_a_moment_costs_its_lines_and_no_other() {
    let (server, weir) = (Server::hello(), Weir::new());
    fs::create_dir(weir.path("small")).unwrap();
    let Some(disk) = Disk::mount(&weir.path("small"), 1) else { return };
    let url = server.url("");
    let gate = Serving::gate_in(weir, &["--upstream", &url, "--access-log", "small/log"]);
    let lines = || fs::read_to_string(gate.weir.path("small/log")).unwrap_or_default().lines().count();
    let mut connection = gate.connect();
    let mut sent = 0;
    for rotates in [false, true] {
        connection.get("/before");
        sent += 1;
        let before = lines();
        until("a line", PATIENCE, || lines() > before);
        disk.fill();
        let dropped = gate.metric(DROPPED);
        // Callers do not notice.
        until("lost lines", PATIENCE, || {
            sent += 1;
            assert_eq!(connection.get(&format!("/during/{}", "x".repeat(200))).status, 200);
            gate.metric(DROPPED) > dropped
        });
        disk.free();
        if rotates {
            fs::rename(gate.weir.path("small/log"), gate.weir.path("small/log.1")).unwrap();
            gate.signal(Signal::HUP);
            until("a new file", PATIENCE, || gate.weir.path("small/log").exists());
        }
        let before = lines();
        until("new lines", PATIENCE, || {
            sent += 1;
            assert_eq!(connection.get("/after").status, 200);
            lines() > before
        });
    }
    let dropped = gate.metric(DROPPED);
    let (output, weir) = gate.interrupt();
    assert!(output.stderr.contains("No space left on device"), "{output:?}");
    assert!(output.stderr.contains("is written again; lines dropped: "), "{output:?}");
    assert!(output.stderr.contains(&format!("access log: {dropped} lines dropped")), "{output:?}");
    let text = ["small/log.1", "small/log"].map(|name| fs::read_to_string(weir.path(name)).unwrap()).concat();
    let lines: Vec<_> = parsed(&text);
    let metrics = lines.iter().filter(|line| line["target"] == "/metrics").count();
    assert!(lines.last().is_some_and(|line| line["target"] == "/after" || line["target"] == "/metrics"), "{text}");
    // Those of the requests for metrics may be among the lost ones.
    assert!(lines.len() - metrics <= sent && lines.len() as f64 + dropped >= sent as f64, "{sent} {dropped}");
}

#[test]
fn a_log_that_was_removed_or_whose_folder_was_comes_back() {
    let server = Server::hello();
    let weir = Weir::new();
    fs::create_dir(weir.path("logs")).unwrap();
    let url = server.url("");
    let args = ["--upstream", &url, "--access-log", "logs/log", "--access-log-format", "$request_uri"];
    let gate = Serving::gate_in(weir, &args);
    let has = |name: &str, target: &str| targets(&gate, name).iter().any(|line| line == target);
    gate.get("/first");
    until("the first line", PATIENCE, || has("logs/log", "/first"));
    fs::remove_file(gate.weir.path("logs/log")).unwrap();
    gate.get("/second");
    until("a new file", PATIENCE, || has("logs/log", "/second"));
    // Nothing can be opened: the file of before goes on.
    fs::rename(gate.weir.path("logs"), gate.weir.path("gone")).unwrap();
    gate.signal(Signal::HUP);
    until("a line in the old file", PATIENCE, || {
        gate.get("/third");
        has("gone/log", "/third")
    });
    fs::create_dir(gate.weir.path("logs")).unwrap();
    until("a line in the new file", PATIENCE, || {
        gate.get("/fourth");
        has("logs/log", "/fourth")
    });
    // A folder in its place.
    fs::remove_file(gate.weir.path("logs/log")).unwrap();
    fs::create_dir(gate.weir.path("logs/log")).unwrap();
    gate.signal(Signal::HUP);
    gate.get("/fifth");
    fs::remove_dir(gate.weir.path("logs/log")).unwrap();
    until("a line once there is room", PATIENCE, || {
        gate.get("/sixth");
        has("logs/log", "/sixth")
    });
    assert_eq!(gate.metric(DROPPED), 0.0);
    let output = gate.stop();
    assert!(output.code == 0 && output.stderr.contains("not reopened: No such file or directory"), "{output:?}");
}

#[test]
fn a_pipe_without_a_reader_holds_nothing_up() {
    let server = Server::hello();
    let weir = Weir::new();
    let pipe = weir.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let url = server.url("");
    let args = ["--upstream", &url, "--access-log", "pipe", "--access-log-format", "$request_uri ok"];
    let gate = Serving::gate_in(weir, &args);
    for turn in 1..4 {
        let dropped = gate.metric(DROPPED);
        until("lost lines", PATIENCE, || {
            assert_eq!(gate.get("/lost").status, 200);
            gate.metric(DROPPED) > dropped
        });
        let mut reader = BufReader::new(File::open(&pipe).unwrap());
        if turn == 2 {
            gate.signal(Signal::HUP);
        }
        let mut line = String::new();
        until("a line of this time", PATIENCE, || {
            gate.get(&format!("/turn/{turn}"));
            line.clear();
            // Several may have come in between.
            reader.read_line(&mut line).unwrap();
            assert!(line.starts_with('/') && line.ends_with(" ok\n"), "{line:?}");
            line == format!("/turn/{turn} ok\n")
        });
    }
    // A reader that reads nothing: the end is not held up.
    let _stalled = File::open(&pipe).unwrap();
    let mut connection = gate.connect();
    for _ in 0..1000 {
        assert_eq!(connection.get(&format!("/{}", "x".repeat(300))).status, 200);
    }
    let output = gate.stop();
    assert!(output.code == 0 && output.stderr.contains("lines dropped"), "{output:?}");
}
