//! Values that services and rows give stay in their place.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

/// Target and body of a request whose expressions `{{v}}` have a captured value.
fn sent(request: &str, value: &str) -> Option<(String, String)> {
    let plan = plan_with(
        &format!("GET http://h/first\nHTTP 200\n[Captures]\nv: jsonpath \"$.v\"\n\n{request}"),
        &ScenarioSettings::default(),
    );
    let first = json!({ "v": value }).to_string();
    let requests = run(&plan, |_| ok(&first)).requests;
    let text = &requests.get(1)?.text;
    let target = text.split(' ').nth(1)?.to_owned();
    Some((target, body_of(text).to_owned()))
}

fn target(url: &str, value: &str) -> Option<String> {
    sent(&format!("GET {url}"), value).map(|sent| sent.0)
}

fn body(kind: &str, text: &str, value: &str) -> Option<String> {
    sent(&format!("POST http://h/x\n{kind}`{text}`"), value).map(|sent| sent.1)
}

#[test]
fn a_value_of_a_parameter_adds_no_other_one() {
    for (url, value, expected) in [
        ("http://h/x?a={{v}}&b=1", "1&admin=true", "/x?a=1%26admin=true&b=1"),
        ("http://h/x?a={{v}}", "1#f", "/x?a=1%23f"),
        ("http://h/x?a=y{{v}};b", "1;admin=1", "/x?a=y1%3Badmin=1;b"),
        // What was captured from a URL has its escapes.
        ("http://h/x?a={{v}}", "a%26b+c%20d", "/x?a=a%26b+c%20d"),
        ("http://h/x?a={{v urlEncode}}", "a&b", "/x?a=a%26b"),
        // Links, and whole queries.
        ("http://h/{{v}}", "items?a=1&b=2", "/items?a=1&b=2"),
        ("http://h{{v}}", "/items?a=1&b=2", "/items?a=1&b=2"),
        ("{{v}}", "http://h/items?a=1&b=2", "/items?a=1&b=2"),
        ("http://h/x?{{v}}", "a=1&b=2", "/x?a=1&b=2"),
        ("http://h/x?a=1&{{v}}", "c=1&b=2", "/x?a=1&c=1&b=2"),
        ("http://h/{{v urlEncode}}", "a/b?c", "/a/b%3Fc"),
    ] {
        assert_eq!(target(url, value).as_deref(), Some(expected), "{url} {value}");
    }
}

