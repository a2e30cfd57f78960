//! Conformance of the output of `weir send` to `docs/schema/send.schema.json`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Value, json};
use weir_testing::{Reply, Server, Weir};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/schema/send.schema.json")).unwrap()
}

/// Validators of the summary, and of a result line.
fn validators() -> [Validator; 2] {
    let summary = schema();
    let mut line = schema()["$defs"]["result"].clone();
    line["$schema"] = summary["$schema"].clone();
    line["$defs"] = summary["$defs"].clone();
    [summary, line].map(|schema| jsonschema::validator_for(&schema).unwrap())
}

fn assert_fits(validator: &Validator, value: &Value) {
    let errors: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}: {value}");
}

/// Summary and results of a run with jobs that end in all ways.
fn run() -> (Value, Vec<Value>) {
    let server = Server::start(|seen| match seen.line() {
        line if line.contains("/bytes") => Reply::raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\xff\xfe"),
        line if line.contains("/bad") => Reply::status(404, "no such thing"),
        line if line.contains("/reset") => Reply::nothing().reset(),
        line if line.contains("key=lost") => Reply::status(401, "who?"),
        _ => Reply::ok("fine"),
    });
    let weir = Weir::new();
    let jobs =
        ["plain", "bytes", "bad", "reset"].map(|id| format!("{{\"id\":\"{id}\",\"url\":\"/{id}?key={{key}}\"}}\n"));
    weir.write(
        "jobs",
        jobs.concat()
            + "{\"id\":\"late\",\"ttl\":0}\n{\"id\":\"pinned\",\"url\":\"/p?key={key}\",\"pinned_key\":\"b\"}\nno\n",
    );
    let url = server.url("/");
    let output = weir.run(&[
        "send",
        "jobs",
        "--url",
        &url,
        "--url-fields",
        "--key",
        "a=lost",
        "--key",
        "b=good",
        "--retries",
        "0",
        "--max-concurrency",
        "1",
        "--out",
        "out",
        "--format",
        "json",
        "-q",
    ]);
    assert_eq!(output.code, 1, "{output:?}");
    let results = weir.read("out").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (serde_json::from_str(&output.stdout).unwrap(), results)
}

#[test]
fn output_conforms_to_the_schema_and_has_all_its_fields() {
    let [summary_fits, line_fits] = validators();
    let (summary, results) = run();
    assert_fits(&summary_fits, &summary);
    results.iter().for_each(|line| assert_fits(&line_fits, line));
    let states: BTreeSet<&str> = results.iter().map(|line| line["state"].as_str().unwrap()).collect();
    assert_eq!(states.into_iter().collect::<Vec<_>>(), ["dead_lettered", "done", "expired"]);
    // Another test covers crashes.
    let mut seen: BTreeSet<&str> = ["maybe_sent"].into();
    let filled = results.iter().flat_map(|line| line.as_object().unwrap()).filter(|(_, value)| !value.is_null());
    seen.extend(filled.map(|(name, _)| name.as_str()));
    let schema = schema();
    let known: BTreeSet<&str> =
        schema["$defs"]["result"]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(seen, known);
    assert_eq!(
        (summary["per_key"]["a"]["disabled"].is_string(), &summary["per_key"]["b"]["disabled"]),
        (true, &Value::Null)
    );
}

#[test]
fn every_object_is_closed_and_every_field_is_described() {
    let schema = schema();
    assert!(jsonschema::meta::is_valid(&schema));
    let objects = schema["$defs"].as_object().unwrap().values().filter(|def| def["type"] == "object");
    let mut count = 0;
    for object in objects.chain([&schema]) {
        count += 1;
        assert_eq!(object["additionalProperties"], false, "{object}");
        assert!(object["description"].is_string(), "{object}");
        for (name, field) in object["properties"].as_object().unwrap() {
            assert!(field["description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
        }
        let required: Vec<&str> =
            object["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let optional =
            object["properties"].as_object().unwrap().keys().filter(|name| !required.contains(&name.as_str()));
        for name in optional {
            assert!(["body", "body_base64", "failure", "maybe_sent"].contains(&name.as_str()), "{name}");
        }
    }
    assert!(count >= 6, "{count}");
}

#[test]
fn invalid_output_does_not_conform() {
    let [summary_fits, line_fits] = validators();
    let (summary, results) = run();
    for (name, value) in [
        ("colour", json!("blue")),
        ("schema", json!(3)),
        ("done", json!(-1)),
        ("rejected", json!({"429": 1})),
        ("per_key", json!({"a": {"done": 1}})),
        ("queue", json!(null)),
    ] {
        let mut wrong = summary.clone();
        wrong[name] = value;
        assert!(!summary_fits.is_valid(&wrong), "{name}");
    }
    for (name, value) in [
        ("state", json!("retrying")),
        ("attempts", json!("1")),
        ("maybe_sent", json!(false)),
        ("ended_ms", json!(null)),
    ] {
        let mut wrong = results[0].clone();
        wrong[name] = value;
        assert!(!line_fits.is_valid(&wrong), "{name}");
    }
}

#[test]
fn the_page_has_every_field() {
    let page = std::fs::read_to_string(format!("{}/../../docs/send/results.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let schema = schema();
    for object in [&schema, &schema["$defs"]["result"], &schema["$defs"]["key"], &schema["$defs"]["queue"]] {
        for name in object["properties"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{name}`")), "{name} is not on the page");
        }
    }
}
