//! Active health checks of hosts, beside all calls. One event loop makes them for all.

use std::borrow::Cow;
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
use weir_base::Nanos;
use weir_call::{CallEngine, Upstream};
use weir_machine::executor::spawn_task;
use weir_net::client::{Origin, OutgoingBody, OutgoingRequest, WireOptions};

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
            let result = tokio::select! {
                result = probe(&engine, &host.origin, &check.probe) => result,
                () = engine.timer().sleep(check.timeout) => Err(format!("no response within {}", check.timeout).into()),
            };
            let what = check.probe.name();
            let cause = || match &result {
                Ok(()) => format!("{what} passed"),
                Err(why) => format!("{what}: {why}"),
            };
            upstream.health_checked(engine.timer().now(), host.slot, result.is_ok(), cause);
        });
    }
    while checks.join_next().await.is_some() {}
}

impl HealthProbe {
    /// Name in a log, without the query, which may have secrets.
    fn name(&self) -> String {
        match self {
            Self::Http { path, .. } => format!("GET {}", path.split('?').next().unwrap_or_default()),
            Self::Tcp => "TCP check".to_owned(),
            Self::Grpc { .. } => "gRPC health check".to_owned(),
        }
    }
}

/// Makes a health check.
///
/// # Errors
/// The host is unhealthy; the reason.
async fn probe(engine: &CallEngine, origin: &Arc<Origin>, probe: &HealthProbe) -> Result<(), Cow<'static, str>> {
    match probe {
        HealthProbe::Http { path, statuses } => {
            let request = OutgoingRequest {
                method: &Method::GET,
                target: path,
                headers: &HeaderMap::new(),
                extra_headers: &[],
                body: OutgoingBody::Empty,
                upgrade: false,
                wire: WireOptions::default(),
            };
            let response = engine.client().send(origin, request).await.map_err(|error| error.text)?;
            let status = response.status().as_u16();
            let is_good = statuses.iter().any(|range| range.contains(&status));
            if is_good { Ok(()) } else { Err(format!("status {status}").into()) }
        }
        HealthProbe::Tcp => engine.client().probe(origin).await.map_err(|error| error.text),
        HealthProbe::Grpc { service } => check_grpc(engine, origin, service).await,
    }
}

/// Asks a server's health service (grpc/grpc, doc/health-checking.md).
async fn check_grpc(engine: &CallEngine, origin: &Arc<Origin>, service: &str) -> Result<(), Cow<'static, str>> {
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
        wire: WireOptions::default(),
    };
    let response = engine.client().send(origin, request).await.map_err(|error| error.text)?;
    if response.status() != StatusCode::OK {
        return Err(format!("status {}", response.status().as_u16()).into());
    }
    let invalid = || Cow::from("an invalid response");
    let body = Limited::new(response.into_body(), grpc_health::MAX_RESPONSE_BYTES);
    let collected = body.collect().await.map_err(|_| invalid())?;
    let status = collected.trailers().and_then(|trailers| trailers.get("grpc-status"));
    if let Some(status) = status.filter(|status| *status != "0") {
        let code: Option<u8> = status.to_str().ok().and_then(|code| code.parse().ok());
        return Err(code.map_or_else(invalid, |code| format!("gRPC status {code}").into()));
    }
    match grpc_health::is_serving(&collected.to_bytes()) {
        Some(true) => Ok(()),
        Some(false) => Err("not serving".into()),
        None => Err(invalid()),
    }
}
