//! Requests and responses, right and wrong.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::pair::Script;

/// Requests with bodies of at most this length.
pub(crate) fn requests(max_body: usize) -> impl Strategy<Value = Vec<u8>> {
    let line = select(vec![
        "GET / HTTP/1.1",
        "GET /a//b/../c?x=%20 HTTP/1.1",
        "GET /a%2e HTTP/1.1",
        "HEAD /x HTTP/1.1",
        "DELETE /x HTTP/1.1",
        "POST /x HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET http://other.example/x HTTP/1.1",
        "GET /x HTTP/1.0",
        "get /x HTTP/1.1",
        "CONNECT a:1 HTTP/1.1",
    ]);
    let field = select(vec![
        "Host: test",
        "Host: a@b",
        "User-Agent: x",
        "Accept: */*",
        "Cookie: a=1",
        "cookie: b=2",
        "X-Odd: \u{e9}\tb",
        "X_Real_IP: 6.6.6.6",
        "X-Forwarded-For: 6.6.6.6",
        "Content_Length: 7",
        "Content-Length: 0",
        "Content-Length: 3",
        "Transfer-Encoding: chunked",
        "Connection: keep-alive",
        "Connection: close",
        "Connection: X-Hop, te",
        "X-Hop: 1",
        "Keep-Alive: timeout=5",
        "TE: trailers",
        "Trailer: x",
        "Expect: 100-continue",
        "Upgrade: h2c",
        "Connection: upgrade",
        "HTTP2-Settings: AAMAAABk",
        "Proxy-Connection: keep-alive",
        "Proxy-Authenticate: x",
        "Content-Type: application/grpc",
        "X-Priority: critical",
        "X-Envoy-Expected-Rq-Timeout-Ms: 25000",
        "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "Bad Name: x",
    ]);
    let host = select(vec!["Host: test", "Host: test", "Host: test:80", ""]);
    let body = select(vec![0, 0, 0, 3, 3, 3, 3, 5_000, max_body]);
    (line, host, vec(field, 0..5), body).prop_map(|(line, host, fields, body)| {
        let mut head = format!("{line}\r\n{host}\r\n{}\r\n\r\n", fields.join("\r\n"));
        if host.is_empty() || fields.is_empty() {
            head = head.replace("\r\n\r\n", "\r\n") + "\r\n";
        }
        if body > 3 {
            // A longer body always has its length, since it would be a hundred thousand requests otherwise.
            head = format!("{line}\r\nHost: test\r\nContent-Length: {body}\r\n\r\n");
        }
        (head + &"abc".repeat(body.div_ceil(3))[..body]).into_bytes()
    })
}

/// Responses, and other bytes.
pub(crate) fn scripts() -> impl Strategy<Value = Script> {
    let line = select(vec![
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 Fine",
        "HTTP/1.0 200 OK",
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK",
        "HTTP/1.1 204 No Content",
        "HTTP/1.1 304 Not Modified",
        "HTTP/1.1 404 Not Found",
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0",
        "HTTP/1.1 500 Oh",
        "HTTP/1.1 503 Busy",
        "HTTP/1.1 101 Switching Protocols",
        "HTTP/1.1 999 Odd",
        "none",
        "silent",
        "reset",
    ]);
    let field = select(vec![
        "Server: x",
        "Date: Mon, 30 Nov 2026 00:00:00 GMT",
        "Set-Cookie: a=1",
        "set-cookie: b=2",
        "X-Folded: a\r\n b",
        "X-Tab: a\tb",
        "Connection: close",
        "Connection: keep-alive",
        "Connection: x-own",
        "X-Own: 1",
        "Keep-Alive: timeout=5",
        "Trailer: x-sum",
        "Upgrade: websocket",
        "TE: trailers",
        "Content-Type: application/grpc",
        "grpc-status: 14",
        "Retry-After: 1",
        "Proxy-Connection: x",
        "Content-Encoding: gzip",
        "Bad Name: x",
    ]);
    let framing = select(vec![
        "Content-Length: 7\r\n\r\n{\"a\":1}",
        "Content-Length: 5\r\n\r\nhello",
        "Content-Length: 5\r\n\r\nhello",
        "Content-Length: 5\r\n\r\nhello",
        "Content-Length: 5, 5\r\n\r\nhello",
        "Content-Length: 5\r\n\r\nhello, and more",
        "Content-Length: 5\r\n\r\nhel",
        "Content-Length: 0\r\n\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "\r\nhello",
        "X-Cut: ",
        "X-Long: ",
    ]);
    let piece = select(vec![1 << 20, 1 << 20, 1 << 20, 40]);
    (line, vec(field, 0..4), framing, piece).prop_map(|(line, fields, framing, piece)| {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        if matches!(line, "silent" | "reset") {
            let end = if line == "silent" { "close" } else { line };
            return Script { bytes: Vec::new(), piece: 1 << 20, end };
        }
        if framing == "X-Long: " {
            // More than one read has.
            let body = "x".repeat(200_000);
            let bytes = format!("{line}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
            return Script { bytes, piece: 1 << 20, end: "" };
        }
        // A close of a connection that the gateway may use again is a race.
        let ends =
            ["Content-Length: 5", "Content-Length: 7", "Content-Length: 0", "Transfer-Encoding: chunked\r\n\r\n"];
        let ends = ends.iter().any(|start| framing.starts_with(start)) && !framing.ends_with("hel");
        // Whether chunks come at once decides on how they go on.
        let is_split = framing == "Content-Length: 5\r\n\r\nhello" && !line.contains(" 204") && !line.contains(" 304");
        Script {
            bytes: format!("{line}\r\n{fields}{framing}").into_bytes(),
            piece: if is_split { piece } else { 1 << 20 },
            end: if ends { "" } else { "close" },
        }
    })
}
