//! Invalid input is one line on stderr that names the value, with exit code 2.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::process::Stdio;

use weir_testing::{Running, Server, Weir, closed_address};

/// The error line of a command that is rejected before anything is measured.
fn rejected(args: &[&str]) -> String {
    rejected_in(&Weir::new(), args)
}

fn rejected_in(weir: &Weir, args: &[&str]) -> String {
    let output = weir.run(args);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {output:?}");
    output.one_line().to_owned()
}

#[test]
fn a_service_that_is_not_there_is_named() {
    let line = rejected(&["load", "http://no-such-host.invalid/", "-n", "1"]);
    assert!(line.contains("no-such-host.invalid"), "{line}");
    let address = closed_address().to_string();
    for flags in [["-n", "1"], ["-r", "5"]] {
        let line = rejected(&[&["load", &format!("http://{address}/")], flags.as_slice()].concat());
        assert!(line.contains(&address) && line.contains("refused"), "{line}");
        assert!(!line.contains("os error"), "{line}");
    }
    let line = rejected(&["load", "http://h/", "--unix-socket", "/no/such/socket"]);
    assert!(line.contains("/no/such/socket"), "{line}");
    let line = rejected(&["load", "http://127.0.0.1/", "--connect-to", &address, "-n", "1"]);
    assert!(line.contains(&address), "{line}");
}

#[test]
fn an_invalid_url_is_named() {
    for url in ["http://", "http://a b/", "http://h:99999/", "http://h:x/", "http://:80/", "", "/path"] {
        let line = rejected(&["load", url, "-n", "1"]);
        assert!(line.contains("URL") && line.contains(url), "{url}: {line}");
    }
    for scheme in ["ftp", "mqtt", "file"] {
        let line = rejected(&["load", &format!("{scheme}://h/x"), "-n", "1"]);
        assert!(line.contains(scheme) && line.contains("https"), "{line}");
    }
}

#[test]
fn a_file_in_the_place_of_a_url_is_told_apart_and_its_command_named() {
    for (args, words) in [
        (["load", "k.js"], "'k.js' is a k6 script, not a URL; write weir load -s k.js"),
        (["capacity", "k.js"], "'k.js' is a k6 script, not a URL; write weir capacity -s k.js"),
        (["llm", "w.lua"], "'w.lua' is a Lua script, not a URL; write weir load -s w.lua http://HOST:PORT"),
        (["load", "shop.har"], "'shop.har' is a HAR recording, not a URL; write weir load -s shop.har"),
        (["load", "plan.jmx"], "'plan.jmx' is a JMeter plan, not a URL; write weir load -s plan.jmx"),
        (["load", "a.log"], "'a.log' is an access log, not a URL; write weir replay a.log --target http://HOST:PORT"),
        (["load", "c.json"], "write weir load -s c.json for a collection, weir report c.json for a saved run"),
        (["load", "jobs.jsonl"], "write weir send jobs.jsonl for jobs"),
    ] {
        let line = rejected(&args);
        assert!(line.contains(words), "{args:?}: {line}");
    }
    let line = rejected(&["replay", "k.js", "--dry-run"]);
    assert!(line.contains("'k.js' is a k6 script, not an access log; write weir load -s k.js"), "{line}");
    // Names of domains are files only where there is one.
    let weir = Weir::new();
    for (name, words) in [("l.py", "a Python script"), ("login.sh", "a file of curl commands"), ("notes", "a file")] {
        assert!(!rejected_in(&weir, &["load", name, "-n", "1"]).contains("not a URL"), "{name}");
        std::fs::write(weir.path(name), "").unwrap();
        let line = rejected_in(&weir, &["load", name, "-n", "1"]);
        assert!(line.contains(&format!("'{name}' is {words}, not a URL")), "{line}");
    }
}

