//! How a load ends: exit codes, what is written when something goes wrong, Ctrl-C.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{self, BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use weir_measure::Run;
use weir_testing::{Reply, Running, Server, Weir, until};

#[test]
fn a_good_run_says_nothing_on_stderr_and_ends_with_0() {
    let (weir, server) = (Weir::new(), Server::hello());
    let output = weir.run(&["load", &server.url("/"), "-n", "200", "-c", "2"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "a pipe gets no progress bar");
    assert!(output.stdout.contains("200") && !output.stdout.contains('\u{1b}'), "{}", output.stdout);
}

#[test]
fn a_service_that_speaks_no_http_is_reported_and_one_line() {
    let server = Server::start(|_| Reply::raw("220 mail.example ESMTP\r\n"));
    let weir = Weir::new();
    let output = weir.run(&["load", &server.url("/"), "-n", "5", "--out", "run.json"]);
    assert_eq!(output.code, 3);
    let line = output.one_line();
    assert!(line.contains("220 mail.example") && line.contains("HTTP"), "{line}");
    assert!(output.stdout.contains("protocol"), "the report is there all the same: {}", output.stdout);
    let run = Run::from_json(&weir.read("run.json")).unwrap();
    assert_eq!((run.requests.total, run.failures_of("protocol")), (5, 5));
}

#[test]
fn a_full_disk_costs_the_file_and_nothing_else() {
    for flag in ["--out", "--csv", "--jtl"] {
        let (weir, server) = (Weir::new(), Server::hello());
        let others: Vec<&str> = ["--out", "--csv", "--jtl"].into_iter().filter(|other| *other != flag).collect();
        let url = server.url("/");
        let output = weir.run(&[
            "load",
            &url,
            "-n",
            "50",
            "--format",
            "json",
            flag,
            "/dev/full",
            others[0],
            "one",
            others[1],
            "two",
        ]);
        assert_eq!(output.code, 2, "{flag}");
        let line = output.one_line();
        assert!(line.contains("/dev/full") && line.contains("space"), "{line}");
        assert_eq!(output.json().requests.ok, 50, "what was measured is still shown");
        assert!(weir.read("one").len() > 10 && weir.read("two").len() > 10, "{flag}: the other files are written");
    }
}

#[test]
fn a_full_stdout_is_one_line_and_the_files_are_written() {
    let (weir, server) = (Weir::new(), Server::hello());
    let mut command = weir.command(&["load", &server.url("/"), "-n", "50", "--out", "run.json"]);
    command.stdout(Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap()));
    let output = Running::new(&mut command).finish();
    assert_eq!(output.code, 2);
    assert!(output.one_line().contains("stdout"));
    assert_eq!(Run::from_json(&weir.read("run.json")).unwrap().requests.ok, 50);
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    let (weir, server) = (Weir::new(), Server::hello());
    let gone = || {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        writer
    };
    let url = server.url("/");
    weir.load(&url, &["-n", "50", "--out", "run.json"]);
    for args in [
        ["load", &url, "-n", "50", "--format", "json"].as_slice(),
        &["load", &url, "-n", "50"],
        &["report", "run.json"],
        &["--help"],
        &["--version"],
    ] {
        let mut command = weir.command(args);
        command.stdout(gone());
        let output = Running::new(&mut command).finish();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn objectives_that_hold_are_0_and_one_that_fails_is_1() {
    let server = Server::start(|seen| Reply::status(if seen.number % 10 == 9 { 503 } else { 200 }, "x"));
    let weir = Weir::new();
    for (slos, code, clock) in [
        (["p99<10s", "errors<=10%"].as_slice(), 0, "response time"),
        (&["service.p50<10s", "rate>1"], 0, "service time"),
        (&["p50<1us"], 1, "response time"),
        (&["service.max<1us"], 1, "service time"),
        (&["p99<10s", "errors<10%"], 1, "errors"),
        (&["rate>1000000/s"], 1, "rate"),
    ] {
        let flags: Vec<&str> = slos.iter().flat_map(|slo| ["--slo", slo]).collect();
        let output = weir.run(&[&["load", &server.url("/"), "-n", "200", "-c", "1"], flags.as_slice()].concat());
        assert_eq!((output.code, output.stderr.as_str()), (code, ""), "{slos:?}");
        for slo in slos {
            assert!(output.stdout.contains(slo), "{slo}: {}", output.stdout);
        }
        let line = output.stdout.lines().find(|line| line.contains(slos[slos.len() - 1]) || line.contains(clock));
        assert!(line.is_some() && output.stdout.contains(clock), "the line says which clock: {}", output.stdout);
    }
}

#[test]
fn an_untrusted_run_begins_with_the_reasons_and_is_3_when_strict() {
    let server = Server::hello();
    let weir = Weir::new();
    let flags = ["load", &server.url("/"), "-n", "20", "-c", "2"];
    let output = weir.run(&flags);
    assert_eq!(output.code, 0);
    let first = output.stdout.lines().next().unwrap();
    assert!(first.contains("CAUTION"), "{}", output.stdout);
    assert!(output.stdout.lines().nth(1).unwrap().contains("too few successes: 20"), "{}", output.stdout);

    let output = weir.run(&[flags.as_slice(), &["--strict"]].concat());
    assert_eq!((output.code, output.stderr.as_str()), (3, ""));
    let output = weir.run(&[flags.as_slice(), &["--strict", "--slo", "p50<1us"]].concat());
    assert_eq!(output.code, 3, "an objective means nothing on such a run");
}

#[test]
fn a_sound_run_is_0_when_strict() {
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(20)));
    let output = Weir::new().run(&["load", &server.url("/"), "-c", "10", "-d", "1500ms", "--strict"]);
    assert_eq!(output.code, 0, "{}", output.stdout);
    assert!(!output.stdout.contains("TRUSTED"));
}

