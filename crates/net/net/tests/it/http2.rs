//! TLS and HTTP/2.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, ServerConfig};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_net::client::{
    Client, ConnectOptions, IncomingBody, Origin, OutgoingBody, OutgoingRequest, Protocol, SendError, WireOptions,
};
use weir_net::tls::{Tls, TlsOptions};
use weir_server::RunningServer;

use super::{echoed, get, hello, httpbin, origin, run, until, until_nothing_is_open, whole};
use weir_testing::{Authority, Reply, Server, Weir};

fn trusting(authority: &Authority) -> Arc<ClientConfig> {
    let weir = Weir::new();
    let cacert = Some(authority.file(&weir, "ca.pem"));
    Tls::shared(&TlsOptions { cacert, ..TlsOptions::default() }).unwrap()
}

fn speaking(config: &Arc<ServerConfig>, protocols: &[&str]) -> Arc<ServerConfig> {
    let mut config = (**config).clone();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

async fn request(client: &Client, to: &Arc<Origin>, target: &str) -> Result<Response<IncomingBody>, SendError> {
    let (method, headers) = (Method::GET, HeaderMap::new());
    let request = OutgoingRequest {
        method: &method,
        target,
        headers: &headers,
        extra_headers: &[],
        body: OutgoingBody::Empty,
        upgrade: false,
        wire: WireOptions::default(),
    };
    client.send(to, request).await
}

#[test]
fn tls_connections_are_reused_and_verified() {
    let authority = Authority::new();
    let service = authority.service("127.0.0.1");
    for protocols in [&[][..], &["http/1.1"]] {
        let server = Server::build().tls(speaking(&service, protocols)).start(|_| Reply::ok("hello"));
        run(async |client| {
            let tls = Some(trusting(&authority));
            for protocol in [Protocol::Auto, Protocol::Http1] {
                let to = origin(
                    &server.url("/"),
                    &ConnectOptions { tls: tls.clone(), protocol, ..ConnectOptions::default() },
                );
                let before = client.counts();
                for _ in 0..5 {
                    assert_eq!(get(&client, &to).await.unwrap(), hello());
                }
                let now = client.counts();
                assert_eq!((now.connected - before.connected, now.reused - before.reused), (1, 4));
            }
            let to = origin(
                &server.url("/"),
                &ConnectOptions { tls, protocol: Protocol::Http2, ..ConnectOptions::default() },
            );
            assert_eq!(get(&client, &to).await.unwrap_err().kind, FailureKind::Tls);
        });
    }
    let other = Authority::new();
    let server = Server::build().tls(service).start(|_| Reply::ok("hello"));
    run(async |client| {
        for protocol in [Protocol::Auto, Protocol::Http1] {
            let tls = Some(trusting(&other));
            let to = origin(&server.url("/"), &ConnectOptions { tls, protocol, ..ConnectOptions::default() });
            let error = get(&client, &to).await.unwrap_err();
            assert_eq!((error.kind, client.counts().open), (FailureKind::Tls, 0), "{error}");
        }
    });
}

#[test]
fn over_tls_too_bytes_behind_a_response_close_the_connection() {
    let authority = Authority::new();
    for size in [5, 16_384, 65_536, 70_000] {
        let server = Server::build().tls(authority.service("127.0.0.1")).start(move |_| {
            let body = "x".repeat(size);
            Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{body}HTTP/1.1 200 OK\r\n"))
        });
        run(async |client| {
            let to = origin(
                &server.url("/"),
                &ConnectOptions { tls: Some(trusting(&authority)), ..ConnectOptions::default() },
            );
            for _ in 0..2 {
                assert_eq!(get(&client, &to).await.unwrap().1.len(), size);
                until_nothing_is_open(&client).await;
            }
        });
    }
}

#[test]
fn a_tls_body_without_length_ends_with_the_closing_alert_only() {
    let authority = Authority::new();
    for (cut, expected) in [(false, None), (true, Some(()))] {
        let service = authority.service("127.0.0.1");
        let server = Server::build().tls(service).start(move |_| {
            let reply = Reply::raw("HTTP/1.1 200 OK\r\n\r\nhello");
            if cut { reply.reset() } else { reply.close() }
        });
        run(async |client| {
            let to = origin(
                &server.url("/"),
                &ConnectOptions { tls: Some(trusting(&authority)), ..ConnectOptions::default() },
            );
            assert_eq!(get(&client, &to).await.err().map(drop), expected);
        });
    }
}

/// HTTP/2 over TLS on this event loop, for any number of connections.
async fn tls_service(config: Arc<ServerConfig>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let acceptor = tokio_rustls::TlsAcceptor::from(config);
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let answer = hyper::service::service_fn(async |request: http::Request<hyper::body::Incoming>| {
                assert_eq!(request.version(), http::Version::HTTP_2);
                Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from("hello"))))
            });
            let served = hyper::server::conn::http2::Builder::new(LocalExecutor);
            tokio::task::spawn_local(async move { served.serve_connection(TokioIo::new(stream), answer).await });
        }
    });
    url
}