#[test]
fn a_flag_that_is_unknown_gets_a_suggestion() {
    for (wrong, right) in [("--rat", "--rate"), ("--conections", "--connections"), ("--timout", "--timeout")] {
        let line = rejected(&["load", "http://h/", wrong, "5"]);
        assert!(line.contains(wrong) && line.contains(&format!("did you mean '{right}'?")), "{line}");
    }
    let line = rejected(&["laod", "http://h/"]);
    assert!(line.contains("laod") && line.contains("'load'"), "{line}");
    let line = rejected(&["load", "http://h/", "--format", "jason"]);
    assert!(line.contains("jason") && line.contains("json"), "{line}");
    assert!(rejected(&["load"]).contains("URL"));
    rejected(&["load", "http://h/", "http://h/"]);
    rejected(&["load", "http://h/", "-n", "1", "-n", "2"]);
}

#[test]
fn a_value_out_of_its_range_is_named() {
    for (flag, value) in [
        ("--rate", "0"),
        ("--rate", "abc"),
        ("--rate", "nan"),
        ("--rate", "inf"),
        ("--rate", "1e12"),
        ("--connections", "0"),
        ("--connections", "many"),
        ("--connections", "99999999"),
        ("--requests", "0"),
        ("--requests", "1.5"),
        ("--duration", "0s"),
        ("--duration", "10x"),
        ("--duration", "10 parsecs"),
        ("--threads", "0"),
        ("--threads", "1000000"),
        ("--users", "0"),
        ("--timeout", "0s"),
        ("--timeout", "soon"),
        ("--pipeline", "0"),
        ("--warmup", "1h"),
        ("--stages", "200"),
        ("--stages", "5/1s,x/2s"),
        ("--stages", "0/10s"),
        ("--arrivals", "bursty"),
        ("--slo", "p99<soon"),
        ("--slo", "fast"),
        ("--slo", "p101<1s"),
        ("--method", "GE T"),
        ("--header", "no colon"),
        ("--header", "A: b\r\nC: d"),
        ("--connect-to", "nowhere"),
        ("--seed", "-1"),
        ("--seed", "x"),
        ("--log-format", "xml"),
    ] {
        let line = rejected(&["load", "http://127.0.0.1:9/", &format!("{flag}={value}")]);
        let first = value.split(['\r', ',']).next().unwrap();
        assert!(line.contains(&flag[2..]) || line.contains(first), "{flag} {value}: {line}");
        assert!(!line.contains("cannot connect"), "checked before the service is contacted: {line}");
    }
}

#[test]
fn values_that_overflow_together_are_rejected_without_a_panic() {
    for flags in [
        ["--rate", "1e-300", "-n", "1"].as_slice(),
        &["--rate", "1e-9", "-n", "18446744073709551615"],
        &["--rate", "1e8", "-d", "800000h"],
        &["-d", "99999999999h"],
        &["--stages", "1e300/1s"],
        &["--stages", "0-1e308/1h"],
        &["--users", "1000000000000", "--loops", "18446744073709551615"],
        &["-c", "18446744073709551615"],
        &["-c", "18446744073709551616"],
    ] {
        // Any error is one line; the port refuses connections in any case.
        rejected(&[&["load", "http://127.0.0.1:9/"], flags].concat());
    }
}

#[test]
fn options_that_do_not_go_together_are_named() {
    for (flags, words) in [
        (["-r", "5", "--stages", "5/1s"].as_slice(), ["--rate", "--stages"]),
        (&["--stages", "5/1s", "-d", "1s"], ["--duration", "--stages"]),
        (&["-r", "5", "--users", "2"], ["--users", "--rate"]),
        (&["--users", "2", "-c", "2"], ["--users", "--connections"]),
        (&["--loops", "2"], ["--loops", "--users"]),
        (&["--ramp-up", "2s"], ["--ramp-up", "--users"]),
        (&["--pipeline", "2", "--no-keepalive"], ["--pipeline", "--no-keepalive"]),
        (&["--pipeline", "2", "--users", "2"], ["--pipeline", "--users"]),
        (&["--unix-socket", "s", "--connect-to", "h:1"], ["--unix-socket", "--connect-to"]),
        (&["--spin"], ["--spin", "open"]),
        (&["--weights", "1,2", "-b", "x"], ["--weights", "2"]),
        (&["--weights", "1"], ["--weights", "1"]),
        (&["--weights", "0,0", "-b", "x", "-b", "y"], ["--weights", "0"]),
        (&["--weights=-1,2", "-b", "x", "-b", "y"], ["--weights", "0"]),
        (&["--weights", "a,2", "-b", "x", "-b", "y"], ["--weights", "a"]),
        (&["--warmup", "10s", "-d", "10s"], ["--warmup", "10"]),
    ] {
        let line = rejected(&[&["load", "http://127.0.0.1:9/"], flags].concat());
        assert!(words.iter().all(|word| line.contains(word)), "{flags:?}: {line}");
        assert!(!line.contains("cannot connect"), "checked before the service is contacted: {line}");
    }
}

