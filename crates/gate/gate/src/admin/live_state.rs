//! The state of the gateway as the live page reads it, once a second: counters since the start of the gateway, of which
//! the page takes the differences, and what is so now.
//!
//! The page keeps the past, so nothing is done while none is open; and all pages share what is read for one.

use std::sync::Mutex;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use super::call_in_flight::call_in_flight;
use super::{AdminState, upstream_page};
use crate::gate_route::GateRoute;
use crate::metrics;
use crate::runtime::UpstreamRuntime;
use weir_base::Nanos;
use weir_call::LatencyBuckets;
use weir_machine::lock::lock;
use weir_resilience::upstream::hosts::HostCondition;
use weir_server::{RequestInFlight, ResponseBody};

/// Time for which a state that was read is that of all pages.
const MAX_AGE: Nanos = Nanos::from_millis(400);

/// Number of calls that are listed, the oldest first.
const MAX_CALLS: usize = 20;

/// Length of a target that is shown, in characters.
const MAX_TARGET_CHARS: usize = 200;

/// State that was read last.
#[derive(Debug)]
pub(super) struct LiveState {
    /// ID of this start of the gateway: counters of another one are not continued.
    run: String,
    last: Mutex<Option<(Nanos, Bytes)>>,
}

impl LiveState {
    pub(super) fn new() -> Self {
        let mut random = [0; 8];
        // Without random numbers the process ID alone has to do.
        let _ = SystemRandom::new().fill(&mut random);
        Self { run: format!("{}-{:016x}", std::process::id(), u64::from_ne_bytes(random)), last: Mutex::default() }
    }

    /// Has the next page see a change at once.
    pub(super) fn forget(&self) {
        *lock(&self.last) = None;
    }

    /// The state as JSON.
    pub(super) async fn response(&self, state: &AdminState) -> Response<ResponseBody> {
        let now = state.config_cell.now();
        let fresh = lock(&self.last).as_ref().filter(|(at, _)| now - *at < MAX_AGE).map(|(_, json)| json.clone());
        let json = match fresh {
            Some(json) => json,
            None => {
                let (count, oldest) = state.open_requests.oldest(MAX_CALLS).await;
                let json = Bytes::from(self.describe(state, now, count, &oldest).to_string());
                *lock(&self.last) = Some((now, json.clone()));
                json
            }
        };
        let mut response = Response::new(ResponseBody::from(json));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    fn describe(&self, state: &AdminState, now: Nanos, count: usize, oldest: &[RequestInFlight]) -> Value {
        let runtime = state.config_cell.get();
        let limits = upstream_page::limits(&state.config_cell);
        let local = runtime.local_routes.iter().map(|it| json!({ "name": it.name, "responses": it.count() }));
        json!({
            "run": self.run,
            "version": env!("CARGO_PKG_VERSION"),
            "now_s": now.as_secs_f64(),
            "draining": state.gateway.is_draining(),
            "routes": runtime.routes.iter().map(|it| route(it, now)).collect::<Vec<_>>(),
            "local_routes": local.collect::<Vec<_>>(),
            "upstreams": runtime.upstreams.iter().map(|(name, it)| upstream(name, it, now)).collect::<Vec<_>>(),
            "limits": limits["concurrency"],
            "rejected_callers": limits["rejected_callers"],
            "calls": { "in_flight": count, "oldest": oldest.iter().map(call).collect::<Vec<_>>() },
        })
    }
}

fn route(route: &GateRoute, now: Nanos) -> Value {
    let mut rejected = Vec::new();
    for side in &route.sides {
        let counts = side.plan.counts.rejections().filter(|(_, _, count)| *count > 0);
        rejected.extend(counts.map(|(reason, priority, count)| {
            let (reason, priority) = (reason.name(), priority.name());
            json!({ "upstream": side.upstream, "reason": reason, "priority": priority, "count": count })
        }));
    }
    let budgets = route.sides.iter().filter_map(|side| side.plan.budget.as_ref());
    json!({
        "name": route.name,
        "calls": upstream_page::counts(metrics::sum_outcomes(route)),
        "rejected": rejected,
        "attempts_skipped": route.sides.iter().map(|side| side.plan.counts.budget_exhausted()).sum::<u64>(),
        // Of a route with several upstreams, the least.
        "retry_budget_remaining": budgets.map(|budget| lock(budget).remaining(now)).min(),
        "latency": latency(&metrics::sum_latencies(route)),
    })
}

fn upstream(name: &str, it: &UpstreamRuntime, now: Nanos) -> Value {
    let counts = &it.upstream.counts;
    let hosts = it.upstream.hosts(now).into_iter().map(|host| {
        let left = match host.condition {
            HostCondition::Outlier(left) => Some(left.as_secs_f64()),
            _ => None,
        };
        json!({
            "host": host.origin.name(),
            "condition": host.condition.name(),
            "ejection_left_s": left,
            "in_flight": host.in_flight,
            "succeeded": host.totals.succeeded,
            "failed": host.totals.failed,
        })
    });
    json!({
        "name": name,
        "attempts": upstream_page::counts(counts.sent()),
        "attempts_ended": upstream_page::counts(counts.outcomes()),
        "hedges": upstream_page::counts(counts.hedges()),
        "retries": upstream_page::counts(counts.retries()),
        "failures": upstream_page::counts(counts.failures().filter(|(_, count)| *count > 0)),
        "in_flight": counts.in_flight(),
        "circuit": upstream_page::circuit(&it.upstream, now),
        "throttled_fraction": it.upstream.throttled_fraction(now),
        "panicking": it.upstream.is_panicking(),
        "latency": latency(&counts.latencies.read()),
        "hosts": hosts.collect::<Vec<_>>(),
    })
}

/// Buckets of a histogram, each with its upper bound in seconds; none for the last.
fn latency(buckets: &LatencyBuckets) -> Value {
    buckets.buckets.iter().map(|(bound, count)| json!([bound.is_finite().then_some(bound), count])).collect()
}

fn call(call: &RequestInFlight) -> Value {
    call_in_flight(call, &shortened(&call.target))
}

/// A target, without the end of a long one: all of it is in `GET /calls`.
fn shortened(target: &str) -> String {
    match target.char_indices().nth(MAX_TARGET_CHARS) {
        Some((end, _)) => format!("{}\u{2026}", &target[..end]),
        None => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn long_targets_are_cut_between_characters() {
        let short = "/\u{e9}".repeat(100);
        assert_eq!(shortened(&short), short);
        assert_eq!(shortened(&format!("{short}x")), format!("{short}\u{2026}"));
    }
}
