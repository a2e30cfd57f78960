//! `weir run`: a scenario once, shown to a person or a program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::{Reply, Server, Weir};

const SHOP: &str = "# @name login\nPOST {{host}}/login\nAuthorization: Bearer top-secret\n{\"user\": \"ada\"}\nHTTP 200\n\
    [Captures]\ntoken: jsonpath \"$.token\"\n\n# @name items\nGET {{host}}/items\nX-Token: {{token}}\nHTTP 200\n\
    [Asserts]\njsonpath \"$.count\" == 2\n";

/// A service with a login and a list of two items; the cookie is a secret.
fn shop() -> Server {
    Server::start(|seen| match seen.line().split(' ').nth(1) {
        Some("/login") => {
            let body = "{\"token\": \"t-1\"}";
            let head = format!("HTTP/1.1 200 OK\r\nSet-Cookie: sid=s-1\r\nContent-Length: {}\r\n\r\n", body.len());
            Reply::raw(head + body)
        }
        _ => Reply::ok("{\"count\": 2}"),
    })
}

#[test]
fn each_request_and_response_is_printed_without_secrets() {
    let (weir, server) = (Weir::new(), shop());
    weir.write("shop.hurl", SHOP);
    let host = format!("host={}", server.url(""));
    let output = weir.run(&["run", "shop.hurl", "--variable", &host]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    for line in [
        "> POST /login HTTP/1.1",
        "> Authorization: ***",
        "{\"user\": \"ada\"}",
        "< HTTP/1.1 200 OK",
        "< Set-Cookie: ***",
        "  token = ***",
        "> X-Token: ***",
        "> Cookie: ***",
        "  ✓ status == 200",
        "  ✓ jsonpath \"$.count\" == 2",
        "passed: 2 steps, 2 requests, 3 checks",
    ] {
        assert!(output.stdout.lines().any(|printed| printed == line), "{line}: {}", output.stdout);
    }
    assert!(!output.stdout.contains("top-secret") && !output.stdout.contains('\u{1b}'), "{}", output.stdout);
    let shown = weir.run(&["run", "shop.hurl", "--variable", &host, "--show-secrets"]);
    assert!(shown.stdout.contains("> Authorization: Bearer top-secret") && shown.stdout.contains("sid=s-1"));
}

#[test]
fn secrets_and_redacted_captures_are_left_out_everywhere() {
    let (weir, server) = (Weir::new(), shop());
    weir.write("shop.hurl", SHOP.replace("\"$.token\"", "\"$.token\" redact").replace("ada", "{{user}}"));
    let host = format!("host={}", server.url(""));
    for format in ["text", "json"] {
        let args = ["run", "shop.hurl", "--variable", &host, "--secret", "user=grace", "--format", format];
        let output = weir.run(&args);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(!output.stdout.contains("grace") && !output.stdout.contains("X-Token: t-1"), "{}", output.stdout);
        assert!(output.stdout.contains("***"));
    }
    assert!(String::from_utf8_lossy(&server.seen()[0].body).contains("grace"), "the service gets it");
}

#[test]
fn a_failed_check_is_shown_with_what_was_found_and_ends_with_1() {
    let (weir, server) = (Weir::new(), shop());
    weir.write("shop.hurl", SHOP.replace("== 2", "== 3"));
    weir.write("vars.txt", format!("# variables\nhost={}\n", server.url("")));
    let output = weir.run(&["run", "shop.hurl", "--variables-file", "vars.txt"]);
    assert_eq!(output.code, 1);
    let failure = "  ✗ jsonpath \"$.count\" == 3\n      expected  == 3\n      found     2\n";
    assert!(output.stdout.contains(failure), "{}", output.stdout);
    assert!(output.stdout.ends_with("failed: 2 steps (1 failed), 2 requests, 3 checks (1 failed)\n"));
    let host = format!("host={}", server.url(""));
    let once = weir.run(&["load", "-s", "shop.hurl", "--once", "--variable", &host]);
    assert_eq!(once.code, 1);
    assert!(once.stdout.contains(failure) && !once.stdout.contains("> Accept: */*\n{"), "{}", once.stdout);
}

#[test]
fn a_script_plays_once_with_the_flags_of_its_load() {
    let (weir, server) = (Weir::new(), shop());
    let javascript = "import http from 'k6/http';\nexport default () => { http.get(`${__ENV.HOST}/items?of=js`); };\n";
    weir.write("users.js", javascript);
    weir.write("users.lua", "wrk.path = '/items?of=lua'\n");
    let host = format!("HOST={}", server.url(""));
    for (args, path) in [
        (["-s", "users.js", "-c", "8", "-d", "1m", "-e", &host].as_slice(), "/items?of=js"),
        (&["-s", "users.lua", "--stages", "0-5u/1m", &server.url("/")], "/items?of=lua"),
    ] {
        let output = weir.run(&[&["load", "--once", "-v"], args].concat());
        assert!(output.stdout.contains(path), "{output:?}");
        assert_eq!(server.seen().iter().filter(|request| request.line().contains(path)).count(), 1, "{output:?}");
    }
    for (script, args, line) in [
        ("users.lua", &["-e", "A=1"][..], "--env needs a k6 script; name one with -s FILE.js"),
        ("users.lua", &["--on", "local"], "--on cannot be used with --once; leave out one of them"),
        ("users.js", &["--summary-export", "s"], "--summary-export cannot be used with --once; leave out one of them"),
        ("users.js", &["--format", "k6"], "--format k6 cannot be used with --once; leave out one of them"),
    ] {
        let wrong = weir.run(&[&["load", "-s", script, &server.url("/"), "--once"], args].concat());
        assert_eq!((wrong.code, wrong.one_line()), (2, line));
    }
}

#[test]
fn what_one_iteration_has_no_use_for_is_said_and_not_begun() {
    let (weir, server) = (Weir::new(), shop());
    weir.write("users.js", "import http from 'k6/http';\nexport default () => { http.get(__ENV.URL); };\n");
    weir.write("steps.hurl", "GET {{URL}}\nHTTP 200\n");
    let url = format!("URL={}", server.url("/items"));
    for (script, flag) in [("users.js", "-e"), ("steps.hurl", "--variable")] {
        let of_a_load = ["--slo", "p99<1us", "--html", "run.html", "--web=127.0.0.1:1", "--out", "run.json"];
        let once = weir.run(&[&["load", "-s", script, flag, &url, "--once", "--seed", "7"], &of_a_load[..]].concat());
        let line = "weir: --once plays one iteration; not used: --web, --slo, --out, --html";
        assert_eq!((once.code, once.stderr.trim_end()), (0, line));
        assert!(!weir.path("run.html").exists() && !weir.path("run.json").exists());
        let on = weir.run(&["load", "-s", script, "--once", "--on", "local"]);
        assert_eq!((on.code, on.one_line()), (2, "--on cannot be used with --once; leave out one of them"));
    }
}

#[test]
fn json_is_one_object_with_all_of_it() {
    let (weir, server) = (Weir::new(), shop());
    weir.write("shop.hurl", SHOP.replace("{{host}}", ""));
    let output = weir.run(&["run", "shop.hurl", &server.url(""), "--json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((report["ok"].as_bool(), report["schema"].as_u64()), (Some(true), Some(1)));
    let login = &report["steps"][0];
    assert_eq!((login["name"].as_str(), login["verdict"].as_str()), (Some("login"), Some("passed")));
    let request = &login["requests"][0];
    assert_eq!((request["method"].as_str(), request["body"].as_str()), (Some("POST"), Some("{\"user\": \"ada\"}")));
    assert_eq!(request["url"], server.url("/login"));
    assert_eq!(request["response"]["status"], 200);
    assert_eq!(login["captures"][0], serde_json::json!({ "name": "token", "value": "***" }));
    assert_eq!(report["totals"]["passed_checks"], 3);
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/play.schema.json")).unwrap();
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&report).map(|error| error.to_string()).collect();
    assert_eq!(errors, [] as [String; 0]);
}

#[test]
fn a_service_that_is_not_there_is_one_line_and_2() {
    let weir = Weir::new();
    weir.write("shop.hurl", SHOP);
    let output = weir.run(&["run", "shop.hurl", "--variable", "host=http://127.0.0.1:1"]);
    assert_eq!(output.code, 2, "{}", output.stdout);
    assert!(output.one_line().contains("cannot connect to 127.0.0.1:1"), "{}", output.stderr);
    let url = weir.run(&["run", "http://127.0.0.1:1/"]);
    assert_eq!(url.code, 2);
    assert!(url.one_line().contains("is a URL and not a scenario"), "{}", url.stderr);
}

/// Files with a mistake each, the place of the first one, and a part of what is said about it.
const MISTAKES: [(&str, &str, &str); 16] = [
    ("GTE\n", "1:4", "expected a space"),
    ("GET http://h\nHTTP 20x\n", "2:8", "the end of the line"),
    ("GET http://h\n[Querry]\na: b\n", "2:2", "Query"),
    ("GET http://h\nHTTP 200\n[Asserts]\njsonpth \"$\" exists\n", "4:1", "did you mean 'jsonpath'?"),
    ("GET http://h\nHTTP 200\n[Asserts]\nstatus = 200\n", "4:8", "=="),
    ("GET http://h\nHTTP 200\n[Asserts]\njsonpath \"$[\" exists\n", "4:11", "JSONPath"),
    ("GET http://h\nHTTP 200\n[Asserts]\nbody matches \"(\"\n", "4:15", "regular expression"),
    ("GET http://h\nHTTP 200\n[Asserts]\nxpath \"//[\" exists\n", "4:8", "XPath"),
    ("GET http://h/{{missing}}\n", "1:16", "missing"),
    ("GET http://h/{{open\n", "1:", "}}"),
    ("GET shop\n", "1:5", "http://"),
    ("POST http://h\n{\"a\": }\n", "2:7", "value"),
    ("POST http://h\nfile,none.txt;\n", "2:", "none.txt"),
    ("GET http://h\n[Options]\nretri: 3\n", "3:1", "did you mean 'retry'?"),
    ("GET http://h\n[Options]\ndelay: soon\n", "3:8", "soon"),
    ("GET http://h\n[Options]\nntlm: true\n", "3:1", "ntlm"),
];

#[test]
fn mistakes_of_a_file_are_shown_with_their_lines_before_anything_is_sent() {
    for (text, place, part) in MISTAKES {
        let weir = Weir::new();
        weir.write("shop.hurl", text);
        let output = weir.run(&["run", "shop.hurl"]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{text}");
        let first = output.stderr.lines().next().unwrap_or_default();
        assert!(first.starts_with(&format!("weir: shop.hurl:{place}")), "{text}: {}", output.stderr);
        assert!(output.stderr.contains(part), "{text}: {}", output.stderr);
        let mut lines = output.stderr.lines().skip(1);
        assert!(lines.next().is_some_and(|line| line.contains(" | ")), "{text}: {}", output.stderr);
        assert!(lines.next().is_some_and(|line| line.trim_end().ends_with('^')), "{text}: {}", output.stderr);
    }
}

#[test]
fn all_mistakes_of_a_file_are_shown_at_once() {
    let weir = Weir::new();
    weir.write(
        "shop.hurl",
        "GET http://h\nHTTP 200\n[Asserts]\njsonpth \"$\" exists\nstatus = 200\nheadr \"a\" exists\n",
    );
    let output = weir.run(&["load", "-s", "shop.hurl"]);
    let places = ["shop.hurl:4:1:", "shop.hurl:5:8:", "shop.hurl:6:1:"];
    assert!(places.iter().all(|place| output.stderr.contains(place)), "{}", output.stderr);
    assert_eq!((output.code, output.stderr.lines().count()), (2, 9), "{}", output.stderr);
}

#[test]
fn a_status_of_failure_has_one_verdict_in_all_outputs() {
    let (weir, server) = (Weir::new(), Server::start(|_| Reply::status(500, "no")));
    weir.write("one.hurl", format!("GET {}\n", server.url("/")));
    let output = weir.run(&["run", "one.hurl"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stdout.contains("✗ status 500"), "{}", output.stdout);
    assert!(output.stdout.contains("failed: 1 step (1 failed), 1 request, 0 checks"), "{}", output.stdout);
    let output = weir.run(&["run", "one.hurl", "--json"]);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, &json["ok"], &json["steps"][0]["verdict"]), (1, &false.into(), &"failed".into()));
    let run = weir.run(&["load", "-s", "one.hurl", "-n", "3", "--format", "json"]).json();
    assert_eq!((run.requests.failed, run.failures_of("5xx")), (3, 3));
    let iterations = run.iterations.unwrap();
    assert_eq!((iterations.ok, iterations.failed), (0, 3));
}

#[test]
fn a_step_goes_on_after_a_status_of_failure_and_the_iteration_has_failed() {
    let server =
        Server::start(|seen| if seen.line().contains("/bad") { Reply::status(404, "") } else { Reply::ok("") });
    let weir = Weir::new();
    weir.write("two.hurl", format!("GET {}\n\nGET {}\n", server.url("/bad"), server.url("/good")));
    let output = weir.run(&["run", "two.hurl"]);
    assert_eq!((output.code, server.seen().len()), (1, 2), "{output:?}");
    assert!(output.stdout.contains("failed: 2 steps (1 failed)"), "{}", output.stdout);
}

#[test]
fn a_status_that_a_step_expects_is_a_success_in_all_outputs() {
    let (weir, server) = (Weir::new(), Server::start(|_| Reply::status(404, "")));
    weir.write("one.hurl", format!("GET {}\nHTTP 404\n", server.url("/")));
    assert_eq!(weir.run(&["run", "one.hurl"]).code, 0);
    let run = weir.run(&["load", "-s", "one.hurl", "-n", "3", "--format", "json"]).json();
    assert_eq!((run.requests.ok, run.accepted.get("404"), run.failures.len()), (3, Some(&3), 0));
    let output = weir.run(&["load", "-s", "one.hurl", "-n", "3", "--html", "page.html"]);
    assert!(output.stdout.lines().any(|line| line.contains("404") && line.ends_with("accepted")), "{}", output.stdout);
    assert!(weir.read("page.html").contains("accepted"));
}