#[test]
fn files_that_are_missing_are_named() {
    let server = Server::hello();
    for (flags, file) in [
        (["-b", "@no-body.txt"], "no-body.txt"),
        (["--out", "no/folder/run.json"], "no/folder/run.json"),
        (["--jtl", "no/folder/log.jtl"], "no/folder/log.jtl"),
        (["--csv", "no/folder/run.csv"], "no/folder/run.csv"),
        (["--html", "no/folder/run.html"], "no/folder/run.html"),
        (["--out", "."], "."),
    ] {
        let line = rejected(&[&["load", &server.url("/")], flags.as_slice()].concat());
        assert!(line.contains(file), "{flags:?}: {line}");
    }
    assert_eq!(server.counts().connections, 0, "reported before the service is contacted");
}

#[test]
fn a_load_that_cannot_start_leaves_an_earlier_result_alone() {
    let weir = Weir::new();
    let unreachable = format!("http://{}/", closed_address());
    for url in ["ftp://h/", unreachable.as_str()] {
        for flag in ["--out", "--csv", "--html", "--jtl"] {
            weir.write("kept", "an earlier result");
            rejected_in(&weir, &["load", url, "-n", "1", flag, "kept"]);
            assert_eq!(weir.read("kept"), "an earlier result", "{url} {flag}");
        }
    }
}

#[test]
fn a_load_that_cannot_start_leaves_no_empty_files() {
    let weir = Weir::new();
    let unreachable = format!("http://{}/", closed_address());
    for flag in ["--out", "--csv", "--html", "--jtl"] {
        rejected_in(&weir, &["load", &unreachable, "-n", "1", flag, "new"]);
        assert!(!weir.path("new").exists(), "{flag}");
    }
    rejected_in(&weir, &["capacity", &unreachable, "--slo", "p99<1s", "--out", "new"]);
    assert!(!weir.path("new").exists());
}

#[test]
fn two_results_in_one_file_are_rejected_before_anything_is_sent() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("old", "an earlier result");
    std::fs::hard_link(weir.path("old"), weir.path("same")).unwrap();
    for (one, other) in [("f", "f"), ("f", "./f"), ("old", "same"), ("-", "-")] {
        let url = server.url("/");
        let line = rejected_in(&weir, &["load", &url, "-n", "1", "--out", one, "--csv", other]);
        assert!(line.contains("--out and --csv both write to"), "{line}");
    }
    assert_eq!((server.counts().connections, weir.path("f").exists()), (0, false));
    assert_eq!(weir.read("old"), "an earlier result");
}

#[test]
fn flags_of_other_tools_are_accepted_or_get_a_suggestion_of_the_same_command() {
    let server = Server::hello();
    let url = server.url("/");
    let run = weir_testing::load(&url, &["-n", "1k", "-c", "2", "-d", "1m30s"]);
    assert_eq!(run.requests.total, 1_000);
    let run = weir_testing::load(&url, &["--rate", "6000/m", "-d", "1", "-c", "1k"]);
    assert_eq!((run.requests.total, run.duration_s, run.connections.max), (100, 1.0, 1_000));
    for (flags, words) in [
        (["--slo", "errors<1"].as_slice(), "errors<1%"),
        (&["--slo", "errors<=5"], "errors<=5%"),
        (&["--concurrency", "5"], "did you mean '--connections'? see 'weir load --help'"),
        (&["--qps", "5"], "did you mean '--rate'? see 'weir load --help'"),
        (&["--capacity", "5"], "found; see 'weir load --help'"),
        (&["-d", "ten"], "write e.g. 10 (seconds)"),
        (&["-n", "many"], "10k"),
        (&["--rate", "5/d"], "6000/m"),
    ] {
        let line = rejected(&[&["load", &url], flags].concat());
        assert!(line.contains(words), "{flags:?}: {line}");
    }
}

