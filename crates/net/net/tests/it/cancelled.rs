//! Dropped requests leave nothing behind.

use std::pin::pin;
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use weir_base::Nanos;
use weir_net::client::{Client, ClientCounts, ConnectOptions, OutgoingBody};

use super::{get, hello, origin, run, send, to, until};
use weir_testing::{Reply, Server};

/// Polls a request until the condition holds, then drops it.
async fn leave(client: &Client, server: &Server, condition: impl Fn() -> bool) {
    let to = to(server);
    let request = pin!(get(client, &to));
    tokio::select! {
        got = request => panic!("{got:?}"),
        () = until("the moment to leave", condition) => {}
    }
}

#[test]
fn a_dropped_request_without_a_response_closes_its_connection() {
    let replies =
        [Reply::nothing(), Reply::raw("HTTP/1.1 200 OK\r\nContent-Le"), Reply::raw("HTTP/1.1 103 Early Hints\r\n\r\n")];
    for reply in replies {
        let server = Server::start(move |_| reply.clone());
        run(async |client| {
            leave(&client, &server, || server.requests() == 1).await;
            assert_eq!(client.counts(), ClientCounts { connected: 1, ..ClientCounts::default() });
            server.wait_for("the close", |counts| counts.open == 0);
        });
    }
}

#[test]
fn a_pending_connection_ends_with_its_request() {
    // The service accepts the connection and never completes the handshake.
    let server = Server::build().greeting(Reply::nothing()).start(|_| Reply::nothing());
    run(async |client| {
        for protocol in [weir_net::client::Protocol::Http1, weir_net::client::Protocol::Auto] {
            let before = server.counts().connections;
            let tls = weir_net::tls::TlsOptions { insecure: true, ..Default::default() };
            let tls = Some(weir_net::tls::Tls::shared(&tls).unwrap());
            let to = origin(
                &server.url("/").replace("http", "https"),
                &ConnectOptions { tls, protocol, ..ConnectOptions::default() },
            );
            {
                let request = pin!(get(&client, &to));
                tokio::select! {
                    got = request => panic!("{got:?}"),
                    () = until("a connection", || server.counts().connections > before) => {}
                }
            }
            until("its end", || server.counts().open == 0 && client.counts() == ClientCounts::default()).await;
        }
    });
}

#[test]
fn a_short_rest_of_a_body_is_drained_and_the_connection_stays() {
    let server = Server::start(|_| {
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\nhello")
            .wait(Duration::from_millis(5))
            .send("x".repeat(59_995))
    });
    run(async |client| {
        let to = to(&server);
        for _ in 0..3 {
            let answer = send(&client, &to, Method::GET, OutgoingBody::Empty).await.unwrap();
            drop(answer);
            until("the drain", || client.counts().idle == 1).await;
        }
        assert_eq!(client.counts(), ClientCounts { open: 1, idle: 1, connected: 1, reused: 2, resent: 0 });
    });
}

#[test]
fn a_long_rest_or_one_of_unknown_length_is_not_drained() {
    for head in ["Content-Length: 70000", "Transfer-Encoding: chunked", "Connection: close\r\nContent-Length: 9"] {
        let server = Server::start(move |_| Reply::raw(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nhe")));
        run(async |client| {
            let mut answer = send(&client, &to(&server), Method::GET, OutgoingBody::Empty).await.unwrap();
            assert!(answer.body_mut().frame().await.unwrap().is_ok());
            assert_eq!(client.counts().open, 1);
            drop(answer);
            assert_eq!(client.counts().open, 0);
            server.wait_for("the close", |counts| counts.open == 0);
        });
    }
}

#[test]
fn a_rest_that_does_not_come_times_out() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"));
    run(async |client| {
        drop(send(&client, &to(&server), Method::GET, OutgoingBody::Empty).await.unwrap());
        assert_eq!(client.counts().open, 1);
        until("the end of patience", || client.counts().open == 0).await;
    });
}

#[test]
fn a_body_may_outlive_client_and_event_loop() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"));
    let mut kept = None;
    run(async |client| kept = Some(send(&client, &to(&server), Method::GET, OutgoingBody::Empty).await.unwrap()));
    drop(kept);
    server.wait_for("the close", |counts| counts.open == 0);
}

#[test]
fn a_request_that_leaves_the_queue_blocks_no_other() {
    let server = Server::start(|seen| if seen.number == 0 { Reply::nothing() } else { Reply::ok("hello") });
    run(async |client| {
        let to = origin(&server.url("/"), &ConnectOptions { max_connections: Some(1), ..ConnectOptions::default() });
        let mut first = Box::pin(get(&client, &to));
        let mut second = Box::pin(get(&client, &to));
        let mut third = Box::pin(get(&client, &to));
        tokio::select! {
            biased;
            _ = &mut first => panic!(),
            _ = &mut second => panic!(),
            _ = &mut third => panic!(),
            () = until("the first", || server.requests() == 1) => {}
        }
        // The slot is given to the second, which is dropped before it is polled.
        drop(first);
        drop(second);
        assert_eq!(third.await.unwrap(), hello());
        client.sweep(Nanos::ZERO);
        assert_eq!(client.counts().open, 1);
    });
}
