//! Calls over HTTP/2: an attempt is a stream, so cancelling one costs no connection.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::calling::{call, calling, get, ms};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use weir_call::{CallBody, CallPlan, Success, Upstream, UpstreamHost};
use weir_net::client::{ConnectOptions, Origin, OutgoingBody, Protocol};
use weir_net::target::Target;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_resilience::upstream::hosts::{BalancePolicy, OutlierRule};

#[derive(Clone, Copy)]
struct LocalExecutor;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

/// Counts the end of a request, also by cancellation.
struct Running(Rc<RefCell<Vec<&'static str>>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.borrow_mut().push("ended");
    }
}

/// A service on this event loop that responds to all but every second GET.
async fn service(log: Rc<RefCell<Vec<&'static str>>>) -> Upstream {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let log = Rc::clone(&log);
            let answer = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                let log = Rc::clone(&log);
                async move {
                    let _running = Running(Rc::clone(&log));
                    log.borrow_mut().push("begun");
                    let turns = log.borrow().iter().filter(|what| **what == "begun").count();
                    if request.method() == Method::GET && turns % 2 == 1 {
                        std::future::pending::<()>().await;
                    }
                    let body = if request.method() == Method::GET { "{}" } else { "" };
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
                }
            });
            let served = hyper::server::conn::http2::Builder::new(LocalExecutor);
            tokio::task::spawn_local(async move { served.serve_connection(TokioIo::new(stream), answer).await });
        }
    });
    let reach = ConnectOptions { protocol: Protocol::Http2, ..ConnectOptions::default() };
    let origin = Arc::new(Origin::new(&Target::parse(&url).unwrap(), &reach).unwrap());
    Upstream::new(vec![UpstreamHost { origin, weight: 1 }], BalancePolicy::RoundRobin, OutlierRule::default())
}

#[test]
fn a_cancelled_attempt_resets_its_stream_and_keeps_the_connection() {
    calling(async |engine| {
        let log = Rc::default();
        let upstream = Arc::new(service(Rc::clone(&log)).await);
        let stages = vec![HedgeStage { after: StageTrigger::Time(ms(5)), on_failure: true, attempts: 1 }];
        let policy = Policy { stages, budget: None, deadline: ms(5000), ..Policy::default() };
        let mut success = Success::default();
        for json in [false, true] {
            success.json = json;
            let plan = CallPlan::new(policy.clone(), success.clone(), Arc::clone(&upstream));
            let answer = get(&engine, &plan).await.unwrap();
            assert_eq!((answer.call_trace.attempts.len(), matches!(answer.body, CallBody::Buffered(_))), (2, json));
            assert_eq!(answer.body.collect().await.unwrap().to_bytes(), "{}");
            for _ in 0..1000 {
                if log.borrow().iter().filter(|what| **what == "ended").count() * 2 == log.borrow().len() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let running = log.borrow().iter().map(|what| if *what == "begun" { 1 } else { -1 }).sum::<i32>();
            assert_eq!(running, 0, "{:?}", log.borrow());
        }
        // Without a hedge, which would begin if this machine took 5 ms for it.
        let alone = CallPlan::new(Policy { stages: Vec::new(), ..policy }, success, Arc::clone(&upstream));
        let head = call(&engine, &alone, &Method::HEAD, OutgoingBody::Empty).await;
        assert!(matches!(head.unwrap().body, CallBody::Buffered(_)), "there is nothing to come");
        let counts = engine.client().counts();
        assert_eq!((counts.open, counts.connected), (1, 1), "{counts:?}");
        assert_eq!(upstream.counts.outcomes(), [("won", 3), ("failed", 0), ("cancelled", 2)]);
        assert_eq!(upstream.counts.in_flight(), 0);
    });
}