#[test]
fn ctrl_c_ends_the_run_and_keeps_what_was_measured() {
    for (signal, flags) in [
        (Signal::INT, ["-d", "1h", "-c", "4", "-t", "2"].as_slice()),
        (Signal::TERM, &["-n", "100000000", "-c", "4"]),
        (Signal::INT, &["-r", "200", "-d", "1h"]),
        (Signal::INT, &["--users", "4", "--loops", "100000000"]),
    ] {
        let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(1)));
        let weir = Weir::new();
        let url = server.url("/");
        let running =
            weir.start(&[&["load", &url, "--out", "run.json", "--jtl", "log", "--csv", "csv"], flags].concat());
        server.wait_for("some requests", |counts| counts.requests >= 100);
        running.signal(signal);
        let output = running.finish();
        assert_eq!((output.code, output.stderr.as_str()), (130, ""), "{flags:?}");
        assert!(output.stdout.contains("interrupted"), "{}", output.stdout);
        let run = Run::from_json(&weir.read("run.json")).unwrap();
        assert!(run.interrupted && run.requests.ok >= 90, "{:?}", run.requests);
        assert!(run.duration_s > 0.0 && run.duration_s < 60.0, "{}", run.duration_s);
        let begun = run.requests.total - run.requests.dropped + run.requests.unfinished;
        // In the open loop some may have had no connection yet.
        let more = if flags[0] == "-r" { run.requests.unfinished } else { 4 };
        let sent = begun.saturating_sub(more)..=begun + 4;
        assert!(sent.contains(&server.requests()), "{:?} of {}", run.requests, server.requests());
        assert_eq!(weir.read("log").lines().count() as u64, 1 + run.requests.total - run.requests.dropped);
    }
}

#[test]
fn ctrl_c_without_responses_ends_the_run_at_once() {
    let server = Server::start(|_| Reply::nothing());
    let weir = Weir::new();
    let running = weir.start(&["load", &server.url("/"), "-d", "1h", "-c", "3", "--format", "json"]);
    server.wait_for("requests", |counts| counts.requests == 3);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130);
    let run = output.json();
    assert_eq!((run.requests.total, run.requests.unfinished, run.interrupted), (0, 3, true));
}

