//! Header fields that a gateway reads nowhere pass it as they do where it reads them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use rustix::process::Signal;
use weir_testing::{Raw, Reply, Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// Fields of a request, and whether they reach the upstream.
const REQUEST: [(&str, &str, bool); 22] = [
    ("User-Agent", "curl/8.0 (x; y)", true),
    ("ACCEPT", "text/html, */*;q=0.1", true),
    ("accept", "image/png", true),
    ("Accept-Encoding", "gzip", true),
    ("Cookie", "a=b; c=\"d\"", true),
    ("Authorization", "Bearer a.b-c", true),
    ("X-Request-Id", "", true),
    ("x_request_id", "other", true),
    ("If-None-Match", "\"e: tag\"", true),
    ("Range", "bytes=0-1", true),
    ("X-Own", "\u{e9}", true),
    ("Content-Type", "text/plain", true),
    ("Referer", "http://a/?b=c", true),
    ("Origin", "null", true),
    ("Forwarded", "for=6.6.6.6", false),
    ("X-Real-IP", "6.6.6.6", false),
    ("x_forwarded_for", "6.6.6.6", false),
    ("X-Forwarded-Host", "evil", false),
    ("Upgrade-Insecure-Requests", "1", true),
    ("Expect", "", false),
    ("Keep-Alive", "timeout=5", false),
    ("Proxy-Connection", "keep-alive", false),
];

fn config(server: &Server, routes: &str) -> String {
    format!("[upstreams.backend]\nurls = [\"{}\"]\n{routes}", server.url(""))
}

fn gate(config: &str, args: &[&str]) -> Serving {
    let weir = Weir::new();
    weir.write("gate.toml", config);
    Serving::gate_in(weir, &[&["--config", "gate.toml"], args].concat())
}

/// A route for all, and one that reads these fields and matches nothing.
fn reading(names: &[String]) -> String {
    let conditions: Vec<String> = names.iter().map(|name| format!("\"{name}\" = \"no such value\"")).collect();
    let conditions = conditions.join(", ");
    format!(
        "[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n\
         [[routes]]\nmatch = {{ path = \"/{{*rest}}\", headers = {{ {conditions} }} }}\n"
    )
}

fn request(connection: &str) -> String {
    let fields: String = REQUEST.iter().map(|(name, value, _)| format!("{name}: {value}\r\n")).collect();
    format!("GET /a HTTP/1.1\r\nHost: api.example\r\n{fields}{connection}\r\n")
}

/// Fields of the last request in lower case, sorted.
fn received(server: &Server) -> Vec<String> {
    let seen = server.seen().pop().unwrap();
    let mut lines: Vec<String> = seen.head.lines().skip(1).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_request_is_the_same_whether_its_fields_are_read_or_not() {
    let server = Server::hello();
    let mut all: Vec<String> = REQUEST.iter().map(|(name, ..)| name.to_ascii_lowercase()).collect();
    all.sort();
    all.dedup();
    let unread = gate(&config(&server, "[[routes]]\nmatch = { path = \"/{*rest}\" }\n"), &[]);
    let read = gate(&config(&server, &reading(&all)), &[]);
    for connection in ["", "Connection: keep-alive\r\n", "Connection: x-own, close\r\n"] {
        let found = [&unread, &read].map(|gate| {
            let mut client = gate.connect();
            client.send(request(connection));
            assert_eq!(client.answer().status, 200);
            received(&server)
        });
        assert_eq!(found[0], found[1], "{connection:?}");
        for (name, value, passes) in REQUEST {
            let line = format!("{}: {value}", name.to_ascii_lowercase());
            let removed = name == "X-Own" && connection.contains("x-own");
            assert_eq!(found[0].contains(&line), passes && !removed, "{line}");
        }
        for own in [
            "host: api.example",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-proto: http",
            "x-forwarded-host: api.example",
        ] {
            let name = own.split(':').next().unwrap();
            assert_eq!(found[0].iter().filter(|line| line.starts_with(name)).collect::<Vec<_>>(), [own]);
        }
    }
    unread.stop();
    read.stop();
}

#[test]
fn a_field_that_the_configuration_names_is_read() {
    let server = Server::hello();
    let routes = r#"
        [[routes]]
        match = { path = "/{*rest}" }
        rewrite = { set = { "x-forwarded-host" = "set", "user-agent" = "weir" }, remove = ["referer"], add = { accept = "c" } }
        [[routes]]
        match = { path = "/{*rest}", headers = { "x-api-key" = "denied" } }
        respond = { status = 403 }
        [[routes]]
        match = { path = "/{*rest}", cookies = { "role" = "admin" } }
        respond = { status = 404 }
        "#;
    let gate =
        gate(&config(&server, routes), &["--access-log", "gate.log", "--access-log-format", "$status $http_origin"]);
    let mut client = gate.connect();
    for (fields, expected) in [
        ("X-API-Key: denied\r\n", 403),
        ("Cookie: role=admin\r\n", 404),
        ("User-Agent: a\r\nuser_agent: b\r\nReferer: c\r\nAccept: d\r\nX-Forwarded-Host: e\r\nOrigin: here\r\n", 200),
    ] {
        client.send(format!("GET / HTTP/1.1\r\nHost: t\r\n{fields}\r\n"));
        assert_eq!(client.answer().status, expected, "{fields}");
    }
    let lines = received(&server);
    assert_eq!(
        lines,
        [
            "accept: c",
            "accept: d",
            "host: t",
            "origin: here",
            "user-agent: weir",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: set",
            "x-forwarded-proto: http",
        ]
    );
    let log = gate.weir.path("gate.log");
    until("the lines", PATIENCE, || std::fs::read_to_string(&log).is_ok_and(|text| text.lines().count() == 3));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "403 -\n404 -\n200 here\n");
    gate.stop();
}

#[test]
fn a_reload_reads_what_was_not_read_before() {
    let server = Server::hello();
    let plain = "[[routes]]\nmatch = { path = \"/{*rest}\" }\n";
    let gate = gate(&config(&server, plain), &[]);
    let mut client = gate.connect();
    let ask = |client: &mut Raw| {
        client.send("GET / HTTP/1.1\r\nHost: t\r\nAuthorization: secret\r\n\r\n");
        client.answer().status
    };
    assert_eq!(ask(&mut client), 200);
    let denied =
        "[[routes]]\nmatch = { path = \"/{*rest}\", headers = { authorization = true } }\nrespond = { status = 401 }\n";
    gate.weir.write("gate.toml", config(&server, &format!("{plain}{denied}")));
    gate.signal(Signal::HUP);
    until("the new route", PATIENCE, || ask(&mut client) == 401);
    gate.stop();
}

#[test]
fn limits_of_a_head_count_all_of_its_fields() {
    let server = Server::hello();
    let gate = gate(
        &config(&server, "[[routes]]\nmatch = { path = \"/{*rest}\" }\nmax_headers = 4\nmax_head = \"200B\"\n"),
        &[],
    );
    let mut client = gate.connect();
    let long = format!("Accept: {}\r\n", "x".repeat(180));
    for (fields, expected) in [
        ("Accept: a\r\nAccept: b\r\nOrigin: c\r\n", 200),
        ("Accept: a\r\nAccept: b\r\nOrigin: c\r\nRange: d\r\n", 431),
        (long.as_str(), 431),
    ] {
        client.send(format!("GET / HTTP/1.1\r\nHost: t\r\n{fields}\r\n"));
        assert_eq!(client.answer().status, expected, "{fields}");
    }
    gate.stop();
}

/// Responses, and the fields of each that its caller gets, but for the date.
const RESPONSES: [(&str, &[&str]); 9] = [
    (
        "HTTP/1.1 200 OK\r\nServer: x\r\nDate: then\r\nSet-Cookie: a\r\nETag: \"1\"\r\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok",
        &["content-length: 2", "date: then", "etag: \"1\"", "server: x", "set-cookie: a", "set-cookie: b"],
    ),
    (
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nX-Removed: 1\r\nContent-Length: 2\r\n\r\nok",
        &["content-length: 2"],
    ),
    (
        "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Stays: 1\r\nContent-Length: 2\r\n\r\nok",
        &["content-length: 2", "x-stays: 1"],
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVary: a\r\nX-Set: theirs\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        &["content-length: 2", "vary: a"],
    ),
    ("HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length: 2\r\n\r\nok", &["content-length: 2", "x-folded: a b"]),
    (
        "HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 2, 2\r\n\r\nok",
        &["content-length: 2"],
    ),
    ("HTTP/1.1 404 Not Found\r\nX-Why: x\r\nContent-Length: 0\r\n\r\n", &["content-length: 0", "x-why: x"]),
    (
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nX-Why: x\r\nContent-Length: 0\r\n\r\n",
        &["content-length: 0", "retry-after: 1", "x-why: x"],
    ),
    ("HTTP/1.1 204 No Content\r\nX-Why: x\r\nContent-Length: 0\r\n\r\n", &["x-why: x"]),
];

#[test]
fn a_response_has_the_fields_of_the_upstream_and_those_of_the_route() {
    let server = Server::start(|seen| {
        let number = seen.line().split(['/', ' ']).nth(2).and_then(|number| number.parse::<usize>().ok()).unwrap();
        Reply::raw(RESPONSES[number].0)
    });
    let rewrite = "rewrite = { response_remove = [\"x-removed\"], response_set = { x-set = \"ours\" }, response_add = { vary = \"own\" } }";
    let plain = gate(&config(&server, "[[routes]]\nmatch = { path = \"/{*rest}\" }\n"), &[]);
    let rewriting =
        gate(&config(&server, &format!("[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n{rewrite}\n")), &[]);
    for (number, (text, expected)) in RESPONSES.iter().enumerate() {
        for (gate, is_rewriting) in [(&plain, false), (&rewriting, true)] {
            let mut client = gate.connect();
            let answer = client.get(&format!("/{number}"));
            let has_date = answer.headers.iter().filter(|(name, _)| name == "date").count();
            assert_eq!(has_date, 1, "{text}");
            let mut found: Vec<String> =
                answer.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            found.retain(|line| !line.starts_with("date:") || line == "date: then");
            let mut wanted: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
            if is_rewriting {
                wanted.extend(["x-set: ours".to_owned(), "vary: own".to_owned()]);
            } else {
                let own = [("X-Removed: 1", "x-removed: 1"), ("X-Set: theirs", "x-set: theirs")];
                wanted.extend(own.iter().filter(|(sent, _)| text.contains(sent)).map(|(_, line)| (*line).to_owned()));
            }
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "{text}");
            assert_eq!(client.get("/6").status, 404, "the connection goes on after {text}");
        }
    }
    plain.stop();
    rewriting.stop();
}
