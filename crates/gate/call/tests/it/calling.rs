//! An event loop that makes calls.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use tokio::task::LocalSet;
use weir_base::Nanos;
use weir_call::{
    CallBody, CallEngine, CallFailure, CallPlan, CallRequest, CallResponse, Success, Upstream, UpstreamHost,
};
use weir_machine::clock::Clock;
use weir_machine::timer::Timer;
use weir_net::client::{Client, ConnectOptions, Options, Origin, OutgoingBody};
use weir_net::target::Target;
use weir_resilience::policy::Policy;
use weir_resilience::upstream::hosts::{BalancePolicy, OutlierRule};

use weir_testing::Server;

/// Runs a test on an event loop of its own, where it can make calls.
pub(crate) fn calling(test: impl AsyncFnOnce(CallEngine)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let (timer, rings) = Timer::new(Clock::starting_in(Nanos::ZERO)).unwrap();
        tokio::task::spawn_local(rings);
        test(CallEngine::new(Client::new(timer.clone(), Options::default()), timer, 1)).await;
    });
}

pub(crate) fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

pub(crate) fn origin(url: &str) -> Arc<Origin> {
    Arc::new(Origin::new(&Target::parse(url).unwrap(), &ConnectOptions::default()).unwrap())
}

/// Hosts of equal weight.
pub(crate) fn upstream(urls: &[String]) -> Upstream {
    let hosts = urls.iter().map(|url| UpstreamHost { origin: origin(url), weight: 1 }).collect();
    Upstream::new(hosts, BalancePolicy::RoundRobin, OutlierRule::default())
}

/// Calls of this policy to one service.
pub(crate) fn plan(policy: Policy, server: &Server) -> CallPlan {
    CallPlan::new(policy, Success::default(), Arc::new(upstream(&[server.url("/")])))
}

/// How many wait for a place.
pub(crate) fn waiting(plan: &CallPlan) -> u32 {
    plan.upstream.permits().map_or(0, |places| places.slots().waiting())
}

/// A GET of /.
pub(crate) async fn get(engine: &CallEngine, plan: &CallPlan) -> Result<CallResponse, CallFailure> {
    call(engine, plan, &Method::GET, OutgoingBody::Empty).await
}

pub(crate) async fn call(
    engine: &CallEngine,
    plan: &CallPlan,
    method: &Method,
    body: OutgoingBody,
) -> Result<CallResponse, CallFailure> {
    let headers = HeaderMap::new();
    engine.call(&CallRequest::new(plan, method, "/", &headers), body).await
}

/// A GET of / as a value, as long as that does.
pub(crate) async fn get_directly(engine: &CallEngine, plan: &Arc<CallPlan>) -> Result<CallBody, CallFailure> {
    let headers = HeaderMap::new();
    let request = CallRequest::new(plan, &Method::GET, "/", &headers);
    let mut begun = engine.begin_direct(plan, &request, &OutgoingBody::Empty);
    if let Some(call) = &mut begun
        && let Some(whole) = poll_fn(|cx| call.poll(cx)).await
    {
        return Ok(CallBody::Buffered(whole.body));
    }
    let ended = engine.resume(begun.map(Box::new), &request, OutgoingBody::Empty, &|_| {}).await;
    ended.map(|response| response.body)
}

/// Polls a call until a condition holds.
pub(crate) async fn until<T>(call: &mut (impl Future<Output = T> + Unpin), wanted: impl Fn() -> bool) {
    let come = async {
        while !wanted() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = call => panic!("it ended"),
        () = come => {}
        () = tokio::time::sleep(Duration::from_secs(120)) => panic!("waited in vain"),
    }
}

/// The whole body.
pub(crate) async fn text(body: CallBody) -> String {
    let bytes: Bytes = body.collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}
