//! Collections of Postman with scripts: what a service gets, what scripts get, what is rejected by name.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::needless_pass_by_value, reason = "values are made by json!")]

use serde_json::{Value, json};
use weir_measure::Run;
use weir_testing::{Reply, Server, Weir};

/// Service that answers with what it was sent; `/missing` is 404.
fn service() -> Server {
    Server::start(|seen| match seen.line().split(' ').nth(1) {
        Some("/missing") => Reply::status(404, "none"),
        Some("/token") => Reply::ok("{\"token\": \"t-1\"}"),
        _ => Reply::ok(&String::from_utf8_lossy(&seen.body)),
    })
}

/// Request with its scripts.
fn item(name: &str, request: Value, scripts: &[(&str, &str)]) -> Value {
    let events = scripts.iter().map(|(listen, code)| json!({ "listen": listen, "script": { "exec": [code] } }));
    json!({ "name": name, "request": request, "event": events.collect::<Vec<_>>() })
}

/// Writes a collection as `c.json`; `host` is the service.
fn write(weir: &Weir, server: &Server, items: Value) {
    let collection = json!({ "info": { "name": "c" }, "item": items,
        "variable": [{ "key": "host", "value": server.url("") }] });
    weir.write("c.json", collection.to_string());
}

fn lines(server: &Server) -> Vec<String> {
    let line = |line: &str| line.trim_end_matches(" HTTP/1.1").to_owned();
    server.seen().iter().map(|seen| line(seen.line())).collect()
}

fn shop() -> Value {
    let token = item(
        "log in",
        json!({ "method": "GET", "url": "{{host}}/token" }),
        &[("test", "pm.test('has a token', () => pm.environment.set('token', pm.response.json().token));")],
    );
    let order = item(
        "order",
        json!({ "method": "POST", "url": "{{host}}/order?n={{n}}", "body": { "mode": "raw", "raw": "{\"n\": {{n}}}" },
            "auth": { "type": "bearer", "bearer": [{ "key": "token", "value": "{{token}}" }] } }),
        &[
            ("prerequest", "pm.variables.set('n', (pm.variables.get('n') || 0) + 1);"),
            (
                "test",
                "const data = pm.response.json(); pm.test(`order ${data.n}`, () => pm.expect(data.n).to.equal(pm.variables.get('n')));",
            ),
        ],
    );
    json!([token, { "name": "orders", "item": [order] }])
}

