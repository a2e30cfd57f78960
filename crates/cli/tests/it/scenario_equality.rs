//! What hurl did with each file of `hurl_files/`, as `scripts/hurl_equality.py` has recorded it: `weir run` sends the
//! same requests, captures the same values and comes to the same verdict.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use weir_testing::{Reply, Seen, Server, Weir};

/// Files that weir plays in another way, with the reason; docs/design/scenario-hurl.md has them, too.
const LISTED: [(&str, &str); 6] = [
    ("json_path_invalid", "a path that is not one is an error before anything is sent"),
    ("xpath_invalid", "the same for an XPath"),
    ("redirect_302_put", "only a POST becomes a GET, as in browsers"),
    ("request_url_space_in_variable", "the space is encoded; hurl rejects the URL"),
    ("no_response_section", "a step without HTTP has failed from status 400 on, as in a load"),
    ("unicode", "all of the URL is encoded; hurl sends the query as it is"),
];

/// Variables of every file, besides the service's address.
const VARIABLES: [&str; 11] = [
    "id=42",
    "name=Ada",
    "flag=true",
    "half=0.5",
    "digits=\"123\"",
    "spaced=two words",
    "quoted=say \"hi\"",
    "tries=3",
    "interval=10",
    "no=false",
    "token=abc123",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/hurl_files")
}

