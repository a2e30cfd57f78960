//! Scenarios: rows of data, the start and end of iterations, setup and teardown, seen from the service.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use weir_measure::end_reason::EndReason;
use weir_testing::{Gate, Output, Reply, Seen, Server, Weir, until};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Folder with a scenario that names its user, and rows of `rows` users.
fn folder(rows: usize) -> Weir {
    let weir = Weir::new();
    weir.write("buy.hurl", "GET {{base}}/buy?user={{user}}&id={{id}}\n");
    let lines = (0..rows).map(|row| format!("u{row},{row:03}\n"));
    weir.write("users.csv", format!("user,id\n{}", lines.collect::<String>()));
    weir
}

fn play(weir: &Weir, server: &Server, args: &[&str]) -> Output {
    let base = format!("base={}", server.url(""));
    weir.run(
        &[&["load", "-s", "buy.hurl", "--variable", base.trim_end_matches('/'), "--format", "json"], args].concat(),
    )
}

fn played(weir: &Weir, server: &Server, args: &[&str]) -> weir_measure::Run {
    let output = play(weir, server, args);
    assert_eq!(output.code, 0, "{args:?}: {output:?}");
    output.json()
}

fn path(seen: &Seen) -> String {
    seen.line().split(' ').nth(1).unwrap_or_default().to_owned()
}

/// Number of requests by path.
fn paths(server: &Server) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    server.seen().iter().for_each(|seen| *counts.entry(path(seen)).or_insert(0) += 1);
    counts
}

fn of_rows(rows: usize, times: impl Fn(usize) -> u64) -> BTreeMap<String, u64> {
    (0..rows).map(|row| (format!("/buy?user=u{row}&id={row:03}"), times(row))).filter(|(_, times)| *times > 0).collect()
}

const SPLITS: [&[&str]; 3] =
    [&["--threads", "1"], &["--threads", "2"], &["--on", "local", "--agents", "2", "--threads", "1"]];

#[test]
fn the_first_users_have_the_first_rows_whatever_threads_they_are_on() {
    for split in SPLITS {
        let (weir, server) = (folder(4), Server::hello());
        let run = played(&weir, &server, &[&["--data", "users.csv", "--users", "4", "--loops", "1"], split].concat());
        assert_eq!((paths(&server), run.requests.total), (of_rows(4, |_| 1), 4), "{split:?}");
    }
}

#[test]
fn unique_rows_are_used_once_by_any_threads_and_agents_and_then_the_run_ends() {
    for pace in [&["-c", "4", "-d", "5m"][..], &["--rate", "400", "-d", "5m"]] {
        for split in SPLITS {
            let (weir, server) = (folder(150), Server::hello());
            let args = [&["--data", "users.csv", "--data-order", "unique"], pace, split].concat();
            let run = played(&weir, &server, &args);
            assert_eq!(paths(&server), of_rows(150, |_| 1), "{args:?}");
            assert_eq!(run.requests.total, 150, "{args:?}");
            assert_eq!(run.ended_by, Some(EndReason::DataRows("users.csv".into())), "{args:?}");
            assert!(!run.interrupted && run.duration_s < 60.0, "{args:?}: {}", run.duration_s);
        }
    }
}

#[test]
fn a_run_that_ends_before_its_rows_was_not_ended_by_them() {
    let (weir, server) = (folder(150), Server::hello());
    let run = played(&weir, &server, &["--data", "users.csv", "--data-order", "unique", "-n", "20", "-c", "2"]);
    assert_eq!((run.requests.total, run.ended_by), (20, None));
    assert_eq!(paths(&server), of_rows(150, |row| u64::from(row < 20)));
    let run = played(&weir, &server, &["--data", "users.csv", "-n", "20", "-c", "2"]);
    assert_eq!(run.ended_by, None);
}

#[test]
fn the_same_seed_sends_the_same_rows_from_any_threads_and_agents() {
    for (order, expected) in [("circular", Some(of_rows(7, |row| if row < 2 { 15 } else { 14 }))), ("random", None)] {
        let mut all = Vec::new();
        for split in SPLITS {
            let (weir, server) = (folder(7), Server::hello());
            let args = ["--data", "users.csv", "--data-order", order, "-n", "100", "-c", "4", "--seed", "3"];
            played(&weir, &server, &[&args, split].concat());
            all.push(paths(&server));
        }
        assert!(all.iter().all(|sent| *sent == all[0]), "{order}: {all:?}");
        expected.into_iter().for_each(|expected| assert_eq!(all[0], expected));
    }
}