#[test]
fn ctrl_c_in_the_warm_up_still_leaves_a_run_that_can_be_read() {
    let server = Server::hello();
    let weir = Weir::new();
    let running = weir.start(&["load", &server.url("/"), "-d", "2h", "--warmup", "1h", "-c", "2", "--out", "run.json"]);
    server.wait_for("some requests", |counts| counts.requests >= 100);
    running.interrupt();
    let output = running.finish();
    assert_eq!((output.code, output.stderr.as_str()), (130, ""));
    assert_eq!(Run::from_json(&weir.read("run.json")).unwrap().requests.total, 0);
    for format in ["text", "ab", "wrk", "jmeter", "json"] {
        let report = weir.run(&["report", "run.json", "--format", format]);
        assert_eq!(report.code, 0, "{format}: {}", report.stderr);
        assert!(!report.stdout.contains("NaN") && !report.stdout.contains("inf"), "{}", report.stdout);
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let server = Server::hello();
    let weir = Weir::new();
    // A stdout that is full and read by nobody, so that the report cannot be written to its end.
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(&[b'x'; 64 * 1024]).unwrap();
    let mut command = weir.command(&["load", &server.url("/"), "-d", "1h", "-c", "2"]);
    command.stdout(writer);
    let mut running = Running::new(&mut command);
    drop(command);
    server.wait_for("some requests", |counts| counts.requests >= 100);
    running.interrupt();
    server.wait_for("the end of the load", |counts| counts.open == 0);
    assert!(running.is_alive(), "it waits for somebody to read its report");
    running.interrupt();
    until("the end", Duration::from_secs(5), || !running.is_alive());
    assert_eq!(running.finish().code, 130);
    drop(reader);
}

#[test]
fn a_terminal_gets_progress_and_quiet_takes_it_away() {
    for (flags, shown) in [([].as_slice(), true), (&["-q"], false)] {
        let server = Server::hello();
        let weir = Weir::new();
        let line =
            format!("{} load {} -d 1500ms -c 1 {}", env!("CARGO_BIN_EXE_weir"), server.url("/"), flags.join(" "));
        // script(1) gives it a terminal.
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").current_dir(weir.path(""));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = Running::new(&mut command).finish();
        assert_eq!(output.code, 0, "{output:?}");
        assert_eq!(output.stdout.contains("/s  p50 "), shown, "{flags:?}: {}", output.stdout);
    }
}

#[test]
fn passwords_are_not_kept() {
    let server = Server::hello();
    let weir = Weir::new();
    let (url, address) = (server.url("/"), server.address());
    let (with_user, without_scheme) = (format!("http://me:hunter2@{address}/"), format!("me:hunter2@{address}/"));
    for flags in [
        ["load", &url, "--auth", "me:hunter2"].as_slice(),
        &["load", &url, "--auth=me:hunter2"],
        &["load", &url, "-a", "me:hunter2"],
        &["load", &url, "-ame:hunter2"],
        &["load", &url, "-qa", "me:hunter2"],
        &["load", &url, "-qame:hunter2"],
        &["load", &url, "-H", "Authorization: Bearer hunter2"],
        &["load", &url, "-HAuthorization: Bearer hunter2"],
        &["load", &url, "--header=authorization:hunter2"],
        &["load", &url, "-kH", "Authorization: Bearer hunter2"],
        &["load", &url, "-H", "Cookie: session=hunter2"],
        &["load", &url, "-H", "X-Api-Key: hunter2"],
        &["load", &with_user],
        &["load", &without_scheme],
    ] {
        let output = weir.run(&[flags, &["-n", "1", "--out", "run.json", "--jtl", "log", "--format", "json"]].concat());
        assert_eq!(output.code, 0, "{output:?}");
        let kept = [output.stdout, output.stderr, weir.read("run.json"), weir.read("log")].concat();
        assert!(!kept.contains("hunter2") && !kept.contains("bWU6aHVudGVyMg"), "{flags:?}");
        assert!(kept.contains(&address), "the rest of the command is kept");
    }
}

#[test]
fn a_log_that_nobody_reads_to_the_end_does_not_hold_the_run() {
    let (weir, server) = (Weir::new(), Server::hello());
    // As `--jtl >(head -1)`: the reader goes away after a line.
    let (reader, writer) = io::pipe().unwrap();
    let mut command = weir.command(&["load", &server.url("/"), "-n", "3000", "-q", "--jtl", "/dev/stdin"]);
    command.stdin(writer);
    let running = Running::new(&mut command);
    drop(command);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).unwrap();
    assert!(line.starts_with("timeStamp,"));
    let output = running.finish();
    assert_eq!((output.code, server.requests()), (2, 3000));
    assert!(output.one_line().contains("/dev/stdin"));
}
