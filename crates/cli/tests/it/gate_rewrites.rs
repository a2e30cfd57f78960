//! What a route makes of a path is what was compared: rewrites, redirects, mirrors, path parameters, queries.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_testing::{Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(20);

fn gate(server: &Server, config: &str) -> Serving {
    let weir = Weir::new();
    let (top, routes) = config.split_once("[[routes]]").unwrap();
    weir.write("gate.toml", format!("{top}\n[upstreams.backend]\nurls = [\"{}\"]\n[[routes]]{routes}", server.url("")));
    Serving::gate_in(weir, &["--config", "gate.toml"])
}

fn last_line(server: &Server) -> String {
    server.seen().last().map(|seen| seen.line().to_owned()).unwrap_or_default()
}

#[test]
fn a_rewrite_forms_no_dot_segment() {
    let server = Server::hello();
    let gate = gate(
        &server,
        r#"
        [[routes]]
        match = { path = "/files/{name}.json" }
        rewrite = { path = "/data/{name}" }
        [[routes]]
        match = { path = "/v{major}.{minor}/{*rest}" }
        rewrite = { path = "/api/{minor}/{rest}" }
        [[routes]]
        match = { path = "/glue/{a}-{b}" }
        rewrite = { path = "/x/{a}{b}/y" }
        [[routes]]
        match = { path = "/dot/f{a}" }
        rewrite = { path = "/x/.{a}" }
        [[routes]]
        match = { path = "/old/f{a}/{*rest}" }
        redirect = { path = "/new/{a}/{rest}" }
        [[routes]]
        match = { path = "/all/{*rest}" }
        rewrite = { path = "/all/{rest}/end" }
        "#,
    );
    for path in [
        "/files/...json",
        "/files/..json",
        "/files/%2e%2e.json",
        "/v1.../secret",
        "/v1.%2e%2e/secret",
        "/v1../x",
        "/glue/.-.",
        "/dot/f.",
        "/dot/f%2e",
        "/dot/f.;x",
        "/old/f../secret",
        "/old/f./secret",
        "/old/f%2e%2e/secret",
    ] {
        let answer = gate.get(path);
        assert_eq!(answer.status, 400, "{path}: {:?}", answer.headers);
        assert!(answer.text().starts_with("ambiguous path: "), "{path}: {}", answer.text());
    }
    assert_eq!(server.requests(), 0);
    for (path, expected) in [
        ("/files/a..b.json", "/data/a..b"),
        ("/files/....json", "/data/..."),
        ("/v1.2/secret", "/api/2/secret"),
        ("/all/", "/all/end"),
        ("/all/a/b", "/all/a/b/end"),
        ("/glue/a-%7Eb", "/x/a~b/y"),
    ] {
        assert_eq!(gate.get(path).status, 200, "{path}");
        assert_eq!(last_line(&server), format!("GET {expected} HTTP/1.1"), "{path}");
    }
    assert_eq!(gate.get("/old/f1/a").header("location"), Some("/new/1/a"));
    gate.stop();
}

#[test]
fn a_target_that_nginx_takes_is_taken_and_compared_and_sent_as_one_text() {
    let server = Server::hello();
    let gate = gate(
        &server,
        r#"
        [[routes]]
        match = { path = "/open/{*rest}" }
        [[routes]]
        match = { path = "/a%3Cb/x" }
        respond = { status = 403 }
        "#,
    );
    for (target, expected) in [
        (&b"/open/\"<>`{}|^'"[..], "/open/%22%3C%3E%60%7B%7D%7C%5E'"),
        (b"/open/?where={\"a\":1}&q=<b>`|^\\", "/open/?where={%22a%22:1}&q=%3Cb%3E%60|^\\"),
        (b"/open/caf\xc3\xa9", "/open/caf%C3%A9"),
        (b"/open/caf\xe9?\xff", "/open/caf%E9?%FF"),
        (b"/open/%3c%22<", "/open/%3C%22%3C"),
    ] {
        let mut connection = gate.connect();
        connection.send([b"GET ", target, b" HTTP/1.1\r\nHost: t\r\n\r\n"].concat());
        assert_eq!(connection.answer().status, 200, "{}", target.escape_ascii());
        assert_eq!(last_line(&server).split(' ').nth(1), Some(expected), "{}", target.escape_ascii());
    }
    for spelling in ["/a<b/x", "/a%3cb/x", "/a%3Cb/./x", "//a<b/x"] {
        assert_eq!(gate.connect().get(spelling).status, 403, "{spelling}");
    }
    for target in [&b"/open/a b"[..], b"/open/\x01", b"/open/\x7f", b"/open/\\", b"open<", b"/open/%5c<"] {
        let mut connection = gate.connect();
        connection.send([b"GET ", target, b" HTTP/1.1\r\nHost: t\r\n\r\n"].concat());
        assert_eq!(connection.answer().status, 400, "{}", target.escape_ascii());
    }
}

#[test]
fn a_mirror_gets_the_same_path() {
    let (server, shadow) = (Server::hello(), Server::hello());
    let gate = gate(
        &server,
        &format!(
            "upstreams.shadow.urls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/files/{{name}}.json\" }}\nupstream = \"backend\"\n\
             rewrite = {{ path = \"/data/{{name}}\", query = \"n={{name}}\" }}\nmirror = {{ upstream = \"shadow\" }}\n",
            shadow.url("")
        ),
    );
    assert_eq!(gate.get("/files/...json").status, 400);
    assert_eq!(gate.get("/files/a&b.json").status, 200);
    until("the copy", PATIENCE, || shadow.requests() == 1);
    assert_eq!((last_line(&server), server.requests()), (last_line(&shadow), 1));
    assert_eq!(last_line(&shadow), "GET /data/a&b?n=a%26b HTTP/1.1");
    gate.stop();
}