#[test]
fn a_user_keeps_its_row_for_the_run_with_once() {
    for split in SPLITS {
        let (weir, server) = (folder(6), Server::hello());
        let args = ["--data", "users.csv", "--data-order", "once", "--users", "4", "--loops", "5"];
        played(&weir, &server, &[&args, split].concat());
        assert_eq!(paths(&server), of_rows(6, |row| if row < 4 { 5 } else { 0 }), "{split:?}");
    }
}

#[test]
fn rows_of_json_are_variables_too() {
    let (weir, server) = (folder(1), Server::hello());
    weir.write("users.jsonl", "{\"user\": \"ada\", \"id\": 1}\n{\"id\": true, \"user\": \"bob\"}\n");
    played(&weir, &server, &["--data", "users.jsonl", "-n", "2", "-c", "1"]);
    let expected = ["/buy?user=ada&id=1", "/buy?user=bob&id=true"].map(|path| (path.to_owned(), 1));
    assert_eq!(paths(&server), BTreeMap::from(expected));
}

#[test]
fn a_single_request_has_rows_too_and_bodies_share_them() {
    let (weir, server) = (folder(40), Server::hello());
    let url = server.url("/buy?user={{user}}&id={{id}}");
    let args = ["load", &url, "-b", "one", "-b", "two", "--data", "users.csv", "--data-order", "unique", "-c", "3"];
    let output = weir.run(&[&args[..], &["--format", "json"]].concat());
    assert_eq!((output.code, output.json().requests.total), (0, 40), "{output:?}");
    assert_eq!(paths(&server), of_rows(40, |_| 1));
}

#[test]
fn bad_data_is_one_line_before_anything_is_sent() {
    let (weir, server) = (folder(3), Server::hello());
    weir.write("ragged.csv", "user,id\na,1\nb\n");
    weir.write("other.csv", "name,number\na,1\n");
    for (args, expected) in [
        (&["--data", "ragged.csv"][..], "ragged.csv:3: 1 field for 2 columns"),
        (&["--data", "none.csv"], "cannot read the data 'none.csv'"),
        (&["--data", "users.csv", "--data-order", "twice"], "choose circular, unique, random or once"),
        (&["--data-order", "unique"], "--data-order needs --data FILE"),
        (&["--data", "users.csv", "--data-order", "once", "-c", "5"], "users.csv has 3 rows for 5 users"),
        (&["--data", "users.csv", "--data-order", "once", "--rate", "5"], "--data-order once is for a closed loop"),
        (&["--data", "users.csv", "--rate", "5", "--pacing", "1s"], "--pacing is for a closed loop"),
        (&["--data", "users.csv", "--think", "1s..0s"], "--think: invalid think time '1s..0s': the second time is"),
    ] {
        let output = play(&weir, &server, args);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {output:?}");
        assert!(output.one_line().contains(expected), "{args:?}: {output:?}");
    }
    let output = play(&weir, &server, &["--data", "other.csv"]);
    assert!(output.code == 2 && output.stderr.contains("found none for user (1:"), "{output:?}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn iterations_of_a_user_begin_at_their_pace() {
    let (weir, server) = (folder(3), Server::hello());
    let args = ["--data", "users.csv", "--users", "2", "--loops", "4", "--pacing", "1s", "--threads", "1"];
    let run = played(&weir, &server, &[&args[..], &["--jtl", "log.jtl"]].concat());
    assert_eq!(server.requests(), 8);
    // Intended starts, which a machine that wakes weir up late does not change.
    let log = weir.read("log.jtl");
    for user in ["weir 1-1", "weir 1-2"] {
        let lines = log.lines().filter(|line| line.split(',').nth(5) == Some(user));
        let starts: Vec<u64> = lines.map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
        assert_eq!(starts.len(), 4, "{log}");
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 999), "{starts:?}");
    }
    // The user does not wait after its last iteration.
    assert!(run.duration_s >= 2.75 && run.response_ms.p50.unwrap() < 750.0, "{run:?}");
}

