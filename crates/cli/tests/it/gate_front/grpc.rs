//! gRPC: the gateway's own responses, and the meaning of an upstream's.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::{configured, to};
use weir_testing::{Reply, Server, Serving, over_http2};

/// Head, body and trailers of one call.
type Told = (HeaderMap, Bytes, HeaderMap);

/// One call to this path.
fn call(gate: &Serving, path: &str, method: &str) -> Told {
    let mut told = None;
    over_http2(&gate.address, async |mut sender| {
        let request = Request::builder().method(method).uri(format!("http://{}{path}", gate.address));
        let request = request.header("content-type", "application/grpc+proto").header("te", "trailers");
        let answer = sender.send_request(request.body(Full::new(Bytes::from("asked"))).unwrap()).await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        let (head, body) = answer.into_parts();
        let body = body.collect().await.unwrap();
        let trailers = body.trailers().cloned().unwrap_or_default();
        told = Some((head.headers, body.to_bytes(), trailers));
    });
    told.unwrap()
}

#[test]
fn own_grpc_responses_are_trailers_only() {
    let silent = Server::start(|_| Reply::nothing());
    let gone = Server::hello();
    gone.stop_listening();
    let gate = configured(&format!(
        "[upstreams.silent]\nurls = [\"{}\"]\n[upstreams.gone]\nurls = [\"{}\"]\n\
         [upstreams.full]\nurls = [\"{}\"]\n\
         [[routes]]\nmatch = {{ path = \"/late\" }}\nupstream = \"silent\"\npolicy = {{ deadline = \"30ms\" }}\n\
         response = {{ deadline_exceeded = {{ body = \"never mind: 100%\" }} }}\n\
         [[routes]]\nmatch = {{ path = \"/gone\" }}\nupstream = \"gone\"\n\
         [[routes]]\nmatch = {{ path = \"/get\", methods = [\"GET\"] }}\nupstream = \"gone\"\n\
         [[routes]]\nmatch = {{ path = \"/rate\" }}\nupstream = \"gone\"\ncaller = \"address\"\nrate_limit = \"1/1h\"\n",
        silent.url(""),
        gone.url(""),
        silent.url("")
    ));
    call(&gate, "/rate", "POST");
    for (path, code, message) in [
        ("/late", "4", "never mind: 100%25"),
        ("/gone", "14", "no response from the upstream (connect); attempts: 1"),
        ("/rate", "8", "the caller is over its rate limit (rate_limited)"),
        ("/nowhere", "12", "no route matches"),
        ("/get", "12", "allowed methods: GET"),
        ("/a%2Fb", "3", "ambiguous path: an escaped slash, or a backslash"),
    ] {
        let (head, body, trailers) = call(&gate, path, "POST");
        let told = |name: &str| head.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        assert_eq!(told("grpc-status").as_deref(), Some(code), "{path}");
        assert_eq!(told("grpc-message").as_deref(), Some(message), "{path}");
        assert_eq!(told("content-type").as_deref(), Some("application/grpc"), "{path}");
        assert!(body.is_empty() && trailers.is_empty(), "{path}: nothing comes behind the head");
    }
    let plain = gate.get("/nowhere");
    assert_eq!((plain.status, plain.text()), (404, "no route matches\n"), "HTTP callers get HTTP errors");
}

/// A gRPC service that responds with these codes in turn, then with 0: in the head alone, in trailers after a head, or
/// after a message.
fn service(codes: &'static [&'static str], style: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let counted = Arc::clone(&counted);
                let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                    let code = codes.get(counted.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or("0");
                    async move {
                        request.into_body().collect().await.unwrap();
                        let status =
                            HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static(code))]);
                        let (trailers, text) = match (style, code) {
                            (_, "0") | ("message", _) => (Some(status), "message"),
                            ("trailers", _) => (Some(status), ""),
                            _ => (None, ""),
                        };
                        let only = trailers.is_none();
                        let body = Full::new(Bytes::from(text))
                            .with_trailers(async move { trailers.map(Ok::<_, Infallible>) });
                        let mut answer =
                            Response::new(if only { Full::new(Bytes::new()).boxed() } else { body.boxed() });
                        answer.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
                        if only {
                            answer.headers_mut().insert("grpc-status", HeaderValue::from_static(code));
                        }
                        Ok::<_, Infallible>(answer)
                    }
                });
                let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
            }
        });
    });
    (url, count)
}