#[derive(Clone, Copy)]
struct LocalExecutor;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

#[test]
fn alpn_selects_http2_and_requests_share_one_connection() {
    let authority = Authority::new();
    let service = speaking(&authority.service("127.0.0.1"), &["h2", "http/1.1"]);
    run(async |client| {
        let url = tls_service(service).await;
        for protocol in [Protocol::Auto, Protocol::Http2] {
            let before = client.counts().connected;
            let to = origin(
                &url,
                &ConnectOptions { tls: Some(trusting(&authority)), protocol, ..ConnectOptions::default() },
            );
            let mut tasks: Vec<_> = (0..10)
                .map(|_| {
                    let (client, to) = (client.clone(), to.clone());
                    tokio::task::spawn_local(async move { get(&client, &to).await })
                })
                .collect();
            tokio::task::yield_now().await;
            // The first request, which started the connection, is dropped.
            tasks.remove(0).abort();
            for task in tasks {
                assert_eq!(task.await.unwrap().unwrap(), hello());
            }
            assert_eq!(client.counts().connected, before + 1);
            drop(to);
            client.sweep(Nanos::from_secs(1));
            until("its end", || client.counts().open == 0).await;
        }
    });
}

#[test]
fn http2_without_tls_by_prior_knowledge() {
    let server = httpbin();
    run(async |client| {
        let to = origin(&server.url(), &ConnectOptions { protocol: Protocol::Http2, ..ConnectOptions::default() });
        for _ in 0..3 {
            let answer = request(&client, &to, "/bytes/100000").await.unwrap();
            let (status, body) = whole(answer).await.unwrap();
            assert!(status == 200 || status == 404, "{status} {}", body.len());
        }
        let body = Bytes::from(vec![b'y'; 1_000_000]);
        assert_eq!(echoed(&client, &to, body.clone()).await, (200, body));
        let counts = client.counts();
        assert_eq!((counts.open, counts.connected, counts.reused), (1, 1, 3));
    });
    // An origin that speaks HTTP/1.1 only.
    let server = Server::start(|_| Reply::ok("hello"));
    run(async |client| {
        let to = origin(&server.url("/"), &ConnectOptions { protocol: Protocol::Http2, ..ConnectOptions::default() });
        let error = get(&client, &to).await.unwrap_err();
        assert!(matches!(error.kind, FailureKind::Protocol | FailureKind::Closed | FailureKind::Reset), "{error}");
        until("its end", || client.counts().open == 0).await;
    });
}

/// Number of requests in progress at the service, without this one.
fn in_flight(server: &RunningServer) -> u64 {
    let metrics = weir_testing::Raw::connect(&server.address().to_string()).get("/metrics");
    let line = metrics.text().lines().find_map(|line| line.strip_prefix("weir_http_requests_in_flight ")).unwrap();
    line.trim().parse::<u64>().unwrap().saturating_sub(1)
}

