//! `weir serve grpc` from outside: calls of each kind, statuses, faults, reflection.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use serde_json::{Value, json};
use weir_grpc::{GrpcMethod, MethodName, Reflection, ReflectionVersion, messages};
use weir_testing::{Serving, over_http2};

type Client = SendRequest<Full<Bytes>>;

/// Head, body and trailers of a response; `Err` for one that broke off.
struct Called {
    status: u16,
    head: HeaderMap,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    is_whole: bool,
}

impl Called {
    /// `grpc-status` and `grpc-message` of the trailers, or of the head.
    fn outcome(&self) -> Option<(u16, String)> {
        let fields = self.trailers.as_ref().filter(|it| it.contains_key("grpc-status")).unwrap_or(&self.head);
        let text = |name: &str| fields.get(name).map(|value| value.to_str().unwrap().to_owned());
        text("grpc-status").map(|code| (code.parse().unwrap(), text("grpc-message").unwrap_or_default()))
    }
}

fn method(name: &str) -> GrpcMethod {
    let path = format!("/weir.test.v1.Test/{name}");
    weir_serve::grpc::schema().unwrap().method(&MethodName::parse(&path).unwrap()).unwrap()
}

async fn post(client: &mut Client, path: &str, body: Vec<u8>, fields: &[(&str, &str)]) -> Option<Called> {
    let mut request = Request::post(format!("http://test{path}")).header("te", "trailers");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    client.ready().await.unwrap();
    let response = client.send_request(request.body(Full::from(body)).unwrap()).await.ok()?;
    let (head, mut rest) = response.into_parts();
    let mut called =
        Called { status: head.status.as_u16(), head: head.headers, body: Vec::new(), trailers: None, is_whole: true };
    while let Some(frame) = rest.frame().await {
        match frame.map(data_of) {
            Ok(Ok(data)) => called.body.extend_from_slice(&data),
            Ok(Err(trailers)) => called.trailers = Some(trailers),
            Err(_) => {
                called.is_whole = false;
                break;
            }
        }
    }
    Some(called)
}

fn data_of(frame: hyper::body::Frame<Bytes>) -> Result<Bytes, HeaderMap> {
    frame.into_data().map_err(|frame| frame.into_trailers().unwrap())
}

