//! Attempts to bypass a route's rules by spellings of its path, its host and the caller.

use super::configured;
use weir_testing::{Reply, Server, Serving};

/// A configuration with a rate limit of one call per hour and caller for `/login`.
fn guarded(server: &Server, top: &str) -> Serving {
    configured(&format!(
        "{top}\n[upstreams.backend]\nurls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/login\" }}\ncaller = \"address\"\n\
         rate_limit = \"1/1h\"\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n",
        server.url("")
    ))
}

fn line(server: &Server) -> String {
    server.seen().last().map(|seen| seen.line().to_owned()).unwrap_or_default()
}

#[test]
fn a_route_matches_every_spelling_of_its_path() {
    let server = Server::hello();
    let gate = guarded(&server, "");
    assert_eq!(gate.get("/%6cog%69n?a=%2F//..").status, 200);
    assert_eq!(line(&server), "GET /login?a=%2F//.. HTTP/1.1", "what was compared is what is passed on");
    for path in [
        "/login",
        "/%6cogin",
        "/%6Cogin",
        "//login",
        "/x/../login",
        "/./login",
        "/%2e/login",
        "/x/%2e%2E/login",
        "/x//..///login",
        "/../login",
        "/login?x=/../y",
        "http://elsewhere/login",
        "http://elsewhere//%6Cogin",
    ] {
        assert_eq!(gate.get(path).status, 429, "{path}");
    }
    for (path, seen) in [
        ("/a//b/../c/%7Ed%3a/caf\u{e9}", "/a/c/~d%3A/caf%C3%A9"),
        ("/login/", "/login/"),
        ("/a;v=1/b", "/a;v=1/b"),
        ("/a/.", "/a/"),
    ] {
        assert_eq!(gate.get(path).status, 200, "{path}");
        assert_eq!(line(&server), format!("GET {seen} HTTP/1.1"), "{path}");
    }
}

#[test]
fn ambiguous_paths_are_rejected_unless_configured() {
    let server = Server::hello();
    let gate = guarded(&server, "");
    let all =
        ["/a%2flogin", "/a%5Clogin", "/a\\login", "/login%00", "/x/..;/login", "/x/..%3ba=b/login", "/a%zz", "/a%2"];
    for path in all {
        let answer = gate.get(path);
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.text().starts_with("ambiguous path: "), "{}", answer.text());
    }
    assert_eq!(server.requests(), 0);
    let gate = guarded(&server, "ambiguous_paths = \"pass\"");
    for (path, seen) in all.into_iter().zip([
        "/a%2Flogin",
        "/a%5Clogin",
        "/a\\login",
        "/login%00",
        "/x/..;/login",
        "/x/..%3Ba=b/login",
        "/a%25zz",
        "/a%252",
    ]) {
        assert_eq!(gate.get(path).status, 200, "{path}");
        assert_eq!(line(&server), format!("GET {seen} HTTP/1.1"));
    }
}

#[test]
fn slashes_are_kept_if_configured() {
    let server = Server::hello();
    let gate = guarded(&server, "merge_slashes = false");
    assert_eq!(gate.get("/login").status, 200);
    assert_eq!(gate.get("/x/../login").status, 429);
    assert_eq!(gate.get("//login//").status, 200);
    assert_eq!(line(&server), "GET //login// HTTP/1.1");
}