#[test]
fn a_capture_is_one_value_of_a_query() {
    let server = Server::hello();
    let gate = gate(
        &server,
        r#"
        [[routes]]
        match = { path = "/api/{user}/{*rest}" }
        rewrite = { path = "/v2", query = "user={user}&rest={rest}" }
        [[routes]]
        match = { path = "/old/{user}" }
        redirect = { path = "/new", query = "user={user}" }
        "#,
    );
    for (path, expected) in [
        ("/api/a&admin=1/x", "user=a%26admin%3D1&rest=x"),
        ("/api/a+b/x", "user=a%2Bb&rest=x"),
        ("/api/a;admin=1/x", "user=a%3Badmin%3D1&rest=x"),
        ("/api/a%23b/c/d?x=1", "user=a%23b&rest=c/d"),
        ("/api/a%26b=c/", "user=a%26b%3Dc&rest="),
        ("/api/a'b/%3Fq=1", "user=a%27b&rest=%3Fq%3D1"),
    ] {
        assert_eq!(gate.get(path).status, 200, "{path}");
        assert_eq!(last_line(&server), format!("GET /v2?{expected} HTTP/1.1"), "{path}");
    }
    assert_eq!(gate.get("/old/a&admin=1").header("location"), Some("/new?user=a%26admin%3D1"));
    gate.stop();
}

#[test]
fn path_parameters_lead_to_no_other_route() {
    let routes = r#"
        [[routes]]
        match = { path = "/admin" }
        respond = { status = 403 }
        [[routes]]
        match = { path = "/admin/{*rest}" }
        respond = { status = 403 }
        [[routes]]
        match = { path = "/orders/{id}" }
        [[routes]]
        match = { path = "/orders/export", methods = ["POST"] }
        [[routes]]
        match = { path = "/{*rest}" }
        "#;
    let server = Server::hello();
    let strict = gate(&server, routes);
    for path in [
        "/admin;x",
        "/admin;",
        "/admin%3bx",
        "/admin%3Bx=y",
        "/admin;x/y",
        "/;/admin/y",
        "/;x/admin",
        "/%3b/admin",
        "/a/;/../admin;x",
        "/x/..;/admin",
        "/admin;jsessionid=1?a=b",
        "/%61dmin;x",
        "/orders/;x",
        "/a/;b/c",
    ] {
        let answer = strict.get(path);
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.text().starts_with("ambiguous path: "), "{path}: {}", answer.text());
    }
    assert_eq!(server.requests(), 0);
    for path in ["/orders/7;color=red;size=2", "/a;v=1/b;w=2", "/orders/7%3Bx", "/map;lat=1;lon=2"] {
        assert_eq!(strict.get(path).status, 200, "{path}");
        let sent = last_line(&server);
        assert_eq!(sent, format!("GET {path} HTTP/1.1"), "{path}");
    }
    // Of routes that differ in more than the path.
    let mut client = strict.connect();
    client.send("POST /orders/export;x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    strict.stop();
    for option in ["path_parameters = \"pass\"", "ambiguous_paths = \"pass\""] {
        let lenient = gate(&server, &format!("{option}\n{routes}"));
        for path in ["/admin;x", "/;/admin/y"] {
            assert_eq!(lenient.get(path).status, 200, "{option} {path}");
        }
        lenient.stop();
    }
}

#[test]
fn a_caller_does_not_vary_its_name_by_parameters() {
    let server = Server::hello();
    let gate = gate(
        &server,
        r#"
        [[routes]]
        match = { path = "/u/{user}/{*rest}" }
        caller = { path = "user" }
        rate_limit = "1/1h"
        "#,
    );
    let statuses =
        ["/u/ann/a", "/u/ann;1/a", "/u/ann%3B2/a", "/u/ann;3;x=y/b", "/u/bob/a"].map(|path| gate.get(path).status);
    assert_eq!(statuses, [200, 429, 429, 429, 200]);
    gate.stop();
}

#[test]
fn templates_and_paths_that_no_request_can_have_are_errors() {
    for (route, expected) in [
        ("match = { path = \"/a\" }\nrewrite = { path = \"/b/../c\" }", "not in normal form"),
        ("match = { path = \"/a\" }\nrewrite = { path = \"/b//c\" }", "not in normal form"),
        ("match = { path = \"/a/{x}\" }\nrewrite = { path = \"/%2{x}\" }", "not in normal form"),
        ("match = { path = \"/a\" }\nredirect = { path = \"/./c\" }", "not in normal form"),
        ("match = { path = \"/a;v=1\" }", "path parameters"),
    ] {
        let weir = Weir::new();
        weir.write("gate.toml", format!("upstreams.backend.urls = [\"http://127.0.0.1:1\"]\n[[routes]]\n{route}\n"));
        let output = weir.run(&["gate", "check", "gate.toml"]);
        assert!(output.code == 2 && output.stderr.contains(expected), "{route}: {output:?}");
    }
}
