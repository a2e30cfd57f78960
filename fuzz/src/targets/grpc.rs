//! What a service of gRPC sends, and what users give: messages, descriptor sets, responses of reflection, `.proto` files and
//! JSON are read without a panic, and a message that becomes JSON comes back from it.
//!
//! Input: a byte that chooses what the rest is.

use std::sync::LazyLock;

use serde_json::Value;
use weir_grpc::messages::read_messages;
use weir_grpc::metadata::{check_field, message_text};
use weir_grpc::{GrpcMethod, GrpcSchema, MethodName, Reflection};

const PROTO: &str = "syntax = \"proto3\"; import \"google/protobuf/any.proto\"; import \"google/protobuf/struct.proto\";
    import \"google/protobuf/duration.proto\";
    service S { rpc M(A) returns (A); rpc C(stream A) returns (stream A); }
    message A { int64 a = 1; repeated A b = 2; map<string, A> c = 3; oneof d { string e = 4; bytes f = 5; } double g = 6;
    google.protobuf.Any h = 7; google.protobuf.Struct i = 8; google.protobuf.Duration j = 9; E k = 10; }
    enum E { Z = 0; }";

static METHODS: LazyLock<Vec<GrpcMethod>> = LazyLock::new(|| {
    let schema = compiled(PROTO).expect("valid");
    ["S/M", "S/C"].map(|path| schema.method(&MethodName::parse(path).expect("valid")).expect("there")).to_vec()
});

fn compiled(text: &str) -> Result<GrpcSchema, String> {
    GrpcSchema::compile(&["a.proto".to_owned()], &mut |name| Ok((name == "a.proto").then(|| text.to_owned())))
}

crate::target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else { return };
    match choice % 6 {
        0 => {
            let mut total = 0;
            let _ = read_messages(rest, b"gzip", |message| {
                total += message.len();
                Ok(())
            });
            for method in METHODS.iter() {
                let Ok(json) = method.decode(rest, b"gzip") else { continue };
                let Some(line) = json.lines().next() else { continue };
                if let Ok(body) = method.encode(line, true) {
                    // A float of another notation is the same from then on; a map has no order.
                    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
                    let again = method.decode(&body, b"gzip").expect("encoded");
                    let body = method.encode(&again, false).expect("JSON of the type");
                    assert_eq!(value(&method.decode(&body, b"").expect("encoded")), value(&again));
                }
            }
        }
        1 => {
            let mut search = Reflection::new("a.B");
            let _ = search.requests();
            for message in rest.chunks(64) {
                if search.take(message).is_err() {
                    return;
                }
            }
            let _ = search.requests();
            let _ = search.finish();
        }
        2 => drop(GrpcSchema::from_descriptor_set(rest)),
        3 => drop(std::str::from_utf8(rest).map(compiled)),
        4 => {
            let Ok(json) = std::str::from_utf8(rest) else { return };
            for method in METHODS.iter() {
                if let Ok(body) = method.encode(json, false) {
                    assert!(method.decode_request(&body).is_ok(), "{json}");
                }
            }
        }
        _ => {
            let _ = message_text(rest);
            let text = String::from_utf8_lossy(rest);
            let _ = check_field(&text, &text);
            let _ = MethodName::parse(&text);
        }
    }
});
