//! Statuses, headers, parameters, unknown paths and the index.

use serde_json::json;

use weir_testing::Serving;

#[test]
fn a_status_is_what_was_asked_for() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for code in [200, 201, 202, 204, 205, 206, 226, 301, 302, 304, 308, 400, 404, 418, 429, 500, 503, 599] {
        for method in ["GET", "POST", "DELETE"] {
            connection.send(format!("{method} /status/{code} HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi"));
            let answer = connection.answer();
            assert_eq!(answer.status, code);
            assert_eq!(answer.body.is_empty(), matches!(code, 204 | 205 | 304), "{code}: {answer:?}");
            assert_eq!(answer.header("location"), matches!(code, 301 | 302 | 308).then_some("/"));
        }
    }
}

#[test]
fn a_choice_of_statuses_is_repeated_by_its_seed() {
    let choices = |args: &[&str], path: &str| {
        let body = Serving::start(&[&["httpbin"], args].concat());
        let mut connection = body.connect();
        (0..200).map(|_| connection.get(path).status).collect::<Vec<_>>()
    };
    let first = choices(&["--seed", "1"], "/status/200,500");
    assert_eq!(first, choices(&["--seed", "1", "--workers", "3"], "/status/200,500"));
    assert_ne!(first, choices(&["--seed", "2"], "/status/200,500"));
    let errors = first.iter().filter(|status| **status == 500).count();
    assert!((60..140).contains(&errors), "{errors} of 200, which is 1 in 10^8 by chance");
    let weighted = choices(&[], "/status/200:9,404:0,503:1");
    let errors = weighted.iter().filter(|status| **status == 503).count();
    assert!((4..50).contains(&errors) && !weighted.contains(&404), "{errors} of 200");
}

#[test]
fn headers_are_shown_as_they_came() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    connection.send("GET /headers HTTP/1.1\r\nHost: test\r\nX-A: 1\r\nX-B: \"q\"\r\nx-a: 2\r\nX-C:\r\nX-D: ");
    connection.send(b"\xe9\r\n\r\n");
    let shown = json!({"host": "test", "x-a": ["1", "2"], "x-b": "\"q\"", "x-c": "", "x-d": "\u{fffd}"});
    assert_eq!(connection.answer().json(), shown);
}

#[test]
fn parameters_out_of_range_are_400_with_what_is_expected() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for (path, expected) in [
        ("/static?bytes=-1", "bytes: expected a whole number from 0 to 1099511627776"),
        ("/static?bytes=1099511627777", "bytes: expected a whole number from 0 to 1099511627776"),
        ("/static?bytes=", "bytes: expected a whole number from 0 to 1099511627776"),
        ("/static?bytes=99999999999999999999999", "bytes: expected a whole number from 0 to 1099511627776"),
        ("/chunked?chunks=1000001", "chunks: expected a whole number from 0 to 1000000"),
        ("/chunked?bytes=0", "bytes: expected a whole number from 1 to 1048576"),
        ("/chunked?delay_ms=1e3", "delay_ms: expected a whole number from 0 to 600000"),
        ("/drip?duration_ms=600001", "duration_ms: expected a whole number from 0 to 600000"),
        ("/drip?bytes=0", "bytes: expected a whole number from 1 to 1099511627776"),
        ("/drip?delay_ms=x", "delay_ms: expected a whole number from 0 to 600000"),
        ("/drip?code=100", "code: expected a whole number from 200 to 599"),
        ("/delay/", "delay: expected a whole number from 0 to 600000"),
        ("/delay/600001", "delay: expected a whole number from 0 to 600000"),
        ("/status/", "status: expected a whole number from 200 to 599"),
        ("/status/101", "status: expected a whole number from 200 to 599"),
        ("/status/200,x", "status: expected a whole number from 200 to 599"),
        ("/status/200:-1", "weight: expected a whole number from 0 to 1000000"),
        ("/close?at=once", "at: expected start, middle or end"),
        ("/close?bytes=65537", "bytes: expected a whole number from 2 to 65536"),
    ] {
        let answer = connection.get(path);
        assert_eq!((answer.status, answer.text()), (400, expected), "{path}");
    }
}

#[test]
fn unknown_paths_are_404_and_wrong_methods_405() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for path in ["/nope", "/static/", "/Static", "//", "/validate/x", "/status", "/%2e%2e/etc/passwd"] {
        assert_eq!(connection.get(path).status, 404, "{path}");
    }
    for path in ["/", "/static", "/chunked", "/drip", "/headers", "/validate/schema", "/validate/example"] {
        let answer = connection.post(path, "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{path}");
    }
    let answer = connection.get("/validate");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
}

#[test]
fn the_index_names_every_route() {
    let body = Serving::start(&["httpbin"]);
    let index = body.get("/");
    assert_eq!(index.header("content-type"), Some("text/plain; charset=utf-8"));
    for route in ["/echo", "/static", "/validate", "/status/", "/chunked", "/drip", "/delay/", "/close", "/headers"] {
        assert!(index.text().lines().any(|line| line.trim().starts_with(route)), "{route}");
    }
}

#[test]
fn all_that_the_first_page_of_the_docs_loads_is_there() {
    let page = include_str!("../../../../../docs/start.md");
    let body = Serving::start(&["httpbin"]);
    let mut paths: Vec<&str> = page
        .split("http://localhost:8080")
        .skip(1)
        .map(|rest| rest.split(|c: char| c.is_whitespace() || "\"`,)".contains(c)).next().unwrap())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    assert!(paths.contains(&"/") && paths.len() > 1, "{paths:?}");
    for path in paths {
        assert_eq!(body.get(path).status, 200, "{path}");
    }
    assert_eq!(body.post("/echo", "{\"order\": 1}").status, 200);
}
