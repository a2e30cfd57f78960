//! Routes of `weir gate`: which requests go where, what is changed, and what is answered without an upstream.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the callers' clock is not the gate's")]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use weir_testing::{Answer, Reply, Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway with this configuration.
fn gate(config: &str) -> Serving {
    let weir = Weir::new();
    weir.write("gate.toml", config);
    Serving::gate_in(weir, &["--config", "gate.toml"])
}

/// Upstreams by name.
fn upstreams(all: &[(&str, &Server)]) -> String {
    all.iter().map(|(name, server)| format!("upstreams.{name}.urls = [\"{}\"]\n", server.url(""))).collect()
}

/// A request with this head, on a connection of its own.
fn ask(gate: &Serving, line: &str, headers: &[&str]) -> Answer {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let mut connection = gate.connect();
    connection.send(format!("{line} HTTP/1.1\r\n{headers}\r\n"));
    connection.answer()
}

/// A server that answers with its name.
fn named(name: &'static str) -> Server {
    Server::start(move |_| Reply::ok(name))
}

#[test]
fn the_most_specific_route_answers() {
    let (plain, beta, api, rpc) = (named("plain"), named("beta"), named("api"), named("rpc"));
    let config = upstreams(&[("plain", &plain), ("beta", &beta), ("api", &api), ("rpc", &rpc)])
        + r#"
        [[routes]]
        match = { path = "/{*rest}" }
        upstream = "plain"
        [[routes]]
        match = { path = "/{*rest}", headers = { x-beta = true }, cookies = { side = ["b", "c"] } }
        upstream = "beta"
        [[routes]]
        match = { path = "/v{version:[0-9]+}/{*rest}", host = ["api.example", "*.api.example"], query = { key = { regex = "[a-f]+" } } }
        upstream = "api"
        [[routes]]
        match = { grpc = "echo.Echo" }
        upstream = "rpc"
        "#;
    let gate = gate(&config);
    for (line, headers, expected) in [
        ("GET /x", &["Host: a"][..], "plain"),
        ("GET /x", &["Host: a", "X-Beta: 1"], "plain"),
        ("GET /x", &["Host: a", "X-Beta: 1", "Cookie: a=1; side=c"], "beta"),
        ("GET /v1/x?key=abc", &["Host: API.example:8080"], "api"),
        ("GET /v1/x?key=abc", &["Host: eu.api.example"], "api"),
        ("GET /v1/x?key=abcg", &["Host: api.example"], "plain"),
        ("GET /vx/x?key=abc", &["Host: api.example"], "plain"),
        ("POST /echo.Echo/Say", &["Host: a", "Content-Type: application/grpc+proto", "Content-Length: 0"], "rpc"),
        ("POST /echo.Echo/Say", &["Host: a", "Content-Type: text/plain", "Content-Length: 0"], "plain"),
    ] {
        let answer = ask(&gate, line, headers);
        assert_eq!((answer.status, answer.text()), (200, expected), "{line} {headers:?}");
    }
    let text = gate.get("/metrics").text().to_owned();
    for route in ["api.example,*.api.example /v{version:[0-9]+}/{*rest} ?key~[a-f]+", "/{*rest} x-beta cookie:side=b|c"]
    {
        assert!(text.contains(&format!("route=\"{route}\"")), "{route} in {text}");
    }
}

#[test]
fn headers_are_set_added_and_removed_both_ways() {
    let server = Server::start(|_| {
        Reply::raw("HTTP/1.1 200 OK\r\nServer: scripted\r\nX-A: 1\r\nX-B: 1\r\nContent-Length: 0\r\n\r\n")
    });
    let config = upstreams(&[("a", &server)])
        + r#"
        [[routes]]
        match = { path = "/{*rest}" }
        rewrite = { set = { x-set = "new" }, add = { x-add = "more" }, remove = ["x-gone"], response_set = { x-a = "2" }, response_add = { x-b = "2" }, response_remove = ["server"] }
        "#;
    let gate = gate(&config);
    let answer = ask(&gate, "GET /", &["Host: a", "X-Set: old", "X-Add: one", "X-Gone: 1"]);
    let seen = server.seen().remove(0);
    assert_eq!((seen.header("x-set"), seen.header("x-gone")), (Some("new"), None));
    let added: Vec<&str> = seen.head.lines().filter(|line| line.to_lowercase().starts_with("x-add:")).collect();
    assert_eq!(added.len(), 2, "{}", seen.head);
    let values = |name: &str| -> Vec<String> {
        answer.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
    };
    assert_eq!(
        (values("x-a"), values("x-b"), values("server")),
        (vec!["2".into()], vec!["1".into(), "2".into()], vec![])
    );
}