#[test]
fn a_dropped_stream_is_reset_and_the_connection_stays() {
    let server = httpbin();
    run(async |client| {
        let to = origin(&server.url(), &ConnectOptions { protocol: Protocol::Http2, ..ConnectOptions::default() });
        let asked = client.clone();
        for k in 1..=3 {
            {
                let waits = pin!(request(&asked, &to, "/delay/20000"));
                let drips = pin!(async {
                    let mut answer = request(&asked, &to, "/drip?duration=20&numbytes=20").await.unwrap();
                    answer.body_mut().collect().await
                });
                tokio::select! {
                    _ = waits => panic!("too early"),
                    _ = drips => panic!("too early"),
                    () = until("both", || in_flight(&server) >= 1) => {}
                }
            }
            until("the resets", || in_flight(&server) == 0).await;
            assert_eq!((client.counts().open, client.counts().connected), (1, 1), "{k}");
        }
        assert_eq!(request(&client, &to, "/").await.unwrap().status(), 200);
        assert_eq!(client.counts().connected, 1);
    });
}

#[test]
fn an_upload_ends_with_its_response() {
    let server = httpbin();
    run(async |client| {
        let to = origin(&server.url(), &ConnectOptions { protocol: Protocol::Http2, ..ConnectOptions::default() });
        let (method, headers) = (Method::POST, HeaderMap::new());
        let held = std::rc::Rc::new(());
        let body = OutgoingBody::Stream(Box::pin(super::uploads::Endless(std::rc::Rc::clone(&held))));
        let out = OutgoingRequest {
            method: &method,
            target: "/echo",
            headers: &headers,
            extra_headers: &[],
            body,
            upgrade: false,
            wire: WireOptions::default(),
        };
        let answer = client.send(&to, out).await.unwrap();
        assert_eq!((answer.status().as_u16(), std::rc::Rc::strong_count(&held)), (200, 2));
        drop(answer);
        until("the upload's end", || std::rc::Rc::strong_count(&held) == 1).await;
        until("the reset", || in_flight(&server) == 0).await;
        assert_eq!(client.counts().open, 1);
    });
}

#[test]
fn a_connection_that_went_away_is_replaced() {
    run(async |client| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = hyper::service::service_fn(async |_: http::Request<hyper::body::Incoming>| {
                    Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from("hello"))))
                });
                tokio::task::spawn_local(async move {
                    let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    let mut served = pin!(served.serve_connection(TokioIo::new(stream), answer));
                    // Sends GOAWAY after a while.
                    tokio::select! {
                        _ = &mut served => return,
                        () = tokio::time::sleep(Duration::from_millis(10)) => {}
                    }
                    served.as_mut().graceful_shutdown();
                    let _ = served.await;
                });
            }
        });
        let to = origin(&url, &ConnectOptions { protocol: Protocol::Http2, ..ConnectOptions::default() });
        for _ in 0..10 {
            assert_eq!(get(&client, &to).await.unwrap(), hello());
            tokio::time::sleep(Duration::from_millis(4)).await;
        }
        assert!(client.counts().connected > 1, "{:?}", client.counts());
        assert!(client.counts().open <= 1);
    });
}

#[test]
fn trailers_of_a_request_have_no_fields_that_only_its_head_may_have() {
    run(async |client| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = hyper::service::service_fn(async |request: http::Request<hyper::body::Incoming>| {
                    let came = request.into_body().collect().await?;
                    let mut names: Vec<&str> =
                        came.trailers().iter().flat_map(|all| all.keys()).map(http::HeaderName::as_str).collect();
                    names.sort_unstable();
                    Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(names.join(" ")))))
                });
                let served = hyper::server::conn::http2::Builder::new(LocalExecutor);
                tokio::task::spawn_local(async move { served.serve_connection(TokioIo::new(stream), answer).await });
            }
        });
        let to = origin(&url, &ConnectOptions { protocol: Protocol::Http2, ..ConnectOptions::default() });
        for (sent, expected) in [
            (&["x-sum", "authorization", "if-match", "grpc-status", "x-forwarded-for"][..], "grpc-status x-sum"),
            (&["cookie"], ""),
        ] {
            let trailers: HeaderMap = sent.iter().map(|name| (name.parse().unwrap(), "1".parse().unwrap())).collect();
            let body = Full::new(Bytes::from("abc")).with_trailers(async { Some(Ok(trailers)) });
            let body = OutgoingBody::Stream(Box::pin(body.map_err(|never: std::convert::Infallible| match never {})));
            let answer = super::send(&client, &to, Method::POST, body).await.unwrap();
            assert_eq!(whole(answer).await.unwrap(), (200, expected.into()));
        }
    });
}