/// Service with a login that gives a token; without the token all is forbidden.
fn shop() -> Server {
    Server::start(|seen| {
        let is_known = seen.header("authorization") == Some("Bearer 007");
        match path(seen).as_str() {
            "/login" => Reply::ok("{\"token\": \"007\", \"user\": {\"id\": 7}}"),
            "/fail" => Reply::status(503, "no"),
            _ if is_known => Reply::ok("yours"),
            _ => Reply::status(403, "no"),
        }
    })
}

fn with_setup() -> Weir {
    let weir = Weir::new();
    let login = "POST {{base}}/login\nHTTP 200\n[Captures]\ntoken: jsonpath \"$.token\"\nid: jsonpath \"$.user.id\"\n";
    weir.write("login.hurl", login);
    weir.write("buy.hurl", "GET {{base}}/items/{{id}}\nAuthorization: Bearer {{token}}\nHTTP 200\n");
    weir.write("logout.hurl", "POST {{base}}/logout?id={{id}}\nAuthorization: Bearer {{token}}\nHTTP 200\n");
    weir.write("fail.hurl", "# @name broken\nGET {{base}}/fail\nHTTP 200\n[Captures]\ntoken: body\nid: body\n");
    weir
}

#[test]
fn captures_of_a_setup_are_variables_of_all_users_and_the_teardown_follows() {
    for split in SPLITS {
        let (weir, server) = (with_setup(), shop());
        let args = ["--setup", "login.hurl", "--teardown", "logout.hurl", "-n", "50", "-c", "4"];
        let run = played(&weir, &server, &[&args, split].concat());
        assert_eq!((run.requests.ok, run.requests.total), (50, 50), "{split:?}");
        let expected = [("/items/7", 50), ("/login", 1), ("/logout?id=7", 1)];
        assert_eq!(paths(&server), BTreeMap::from(expected.map(|(path, times)| (path.to_owned(), times))), "{split:?}");
        let seen = server.seen();
        assert_eq!((path(&seen[0]), path(&seen[51])), ("/login".into(), "/logout?id=7".into()));
    }
}

#[test]
fn a_capacity_search_has_one_setup_and_one_teardown() {
    let (weir, server) = (with_setup(), shop());
    let base = format!("base={}", server.url(""));
    let args =
        ["capacity", "-s", "buy.hurl", "--variable", &base, "--setup", "login.hurl", "--teardown", "logout.hurl"];
    let search = [
        "--slo",
        "p99<5s",
        "--from",
        "200",
        "--to",
        "200",
        "--step-time",
        "3s",
        "--max-time",
        "6s",
        "--format",
        "json",
        "--quiet",
    ];
    weir.run(&[&args[..], &search].concat());
    let seen = paths(&server);
    assert_eq!((seen.get("/login"), seen.get("/logout?id=7")), (Some(&1), Some(&1)), "{seen:?}");
    assert!(seen["/items/7"] > 30, "{seen:?}");
    let output = weir.run(&[&args[..5], &["--setup", "fail.hurl"], &search].concat());
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:?}");
    assert!(output.one_line().starts_with("the setup 'fail.hurl' failed: step 'broken': "), "{output:?}");
}

#[test]
fn ctrl_c_during_a_setup_ends_weir_before_the_load_as_an_interrupt() {
    for args in [&["load"][..], &["load", "--once"], &["capacity", "--slo", "p99<1s"]] {
        let weir = with_setup();
        let held = Gate::default();
        let opens = held.clone();
        let server = Server::start(move |_| Reply::nothing().wait_for(&held));
        let base = format!("base={}", server.url(""));
        let setup = ["-q", "-s", "buy.hurl", "--setup", "login.hurl", "--variable", base.trim_end_matches('/')];
        let running = weir.start(&[args, &setup].concat());
        until("the setup's request", PATIENCE, || server.requests() == 1);
        running.interrupt();
        let output = running.finish();
        let line = "interrupted during the setup; the load has not begun";
        assert_eq!((output.code, output.one_line()), (130, line), "{args:?}");
        assert_eq!((server.requests(), output.stdout.as_str()), (1, ""), "{args:?}");
        opens.open();
    }
}