#[test]
fn redirects_and_fixed_responses_need_no_upstream() {
    let gate = gate(
        r#"
        [[routes]]
        match = { path = "/old/{*rest}" }
        redirect = { path = "/new/{rest}", status = 301 }
        [[routes]]
        match = { path = "/{*rest}", host = "www.example" }
        redirect = { scheme = "https", host = "example" }
        [[routes]]
        match = { path = "/robots.txt" }
        respond = { content_type = "text/plain", body = "none\n", headers = { cache-control = "no-store" } }
        [[routes]]
        match = { path = "/gone" }
        respond = { status = 410 }
        "#,
    );
    let answer = ask(&gate, "GET /old/a%2fb?c=d".replace("%2f", "/").as_str(), &["Host: a"]);
    assert_eq!((answer.status, answer.header("location")), (301, Some("/new/a/b?c=d")));
    let answer = ask(&gate, "POST /x?y", &["Host: www.example:8080", "Content-Length: 0"]);
    assert_eq!((answer.status, answer.header("location")), (307, Some("https://example/x?y")));
    let answer = ask(&gate, "GET //robots.txt", &["Host: a"]);
    assert_eq!((answer.status, answer.text(), answer.header("cache-control")), (200, "none\n", Some("no-store")));
    assert_eq!(ask(&gate, "GET /gone", &["Host: a"]).status, 410);
    assert_eq!(gate.metric("weir_gate_local_responses_total{route=\"/gone\"}"), 1.0);
    let answer = ask(&gate, "POST /gone", &["Host: a", "Content-Type: application/grpc", "Content-Length: 0"]);
    assert_eq!((answer.status, answer.header("grpc-status")), (200, Some("3")), "gRPC callers get gRPC's form");
}