#[test]
fn own_paths_match_in_every_spelling() {
    let server = Server::start(|_| Reply::ok("the upstream's"));
    let gate = guarded(&server, "");
    for path in ["/metrics", "/%6detrics", "//metrics", "/x/../metrics", "/healthz", "/./healthz"] {
        assert!(!gate.get(path).text().contains("the upstream's"), "{path}");
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_host_matches_with_the_dot_of_the_root() {
    let server = Server::hello();
    let gate = configured(&format!(
        "[upstreams.backend]\nurls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/x\", host = \"api.example.\" }}\n\
         rewrite = {{ path = \"/named\" }}\n[[routes]]\nmatch = {{ path = \"/x\" }}\n",
        server.url("")
    ));
    for host in ["api.example", "api.example.", "API.Example.:80", "api.example:80"] {
        let mut client = gate.connect();
        client.send(format!("GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(client.answer().status, 200);
        assert_eq!(line(&server), "GET /named HTTP/1.1", "{host}");
        assert_eq!(server.seen().last().unwrap().header("host"), Some(host), "as it was sent");
    }
}

/// The upstream's values of these headers.
fn seen(gate: &Serving, server: &Server, said: &str, names: &[&str]) -> Vec<String> {
    let mut client = gate.connect();
    client.send(format!("GET /a HTTP/1.1\r\nHost: api.example\r\n{said}\r\n"));
    assert_eq!(client.answer().status, 200);
    let head = server.seen().pop().unwrap().head;
    let values = |name: &&str| -> String {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let values: Vec<_> =
            lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect();
        format!("{name}: {}", values.join(" | "))
    };
    names.iter().map(values).collect()
}

const NAMES: [&str; 8] = [
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "forwarded",
    "x-real-ip",
    "x_forwarded_for",
    "x-forwarded-prefix",
    "x-original-url",
];

const SAID: &str = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\n\
                    Forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\n\
                    X-Forwarded-Prefix: /p\r\nX-Original-URL: /admin\r\n";

#[test]
fn forwarding_headers_of_untrusted_callers_are_removed() {
    let server = Server::hello();
    for top in ["", "trusted_proxies = [\"10.0.0.0/8\", \"::1\"]"] {
        let gate = guarded(&server, top);
        assert_eq!(
            seen(&gate, &server, SAID, &NAMES),
            [
                "x-forwarded-for: 127.0.0.1",
                "x-forwarded-host: api.example",
                "x-forwarded-proto: http",
                "forwarded: ",
                "x-real-ip: ",
                "x_forwarded_for: ",
                "x-forwarded-prefix: ",
                "x-original-url: ",
            ]
        );
    }
}

#[test]
fn forwarding_headers_of_trusted_proxies_are_extended() {
    let server = Server::hello();
    let gate = guarded(&server, "trusted_proxies = [\"127.0.0.0/8\"]");
    assert_eq!(
        seen(&gate, &server, SAID, &NAMES),
        [
            "x-forwarded-for: 6.6.6.6, 127.0.0.1",
            "x-forwarded-host: evil",
            "x-forwarded-proto: https",
            "forwarded: for=6.6.6.6 | for=127.0.0.1",
            "x-real-ip: 6.6.6.6",
            "x_forwarded_for: ",
            "x-forwarded-prefix: /p",
            "x-original-url: /admin",
        ]
    );
}

#[test]
fn no_header_of_a_caller_names_its_address() {
    let names = [
        "true-client-ip",
        "cf-connecting-ip",
        "CF_Connecting_IP",
        "x-client-ip",
        "client-ip",
        "fastly-client-ip",
        "x-cluster-client-ip",
        "x-envoy-external-address",
        "x-envoy-internal",
        "x-forwarded",
        "forwarded-for",
        "x-original-host",
        "x-own-ip",
    ];
    let said: String = names.iter().map(|name| format!("{name}: 6.6.6.6\r\n")).collect();
    let server = Server::hello();
    let sent = |top: &str| {
        let gate = guarded(&server, top);
        let values = seen(&gate, &server, &said, &names);
        let of = |name: &&str| values.contains(&format!("{name}: 6.6.6.6"));
        names.iter().copied().filter(of).collect::<Vec<_>>()
    };
    assert_eq!(sent(""), ["x-own-ip"]);
    let rule = "forwarding_headers = { keep = [\"cf-connecting-ip\"], remove = [\"x-own-ip\"] }";
    assert_eq!(sent(rule), ["cf-connecting-ip", "CF_Connecting_IP"]);
    // Of a trusted proxy all but the spellings that it would not use.
    let trusted = sent("trusted_proxies = [\"127.0.0.0/8\"]");
    assert_eq!(trusted.len(), names.len() - 1, "{trusted:?}");
}

#[test]
fn a_caller_is_identified_by_the_last_untrusted_address() {
    let server = Server::hello();
    let status = |gate: &Serving, said: &str| {
        let mut client = gate.connect();
        client.send(format!("GET /login HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: {said}\r\n\r\n"));
        client.answer().status
    };
    let gate = guarded(&server, "trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]");
    for (said, expected) in [
        ("1.1.1.1", 200),
        ("1.1.1.1", 429),
        ("2.2.2.2, 1.1.1.1", 429),
        ("1.1.1.1, 10.9.9.9", 429),
        ("2.2.2.2, 10.9.9.9", 200),
        ("3.3.3.3, 2.2.2.2:4711, 10.1.1.1", 429),
    ] {
        assert_eq!(status(&gate, said), expected, "{said}");
    }
    let gate = guarded(&server, "");
    assert_eq!([status(&gate, "1.1.1.1"), status(&gate, "2.2.2.2")], [200, 429], "a stranger has one address");
}
