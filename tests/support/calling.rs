//! An event loop that makes calls.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use tokio::task::LocalSet;
use weir::call::{Answer, AnswerBody, Ask, Engine, Failed, Host, Plan, Success, Upstream};
use weir::decide::Nanos;
use weir::decide::hosts::{Balance, Health};
use weir::decide::policy::Policy;
use weir::http::client::{Client, Options, Origin, OutBody, Reach};
use weir::http::target::Target;
use weir::machine::clock::Clock;
use weir::machine::timer::Timer;

use super::Server;

/// Runs a test on an event loop of its own, where it can make calls.
pub(crate) fn calling(test: impl AsyncFnOnce(Engine)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let (timer, rings) = Timer::new(Clock::starting_in(Nanos::ZERO)).unwrap();
        tokio::task::spawn_local(rings);
        test(Engine::new(Client::new(timer.clone(), Options::default()), timer, 1)).await;
    });
}

pub(crate) fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

pub(crate) fn origin(url: &str) -> Arc<Origin> {
    Arc::new(Origin::new(&Target::parse(url).unwrap(), &Reach::default()).unwrap())
}

/// Hosts of equal weight.
pub(crate) fn upstream(urls: &[String]) -> Upstream {
    let hosts = urls.iter().map(|url| Host { origin: origin(url), weight: 1 }).collect();
    Upstream::new(hosts, Balance::RoundRobin, Health::default())
}

/// Calls of this policy to one service.
pub(crate) fn plan(policy: Policy, server: &Server) -> Plan {
    Plan::new(policy, Success::default(), Arc::new(upstream(&[server.url("/")])))
}

/// How many wait for a place.
pub(crate) fn waiting(plan: &Plan) -> u32 {
    plan.upstream.places().map_or(0, |places| places.room().waiting())
}

/// A GET of /.
pub(crate) async fn get(engine: &Engine, plan: &Plan) -> Result<Answer, Failed> {
    call(engine, plan, &Method::GET, OutBody::Empty).await
}

pub(crate) async fn call(engine: &Engine, plan: &Plan, method: &Method, body: OutBody) -> Result<Answer, Failed> {
    let headers = HeaderMap::new();
    engine.call(&Ask::new(plan, method, "/", &headers), body).await
}

/// The whole body.
pub(crate) async fn text(body: AnswerBody) -> String {
    let bytes: Bytes = body.collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}