#[test]
fn a_route_limits_heads_and_bodies() {
    let server = Server::start(|seen| Reply::ok(&seen.body.len().to_string()));
    let config = upstreams(&[("a", &server)])
        + r#"
        [[routes]]
        match = { path = "/small" }
        max_body = "100B"
        max_head = "300B"
        max_headers = 5
        policy = { buffer = "10B" }
        [[routes]]
        match = { path = "/{*rest}" }
        "#;
    let gate = gate(&config);
    let long = format!("X-Long: {}", "a".repeat(300));
    let many: Vec<String> = (0..6).map(|n| format!("X-{n}: 1")).chain(["Host: a".to_owned()]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (path, status) in [("/small", 431), ("/large", 200)] {
        assert_eq!(ask(&gate, &format!("GET {path}"), &["Host: a", &long]).status, status, "{path}");
        assert_eq!(ask(&gate, &format!("GET {path}"), &many).status, status, "{path}");
    }
    // Declared, streamed, and read into memory.
    let before = server.requests();
    let mut connection = gate.connect();
    connection.send("POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n");
    assert_eq!(connection.answer().status, 413, "before the body comes");
    assert_eq!(server.requests(), before);
    let chunked = |length: usize| {
        let mut connection = gate.connect();
        let body = "x".repeat(length);
        connection.send("POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let _ = connection.try_send(format!("{length:x}\r\n{body}\r\n0\r\n\r\n"));
        connection.answer().status
    };
    assert_eq!((chunked(100), chunked(101)), (200, 413));
    assert_eq!(gate.post("/small", "x".repeat(100)).text(), "100");
    assert_eq!(gate.post("/large", "x".repeat(1000)).text(), "1000");
}

#[test]
fn a_canary_has_its_share_and_callers_keep_their_side() {
    let (stable, canary) = (named("stable"), named("canary"));
    let config = |weight: u32| {
        upstreams(&[("stable", &stable), ("canary", &canary)])
            + &format!(
                r#"
                [[routes]]
                match = {{ path = "/random" }}
                upstream = [{{ name = "stable", weight = {rest} }}, {{ name = "canary", weight = {weight} }}]
                [[routes]]
                match = {{ path = "/user" }}
                upstream = [{{ name = "stable", weight = {rest} }}, {{ name = "canary", weight = {weight} }}]
                sticky = {{ header = "x-user" }}
                [[routes]]
                match = {{ path = "/cookie" }}
                upstream = [{{ name = "stable", weight = {rest} }}, {{ name = "canary", weight = {weight} }}]
                sticky = {{ cookie = "side", max_age = "1h" }}
                "#,
                rest = 100 - weight
            )
    };
    let gate = gate(&config(20));
    let mut connection = gate.connect();
    let on_canary = (0..500).filter(|_| connection.get("/random").text() == "canary").count();
    assert!((60..145).contains(&on_canary), "{on_canary} of 500");

    let mut sides = HashMap::new();
    for turn in 0..2 {
        for user in 0..40 {
            let answer = ask(&gate, "GET /user", &["Host: a", &format!("X-User: {user}")]);
            let side = answer.text().to_owned();
            if turn == 0 {
                sides.insert(user, side);
            } else {
                assert_eq!(sides[&user], side, "{user}");
            }
        }
    }

    let first = ask(&gate, "GET /cookie", &["Host: a"]);
    let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    for _ in 0..10 {
        let next = ask(&gate, "GET /cookie", &["Host: a", &format!("Cookie: {cookie}")]);
        assert_eq!((next.text(), next.header("set-cookie")), (first.text(), None));
    }
    // A forged cookie is a key like any other.
    for forged in ["side=canary", "side=\"; Path=/", "side=%00", "side=../../canary"] {
        let sides: Vec<String> = (0..3)
            .map(|_| ask(&gate, "GET /cookie", &["Host: a", &format!("Cookie: {forged}")]).text().to_owned())
            .collect();
        assert!(sides.iter().all(|side| *side == sides[0]), "{forged}: {sides:?}");
    }

    // The canary grows: those who were on it stay there.
    gate.weir.write("gate.toml", config(70));
    gate.signal(rustix::process::Signal::HUP);
    let grown = || (0..40).filter(|user| user_side(&gate, *user) == "canary").count() > 20;
    until("the larger canary", PATIENCE, grown);
    for (user, side) in &sides {
        assert!(side == "stable" || user_side(&gate, *user) == "canary", "{user}");
    }
    let sent =
        |upstream: &str| gate.metric(&format!("weir_gate_attempts_total{{upstream=\"{upstream}\",reason=\"first\"}}"));
    assert!(sent("stable") > 0.0 && sent("canary") > 0.0);
}

fn user_side(gate: &Serving, user: i32) -> String {
    ask(gate, "GET /user", &["Host: a", &format!("X-User: {user}")]).text().to_owned()
}

#[test]
fn copies_go_to_a_mirror_that_no_caller_notices() {
    let (real, shadow) = (named("real"), Server::start(|_| Reply::status(500, "shadow")));
    let config = upstreams(&[("real", &real), ("shadow", &shadow)])
        + r#"
        [[routes]]
        match = { path = "/{*rest}" }
        upstream = "real"
        mirror = { upstream = "shadow", max_body = "1KiB" }
        rewrite = { path = "/copied/{rest}" }
        "#;
    let gate = gate(&config);
    for n in 0..20 {
        assert_eq!(gate.post(&format!("/x{n}?a"), "body").text(), "real");
    }
    until("the copies", PATIENCE, || shadow.requests() == 20);
    let seen = shadow.seen().remove(0);
    assert_eq!((seen.line(), seen.body.as_slice()), ("POST /copied/x0?a HTTP/1.1", &b"body"[..]));
    assert_eq!(gate.post("/long", "x".repeat(2000)).text(), "real");
    let mirrored =
        |outcome: &str| gate.metric(&format!("weir_gate_mirrored_total{{route=\"/{{*rest}}\",outcome=\"{outcome}\"}}"));
    assert_eq!((mirrored("sent"), mirrored("skipped_body")), (20.0, 1.0));
    assert_eq!(real.requests(), 21);
}

#[test]
fn a_mirror_that_hangs_or_is_down_costs_callers_nothing() {
    let (real, hangs, down) = (named("real"), Server::start(|_| Reply::nothing()), named("down"));
    down.stop_listening();
    let config = upstreams(&[("real", &real), ("hangs", &hangs), ("down", &down)])
        + r#"
        [[routes]]
        match = { path = "/hangs" }
        upstream = "real"
        mirror = { upstream = "hangs", max_in_flight = 5, deadline = "1h" }
        [[routes]]
        match = { path = "/down" }
        upstream = "real"
        mirror = { upstream = "down" }
        [[routes]]
        match = { path = "/share" }
        upstream = "real"
        mirror = { upstream = "hangs", fraction = 0.1, deadline = "1ms", budget = "100% + 3/1h" }
        "#;
    let gate = gate(&config);
    for path in ["/hangs", "/down", "/share"] {
        let mut connection = gate.connect();
        let begun = Instant::now();
        for _ in 0..200 {
            assert_eq!(connection.get(path).text(), "real", "{path}");
        }
        assert!(begun.elapsed() < PATIENCE, "{path}: {:?}", begun.elapsed());
    }
    let mirrored = |path: &str, outcome: &str| {
        gate.metric(&format!("weir_gate_mirrored_total{{route=\"{path}\",outcome=\"{outcome}\"}}"))
    };
    assert_eq!((mirrored("/hangs", "sent"), mirrored("/hangs", "skipped_in_flight")), (5.0, 195.0));
    assert_eq!(mirrored("/down", "sent") + mirrored("/down", "skipped_in_flight"), 200.0);
    let share = mirrored("/share", "sent");
    assert!((5.0..45.0).contains(&share), "{share}");
    assert_eq!(gate.metric("weir_gate_calls_total{route=\"/down\",outcome=\"succeeded\"}"), 200.0);
}

#[test]
fn a_route_that_can_never_match_is_a_warning() {
    let weir = Weir::new();
    weir.write(
        "gate.toml",
        "upstreams.a.urls = [\"http://h\"]\n[[routes]]\nmatch = { path = \"/x\", headers = { x-a = true } }\n\
         [[routes]]\nmatch = { path = \"/x\", headers = { x-a = \"1\" } }\n",
    );
    let output = weir.run(&["gate", "--config", "gate.toml", "--check"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains("gate.toml:5:18: routes[1].match.path: the route can never match"), "{output:?}");
}