#[test]
fn a_failed_setup_names_its_step_and_nothing_is_measured() {
    let (weir, server) = (with_setup(), shop());
    let output = play(&weir, &server, &["--setup", "fail.hurl", "--teardown", "logout.hurl", "-n", "50"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:?}");
    let line = output.one_line();
    assert!(line.starts_with("the setup 'fail.hurl' failed: step 'broken': ") && line.contains("503"), "{line}");
    assert_eq!(paths(&server), BTreeMap::from([("/fail".to_owned(), 1)]));
}

#[test]
fn a_failed_teardown_keeps_the_result_and_fails_the_command() {
    let (weir, server) = (with_setup(), shop());
    let output = play(&weir, &server, &["--setup", "login.hurl", "--teardown", "fail.hurl", "-n", "5"]);
    assert_eq!((output.code, output.json().requests.ok), (2, 5), "{output:?}");
    assert!(output.stderr.contains("the teardown 'fail.hurl' failed: step 'broken': "), "{output:?}");
}

#[test]
fn the_teardown_follows_an_interrupt_too() {
    let (weir, server) = (with_setup(), shop());
    let base = format!("base={}", server.url("").trim_end_matches('/'));
    let args = ["load", "-s", "buy.hurl", "--variable", &base, "-d", "10m", "-c", "2", "--think", "5ms"];
    let running = weir.start(&[&args[..], &["--setup", "login.hurl", "--teardown", "logout.hurl"]].concat());
    server.wait_for("the load to begin", |counts| counts.requests > 10);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    assert_eq!(paths(&server).get("/logout?id=7"), Some(&1));
}

#[test]
fn mistakes_of_setup_and_teardown_are_found_before_anything_is_sent() {
    let (weir, server) = (with_setup(), shop());
    weir.write("bad.hurl", "GET {{base}}/x/{{nothing}}\n");
    for args in [["--setup", "bad.hurl"], ["--teardown", "bad.hurl"]] {
        let args = [&args[..], &["--variable", "token=1", "--variable", "id=2"]].concat();
        let output = play(&weir, &server, &args);
        assert!(output.code == 2 && output.stderr.contains("bad.hurl:1:"), "{output:?}");
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn policies_decide_about_failed_steps_cookies_and_redirects() {
    let service = || {
        Server::start(|seen| match path(seen).as_str() {
            "/fail" => Reply::status(500, "no"),
            "/old" => {
                Reply::raw("HTTP/1.1 302 Found\r\nLocation: /new\r\nSet-Cookie: id=1\r\nContent-Length: 0\r\n\r\n")
            }
            _ => Reply::ok("yes"),
        })
    };
    let sent = |args: &[&str]| {
        let (weir, server) = (Weir::new(), service());
        weir.write("buy.hurl", "GET {{base}}/fail\nHTTP 200\n\nGET {{base}}/old\n");
        play(&weir, &server, &[&["-n", "2", "-c", "1"], args].concat());
        server.seen().iter().map(|seen| (path(seen), seen.header("cookie").map(str::to_owned))).collect::<Vec<_>>()
    };
    let (fail, old, new) = ("/fail".to_owned(), "/old".to_owned(), "/new".to_owned());
    let cookie = Some("id=1".to_owned());
    assert_eq!(sent(&[]), [(fail.clone(), None), (fail.clone(), None)]);
    let two = [(fail.clone(), None), (old.clone(), None), (fail.clone(), None), (old.clone(), None)];
    assert_eq!(sent(&["--continue-on-error"]), two);
    assert_eq!(sent(&["--continue-on-error", "--max-redirects", "0"]), two);
    let kept =
        [(fail.clone(), None), (old.clone(), None), (fail.clone(), cookie.clone()), (old.clone(), cookie.clone())];
    assert_eq!(sent(&["--continue-on-error", "--keep-cookies"]), kept);
    let one = [(fail, None), (old, None), (new, cookie)];
    assert_eq!(sent(&["--continue-on-error", "--max-redirects", "3"]), [one.clone(), one].concat());
}
