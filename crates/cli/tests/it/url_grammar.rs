//! One grammar of URLs: whatever sends a request takes the same texts, and sends the same bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::{Server, Weir};

/// What follows host and port, and what a request line has of it.
const TARGETS: [(&str, &str); 8] = [
    ("/to?url=http://x/y", "/to?url=http://x/y"),
    ("/a b?c d", "/a%20b?c%20d"),
    ("/?where={\"a\":1}", "/?where={%22a%22:1}"),
    ("/<`^>?<'>", "/%3C%60%5E%3E?%3C%27%3E"),
    ("/caf\u{e9}?\u{e9}", "/caf%C3%A9?%C3%A9"),
    ("/100%25/%zz/%41|x", "/100%25/%zz/%41|x"),
    ("/a/../b/./c", "/b/c"),
    ("?q=://#x", "/?q=://"),
];

/// Target of the last request that came.
fn last_target(server: &Server) -> String {
    let seen = server.seen();
    seen.last().unwrap().line().split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn all_ways_to_a_service_send_the_same_request_line() {
    let (weir, server) = (Weir::new(), Server::hello());
    let address = server.address();
    for (typed, expected) in TARGETS {
        let url = format!("http://{address}{typed}");
        weir.write("one.hurl", format!("GET {}\n", url.replace('#', "\\#")));
        weir.write("wrk.lua", "");
        weir.write("jobs.jsonl", format!("{{\"url\": {}}}\n", serde_json::to_string(&url).unwrap()));
        let short = format!("{address}{typed}");
        for args in [
            &["load", &url, "-n", "1", "-q"][..],
            &["load", &short, "-n", "1", "-q"],
            &["load", &short, "-n", "1", "-q", "--check", "status == 200"],
            &["load", "-s", "wrk.lua", &url, "-n", "1", "-c", "1", "-q"],
            &["load", "-s", "one.hurl", "-n", "1", "-q"],
            &["run", "one.hurl"],
            &["send", "jobs.jsonl", "--out", "results.jsonl"],
        ] {
            let before = server.requests();
            let output = weir.run(args);
            assert!(server.requests() > before, "{args:?}: {output:?}");
            assert_eq!(last_target(&server), expected, "{args:?}");
        }
    }
}

#[test]
fn a_scenario_takes_the_url_before_its_paths_as_people_type_it() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("path.hurl", "GET /a b\n");
    for args in [
        &["run", "path.hurl", &server.address()][..],
        &["load", "-s", "path.hurl", &server.address(), "-n", "1", "-q"],
        &["load", "-s", "path.hurl", &server.url("/"), "-n", "1", "-q"],
    ] {
        let output = weir.run(args);
        assert_eq!((output.code, last_target(&server).as_str()), (0, "/a%20b"), "{args:?}: {output:?}");
    }
    for wrong in ["ftp://h", "http:/h", "h:x", "http://[::1"] {
        for args in [&["run", "path.hurl", wrong][..], &["load", "-s", "path.hurl", wrong, "-n", "1"]] {
            let output = weir.run(args);
            assert_eq!(output.code, 2, "{args:?}");
            let expected = format!("invalid URL '{wrong}'");
            assert!(output.one_line().contains(&expected), "{args:?}: {output:?}");
        }
    }
}

#[test]
fn a_host_with_a_port_is_no_file() {
    let (weir, server) = (Weir::new(), Server::hello());
    for name in ["x.toml", "x.hurl"] {
        let url = format!("{}/{name}", server.address());
        let output = weir.run(&["load", &url, "-n", "1", "-q"]);
        assert_eq!((output.code, last_target(&server)), (0, format!("/{name}")), "{output:?}");
        assert!(weir.run(&["run", &url]).one_line().contains("is a URL and not a scenario"));
    }
}

#[test]
fn international_names_are_those_of_the_dns() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("one.hurl", "GET http://b\u{fc}cher.example/\n");
    let to = server.address();
    for args in [
        &["load", "http://b\u{fc}cher.example/", "--connect-to", &to, "-n", "1", "-q"][..],
        &["load", "-s", "one.hurl", "--connect-to", &to, "-n", "1", "-q"],
        &["run", "one.hurl", "--connect-to", &to],
    ] {
        let output = weir.run(args);
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
        assert_eq!(server.seen().last().unwrap().header("host"), Some("xn--bcher-kva.example"), "{args:?}");
    }
}

#[test]
fn a_user_without_a_password_has_a_colon_and_no_credentials_are_an_error() {
    let (weir, server) = (Weir::new(), Server::hello());
    let (url, with_user) = (server.url("/"), server.url("/").replace("://", "://me@"));
    weir.write("one.hurl", format!("GET {url}\n"));
    weir.write("user.hurl", format!("GET {with_user}\n"));
    weir.write("wrk.lua", "");
    weir.write("jobs.jsonl", format!("{{\"url\": \"{with_user}\"}}\n"));
    for args in [
        &["load", &url, "--auth", "me", "-n", "1", "-q"][..],
        &["load", &url, "--auth", "me", "-n", "1", "-q", "--check", "status == 200"],
        &["load", &with_user, "-n", "1", "-q"],
        &["load", "-s", "one.hurl", "--auth", "me", "-n", "1", "-q"],
        &["load", "-s", "user.hurl", "-n", "1", "-q"],
        &["load", "-s", "wrk.lua", &url, "--auth", "me", "-n", "1", "-c", "1", "-q"],
        &["load", "-s", "wrk.lua", &with_user, "-n", "1", "-c", "1", "-q"],
        &["run", "one.hurl", "--auth", "me"],
        &["run", "user.hurl"],
        &["send", "jobs.jsonl", "--out", "results.jsonl"],
    ] {
        let output = weir.run(args);
        let seen = server.seen();
        assert_eq!(seen.last().unwrap().header("authorization"), Some("Basic bWU6"), "{args:?}: {output:?}");
    }
    let before = server.requests();
    for args in [
        &["load", &url, "--auth", "", "-n", "1"][..],
        &["load", "-s", "one.hurl", "--auth", "", "-n", "1"],
        &["load", "-s", "wrk.lua", &url, "--auth", "", "-n", "1"],
        &["run", "one.hurl", "--auth", ""],
        &["load", &url, "--auth", "", "-n", "1", "--check", "status == 200"],
    ] {
        let output = weir.run(args);
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        assert!(output.one_line().contains("no user and no password"), "{args:?}: {output:?}");
    }
    assert_eq!(server.requests(), before);
}

#[test]
fn a_zone_of_an_address_is_an_error_with_a_way() {
    let weir = Weir::new();
    weir.write("one.hurl", "GET http://[fe80::1%25eth0]:1/\n");
    for args in [&["load", "http://[fe80::1%25eth0]:1/", "-n", "1"][..], &["load", "-s", "one.hurl", "-n", "1"]] {
        let output = weir.run(args);
        assert!(output.code == 2 && output.stderr.contains("--connect-to"), "{output:?}");
    }
}
