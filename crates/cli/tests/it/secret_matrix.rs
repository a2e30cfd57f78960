//! Secrets in all places of a load, and all that a load writes: none is in any of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use weir_testing::{Reply, Server, Weir};

/// Secrets, by the place that has them.
const MARKERS: [&str; 20] = [
    "mk-query-token-01",
    "mk-query-key-02",
    "mk-userinfo-03",
    "mk-auth-header-04",
    "mk-cookie-header-05",
    "mk-api-key-header-06",
    "mk-variable-tok-07",
    "mk-variables-file-08",
    "mk-json-field-09",
    "mk-form-field-10",
    "mk-response-header-11",
    "mk-set-cookie-12",
    "mk-response-json-13",
    "mk-capture-14",
    "mk-redacted-header-15",
    "mk-location-16",
    "mk-redacted-param-17",
    "mk-echo-18",
    "mk-nested-json-19",
    "mk-output-header-20",
];

const SCENARIO: &str = r#"POST {{host}}/login?token=mk-query-token-01&api_key=mk-query-key-02&tenant=mk-redacted-param-17
Authorization: Bearer mk-auth-header-04
X-Api-Key: mk-api-key-header-06
X-Tenant: mk-redacted-header-15
{"user": "ada", "password": "mk-json-field-09", "inner": {"auth_token": "mk-nested-json-19"}, "otp": "{{tok}}"}
HTTP 200
[Captures]
session_token: jsonpath "$.session_token"

POST {{host}}/form
Cookie: sid=mk-cookie-header-05
X-Auth-Token: {{session_token}}
[Form]
user: ada
password: mk-form-field-10
client_secret: {{client_secret}}
HTTP 200
[Asserts]
header "X-Auth-Token" == "none"
jsonpath "$.token" == "none"
jsonpath "$.echo" == "none"
"#;

/// Service that has secrets of its own, and sends those of the request back under other names.
fn talkative() -> Server {
    Server::start(|seen| {
        let text = format!("{}\r\n{}", seen.head, String::from_utf8_lossy(&seen.body));
        let said: Vec<&str> = MARKERS.into_iter().filter(|marker| text.contains(marker)).collect();
        let body = format!(
            "{{\"token\": \"mk-response-json-13\", \"session_token\": \"mk-capture-14\", \"echo\": \"{} mk-location-16\"}}",
            said.join(" ")
        );
        Reply::raw(format!(
            "HTTP/1.1 200 OK\r\nX-Auth-Token: mk-response-header-11\r\nSet-Cookie: id=mk-set-cookie-12; Path=/\r\n\
             Location: /next?a={}&access_token=mk-location-16\r\nContent-Length: {}\r\n\r\n{body}",
            said.join(","),
            body.len()
        ))
    })
}

/// What a collector of metrics was sent.
fn collector() -> Server {
    Server::start(|_| Reply::ok("{}"))
}

