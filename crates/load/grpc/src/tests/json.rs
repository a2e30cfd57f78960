//! JSON to messages and back.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::method;
use crate::messages::push_message;
use crate::{GrpcSchema, MethodName};

fn order() -> impl Strategy<Value = Value> {
    let payment = prop_oneof![
        Just(json!({})),
        "[a-z]{0,8}".prop_map(|card| json!({ "card": card })),
        Just(json!({ "token": "q6s=" })),
    ];
    let item = "[a-zé\"]{1,8}".prop_map(|name| json!({ "itemName": name, "size": "LARGE" }));
    let price = prop_oneof![
        any::<f32>().prop_filter("a number", |it| it.is_finite() && *it != 0.0).prop_map(|it| json!(f64::from(it))),
        Just(json!("NaN")),
        Just(json!("-Infinity"))
    ];
    (any::<i64>(), prop::collection::vec(item, 1..4), "[a-z]{0,4}", any::<u64>(), price, payment).prop_map(
        |(id, items, key, count, price, payment)| {
            let mut order = json!({
                "id": if id == 0 { "1".to_owned() } else { id.to_string() },
                "items": items,
                "counts": { key: count.to_string() },
                "at": "2026-01-02T03:04:05.060Z",
                "price": price,
                "paid": false,
            });
            let fields = order.as_object_mut().expect("an object");
            fields.extend(payment.as_object().cloned().unwrap_or_default());
            order
        },
    )
}

proptest! {
    #[test]
    fn json_comes_back_as_it_was_sent(orders in prop::collection::vec(order(), 0..4), is_array: bool, gzip: bool) {
        let text = match is_array {
            true => Value::Array(orders.clone()).to_string(),
            false => orders.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
        };
        let chat = method("Chat");
        let body = chat.encode(&text, gzip).map_err(TestCaseError::fail)?;
        let back = chat.decode(&body, b"gzip").map_err(TestCaseError::fail)?;
        prop_assert_eq!(chat.decode_request(&body), Ok(back.clone()));
        let back: Vec<Value> = back.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        prop_assert_eq!(back, orders);
    }

    #[test]
    fn any_bytes_are_a_response_or_an_error(body in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = method("Get").decode(&body, b"gzip");
        let mut framed = vec![0, 0, 0, 0, body.len() as u8];
        framed.extend(&body);
        let _ = method("Get").decode(&framed, b"");
    }
}

#[test]
fn no_text_is_an_empty_message_and_of_a_stream_none() {
    assert_eq!(method("Get").encode("", false), Ok(vec![0; 5]));
    assert_eq!(method("Get").encode(" {} ", false), Ok(vec![0; 5]));
    assert_eq!(method("Upload").encode(" ", false), Ok(Vec::new()));
    assert_eq!(method("Upload").encode("[{},{}]", false), Ok(vec![0; 10]));
    assert_eq!(method("Get").decode(&[0; 5], b"").as_deref(), Ok("{}"));
}

#[test]
fn a_message_that_is_not_of_its_type_is_named_with_its_position() {
    for (name, json, why) in [
        ("Get", "{\"id\": 1,\n \"nmae\": 2}", &["not a shop.v1.Order", "nmae", "at line 2 column"][..]),
        ("Get", "{\"id\": \"x\"}", &["not a shop.v1.Order", "at line 1 column"]),
        ("Get", "{\"items\": [{\"size\": \"HUGE\"}]}", &["HUGE", "line 1"]),
        ("Get", "{\"id\": 1", &["not JSON", "line 1"]),
        ("Get", "{}\n {}", &["takes one message", "line 2 column 2"]),
        ("Get", "[{}]", &["not a shop.v1.Order: invalid type: an array, expected an object, at line 1"]),
        ("Get", "{\"token\": \"@@@\"}", &["invalid base64", "offset 0, at line 1 column 15"]),
        ("Chat", "[{}, {\"id\": 1},\n {\"nmae\": 2}]", &["nmae", "line 2 column"]),
        ("Chat", "{}\n{}\n  {\"nmae\": 2}", &["nmae", "line 3 column"]),
    ] {
        let found = method(name).encode(json, false).expect_err(json);
        assert!(why.iter().all(|part| found.contains(part)) && found.lines().count() == 1, "{found}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_message() {
    assert_eq!(method("Get").encode("\u{feff}{}", false), Ok(vec![0; 5]));
}

/// Field with bytes.
fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![tag << 3 | 2];
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend(bytes);
    out
}

/// Response with one `Any` within the other.
fn any_within_any(count: usize) -> Vec<u8> {
    let content = (1..count)
        .fold(field(1, b"t/a.M"), |content, _| [field(1, b"t/google.protobuf.Any"), field(2, &content)].concat());
    let mut body = Vec::new();
    push_message(&field(1, &content), false, &mut body).expect("short");
    body
}

#[test]
fn levels_of_messages_are_bounded_also_where_each_is_the_bytes_of_another_one() {
    let text = "syntax = \"proto3\"; package a; import \"google/protobuf/any.proto\";\
        message M { google.protobuf.Any any = 1; } service S { rpc Do(M) returns (M); }";
    let schema = GrpcSchema::compile(&["a.proto".to_owned()], &mut |_| Ok(Some(text.to_owned()))).expect("valid");
    let call = schema.method(&MethodName::parse("/a.S/Do").expect("valid")).expect("there");
    let found = call.decode(&any_within_any(2), b"");
    let json = r#"{"any":{"@type":"t/google.protobuf.Any","value":{"@type":"t/a.M"}}}"#;
    assert_eq!(found.as_deref(), Ok(json));
    // The response, and the message in the last one.
    assert!(call.decode(&any_within_any(98), b"").is_ok());
    for count in [99, 20_000] {
        let found = call.decode(&any_within_any(count), b"").expect_err("too deep");
        assert_eq!(found, "a message of a.M has more than 100 levels of messages");
    }
}

#[test]
fn a_response_of_another_type_is_an_error() {
    let found = method("Get").decode(&[0, 0, 0, 0, 1, 0x0a], b"").expect_err("cut off");
    assert!(found.starts_with("a message is not a shop.v1.Order"), "{found}");
}