/// Calls a method, and its messages as JSON.
async fn call(client: &mut Client, name: &str, request: &Value, fields: &[(&str, &str)]) -> (Called, Vec<Value>) {
    let fields = [&[("content-type", "application/grpc")], fields].concat();
    let method = method(name);
    let body = method.encode(&request.to_string(), false).unwrap();
    let called = post(client, &method.path(), body, &fields).await.unwrap();
    let encoding = called.head.get("grpc-encoding").map_or(&b""[..], |value| value.as_bytes());
    let text = method.decode(&called.body, encoding).unwrap();
    (called, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn each_kind_of_call_has_its_messages_and_status() {
    let serving = Serving::start(&["grpc"]);
    over_http2(&serving.address, async |mut client| {
        let client = &mut client;
        for (name, request, replies) in [
            ("Echo", json!({"text": "a", "payload": "q6s="}), json!([{"text": "a", "payload": "q6s=", "number": "1"}])),
            ("Echo", json!({"replyBytes": 3}), json!([{"payload": "AAAA", "number": "1"}])),
            ("List", json!({"count": 3, "gap": "0.001s"}), json!([{"number": "1"}, {"number": "2"}, {"number": "3"}])),
            ("List", json!({}), json!([])),
            (
                "Collect",
                json!([{"text": "a", "payload": "q6s="}, {"text": "b"}]),
                json!([{"messages": "2", "bytes": "2", "lastText": "b"}]),
            ),
            (
                "Chat",
                json!([{"text": "a"}, {"text": "b"}]),
                json!([{"text": "a", "number": "1"}, {"text": "b", "number": "2"}]),
            ),
            ("Chat", json!([]), json!([])),
            (
                "Mirror",
                json!({"int64Value": "-5", "bytesValue": "q6s="}),
                json!([{"int64Value": "-5", "bytesValue": "q6s="}]),
            ),
        ] {
            let (called, found) = call(client, name, &request, &[("grpc-accept-encoding", "gzip")]).await;
            assert_eq!(
                (Value::Array(found), called.outcome()),
                (replies, Some((0, String::new()))),
                "{name} {request}"
            );
        }
        let (called, found) =
            call(client, "Echo", &json!({"compressed": true, "replyBytes": 5000}), &[("grpc-accept-encoding", "gzip")])
                .await;
        assert!(called.body.len() < 200 && found[0]["payload"].as_str().unwrap().len() > 5000);
    });
    let stats = serving.get("/stats").json();
    assert_eq!((stats["calls"].as_u64(), stats["status"]["OK"].as_u64()), (Some(9), Some(9)), "{stats}");
    assert_eq!((stats["messages_in"].as_u64(), stats["messages_out"].as_u64()), (Some(10), Some(10)), "{stats}");
    assert_eq!(serving.metric("weir_grpc_calls_total"), 9.0);
}

#[test]
fn metadata_comes_back_and_a_status_is_what_was_asked_for() {
    let serving = Serving::start(&["grpc"]);
    over_http2(&serving.address, async |mut client| {
        let fields = [("x-echo-a", "1"), ("x-trailer-b-bin", "q6s")];
        let (called, found) = call(&mut client, "Echo", &json!({"metadata": true}), &fields).await;
        assert_eq!(
            (&called.head["x-echo-a"], &called.trailers.as_ref().unwrap()["x-trailer-b-bin"]),
            (&"1".parse().unwrap(), &"q6s".parse().unwrap())
        );
        assert_eq!(found[0]["metadata"]["x-echo-a"], "1");
        let status = json!({"status": {"code": 7, "message": "nö 1%", "details": [{"@type": "type.googleapis.com/google.protobuf.Duration", "value": "4s"}]}});
        let (called, found) = call(&mut client, "Echo", &status, &[]).await;
        assert_eq!((found.len(), called.outcome()), (0, Some((7, "n%C3%B6 1%25".to_owned()))));
        assert!(called.trailers.is_none() && called.head.contains_key("grpc-status-details-bin"));
        let (called, _) = call(&mut client, "Echo", &json!({"delay": "60s"}), &[("grpc-timeout", "20m")]).await;
        assert_eq!(called.outcome().unwrap().0, 4);
        let (called, found) =
            call(&mut client, "List", &json!({"count": 9, "gap": "60s"}), &[("grpc-timeout", "200m")]).await;
        assert_eq!((called.outcome().unwrap().0, found.len()), (4, 1));
        let called = post(&mut client, "/weir.test.v1.Test/None", Vec::new(), &[("content-type", "application/grpc")])
            .await
            .unwrap();
        assert_eq!(called.outcome().unwrap().0, 12);
        let plain = post(&mut client, "/weir.test.v1.Test/Echo", Vec::new(), &[("content-type", "application/json")])
            .await
            .unwrap();
        assert_eq!((plain.status, plain.outcome()), (415, None));
        for body in [&[][..], &[0, 0, 0, 0, 9, 1], &[7, 0, 0, 0, 0], &[1, 0, 0, 0, 0], &[0, 0, 0, 0, 1, 0x0a], &[0; 10]]
        {
            let called =
                post(&mut client, "/weir.test.v1.Test/Echo", body.to_vec(), &[("content-type", "application/grpc")])
                    .await
                    .unwrap();
            assert_eq!(called.outcome().unwrap().0, 3, "{body:?}");
        }
        let long = [&[0, 1, 0, 0, 1][..], &vec![0; (16 << 20) + 1]].concat();
        let called =
            post(&mut client, "/weir.test.v1.Test/Echo", long, &[("content-type", "application/grpc")]).await.unwrap();
        assert_eq!(called.outcome(), Some((8, "a message is longer than 16 MiB".to_owned())));
    });
}

#[test]
fn faults_are_on_the_wire() {
    let serving = Serving::start(&["grpc"]);
    over_http2(&serving.address, async |mut client| {
        for (fault, body, outcome) in [
            ("LENGTH_TOO_LONG", Some(&[0, 0, 0, 0, 12, 24, 1][..]), Some(0)),
            ("LENGTH_OF_4_GIB", Some(&[0, 255, 255, 255, 255, 24, 1]), Some(0)),
            ("COMPRESSED_WITHOUT_ENCODING", Some(&[1, 0, 0, 0, 2, 24, 1]), Some(0)),
            ("INVALID_FLAG", Some(&[7, 0, 0, 0, 2, 24, 1]), Some(0)),
            ("INVALID_MESSAGE", Some(&[0, 0, 0, 0, 3, 10, 5, 97]), Some(0)),
            ("RESET", None, None),
            ("RESET_AFTER_MESSAGE", Some(&[0, 0, 0, 0, 2, 24, 1]), None),
            ("TRAILERS_ONLY", Some(&[]), Some(0)),
            ("NO_TRAILERS", Some(&[0, 0, 0, 0, 2, 24, 1]), None),
            ("NO_STATUS", Some(&[0, 0, 0, 0, 2, 24, 1]), None),
            ("NO_MESSAGE", Some(&[]), Some(0)),
            ("TWO_MESSAGES", Some(&[0, 0, 0, 0, 2, 24, 1, 0, 0, 0, 0, 2, 24, 1]), Some(0)),
        ] {
            let method = method("Echo");
            let request = method.encode(&json!({"fault": fault}).to_string(), false).unwrap();
            let called = post(&mut client, &method.path(), request, &[("content-type", "application/grpc")]).await;
            let found = called.as_ref().map(|it| it.body.as_slice());
            assert_eq!((found, called.as_ref().and_then(Called::outcome).map(|it| it.0)), (body, outcome), "{fault}");
            assert!(called.is_none_or(|it| it.is_whole == (fault != "RESET_AFTER_MESSAGE")), "{fault}");
        }
        for (fault, status) in [("HTTP_503", 503), ("PAGE", 200)] {
            let method = method("Echo");
            let request = method.encode(&json!({"fault": fault}).to_string(), false).unwrap();
            let called =
                post(&mut client, &method.path(), request, &[("content-type", "application/grpc")]).await.unwrap();
            assert_eq!((called.status, called.outcome()), (status, None));
        }
    });
}

/// The schema by reflection of this version.
async fn reflected(client: &mut Client, version: ReflectionVersion) -> Result<GrpcMethod, String> {
    let mut search = Reflection::new("weir.test.v1.Test");
    loop {
        let requests = search.requests();
        if requests.is_empty() {
            let schema = search.finish()?;
            return schema.method(&MethodName::parse("weir.test.v1.Test/Mirror").unwrap());
        }
        let mut body = Vec::new();
        requests.iter().for_each(|request| messages::push_message(request, false, &mut body).unwrap());
        let called = post(client, version.path(), body, &[("content-type", "application/grpc")]).await.unwrap();
        if called.outcome() != Some((0, String::new())) {
            return Err(format!("{:?}", called.outcome()));
        }
        messages::read_messages(&called.body, b"", |message| search.take(message)).unwrap();
    }
}

#[test]
fn reflection_describes_the_service_unless_it_is_off() {
    let serving = Serving::start(&["grpc"]);
    over_http2(&serving.address, async |mut client| {
        for version in ReflectionVersion::ALL {
            let mirror = reflected(&mut client, version).await.unwrap();
            assert!(mirror.encode("{\"timestamp\": \"2026-01-02T03:04:05Z\", \"otherName\": \"a\"}", false).is_ok());
        }
    });
    let serving = Serving::start(&["grpc", "--no-reflection", "--unavailable", "100%"]);
    over_http2(&serving.address, async |mut client| {
        let found = reflected(&mut client, ReflectionVersion::V1).await.unwrap_err();
        assert!(found.contains("14"), "{found}");
        let (called, _) = call(&mut client, "Echo", &json!({}), &[]).await;
        assert_eq!(called.outcome(), Some((14, "unavailable on purpose".to_owned())));
    });
}
