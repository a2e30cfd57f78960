//! Calls that weigh more than others in their caller's rate limit, and headers that say what is left of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::{Answer, Reply, Server, Serving, Weir};

fn gate(server: &Server, limit: &str) -> Serving {
    let weir = Weir::new();
    weir.write(
        "gate.toml",
        format!(
            "[upstreams.backend]\nurls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n\
             caller = {{ header = \"x-key\" }}\nrate_limit = {{ rate = \"10/1h\", {limit} }}\n",
            server.url("")
        ),
    );
    Serving::gate_in(weir, &["--config", "gate.toml"])
}

/// Limit, tokens left, and seconds until the bucket is full.
fn bucket(answer: &Answer) -> [u64; 3] {
    ["limit", "remaining", "reset"].map(|name| answer.header(&format!("x-ratelimit-{name}")).unwrap().parse().unwrap())
}

/// A bucket of ten tokens, of which one comes back in 360 s; some seconds may have passed.
fn assert_left(answer: &Answer, tokens: u64) {
    let [limit, remaining, reset] = bucket(answer);
    assert_eq!((limit, remaining), (10, tokens), "{:?}", answer.headers);
    let full_in = (10 - tokens) * 360;
    assert!((full_in.saturating_sub(300)..=full_in).contains(&reset), "{reset} of {full_in}");
}

#[test]
fn a_call_takes_the_tokens_that_its_header_has() {
    let server = Server::start(|_| {
        Reply::raw("HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 99\r\nServer: x\r\nContent-Length: 0\r\n\r\n")
    });
    let gate = gate(&server, "weight = { header = \"x-tokens\" }, headers = true");
    let mut client = gate.connect();
    let mut ask = |key: &str, tokens: &str| {
        client.send(format!("GET / HTTP/1.1\r\nHost: t\r\nX-Key: {key}\r\nX-Tokens: {tokens}\r\n\r\n"));
        client.answer()
    };
    for (tokens, status, left) in [("4", 200, 6), ("7", 429, 6), ("none", 200, 5), ("0", 200, 4), ("4", 200, 0)] {
        let answer = ask("a", tokens);
        assert_eq!(answer.status, status, "{tokens}");
        assert_left(&answer, left);
    }
    let over = ask("a", "1");
    let wait: u64 = over.header("retry-after").unwrap().parse().unwrap();
    assert!(over.status == 429 && wait > 0 && wait <= 360, "{wait}");
    // Beyond 64 bits, too, a weight is more than a bucket holds.
    assert_eq!(ask("b", "99999999999999999999").status, 429);
    let never = ask("b", "11");
    assert_eq!((never.status, never.header("retry-after")), (429, None));
    assert!(never.text().contains("more than its caller's rate limit allows at once"), "{}", never.text());
    assert_left(&ask("b", "10"), 0);
    assert_eq!(server.requests(), 5);
    gate.stop();
}

#[test]
fn a_call_takes_tokens_by_the_length_of_its_body() {
    let server = Server::hello();
    let gate = gate(&server, "weight = { body = \"100B\" }, headers = true");
    for (length, status, left) in [(250, 200, 7), (0, 200, 6), (100, 200, 5), (600, 429, 5), (401, 200, 0)] {
        let mut client = gate.connect();
        let body = "x".repeat(length);
        client.send(format!("POST / HTTP/1.1\r\nHost: t\r\nX-Key: a\r\nContent-Length: {length}\r\n\r\n{body}"));
        let answer = client.answer();
        assert_eq!(answer.status, status, "{length}");
        assert_left(&answer, left);
    }
    let sent = server.requests();
    let mut client = gate.connect();
    client.send("POST / HTTP/1.1\r\nHost: t\r\nX-Key: b\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
    assert_eq!(client.answer().status, 411);
    assert_eq!(server.requests(), sent);
    gate.stop();
}

#[test]
fn without_headers_the_upstream_has_its_own() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 99\r\nContent-Length: 0\r\n\r\n"));
    let gate = gate(&server, "burst = 2");
    let answer = gate.connect().get("/");
    assert_eq!((answer.header("x-ratelimit-limit"), answer.header("x-ratelimit-remaining")), (Some("99"), None));
    gate.stop();
}

#[test]
fn a_weight_has_one_source() {
    let server = Server::hello();
    for (weight, expected) in [
        ("{}", "a weight is that of a header, of the body, or of tokens"),
        ("{ header = \"a\", body = \"1KiB\" }", "a weight is that of a header, of the body, or of tokens"),
        ("{ body = \"0B\" }", "write one from \"1B\" to \"1GiB\""),
        ("{ body = 7 }", "size"),
    ] {
        let weir = Weir::new();
        let text = format!(
            "[upstreams.a]\nurls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/\" }}\ncaller = \"address\"\n\
             rate_limit = {{ rate = \"1/1s\", weight = {weight} }}\n",
            server.url("")
        );
        weir.write("gate.toml", text);
        let output = weir.run(&["gate", "--config", "gate.toml", "--listen", "0"]);
        assert_eq!(output.code, 2, "{weight}");
        assert!(
            output.stderr.contains("routes[0].rate_limit.weight") && output.stderr.contains(expected),
            "{}",
            output.stderr
        );
    }
}
