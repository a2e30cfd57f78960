//! Upstreams with their hosts, concurrency limits, and ejections by hand.

use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::{AdminState, pages};
use crate::config_cell::ConfigCell;
use crate::gate_route::GateRoute;
use crate::local_responses;
use crate::runtime::{GateRuntime, UpstreamRuntime};
use weir_base::Nanos;
use weir_call::{PermitPool, Upstream};
use weir_machine::lock::lock;
use weir_resilience::ratelimit::top_callers::RejectedCaller;
use weir_resilience::upstream::circuit_breaker::State;
use weir_server::ResponseBody;

/// All upstreams.
pub(super) fn upstreams(config_cell: &ConfigCell) -> Value {
    let (runtime, now) = (config_cell.get(), config_cell.now());
    let object = |(name, runtime): &(String, UpstreamRuntime)| {
        let upstream = &runtime.upstream;
        let hosts = upstream.hosts(now).into_iter().map(|host| {
            json!({
                "host": host.origin.name(),
                "ejected": host.is_ejected,
                "condition": host.condition.name(),
                "in_flight": host.in_flight,
            })
        });
        json!({
            "name": name,
            "hosts": hosts.collect::<Vec<_>>(),
            "panicking": upstream.is_panicking(),
            "attempts_in_flight": upstream.counts.in_flight(),
            "attempts": counts(upstream.counts.outcomes()),
            "failures": counts(upstream.counts.failures().filter(|(_, count)| *count > 0)),
            "circuit": circuit(upstream, now),
            "throttled_fraction": upstream.throttled_fraction(now),
            "throttling": upstream.throttling_until().is_some(),
        })
    };
    runtime.upstreams.iter().map(object).collect()
}

/// Name of the state of an upstream's circuit breaker, if there is one.
pub(super) fn circuit(upstream: &Upstream, now: Nanos) -> Option<&'static str> {
    upstream.breaker_state(now).map(|state| match state {
        State::Closed => "closed",
        State::HalfOpen => "half-open",
        State::Open => "open",
    })
}

/// Counters by name.
pub(super) fn counts(all: impl IntoIterator<Item = (&'static str, u64)>) -> Value {
    Value::Object(all.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect::<Map<_, _>>())
}

/// All concurrency limits.
pub(super) fn limits(config_cell: &ConfigCell) -> Value {
    let (runtime, now) = (config_cell.get(), config_cell.now());
    let of_upstreams = runtime.upstreams.iter().filter_map(|(name, runtime)| {
        let permits = runtime.upstream.permits()?;
        Some(limit("upstream", name, permits))
    });
    let of_routes =
        runtime.routes.iter().filter_map(|route| Some(limit("route", &route.name, route.plan().permits.as_ref()?)));
    let budgets = runtime.routes.iter().filter_map(|route| {
        let remaining = lock(route.plan().budget.as_ref()?).remaining(now);
        Some(json!({ "route": route.name, "retry_budget_remaining": remaining }))
    });
    json!({
        "concurrency": of_upstreams.chain(of_routes).collect::<Vec<_>>(),
        "budgets": budgets.collect::<Vec<_>>(),
        "rejected_callers": rejected_callers(&runtime, now),
    })
}

/// Number of callers that are listed.
const MAX_CALLERS: usize = 10;

/// The callers with the most rejections, of all routes.
fn rejected_callers(runtime: &GateRuntime, now: Nanos) -> Value {
    let of_route = |route: &GateRoute| {
        let callers = route.caller_policy.top_rejected(now, MAX_CALLERS);
        callers.into_iter().map(|caller| (route.name.clone(), caller)).collect::<Vec<_>>()
    };
    let mut all: Vec<(String, RejectedCaller)> = runtime.routes.iter().flat_map(of_route).collect();
    all.sort_by_key(|(_, caller)| std::cmp::Reverse(caller.count));
    let listed = all.into_iter().take(MAX_CALLERS).map(|(route, caller)| {
        let RejectedCaller { name, reason, count } = caller;
        json!({ "route": route, "caller": name, "reason": reason, "rejected": count })
    });
    listed.collect()
}

/// A limit of an upstream or of a route, which `kind` says.
fn limit(kind: &str, name: &str, permits: &PermitPool) -> Value {
    let slots = permits.slots();
    json!({
        kind: name,
        "limit": slots.limit(),
        "in_flight": slots.in_flight(),
        "queue_length": slots.waiting(),
        // A number of priorities, 0 (low) to 3 (critical).
        "shed_threshold": f64::from(slots.shed_threshold()) / 256.0,
        "gradient": permits.gradient(),
    })
}

/// Ejects a host, or ends its ejection, as a health check of this result would: with the upstream's rule for how many
/// hosts have to be left.
pub(super) fn set_ejected(state: &AdminState, name: &str, query: Option<&str>, eject: bool) -> Response<ResponseBody> {
    let (runtime, now) = (state.config_cell.get(), state.config_cell.now());
    let Some((_, upstream_runtime)) = runtime.upstreams.iter().find(|(known, _)| known == name) else {
        return local_responses::text(StatusCode::NOT_FOUND, "no upstream of this name; GET /upstreams lists them");
    };
    let upstream = &upstream_runtime.upstream;
    let hosts = upstream.hosts(now);
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let wanted = pairs.filter(|(key, _)| key == "host").map(|(_, value)| value.into_owned()).next();
    let host = match &wanted {
        Some(wanted) => hosts.iter().find(|host| host.origin.name() == wanted),
        None if hosts.len() == 1 => hosts.first(),
        None => return local_responses::text(StatusCode::BAD_REQUEST, "name a host: ?host=HOST:PORT"),
    };
    let Some(host) = host else {
        return local_responses::text(StatusCode::NOT_FOUND, "no host of this name; GET /upstreams lists them");
    };
    let host_name = host.origin.name();
    if !eject {
        upstream.health_checked(now, host.slot, true, || "restored by hand".to_owned());
    } else if !upstream.eject_by_operator(now, host.slot) {
        let line = "not ejected: too few hosts would be left (health.panic_threshold of the upstream)";
        return local_responses::text(StatusCode::CONFLICT, line);
    }
    state.live.forget();
    pages::json(&json!({ "upstream": name, "host": host_name, "ejected": eject }))
}
