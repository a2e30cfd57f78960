//! Calls a service with a deadline of 1 s, and hedges after 100 ms or a failure.
//!
//!     cargo run --release --example call -- http://localhost:8000/

use std::{error::Error, sync::Arc};

use http::{HeaderMap, Method};
use weir::base::Nanos;
use weir::call::{CallEngine, CallPlan, CallRequest, Success, Upstream, UpstreamHost};
use weir::machine::{clock::Clock, timer::Timer};
use weir::net::client::{Client, ConnectOptions, Options, Origin, OutgoingBody};
use weir::net::target::Target;
use weir::resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir::resilience::upstream::hosts::{BalancePolicy, OutlierRule};

fn main() -> Result<(), Box<dyn Error>> {
    let target = Target::parse(&std::env::args().nth(1).ok_or("usage: call URL")?).map_err(|e| e.to_string())?;
    let stages = vec![HedgeStage { after: StageTrigger::Time(Nanos::from_millis(100)), on_failure: true, attempts: 1 }];
    let policy = Policy { deadline: Nanos::SECOND, stages, ..Policy::default() };
    let origin = Arc::new(Origin::new(&target, &ConnectOptions::default()).map_err(|e| e.to_string())?);
    let hosts = vec![UpstreamHost { origin, weight: 1 }];
    let upstream = Upstream::new(hosts, BalancePolicy::RoundRobin, OutlierRule::default());
    let plan = CallPlan::new(policy, Success::default(), Arc::new(upstream));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let (timer, alarms) = Timer::new(Clock::starting_in(Nanos::ZERO))?;
        tokio::task::spawn_local(alarms);
        let engine = CallEngine::new(Client::new(timer.clone(), Options::default()), timer, 1);
        let (method, headers) = (Method::GET, HeaderMap::new());
        let request = CallRequest::new(&plan, &method, &target.path, &headers);
        match engine.call(&request, OutgoingBody::Empty).await {
            Ok(response) => print!("{}\n{}", response.head.status, response.call_trace),
            Err(failure) => print!("no success: {:?}\n{}", failure.reason, failure.call_trace),
        }
        Ok(())
    })
}