#[test]
fn a_message_cannot_steer_the_terminal_or_take_two_lines() {
    for url in ["http://h/\u{1b}[2J", "http://a\nb/", "ftp\u{7}://x"] {
        let line = rejected(&["load", url, "-n", "1"]);
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    let line = rejected(&["load", "http://h/", "--no-\u{1b}[31m"]);
    assert!(!line.contains(char::is_control), "{line:?}");
}

#[test]
fn messages_are_json_when_asked() {
    let weir = Weir::new();
    for args in [
        ["load", "ftp://h/", "--log-format", "json"].as_slice(),
        &["--log-format", "json", "load", "ftp://h/"],
        &["load", "http://127.0.0.1:9/", "--unix-socket", "/no \"such\"", "--log-format=json"],
        &["load", "http://h/", "--log-format", "json", "--rat", "5"],
    ] {
        let output = weir.run(args);
        assert_eq!(output.code, 2);
        let message: serde_json::Value =
            serde_json::from_str(&output.stderr).unwrap_or_else(|e| panic!("{e}: {}", output.stderr));
        assert_eq!(message["level"], "error");
        assert!(message["message"].as_str().is_some_and(|text| !text.is_empty()));
    }
}

#[test]
fn help_names_every_flag_of_the_contract() {
    let weir = Weir::new();
    let output = weir.run(&["load", "--help"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    for flag in [
        "-c",
        "--connections",
        "-d",
        "--duration",
        "-n",
        "--requests",
        "-t",
        "--threads",
        "--users",
        "--ramp-up",
        "--loops",
        "-r",
        "--rate",
        "--arrivals",
        "--stages",
        "-m",
        "--method",
        "-H",
        "--header",
        "-b",
        "--body",
        "--timeout",
        "--no-keepalive",
        "--pipeline",
        "--cacert",
        "--cert",
        "--cert-key",
        "-k",
        "--insecure",
        "--unix-socket",
        "--connect-to",
        "--seed",
        "--warmup",
        "--slo",
        "--format",
        "--out",
        "--jtl",
        "--csv",
        "--html",
        "--help",
        "--version",
        "-q",
        "--quiet",
        "--log-format",
    ] {
        let named = output.stdout.split([' ', ',', '\n', '[']).any(|word| word == flag);
        assert!(named, "{flag} is not in the help:\n{}", output.stdout);
    }
    for format in ["text", "ab", "wrk", "jmeter", "json"] {
        assert!(output.stdout.contains(format));
    }
    let output = weir.run(&["report", "--help"]);
    assert!(output.code == 0 && output.stdout.contains("--format"));
    assert_eq!(weir.run(&[]).code, 2, "a command is missing");
}

#[test]
fn every_command_prints_its_version() {
    let weir = Weir::new();
    for args in
        [["--version"].as_slice(), &["-V"], &["load", "--version"], &["gate", "--version"], &["report", "--version"]]
    {
        let output = weir.run(args);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
        assert!(output.stdout.trim_end().ends_with(env!("CARGO_PKG_VERSION")), "{}", output.stdout);
    }
}

#[test]
fn an_unwritable_stderr_does_not_change_the_exit_code() {
    let weir = Weir::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for args in [["load", "ftp://h/"].as_slice(), &["load", "--rat", "5"], &["report", "missing.json"]] {
        let mut command = weir.command(args);
        command.stderr(Stdio::from(full()));
        assert_eq!(Running::new(&mut command).finish().code, 2, "{args:?}");
    }
}

#[test]
fn certificates_for_a_plain_url_are_rejected() {
    for flags in [["--cacert", "ca.pem"], ["--sni", "name"]] {
        let line = rejected(&["load", "http://127.0.0.1:9/", flags[0], flags[1]]);
        assert!(line.contains(flags[0]) && line.contains("https"), "{line}");
    }
}
