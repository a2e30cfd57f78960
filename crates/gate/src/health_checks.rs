//! Active health checks of hosts, beside all calls. One event loop makes them for all.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use tokio::task::JoinSet;

use super::config::{HealthCheck, HealthProbe};
use super::config_cell::ConfigCell;
use super::grpc_health;
use weir_call::{CallEngine, Upstream};
use weir_decide::Nanos;
use weir_http::client::{Origin, OutgoingBody, OutgoingRequest};
use weir_machine::executor::spawn_task;

/// Interval of looking for upstreams of a reload.
const RELOAD_POLL_INTERVAL: Nanos = Nanos::SECOND;

/// Starts the checks of the current configuration and of all that replace it.
pub(super) fn start(current: Arc<ConfigCell>, engine: CallEngine) {
    spawn_task(async move {
        let running = Rc::new(RefCell::new(HashSet::new()));
        loop {
            for (_, upstream) in &current.get().upstreams {
                let Some(check) = upstream.health_check.clone() else { continue };
                // An upstream that a reload has not changed is the same object.
                let identity = Arc::as_ptr(&upstream.upstream) as usize;
                if running.borrow_mut().insert(identity) {
                    let (engine, running) = (engine.clone(), Rc::clone(&running));
                    let (upstream, check) = (Arc::downgrade(&upstream.upstream), Rc::new(check));
                    spawn_task(async move {
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
    for host in upstream.hosts(engine.timer().now()) {
        let (engine, upstream, check) = (engine.clone(), Arc::clone(upstream), Rc::clone(check));
        checks.spawn_local(async move {
            let ok = tokio::select! {
                ok = is_healthy(&engine, &host.origin, &check.probe) => ok,
                () = engine.timer().sleep(check.timeout) => false,
            };
            upstream.health_checked(engine.timer().now(), host.slot, ok);
        });
    }
    while checks.join_next().await.is_some() {}
}

async fn is_healthy(engine: &CallEngine, origin: &Arc<Origin>, probe: &HealthProbe) -> bool {
    match probe {
        HealthProbe::Http { path, statuses } => {
            let request = OutgoingRequest {
                method: &Method::GET,
                target: path,
                headers: &HeaderMap::new(),
                extra_headers: &[],
                body: OutgoingBody::Empty,
                upgrade: false,
            };
            engine.client().send(origin, request).await.is_ok_and(|response| {
                let status = response.status().as_u16();
                statuses.iter().any(|(from, to)| (*from..=*to).contains(&status))
            })
        }
        HealthProbe::Tcp => engine.client().probe(origin).await.is_ok(),
        HealthProbe::Grpc { service } => is_serving(engine, origin, service).await.unwrap_or(false),
    }
}

/// Asks a server's health service (grpc/grpc, doc/health-checking.md). None without a valid response.
async fn is_serving(engine: &CallEngine, origin: &Arc<Origin>, service: &str) -> Option<bool> {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/grpc")),
        (header::TE, HeaderValue::from_static("trailers")),
    ];
    let request = OutgoingRequest {
        method: &Method::POST,
        target: "/grpc.health.v1.Health/Check",
        headers: &headers.into_iter().collect(),
        extra_headers: &[],
        body: OutgoingBody::Bytes(grpc_health::request(service).into()),
        upgrade: false,
    };
    let response = engine.client().send(origin, request).await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    let collected = Limited::new(response.into_body(), grpc_health::MAX_RESPONSE_BYTES).collect().await.ok()?;
    let status = collected.trailers().and_then(|trailers| trailers.get("grpc-status"));
    if status.is_some_and(|status| status != "0") {
        return Some(false);
    }
    grpc_health::is_serving(&collected.to_bytes())
}
