//! Looks after the hosts' health by asking them, apart from all calls. One event loop does it for all.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderMap, Method};
use tokio::task::JoinSet;

use super::config::HealthCheck;
use super::current::ConfigCell;
use crate::call::{CallEngine, Upstream};
use crate::decide::Nanos;
use crate::http::client::{OutgoingBody, OutgoingRequest};

/// How often it looks whether a reload has brought other hosts.
const RELOAD_POLL_INTERVAL: Nanos = Nanos::SECOND;

/// Checks the hosts of every setup that comes.
pub(super) fn start(current: Arc<ConfigCell>, engine: CallEngine) {
    tokio::task::spawn_local(async move {
        let running = Rc::new(RefCell::new(HashSet::new()));
        loop {
            for (_, upstream) in &current.get().upstreams {
                let Some(check) = upstream.health_check.clone() else { continue };
                // An upstream that a reload left alone is the same one.
                let place = Arc::as_ptr(&upstream.upstream) as usize;
                if running.borrow_mut().insert(place) {
                    let (engine, running) = (engine.clone(), Rc::clone(&running));
                    let (upstream, check) = (Arc::downgrade(&upstream.upstream), Rc::new(check));
                    tokio::task::spawn_local(async move {
                        while let Some(upstream) = upstream.upgrade() {
                            check_all(&engine, &upstream, &check).await;
                            drop(upstream);
                            engine.timer().sleep(check.interval).await;
                        }
                        running.borrow_mut().remove(&place);
                    });
                }
            }
            engine.timer().sleep(RELOAD_POLL_INTERVAL).await;
        }
    });
}

/// Asks each host once, all at the same time: one that hangs must not keep the others from being asked.
async fn check_all(engine: &CallEngine, upstream: &Arc<Upstream>, check: &Rc<HealthCheck>) {
    let mut asked = JoinSet::new();
    for host in 0..upstream.hosts().len() {
        let (engine, upstream, check) = (engine.clone(), Arc::clone(upstream), Rc::clone(check));
        asked.spawn_local(async move {
            let well = is_healthy(&engine, &upstream, host, &check).await;
            upstream.health_checked(engine.timer().now(), host, well);
        });
    }
    while asked.join_next().await.is_some() {}
}

async fn is_healthy(engine: &CallEngine, upstream: &Upstream, host: usize, check: &HealthCheck) -> bool {
    let asked = OutgoingRequest {
        method: &Method::GET,
        target: &check.path,
        headers: &HeaderMap::new(),
        extra_headers: &[],
        body: OutgoingBody::Empty,
        upgrade: false,
    };
    let answer = engine.client().send(&upstream.hosts()[host].origin, asked);
    tokio::select! {
        answer = answer => answer.is_ok_and(|answer| {
            let status = answer.status().as_u16();
            check.statuses.iter().any(|(from, to)| (*from..=*to).contains(&status))
        }),
        () = engine.timer().sleep(check.timeout) => false,
    }
}
