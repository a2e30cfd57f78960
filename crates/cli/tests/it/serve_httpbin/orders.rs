//! Validation of orders.

use serde_json::json;

use weir_testing::{Answer, Serving};

const SCHEMA: &str = include_str!("../../../../../docs/schema/order.schema.json");

/// Paths of faults, in their order.
fn faults(answer: &Answer) -> Vec<String> {
    let verdict = answer.json();
    assert_eq!(verdict["valid"], false, "{verdict}");
    verdict["faults"].as_array().unwrap().iter().map(|fault| fault["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_order_is_judged_by_the_published_schema() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let schema = connection.get("/validate/schema");
    assert_eq!((schema.text(), schema.header("content-type")), (SCHEMA, Some("application/json")));
    assert_eq!(schema.json()["$schema"], "https://json-schema.org/draft/2020-12/schema");

    let example = connection.get("/validate/example");
    assert!((500..2048).contains(&example.body.len()));
    let answer = connection.post("/validate", &example.body);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.json(), json!({"valid": true, "faults": []}));

    let wrong = connection.get("/validate/invalid");
    let answer = connection.post("/validate", &wrong.body);
    assert_eq!((answer.status, answer.header("content-type")), (422, Some("application/json")));
    assert_eq!(faults(&answer), ["/customer/contact/email", "/lines/1/quantity", "/payment"]);
    let messages = answer.json();
    assert_eq!(messages["faults"][1]["message"], "0 is less than the minimum of 1");
    assert!(messages["faults"][2]["message"].as_str().unwrap().contains("last_digits"));
    assert_eq!(messages.get("more"), None);
}

#[test]
fn each_part_of_an_order_is_looked_at() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let example = connection.get("/validate/example").json();
    for (path, value, fault) in [
        ("/id", json!("ORD-7q2m9xk4"), "/id"),
        ("/created_at", json!("2026-02-30T09:26:53Z"), "/created_at"),
        ("/created_at", json!("yesterday"), "/created_at"),
        ("/currency", json!("XYZ"), "/currency"),
        ("/customer/id", json!(1.5), "/customer/id"),
        ("/customer/name", json!(""), "/customer/name"),
        ("/customer/contact/phone", json!("0701234567"), "/customer/contact/phone"),
        ("/customer/addresses", json!([]), "/customer/addresses"),
        ("/customer/addresses/1/country", json!("Sweden"), "/customer/addresses/1/country"),
        ("/lines", json!({}), "/lines"),
        ("/lines/0/sku", json!(null), "/lines/0/sku"),
        ("/lines/0/options/1/value", json!([]), "/lines/0/options/1/value"),
        ("/lines/2/unit_price", json!(-1), "/lines/2/unit_price"),
        ("/payment/kind", json!("cash"), "/payment/kind"),
        ("/payment/expires/month", json!(13), "/payment/expires/month"),
        ("/payment", json!({"kind": "transfer", "iban": "SE12"}), "/payment/iban"),
        ("/payment", json!({"kind": "invoice", "due_days": 14, "extra": 1}), "/payment"),
        ("/totals/total", json!("18718"), "/totals/total"),
        ("/note", json!("x".repeat(501)), "/note"),
    ] {
        let mut order = example.clone();
        *order.pointer_mut(path).unwrap() = value;
        let answer = connection.post("/validate", order.to_string());
        assert!(faults(&answer).contains(&fault.to_owned()), "{path}: {}", answer.text());
        assert_eq!(answer.status, 422);
    }
    for (path, value) in [
        ("/payment", json!({"kind": "transfer", "iban": "SE4550000000058398257466", "reference": "7Q2M9XK4"})),
        ("/payment", json!({"kind": "invoice", "due_days": 14, "purchase_order": null})),
        ("/note", json!(null)),
        ("/created_at", json!("2024-02-29T23:59:59.999-08:00")),
    ] {
        let mut order = example.clone();
        *order.pointer_mut(path).unwrap() = value;
        let answer = connection.post("/validate", order.to_string());
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
}

#[test]
fn what_is_not_json_is_400_with_the_place() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    for (wrong, place) in [
        (b"".as_slice(), "line 1 column 0"),
        (b"{\"id\": 1,\n \"x\" 2}", "line 2 column 6"),
        (b"{} {}", "line 1 column 4"),
        (b"\"\xff\"", "line 1 column 2"),
        (b"NaN", "line 1 column 1"),
        (&[b'['; 100_000], "recursion limit exceeded at line 1 column 128"),
        (&br#"{"a":"#.repeat(100_000), "recursion limit exceeded at line 1 column 636"),
    ] {
        let answer = connection.post("/validate", wrong);
        assert_eq!((answer.status, faults(&answer)), (400, vec![String::new()]));
        let message = answer.json()["faults"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("not JSON: ") && message.contains(place), "{message}");
    }
}

#[test]
fn a_body_with_many_faults_has_a_short_answer() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    let names: Vec<String> = (0..50_000).map(|k| format!("\"name {k}\":0")).collect();
    for (wrong, listed) in [
        (format!("{{\"lines\":[{}{{}}]}}", "{},".repeat(600)), 100),
        (format!("{{\"lines\":[{}0]}}", "0,".repeat(500_000)), 1),
        (format!("{{{}}}", names.join(",")), 1),
        (format!("{{\"{}\":0}}", "x".repeat(1_000_000)), 8),
        (format!("{{\"id\":\"{}\"}}", "x".repeat(1_000_000)), 7),
    ] {
        let answer = connection.post("/validate", wrong);
        assert_eq!((answer.status, faults(&answer).len()), (422, listed));
        assert_eq!(answer.json()["more"] == true, matches!(listed, 1 | 100));
        assert!(answer.body.len() < 20_000, "{}", answer.body.len());
    }
}

#[test]
fn a_body_that_is_too_long_is_413() {
    let body = Serving::start(&["httpbin"]);
    let at_most = format!("[{}]", " ".repeat((1 << 20) - 2));
    assert_eq!(body.post("/validate", &at_most).status, 422, "1 MiB is read");
    assert_eq!(body.post("/validate", at_most.clone() + " ").status, 413);
    let mut connection = body.connect();
    connection.send("POST /validate HTTP/1.1\r\nHost: test\r\nContent-Length: 99999999999\r\n");
    connection.send("Expect: 100-continue\r\n\r\n");
    assert_eq!(connection.answer().status, 413, "before it is sent");

    let body = Serving::start(&["httpbin", "--max-body", "10"]);
    assert_eq!(body.post("/validate", "[        ]").status, 422);
    let answer = body.post("/validate", "[         ]");
    assert_eq!((answer.status, answer.text()), (413, "the body is longer than 10 bytes"));
    let mut connection = body.connect();
    connection.send("POST /validate HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    connection.send("6\r\n[     \r\n6\r\n     ]\r\n0\r\n\r\n");
    assert_eq!(connection.answer().status, 413);
    assert_eq!(body.post("/echo", "longer than ten bytes").status, 200, "others have no such bound");
}

#[test]
fn a_body_is_announced_with_100_continue_only_if_it_is_read() {
    let body = Serving::start(&["httpbin"]);
    let mut connection = body.connect();
    connection.send("POST /validate HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(connection.head().status, 100);
    connection.send("{}");
    assert_eq!(connection.answer().status, 422);
}