fn assert_clean(place: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found: Vec<&str> = MARKERS.into_iter().filter(|marker| text.contains(marker)).collect();
    assert!(found.is_empty(), "{place}: {found:?}\n{text}");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn no_secret_is_in_what_a_load_writes() {
    let (server, influx, otlp) = (talkative(), collector(), collector());
    let folder = Weir::new();
    folder.write("shop.hurl", SCENARIO);
    folder.write("values.env", "client_secret=mk-variables-file-08\n");
    let host = format!("host=http://bob:mk-userinfo-03@{}", server.url("").trim_start_matches("http://"));
    let (influx_url, otlp_url) = (influx.url("/write?db=load&p=mk-echo-18"), otlp.url("/v1/metrics"));
    let given = [
        "--variable",
        &host,
        "--variable=tok=mk-variable-tok-07",
        "--variables-file=values.env",
        "-HProxy-Authorization: mk-auth-header-04",
        "--redact",
        "X-Tenant",
        "--redact=tenant",
    ];
    let outputs = [
        "--out=run.json",
        "--html=run.html",
        "--jtl=run.jtl",
        "--junit=run.xml",
        "--summary-md=run.md",
        "--csv=run.csv",
        "--csv-steps=steps.csv",
        "--out-jsonl=run.jsonl",
        "--save=runs.db",
        "--out-influx",
        &influx_url,
        "--out-otlp",
        &otlp_url,
    ];
    let load = ["load", "-s", "shop.hurl", "-n", "20", "-c", "1"];
    let done = folder.run(&[&load[..], &given, &outputs].concat());
    assert_clean("stdout", done.stdout.as_bytes());
    assert_clean("stderr", done.stderr.as_bytes());
    assert!(done.stdout.contains("***"), "{}", done.stdout);
    for name in ["run.json", "run.html", "run.jtl", "run.xml", "run.md", "run.csv", "steps.csv", "run.jsonl"] {
        let bytes = fs::read(folder.path(name)).unwrap_or_else(|error| panic!("{name}: {error}\n{}", done.stderr));
        assert!(!bytes.is_empty(), "{name}");
        assert_clean(name, &bytes);
    }
    for (name, receiver) in [("influx", &influx), ("otlp", &otlp)] {
        let bodies: Vec<u8> = receiver.seen().iter().flat_map(|request| request.body.clone()).collect();
        assert!(!bodies.is_empty(), "{name}");
        assert_clean(name, &bodies);
    }
    for name in ["run.json", "run.jtl", "run.csv", "run.jsonl", "runs.db"] {
        assert_eq!(mode(&folder.path(name)), 0o600, "{name}");
    }
    for format in ["text", "json", "ab", "wrk", "jmeter"] {
        assert_clean(format, folder.run(&["report", "run.json", "--format", format]).stdout.as_bytes());
    }
    assert_clean("history", folder.run(&["history", "show", "last", "--store", "runs.db"]).stdout.as_bytes());
    for args in [["--once", "-v"], ["--once", "--format=json"]] {
        let once = folder.run(&[&load[..3], &given, &args].concat());
        assert!(once.stdout.contains("***"), "{}{}", once.stdout, once.stderr);
        assert_clean("once", (once.stdout + &once.stderr).as_bytes());
    }
    for args in [&["-v"][..], &["--json"]] {
        let run = folder.run(&[&["run", "shop.hurl"][..], &given, args].concat());
        assert!(run.stdout.contains("***"), "{}{}", run.stdout, run.stderr);
        assert_clean("run", (run.stdout + &run.stderr).as_bytes());
    }
    let shown = folder.run(&[&["run", "shop.hurl", "-v", "--show-secrets"][..], &given].concat()).stdout;
    let hidden: Vec<&str> = MARKERS[..17].iter().filter(|marker| !shown.contains(**marker)).copied().collect();
    // The password of the URL is sent in Base64.
    assert_eq!(hidden, ["mk-userinfo-03"], "{shown}");
}

#[test]
fn no_secret_of_a_single_request_is_in_what_a_load_writes() {
    let server = talkative();
    let folder = Weir::new();
    let at =
        server.url("/a?token=mk-query-token-01&x=1&tenant=mk-redacted-param-17").replace("://", "://u:mk-userinfo-03@");
    let given = [
        "load",
        &at,
        "-n=10",
        "-c=1",
        "--redact=tenant",
        "-amk-auth:mk-auth-header-04",
        "--header=X-Api-Key: mk-api-key-header-06",
        "-HCookie: sid=mk-cookie-header-05",
        "-b",
        r#"{"password": "mk-json-field-09"}"#,
        "--out=run.json",
        "--html=run.html",
        "--jtl=run.jtl",
        "--junit=run.xml",
        "--summary-md=run.md",
        "--save=runs.db",
    ];
    let done = folder.run(&given);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_clean("stdout", done.stdout.as_bytes());
    assert_clean("stderr", done.stderr.as_bytes());
    for name in ["run.json", "run.html", "run.jtl", "run.xml", "run.md"] {
        assert_clean(name, &fs::read(folder.path(name)).unwrap());
    }
    let saved = fs::read_to_string(folder.path("run.json")).unwrap();
    assert!(saved.contains("token=***&x=1&tenant=***") && saved.contains("--header=X-Api-Key: ***"), "{saved}");
    let search = ["capacity", &at, "--redact=tenant", "-HX-Api-Key: mk-api-key-header-06", "--slo=p99<30s"];
    let limits = ["--max-time=3s", "--out=found.json", "--html=found.html"];
    let done = folder.run(&[&search[..], &limits].concat());
    assert_clean("capacity", (done.stdout + &done.stderr).as_bytes());
    ["found.json", "found.html"].iter().for_each(|name| assert_clean(name, &fs::read(folder.path(name)).unwrap()));
    // Templates and checks make a scenario of it; bodies of several notations.
    for body in
        ["--body={\"password\": \"mk-json-field-09\"}", "-bpassword=mk-form-field-10&a=1", "-bkey=mk-form-field-10"]
    {
        folder.run(&[
            "load",
            &at,
            "-n=5",
            "-c=1",
            "--redact=tenant",
            body,
            "--check=status == 201",
            "--out=checked.json",
        ]);
        assert_clean(body, &fs::read(folder.path("checked.json")).unwrap());
    }
}

#[test]
fn errors_do_not_quote_what_may_be_a_password() {
    let folder = Weir::new();
    folder.write("m.env", "mk-variables-file-08\n");
    folder.write("x.hurl", "GET http://bob:mk-userinfo-03@h:x/\n");
    folder.write("gate.toml", "[[listener]]\nlisten = \"127.0.0.1:0\"\n[[upstream]]\nname = \"a\"\nurls = [\"http://bob:mk-userinfo-03@h:x/\"]\n[[route]]\nmatch = \"/*\"\nupstream = \"a\"\n");
    let url = "http://127.0.0.1:1/";
    for args in [
        &["load", "http://bob:mk-userinfo-03@h:x/"][..],
        &["load", "http://b%zz:mk-userinfo-03@h:x/"],
        &["load", "http://bob:mk-userinfo-03/x@h/"],
        &["load", "http:bob:mk-userinfo-03@h/"],
        &["run", "x.hurl", "http://bob:mk-userinfo-03@h:x/"],
        &["load", "http://bob:mk/userinfo-03@h/", "--once"],
        &["load", "bob:mk-userinfo-03@h:x"],
        &["load", "ftp://bob:mk-userinfo-03@h/"],
        &["load", "http://h:x/?token=mk-query-token-01"],
        &["load", url, "-H", "Authorization mk-auth-header-04"],
        &["load", url, "-HAuthorization mk-auth-header-04"],
        &["load", url, "-H", "Authorization: mk-auth-header-04\nX"],
        &["load", url, "-H", "X-Api-Key : mk-api-key-header-06"],
        &["load", url, "-H", "Authorization mk-auth-header-04", "--check", "status == 200"],
        &["load", url, "-H", "Authorization: {{mk-auth-header-04"],
        &["load", url, "--variable", "mk-variable-tok-07"],
        &["load", url, "--variables-file", "m.env"],
        &["load", url, "--out-header", "Authorization mk-output-header-20"],
        &["load", url, "--out-influx", "http://bob:mk-userinfo-03@h:x/"],
        &["load", url, "--out-otlp", "bob:mk-userinfo-03@h:x"],
        &["load", url, "--out-prometheus", "http://bob:mk-userinfo-03@h:x/"],
        &["load", url, "--connect-to", "bob:mk-userinfo-03@h"],
        &["run", "x.hurl", "--secret", "mk-variable-tok-07"],
        &["run", "x.hurl", "--variable", "mk-variable-tok-07"],
        &["run", "x.hurl"],
        &["load", "-s", "x.hurl"],
        &["send", "jobs.jsonl", "--url", "http://bob:mk-userinfo-03@h:x/"],
        &["send", "--store", "redis://bob:mk-userinfo-03@h:x/0?nonsense=1", "jobs.jsonl"],
        &["gate", "--config", "gate.toml"],
        &["gate", "--listen", "127.0.0.1:0", "--upstream", "http://bob:mk-userinfo-03@h:x/"],
        &["record", "http://bob:mk-userinfo-03@h:x/"],
        &["replay", "x.log", "--target", "http://bob:mk-userinfo-03@h:x/"],
        &["llm", "http://bob:mk-userinfo-03@h:x/", "--model", "m"],
        &["capacity", "http://bob:mk-userinfo-03@h:x/", "--slo", "p99<1s"],
    ] {
        let done = folder.run(args);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(done.code, 2, "{args:?}: {said}");
        assert!(!said.contains("mk-") && !said.contains("userinfo-03"), "{args:?}: {said}");
    }
}

#[test]
fn characters_that_steer_a_terminal_are_not_printed() {
    let server = Server::start(|_| {
        let body = "{\"a\": \"x\u{202e}y\u{2066}z\", \"b\": \"q\"}";
        Reply::raw(format!(
            "HTTP/1.1 200 OK\r\nX-C1: a\u{9b}2Jb\r\nX-Bidi: a\u{202e}b\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    });
    let folder = Weir::new();
    folder.write("c.hurl", "GET {{host}}/\nHTTP 200\n[Captures]\nc: jsonpath \"$.a\"\nd: header \"X-C1\"\n[Asserts]\njsonpath \"$.a\" == \"n\"\nheader \"X-C1\" == \"n\"\n");
    let host = format!("host={}", server.url(""));
    for args in [
        &["run", "c.hurl", "--variable", &host, "-v"][..],
        &["run", "c.hurl", "--variable", &host, "--json"],
        &["load", "-s", "c.hurl", "--variable", &host, "--once", "-v"],
        &["load", "-s", "c.hurl", "--variable", &host, "-n", "2", "-c", "1"],
    ] {
        let done = folder.run(args);
        let said = format!("{}{}", done.stdout, done.stderr);
        let steers =
            |c: &char| c.is_control() && *c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(said.contains("2Jb") || said.contains("X-C1"), "{args:?}: {said}");
        assert_eq!(said.chars().find(steers), None, "{args:?}: {said:?}");
    }
}