fn failed(gate: &Serving, kind: &str) -> f64 {
    gate.metric(&format!("weir_gate_attempts_failed_total{{upstream=\"backend\",kind=\"{kind}\"}}"))
}

#[test]
fn grpc_failures_are_retried_and_counted_like_statuses() {
    for style in ["head", "trailers"] {
        for (codes, policy, attempts, code) in [
            (&["14"][..], "", 2, "0"),
            (&["4"], "", 2, "0"),
            (&["8"], "", 2, "0"),
            // As 500: counted, and retried only if configured.
            (&["13"], "", 1, "13"),
            (&["13"], "on = [500],", 2, "0"),
            (&["10"], "", 1, "10"),
            (&["5"], "", 1, "5"),
            (&["14", "14", "14"], "", 3, "14"),
        ] {
            let (url, count) = service(codes, style);
            let policy = format!(
                "retry_methods = \"all\"\nbudget = \"none\"\nretries = {{ {policy} times = 2, backoff = \"1ms..2ms\" }}"
            );
            let gate = configured(&to(&url, "protocol = \"http2\"", &policy));
            let (head, body, trailers) = call(&gate, "/pkg.Service/Method", "POST");
            let told = head.get("grpc-status").or(trailers.get("grpc-status")).unwrap();
            assert_eq!((count.load(Ordering::SeqCst), told.to_str().unwrap()), (attempts, code), "{style} {codes:?}");
            assert_eq!(body.is_empty(), code != "0", "{style} {codes:?}");
            let counted = if matches!(codes[0], "10" | "5") { 0 } else { codes.len() };
            assert_eq!(failed(&gate, &format!("grpc-{}", codes[0])), counted as f64, "{style} {codes:?}");
        }
    }
}

#[test]
fn grpc_failures_and_retries_can_be_configured() {
    let (url, count) = service(&["10", "14"], "trailers");
    let policy = "retry_methods = \"all\"\nbudget = \"none\"\nsuccess = { grpc_failures = [10] }\n\
                  retries = { times = 2, on = [\"grpc-10\"], backoff = \"1ms..2ms\" }";
    let gate = configured(&to(&url, "protocol = \"http2\"", policy));
    let (_, _, trailers) = call(&gate, "/pkg.Service/Method", "POST");
    assert_eq!((count.load(Ordering::SeqCst), trailers["grpc-status"].to_str().unwrap()), (2, "14"));
}

#[test]
fn a_grpc_failure_after_a_message_is_counted_and_not_retried() {
    let (url, count) = service(&["14"; 50], "message");
    let table =
        "protocol = \"http2\"\nbreaker = { min_samples = 4, failure_threshold = 0.5 }\nthrottle = { min_samples = 5 }";
    let gate = configured(&to(&url, table, "retry_methods = \"all\"\nretries = 1"));
    let (_, body, trailers) = call(&gate, "/pkg.Service/Method", "POST");
    assert_eq!((&body[..], trailers["grpc-status"].to_str().unwrap()), (&b"message"[..], "14"));
    assert_eq!((failed(&gate, "grpc-14"), count.load(Ordering::SeqCst)), (1.0, 1), "what has begun is not sent again");
    for _ in 0..30 {
        call(&gate, "/pkg.Service/Method", "POST");
    }
    let share = gate.metric("weir_gate_throttled_fraction{upstream=\"backend\"}");
    assert!(share > 0.3, "the throttle takes it for a 503: {share}");
}
