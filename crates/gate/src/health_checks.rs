//! Active health checks of hosts, beside all calls. One event loop makes them for all.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderMap, Method};
use tokio::task::JoinSet;

use super::config::HealthCheck;
use super::config_cell::ConfigCell;
use weir_call::{CallEngine, Upstream};
use weir_decide::Nanos;
use weir_http::client::{OutgoingBody, OutgoingRequest};

/// Interval of looking for upstreams of a reload.
const RELOAD_POLL_INTERVAL: Nanos = Nanos::SECOND;

/// Starts the checks of the current configuration and of all that replace it.
pub(super) fn start(current: Arc<ConfigCell>, engine: CallEngine) {
    tokio::task::spawn_local(async move {
        let running = Rc::new(RefCell::new(HashSet::new()));
        loop {
            for (_, upstream) in &current.get().upstreams {
                let Some(check) = upstream.health_check.clone() else { continue };
                // An upstream that a reload has not changed is the same object.
                let identity = Arc::as_ptr(&upstream.upstream) as usize;
                if running.borrow_mut().insert(identity) {
                    let (engine, running) = (engine.clone(), Rc::clone(&running));
                    let (upstream, check) = (Arc::downgrade(&upstream.upstream), Rc::new(check));
                    tokio::task::spawn_local(async move {
                        while let Some(upstream) = upstream.upgrade() {
                            check_all(&engine, &upstream, &check).await;
                            drop(upstream);
                            engine.timer().sleep(check.interval).await;
                        }
                        running.borrow_mut().remove(&identity);
                    });
                }
            }
            engine.timer().sleep(RELOAD_POLL_INTERVAL).await;
        }
    });
}

/// Checks each host once, concurrently, so that a host that hangs does not delay the others.
async fn check_all(engine: &CallEngine, upstream: &Arc<Upstream>, check: &Rc<HealthCheck>) {
    let mut checks = JoinSet::new();
    for host in 0..upstream.hosts().len() {
        let (engine, upstream, check) = (engine.clone(), Arc::clone(upstream), Rc::clone(check));
        checks.spawn_local(async move {
            let ok = is_healthy(&engine, &upstream, host, &check).await;
            upstream.health_checked(engine.timer().now(), host, ok);
        });
    }
    while checks.join_next().await.is_some() {}
}

async fn is_healthy(engine: &CallEngine, upstream: &Upstream, host: usize, check: &HealthCheck) -> bool {
    let request = OutgoingRequest {
        method: &Method::GET,
        target: &check.path,
        headers: &HeaderMap::new(),
        extra_headers: &[],
        body: OutgoingBody::Empty,
        upgrade: false,
    };
    let response = engine.client().send(&upstream.hosts()[host].origin, request);
    tokio::select! {
        response = response => response.is_ok_and(|response| {
            let status = response.status().as_u16();
            check.statuses.iter().any(|(from, to)| (*from..=*to).contains(&status))
        }),
        () = engine.timer().sleep(check.timeout) => false,
    }
}
