//! Calls a service that may be slow: a second copy after 100 ms or a failure, and an answer within a second.
//!
//!     cargo run --release --example call -- http://localhost:8000/

use std::{fmt::Display, sync::Arc};

use http::{HeaderMap, Method};
use weir::call::{CallEngine, CallPlan, CallRequest, Success, Upstream, UpstreamHost};
use weir::decide::Nanos;
use weir::decide::hosts::{BalancePolicy, OutlierRule};
use weir::decide::policy::{HedgeStage, Policy, StageTrigger};
use weir::http::client::{Client, ConnectOptions, Options, Origin, OutgoingBody};
use weir::http::target::Target;
use weir::machine::{clock::Clock, timer::Timer};

fn main() -> Result<(), String> {
    let target = Target::parse(&std::env::args().nth(1).ok_or("usage: call URL")?).map_err(text)?;
    let stages = vec![HedgeStage { after: StageTrigger::Time(Nanos::from_millis(100)), on_failure: true, attempts: 1 }];
    let policy = Policy { deadline: Nanos::SECOND, stages, ..Policy::default() };
    let host =
        UpstreamHost { origin: Arc::new(Origin::new(&target, &ConnectOptions::default()).map_err(text)?), weight: 1 };
    let upstream = Upstream::new(vec![host], BalancePolicy::RoundRobin, OutlierRule::default());
    let plan = CallPlan::new(policy, Success::default(), Arc::new(upstream));

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(text)?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let (timer, rings) = Timer::new(Clock::starting_in(Nanos::ZERO)).map_err(text)?;
        tokio::task::spawn_local(rings);
        let engine = CallEngine::new(Client::new(timer.clone(), Options::default()), timer, 1);
        match engine
            .call(&CallRequest::new(&plan, &Method::GET, &target.path, &HeaderMap::new()), OutgoingBody::Empty)
            .await
        {
            Ok(answer) => print!("{}\n{}", answer.head.status, answer.call_trace),
            Err(failed) => print!("no success: {:?}\n{}", failed.reason, failed.call_trace),
        }
        Ok(())
    })
}

fn text(error: impl Display) -> String {
    error.to_string()
}
