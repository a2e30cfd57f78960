//! `weir record`: clients through the recorder, and the scenario of what they did, played.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod bodies;
mod browser;
mod ends;
mod forward;
mod reverse;
mod tls;

use std::time::Duration;

use serde_json::{Value, json};
use weir_testing::{Answer, Output, Raw, Serving, Weir};

/// Timeout of waits; far above all expected times.
const PATIENCE: Duration = Duration::from_secs(20);

/// A recorder that writes `shop.hurl`.
fn recorder(args: &[&str]) -> Serving {
    Serving::record_in(Weir::new(), &[&["-o", "shop.hurl"], args].concat())
}

/// One request with a URL as its target, on a connection of its own.
fn send(recorder: &Serving, line: &str, headers: &str, body: &str) -> Answer {
    send_on(&mut recorder.connect(), line, headers, body)
}

fn send_on(connection: &mut Raw, line: &str, headers: &str, body: &str) -> Answer {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    connection.send(format!("{line} HTTP/1.1\r\nHost: client\r\n{headers}{length}\r\n{body}"));
    connection.answer()
}

/// A visit of `weir serve shop`, with its URLs as they are to be asked for: login, list, item, cart, purchase.
fn visit(recorder: &Serving, shop: &str) {
    let mut connection = recorder.connect();
    let login = json!({"user": "ann", "password": "pw-ann"}).to_string();
    let typed = "Content-Type: application/json\r\n";
    let answer = send_on(&mut connection, &format!("POST {shop}/login"), typed, &login);
    assert_eq!(answer.status, 200, "{answer:?}");
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = answer.json();
    let [token, csrf] = ["token", "csrf"].map(|name| session[name].as_str().unwrap().to_owned());
    let own = format!("Authorization: Bearer {token}\r\nCookie: {cookie}\r\nX-CSRF-Token: {csrf}\r\n{typed}");
    for (line, body, status) in [
        ("GET /items?page=2", "", 200),
        ("GET /items/12", "", 200),
        ("POST /cart", r#"{"item": 12, "quantity": 2}"#, 201),
        ("POST /buy", "", 201),
    ] {
        let line = line.replacen(' ', &format!(" {shop}"), 1);
        assert_eq!(send_on(&mut connection, &line, &own, body).status, status, "{line}");
    }
}

/// Plays the scenario of a recording, and asserts that each of its requests is as it was.
fn assert_plays(weir: &Weir, steps: u64, flags: &[&str]) {
    let args = ["load", "-s", "shop.hurl", "--variables-file", "shop.env", "-n", "10", "-c", "2", "--format", "json"];
    let load = weir.run(&[&args[..], flags].concat());
    assert_eq!(load.code, 0, "{load:?}\n{}", weir.read("shop.hurl"));
    let run: Value = serde_json::from_str(&load.stdout).unwrap();
    assert_eq!(
        (&run["requests"]["failed"], &run["requests"]["ok"]),
        (&json!(0), &json!(10 * steps)),
        "{}",
        load.stdout
    );
}

/// Lines of a recorder's messages, without the program's name.
fn lines(output: &Output) -> Vec<&str> {
    output.stderr.lines().map(|line| line.strip_prefix("weir: ").unwrap_or(line)).collect()
}