#[test]
fn a_value_in_a_json_text_is_one_value() {
    let evil = "a\",\"admin\":true,\"z\":\"";
    for text in ["{\"a\": \"x{{v}}y\"}", "[\"x{{v}}y\"]", " {\"b\\\\\\\\\": [1, \"x{{v}}y\"]}"] {
        let sent = body("", text, evil).unwrap();
        let parsed: Json = serde_json::from_str(&sent).unwrap();
        assert!(parsed.to_string().contains("xa\\\",\\\"admin"), "{sent}");
    }
    let block = sent("POST http://h/x\n```json\n{\"a\": \"{{v}}\"}\n```", evil).unwrap().1;
    assert_eq!(serde_json::from_str::<Json>(&block).unwrap(), json!({ "a": evil }));
    assert_eq!(body("", "{\"a\": {{v}}}", "[1, 2]").as_deref(), Some("{\"a\": [1, 2]}"));
    assert_eq!(body("", "{\"a\": {{v}}}", "1,\"admin\":true"), None, "it is not sent");
    // Other texts have values as they are.
    for (text, expected) in [("{{v}}", "a\"b"), ("say \"{{v}}\"", "say \"a\"b\""), ("{ {{v}} }", "{ a\"b }")] {
        assert_eq!(body("", text, "a\"b").as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn a_value_in_lines_of_json_is_one_value() {
    let evil = "a\",\"admin\":true,\"z\":\"\n{\"index\":{}}";
    for (kind, start, between) in [
        ("Content-Type: application/x-ndjson\n", "", "\n"),
        ("Content-Type: application/jsonl\n", "", "\n\n"),
        ("Content-Type: application/json-seq\n", "\u{1e}", "\n\u{1e}"),
        ("", "", ""),
    ] {
        let block = format!(
            "{kind}```\n{start}{{\"index\":{{}}}}{between}{{\"a\":\"{{{{v}}}}\"}}{between}[\"{{{{v}}}}\"]\n```"
        );
        let sent = sent(&format!("POST http://h/x\n{block}"), evil).unwrap().1.replace('\u{1e}', " ");
        let values: Vec<Json> = serde_json::Deserializer::from_str(&sent).into_iter().map(Result::unwrap).collect();
        assert_eq!(values, [json!({ "index": {} }), json!({ "a": evil }), json!([evil])], "{kind}");
    }
    // Not all of it is JSON.
    let text = sent("POST http://h/x\n```\n{\"a\":\"{{v}}\"}\nhello\n```", "q\"q").unwrap().1;
    assert_eq!(text, "{\"a\":\"q\"q\"}\nhello\n");
}

#[test]
fn a_value_in_the_text_of_a_form_is_one_field() {
    let form = "Content-Type: application/x-www-form-urlencoded; charset=utf-8\n";
    assert_eq!(body(form, "a={{v}}&b=1", "1&admin=true+ü").as_deref(), Some("a=1%26admin%3Dtrue%2B%C3%BC&b=1"));
    assert_eq!(body(form, "a={{v urlEncode}}", "1&2").as_deref(), Some("a=1%262"));
    assert_eq!(body(form, "{{v}}", "a=1&b=2").as_deref(), Some("a=1&b=2"));
    assert_eq!(body("", "a={{v}}", "1&b=2").as_deref(), Some("a=1&b=2"), "any text");
}

#[test]
fn a_value_of_a_cookie_adds_no_other_one() {
    let plan = plan_with(
        "GET http://h/1\nHTTP 200\n[Captures]\nv: jsonpath \"$.v\"\n\nGET http://h/2\n[Cookies]\na: {{v}}\nb: 1;c",
        &ScenarioSettings::default(),
    );
    let requests = run(&plan, |_| ok("{\"v\": \"x; admin=1\"}")).requests;
    assert_eq!(header(&requests[1].text, "cookie"), Some("a=x%3B admin=1; b=1;c"));
}

#[test]
fn a_value_in_a_cookie_header_or_a_name_adds_no_other_one() {
    let evil = "a; admin=1&b";
    let plan = plan_with(
        "GET http://h/1\nHTTP 200\n[Captures]\nv: jsonpath \"$.v\"\n\n\
         POST http://h/2\nCookie: c={{v}}; d=2\n[Query]\nq{{v}}: 1\na[]: 2\n[Form]\n{{v}}: 1\n{{v urlEncode}}: 2",
        &ScenarioSettings::default(),
    );
    let requests = run(&plan, |_| ok(&json!({ "v": evil }).to_string())).requests;
    let text = &requests[1].text;
    assert_eq!(header(text, "cookie"), Some("c=a%3B admin=1&b; d=2"));
    assert!(text.starts_with("POST /2?qa%3B%20admin%3D1%26b=1&a[]=2 "), "{text}");
    assert_eq!(body_of(text), "a%3B%20admin%3D1%26b=1&a%3B%20admin%3D1%26b=2");
}

#[test]
fn an_expected_body_has_values_as_they_are() {
    let text = "GET http://h/1\nHTTP 200\n[Captures]\nv: jsonpath \"$.v\"\n\nGET http://h/2\nHTTP 200\n```\n{\"v\": \"{{v}}\"}\n```";
    let plan = plan_with(text, &ScenarioSettings::default());
    assert_eq!(run(&plan, |_| ok("{\"v\": \"a/b\"}\n")).requests.len(), 2);
}

proptest! {
    #[test]
    fn no_value_leaves_a_json_string_or_a_parameter(value in "[\"\\\\a,:{}\\[\\]&=#;%?/ü \n]{0,8}") {
        let sent_body = body("", "{\"a\": \"{{v}}\", \"b\": [\"{{v}}\", 1]}", &value).unwrap();
        let expected = json!({ "a": &value, "b": [&value, 1] });
        prop_assert_eq!(serde_json::from_str::<Json>(&sent_body).ok(), Some(expected), "{}", sent_body);
        if !value.contains('\n') {
            let query = target("http://h/x?a={{v}}&b=1", &value).unwrap();
            prop_assert!(query.starts_with("/x?a=") && query.ends_with("&b=1"), "{}", query);
            prop_assert_eq!(query.matches('&').count(), 1, "{}", query);
        }
    }
}