#[test]
fn a_collection_with_scripts_is_played_as_it_is() {
    let (weir, server) = (Weir::new(), service());
    write(&weir, &server, shop());
    let done = weir.run(&["run", "c.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stdout.contains("✓ log in: has a token") && done.stdout.contains("✓ orders / order: order 1"),
        "{done:?}"
    );
    assert_eq!(lines(&server), ["GET /token", "POST /order?n=1"]);
    assert_eq!(server.seen()[1].header("authorization"), Some("Bearer t-1"));
}

#[test]
fn variables_of_a_user_stay_between_iterations_and_users_share_none() {
    let (weir, server) = (Weir::new(), service());
    write(&weir, &server, shop());
    let done = weir.run(&["load", "-q", "-s", "c.json", "--users", "2", "--loops", "3", "-o", "run.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let mut orders: Vec<String> = lines(&server).into_iter().filter(|line| line.starts_with("POST")).collect();
    orders.sort();
    let expected = [1, 1, 2, 2, 3, 3].map(|number| format!("POST /order?n={number}"));
    assert_eq!(orders, expected);
    let run = Run::from_json(&weir.read("run.json")).unwrap();
    let checks = &run.script.as_ref().unwrap().checks;
    assert!(
        checks.iter().any(|check| check.group == "::orders::order" && check.name == "order 3" && check.passed == 2),
        "{checks:?}"
    );
}

#[test]
fn a_test_that_fails_fails_its_iteration_and_the_rest_goes_on() {
    let (weir, server) = (Weir::new(), service());
    let code = "pm.test('is there', () => pm.response.to.have.status(200)); nope();";
    let first = item("first", json!({ "method": "GET", "url": "{{host}}/missing" }), &[("test", code)]);
    let second = item("second", json!("{{host}}/a"), &[("test", "pm.test('too', () => {});")]);
    write(&weir, &server, json!([first, second]));
    let done = weir.run(&["run", "c.json"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("✗ first: is there") && done.stdout.contains("✓ second: too"), "{done:?}");
    let both = format!("{}{}", done.stdout, done.stderr);
    for text in [
        "first: is there: AssertionError: expected response to have status code 200 but got 404",
        "first: test, line 1: ReferenceError",
    ] {
        assert!(both.contains(text), "{text}: {both}");
    }
    assert_eq!(lines(&server), ["GET /missing", "GET /a"]);
}

#[test]
fn a_script_without_end_is_cut_off_with_the_load_and_named() {
    let (weir, server) = (Weir::new(), service());
    let endless = item("endless", json!("{{host}}/b"), &[("prerequest", "let n = 0;\nfor (;;) n += 1;")]);
    let first = item("first", json!("{{host}}/a"), &[]);
    write(&weir, &server, json!([null, 5, endless.clone()]));
    let done = weir.run(&["load", "-s", "c.json", "-c", "1", "-d", "300ms"]);
    assert!(done.stdout.contains("the script was still running at the end: endless, prerequest:"), "{done:?}");
    write(&weir, &server, json!([first, endless]));
    let done = weir.run(&["load", "-s", "c.json", "-c", "1", "-d", "300ms"]);
    assert!(done.stdout.contains("1 cut off by the end"), "{done:?}");
    assert_eq!(lines(&server), ["GET /a"]);
}

#[test]
fn variables_environments_and_rows_are_given_by_flags() {
    let (weir, server) = (Weir::new(), service());
    let url = "{{host}}/a?name={{name}}&word={{word}}&more={{more}}";
    write(
        &weir,
        &server,
        json!([item("a", json!(url), &[("test", "pm.test(pm.iterationData.get('name'), () => {});")])]),
    );
    weir.write(
        "dev.json",
        r#"{"name": "dev", "values": [{"key": "word", "value": "tea"}, {"key": "more", "value": "x"}]}"#,
    );
    weir.write("rows.csv", "name,n\nada,1\nalan,2\n");
    let flags = ["--variables-file", "dev.json", "--variable", "more=05", "--data", "rows.csv"];
    let load = [&["load", "-q", "-s", "c.json", "-c", "1", "-n", "3"], &flags[..]].concat();
    let done = weir.run(&load);
    assert_eq!(done.code, 0, "{done:?}");
    let line = |name: &str| format!("GET /a?name={name}&word=tea&more=05");
    assert_eq!(lines(&server), [line("ada"), line("alan"), line("ada")]);
    let run = weir.run(&[&["run", "c.json"], &flags[..]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let done = weir.run(&["load", "-s", "c.json", "--check", "status == 200", "-n", "1"]);
    assert_eq!((done.code, done.stderr.contains("pm.test()")), (2, true), "{done:?}");
}

#[test]
fn an_import_keeps_scripts_in_a_file_that_is_played_alike() {
    let (weir, server) = (Weir::new(), service());
    write(&weir, &server, shop());
    let done = weir.run(&["import", "c.json", "-o", "c.js"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, ""), "{done:?}");
    assert_eq!(done.stderr, "weir: next: weir run c.js; weir load -s c.js -c 10 -d 30s\n");
    assert!(weir.read("c.js").contains("exec: String.raw`\npm.variables.set('n'"), "{}", weir.read("c.js"));
    let run = weir.run(&["run", "c.js"]);
    assert!(run.code == 0 || run.stdout.contains("has a token"), "{run:?}");
    let played = lines(&server);
    assert_eq!(weir.run(&["run", "c.json"]).code, 0);
    assert_eq!(lines(&server)[played.len()..], played[..]);
    // A scenario has what is a capture or a check by itself, and the rest is listed.
    let hurl = weir.run(&["import", "c.json", "-o", "c.hurl"]);
    assert!(hurl.stderr.contains("left out: 1 script") && hurl.stderr.contains("-o FILE.js"), "{hurl:?}");
    assert_eq!(weir.run(&["import", "c.json", "-o", "c.js"]).code, 2, "it is there already");
}

#[test]
fn what_is_not_there_is_rejected_by_name_before_anything_is_sent() {
    let (weir, server) = (Weir::new(), service());
    let digest = json!({ "method": "GET", "url": "{{host}}/", "auth": { "type": "digest", "digest": [] } });
    let outside =
        json!({ "method": "POST", "url": "{{host}}/", "body": { "mode": "file", "file": { "src": "../secret" } } });
    let plain = json!("{{host}}/");
    for (request, code, expected) in [
        (plain.clone(), "const _ = require('lodash');", "'a': require('lodash') is not supported"),
        (digest, "x", "'a': authentication of the kind 'digest' is not supported"),
        (outside, "x", "the file '../secret' is outside of the folder of the collection"),
    ] {
        write(&weir, &server, json!([item("a", request, &[("test", code)])]));
        let done = weir.run(&["load", "-s", "c.json", "-n", "1"]);
        assert_eq!((done.code, done.stderr.lines().count()), (2, 1), "{done:?}");
        assert!(done.stderr.contains(expected), "{done:?}");
    }
    assert_eq!(lines(&server), Vec::<String>::new());
    // What only a run shows is a failure of its script.
    for (code, expected) in [
        ("_.get({}, 'a');", "lodash (_) is not supported in scripts; use the methods of arrays and objects"),
        ("moment();", "moment is not supported in scripts; use Date"),
        ("CryptoJS.AES.encrypt('a', 'b');", "CryptoJS.AES is not supported"),
        ("await import('/etc/hostname');", "scripts of a collection read no files"),
        ("open('/etc/hostname');", "is for the init context"),
        ("pm.vault.get('a');", "pm.vault is not supported; use pm.environment"),
    ] {
        write(&weir, &server, json!([item("a", plain.clone(), &[("test", code)])]));
        let done = weir.run(&["run", "c.json"]);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(format!("{}{}", done.stdout, done.stderr).contains(expected), "{done:?}");
    }
}

#[test]
fn a_collection_without_scripts_stays_a_scenario() {
    let (weir, server) = (Weir::new(), service());
    write(&weir, &server, json!([item("a", json!("{{host}}/a"), &[("test", "// nothing")])]));
    let done =
        weir.run(&["load", "-q", "-s", "c.json", "-n", "1", "-c", "1", "--max-redirects", "2", "-o", "run.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(Run::from_json(&weir.read("run.json")).unwrap().script.is_none());
}