#[test]
fn files_are_played_as_by_hurl() {
    let golden: BTreeMap<String, Value> =
        serde_json::from_str(&fs::read_to_string(folder().join("golden.json")).unwrap()).unwrap();
    assert!(golden.len() >= 100 && LISTED.len() * 20 <= golden.len(), "{} files", golden.len());
    let cases: Vec<(&String, &Value)> = golden.iter().collect();
    let difference = |(name, expected): &(&String, &Value)| {
        let found = differences(name, expected);
        let is_listed = LISTED.iter().any(|(listed, _)| listed == name);
        let words = if is_listed { "is equal, but listed" } else { &found };
        (found.is_empty() == is_listed).then(|| format!("{name}: {words}"))
    };
    // Most of the time is spent in the waits of the files.
    let different: Vec<String> = thread::scope(|scope| {
        let parts = cases.chunks(cases.len().div_ceil(4));
        let threads: Vec<_> = parts.map(|part| scope.spawn(|| part.iter().filter_map(difference).collect())).collect();
        threads.into_iter().flat_map(|thread| -> Vec<String> { thread.join().unwrap() }).collect()
    });
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// What differs from what hurl did; empty if nothing does.
fn differences(name: &str, expected: &Value) -> String {
    let responses: Vec<String> = serde_json::from_value(expected["responses"].clone()).unwrap();
    let server = Server::start(move |seen| {
        let host = seen.header("host").unwrap_or_default();
        let response = responses.get(usize::try_from(seen.number).unwrap()).map_or("", String::as_str);
        let response = response.replace("127.0.0.1:PORT", host);
        // Bytes are written as characters of Latin-1.
        let reply = Reply::raw(response.chars().map(|c| c as u8).collect::<Vec<u8>>());
        let delay_ms = seen.line().split('/').nth(2).filter(|_| seen.line().contains(" /slow/"));
        match delay_ms.and_then(|delay| delay.split(' ').next()?.parse().ok()) {
            Some(delay_ms) => reply.after(Duration::from_millis(delay_ms)),
            None => reply,
        }
    });
    let (host, address) = (format!("host={}", server.url("")), format!("address={}", server.address()));
    let path = folder().join(format!("{name}.hurl"));
    let mut args = vec!["run", "--json", "--show-secrets", path.to_str().unwrap()];
    for variable in [host.as_str(), address.as_str()].into_iter().chain(VARIABLES) {
        args.extend(["--variable", variable]);
    }
    let output = Weir::new().run(&args);
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or(Value::Null);
    let requests: Vec<Value> = server.seen().iter().map(|seen| normal_request(seen, server.port())).collect();
    let steps = report["steps"].as_array().cloned().unwrap_or_default();
    let failed: Vec<Value> = steps.iter().map(failed_positions).filter(|list| list != &json!([])).collect();
    let verdict = match report["ok"].as_bool() {
        Some(true) => "ok",
        Some(false) => "failed",
        None => "invalid",
    };
    let mut found = String::new();
    if expected["verdict"] != verdict {
        found.push_str(&format!("verdict {} and not {}; ", verdict, expected["verdict"]));
    }
    if !is_same(&expected["requests"], &Value::Array(requests.clone())) {
        found.push_str(&format!("requests {} and not {}; ", json!(requests), expected["requests"]));
    }
    if verdict != "invalid" && expected["failed"] != Value::Array(failed.clone()) {
        found.push_str(&format!("failed checks {} and not {}; ", json!(failed), expected["failed"]));
    }
    let captures = steps.iter().flat_map(|step| step["captures"].as_array().cloned().unwrap_or_default());
    let captures: Vec<Value> = captures.map(|capture| json!([capture["name"], capture["value"]])).collect();
    let wanted = expected["captures"].as_array().cloned().unwrap_or_default();
    let is_same_capture = |(a, b): (&Value, &Value)| a[0] == b[0] && is_same_captured(&a[1], &b[1], server.port());
    if wanted.len() != captures.len() || !wanted.iter().zip(&captures).all(is_same_capture) {
        found.push_str(&format!("captures {} and not {}", json!(captures), json!(wanted)));
    }
    found
}

/// Positions of failed checks, counted from the last one.
fn failed_positions(step: &Value) -> Value {
    let checks = step["checks"].as_array().cloned().unwrap_or_default();
    let failed = checks.iter().enumerate().filter(|(_, check)| check["ok"] == json!(false));
    failed.map(|(at, _)| checks.len() - at).collect()
}

/// Request in the form of the recorded ones.
fn normal_request(seen: &Seen, port: u16) -> Value {
    let mut words = seen.line().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut body: String = seen.body.iter().map(|byte| char::from(*byte)).collect();
    let boundary = seen.header("content-type").and_then(|kind| kind.split_once("boundary=")).map(|(_, text)| text);
    if let Some(boundary) = boundary {
        body = body.replace(boundary, "BOUNDARY");
    }
    let mut headers = Vec::new();
    let head: String = seen.head.bytes().map(char::from).collect();
    for (name, value) in head.lines().skip(1).filter_map(|line| line.split_once(':')) {
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        let is_own_agent = name == "user-agent" && value.starts_with("weir/");
        let has_no_length = name == "content-length" && (value == "0" || boundary.is_some());
        if is_own_agent || has_no_length {
            continue;
        }
        let value = match name.as_str() {
            "cookie" => {
                let mut cookies: Vec<&str> = value.split("; ").collect();
                cookies.sort_unstable();
                cookies.join("; ")
            }
            "content-type" => {
                value.split("boundary=").next().unwrap_or_default().to_owned()
                    + if boundary.is_some() { "boundary=BOUNDARY" } else { "" }
            }
            _ => value.to_owned(),
        };
        headers.push([name, value.replace(&format!("127.0.0.1:{port}"), "127.0.0.1:PORT")]);
    }
    headers.sort();
    json!([method, target, headers, body])
}

/// Whether a value is the recorded one; `UUID`, `DATE` and `"*"` in it stand for random parts.
fn is_same(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Array(a), Value::Array(b)) => {
            let (a, b) = (without_length(a, expected), without_length(b, expected));
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| is_same(a, b))
        }
        (Value::String(a), Value::String(b)) => match a.find("UUID").or_else(|| a.find("cnonce=\"*\"")) {
            Some(start) => b.starts_with(&a[..start]),
            None => a == b,
        },
        (a, b) => a == b,
    }
}

/// Headers without the length of a body with a date.
fn without_length<'v>(list: &'v [Value], expected: &Value) -> Vec<&'v Value> {
    let has_length = expected.to_string().contains("[\"content-length\"");
    list.iter().filter(|item| has_length || item[0] != json!("content-length")).collect()
}

/// Whether a captured value is the recorded one. hurl writes bytes in Base64, and weir as hexadecimal digits.
fn is_same_captured(expected: &Value, found: &Value, port: u16) -> bool {
    let (Some(a), Some(b)) = (expected.as_str(), found.as_str()) else { return expected == found };
    let b = b.replace(&format!("127.0.0.1:{port}"), "127.0.0.1:PORT");
    let random = a.find("DATE").into_iter().chain(a.find("UUID")).min();
    if let Some(start) = random {
        return b.starts_with(&a[..start]);
    }
    a == b || a.len() == b.len().div_ceil(6) * 4 && b.bytes().all(|byte| byte.is_ascii_hexdigit())
}
