//! The HTTP server under a scripted service.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the test's clock is not the server's")]

use std::future::{Future as _, poll_fn};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use weir_base::Nanos;
use weir_server::{
    self as server, Options, RequestBody, RequestContext, ResponseBody, RunningServer, ServerError, ServiceReply,
    StatelessService,
};
use weir_testing::{Raw, until};

const PATIENCE: Duration = Duration::from_secs(30);

/// A service with responses by path, and counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Scripted {
    pub(super) begun: Arc<AtomicU64>,
    pub(super) given_up: Arc<AtomicU64>,
    /// The client's end of a connection.
    pub(super) client: Arc<Mutex<Option<TcpStream>>>,
}

/// Counts itself when dropped early.
struct UntilDone(Option<Arc<AtomicU64>>);

impl Drop for UntilDone {
    fn drop(&mut self) {
        if let Some(count) = &self.0 {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl StatelessService for Scripted {
    async fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> ServiceReply {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let mut pending = UntilDone(Some(Arc::clone(&self.given_up)));
        let text = match request.uri().path() {
            "/reset" => return ServiceReply::Reset,
            "/never" => return context.hang().await,
            "/order" => order(context).await,
            "/early" => early(context).await,
            "/late" => {
                // It comes after the last time that the event loop asks before the response.
                self.client.lock().unwrap().as_mut().unwrap().write_all(b"\r\n").unwrap();
                "sent".to_owned()
            }
            "/ignore" => "ignored".to_owned(),
            "/trailers" => {
                let body = request.into_body().collect().await.unwrap();
                let trailers = body.trailers().map(|trailers| format!("{trailers:?}"));
                format!("{:?} {trailers:?}", body.to_bytes())
            }
            "/echo" => return Response::new(ResponseBody::from(request.into_body())).into(),
            "/sum" => {
                let method = request.method().clone();
                let body = context.read_body(request.into_body(), 1 << 20).await.unwrap();
                format!("{method} {} {}", body.len(), body.iter().map(|b| u64::from(*b)).sum::<u64>())
            }
            path => {
                let ms = path.trim_start_matches('/').parse().unwrap();
                context.sleep(Nanos::from_millis(ms)).await;
                format!("after {ms} ms")
            }
        };
        pending.0 = None;
        Response::new(ResponseBody::from(text)).into()
    }
}

/// Wakes a task, and notes which wait did.
struct Noted {
    wait_ms: u64,
    woken: Arc<Mutex<Vec<u64>>>,
    task: Waker,
}

impl Wake for Noted {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap().push(self.wait_ms);
        self.task.wake_by_ref();
    }
}

/// Waits that start in another order than they end, some of them dropped, in the order in which they wake: a task that is
/// late polls those that have ended meanwhile in the order of their creation.
async fn order(context: &RequestContext) -> String {
    let woken = Arc::new(Mutex::new(Vec::new()));
    // None ends before all have begun.
    let begun = context.now() + Nanos::from_secs(1);
    {
        let mut given_up = context.sleep_until(begun + Nanos::from_millis(3));
        let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut given_up).poll(cx))).await;
        assert!(polled.is_pending());
    }
    let mut waits: Vec<_> =
        [40, 15, 25, 15, 0, 5].map(|ms| (ms, context.sleep_until(begun + Nanos::from_millis(ms)))).into();
    poll_fn(|cx| {
        waits.retain_mut(|(wait_ms, wait)| {
            let noted = Noted { wait_ms: *wait_ms, woken: Arc::clone(&woken), task: cx.waker().clone() };
            Pin::new(wait).poll(&mut Context::from_waker(&Waker::from(Arc::new(noted)))).is_pending()
        });
        if waits.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let woken = woken.lock().unwrap();
    format!("{woken:?}")
}

/// Number of waits that ended early.
async fn early(context: &RequestContext) -> String {
    let mut early = 0;
    for us in (0..3000).step_by(37) {
        let until = context.now() + Nanos(us * 1000);
        context.sleep_until(until).await;
        early += u64::from(context.now() < until);
    }
    early.to_string()
}

pub(super) fn start(options: &Options) -> (Scripted, RunningServer) {
    let service = Scripted::default();
    let running = server::start(service.clone(), options).unwrap();
    (service, running)
}

pub(super) fn connect(running: &RunningServer) -> Raw {
    Raw::connect(&running.address().to_string())
}

#[test]
fn waits_end_in_the_order_of_their_times() {
    let (_, running) = start(&Options::default());
    assert_eq!(connect(&running).get("/order").text(), "[0, 5, 15, 15, 25, 40]");
}

#[test]
fn no_wait_ends_early() {
    let (_, running) = start(&Options::default());
    assert_eq!(connect(&running).get("/early").text(), "0");
}

#[test]
fn a_response_without_a_client_is_abandoned() {
    let (service, running) = start(&Options::default());
    let mut client = connect(&running);
    client.send("GET /60000 HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the request has begun", PATIENCE, || service.begun.load(Ordering::SeqCst) == 1);
    drop(client);
    until("the answer is given up", PATIENCE, || service.given_up.load(Ordering::SeqCst) == 1);
}

#[test]
fn a_reset_reaches_the_peer_as_one() {
    let (_, running) = start(&Options::default());
    let mut client = connect(&running);
    client.send("GET /reset HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.is_reset());
}

#[test]
fn a_last_response_arrives_whatever_comes_at_the_close() {
    let (service, running) = start(&Options::default());
    for request in ["GET /late HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET /late HTTP/1.0\r\n\r\n"] {
        for _ in 0..20 {
            let mut client = TcpStream::connect(running.address()).unwrap();
            *service.client.lock().unwrap() = Some(client.try_clone().unwrap());
            client.write_all(request.as_bytes()).unwrap();
            let mut received = [0; 1000];
            let length = client.read(&mut received).unwrap();
            assert!(received[..length].ends_with(b"\r\n\r\nsent"), "{request}");
        }
    }
}

#[test]
fn a_stop_awaits_pending_responses() {
    let (service, running) = start(&Options::default());
    let mut client = connect(&running);
    client.send("GET /100 HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the request has begun", PATIENCE, || service.begun.load(Ordering::SeqCst) == 1);
    running.stop(Duration::from_secs(60));
    assert!(String::from_utf8(client.rest()).unwrap().ends_with("after 100 ms"));
}

#[test]
fn a_stop_does_not_await_idle_connections_or_responses_that_never_come() {
    let (service, running) = start(&Options::default());
    let idle = connect(&running);
    let mut hung = connect(&running);
    let mut answered = connect(&running);
    assert_eq!(answered.get("/0").text(), "after 0 ms");
    hung.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the requests have begun", PATIENCE, || service.begun.load(Ordering::SeqCst) == 2);
    let begun = Instant::now();
    running.stop(Duration::from_secs(60));
    assert!(begun.elapsed() < Duration::from_secs(30));
    for mut client in [idle, hung, answered] {
        assert_eq!(client.rest(), b"");
    }
}

#[test]
fn a_stop_ends_with_its_grace_time() {
    let (service, running) = start(&Options::default());
    let mut client = connect(&running);
    client.send("GET /60000 HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the request has begun", PATIENCE, || service.begun.load(Ordering::SeqCst) == 1);
    let begun = Instant::now();
    running.stop(Duration::from_millis(50));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(client.rest(), b"");
    assert_eq!(service.given_up.load(Ordering::SeqCst), 1);
}

#[test]
fn several_event_loops_share_a_port() {
    let (service, running) = start(&Options { workers: 4, ..Options::default() });
    for _ in 0..40 {
        assert_eq!(connect(&running).get("/0").text(), "after 0 ms");
    }
    assert_eq!(service.begun.load(Ordering::SeqCst), 40);
}

#[test]
fn a_used_port_is_an_error_also_for_several_event_loops() {
    for (first, second) in [(1, 1), (1, 4), (4, 1), (4, 4)] {
        let (_, running) = start(&Options { workers: first, ..Options::default() });
        let port = running.address().port();
        let refused = server::start(Scripted::default(), &Options { port, workers: second, ..Options::default() });
        assert!(matches!(refused, Err(ServerError::Listen(..))), "{first} {second} {refused:?}");
    }
}
