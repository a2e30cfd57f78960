//! Parses `health` of an upstream: outlier detection and active checks.

use std::ops::RangeInclusive;

use super::read::{DocumentNode, DocumentTable};
use weir_base::Nanos;
use weir_resilience::upstream::hosts::{OutlierComparison, OutlierRule};

/// Active health check of each host, beside all calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// Kind of probe: HTTP, gRPC or a connection alone.
    pub probe: HealthProbe,
    /// Time from the end of one round to the start of the next.
    pub interval: Nanos,
    /// Timeout of one request.
    pub timeout: Nanos,
}

/// Request of a health check, and the expected response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthProbe {
    /// A GET.
    Http {
        /// Path and query of the request.
        path: String,
        /// Ranges of good statuses.
        statuses: Vec<RangeInclusive<u16>>,
    },
    /// A connection, with TLS its handshake.
    Tcp,
    /// A call of `grpc.health.v1.Health/Check`.
    Grpc {
        /// Name of the service to check; empty for the whole server.
        service: String,
    },
}

/// Maximum of failures in a row and of samples.
const MAX_COUNT: u64 = 1_000_000;

/// Parses `health`.
pub(super) fn health(table: &DocumentTable<'_>) -> (OutlierRule, Option<HealthCheck>) {
    let mut rule = OutlierRule::default();
    if let Some(failures) = table.get("consecutive_failures").and_then(|node| node.integer(0..=MAX_COUNT)) {
        rule.consecutive_failures = u32::try_from(failures).unwrap_or(u32::MAX);
    }
    if let Some(time) = table.get("ejection_time").and_then(|node| node.time()) {
        rule.base_ejection = time;
    }
    if let Some(fraction) = table.get("max_ejected").and_then(|node| node.number(0.0..=1.0)) {
        rule.max_ejected_fraction = fraction;
    }
    rule.comparison = comparison(table);
    rule.panic_threshold = table.get("panic_threshold").and_then(|node| node.number(0.0..=1.0));
    let check_node = table.get("check");
    let check = check_node.as_ref().and_then(DocumentNode::table).map(|table| health_check(&table));
    if let (Some(node), None) = (table.get("panic_threshold"), &check_node) {
        node.warn("panic_threshold without check has no effect", "give check, too, or leave it out");
    }
    table.check_unknown_keys();
    (rule, check)
}

/// `failure_fraction` and `latency_factor`, with `window` and `min_samples`.
fn comparison(table: &DocumentTable<'_>) -> Option<OutlierComparison> {
    let failures = table.get("failure_fraction").map(|node| above(&node, 0.0, 1.0));
    let latency = table.get("latency_factor").map(|node| above(&node, 1.0, 1000.0));
    let (window, min_samples) = (table.get("window"), table.get("min_samples"));
    if failures.is_none() && latency.is_none() {
        for node in window.iter().chain(&min_samples) {
            node.error("nothing is compared", "give failure_fraction or latency_factor, too, or leave it out");
        }
        return None;
    }
    let min_samples = min_samples.and_then(|node| node.integer(1..=MAX_COUNT)).unwrap_or(50);
    Some(OutlierComparison {
        window: window.and_then(|node| node.time()).unwrap_or(Nanos::from_secs(10)),
        min_samples: u32::try_from(min_samples).unwrap_or(u32::MAX),
        failure_fraction: failures.flatten(),
        latency_factor: latency.flatten(),
    })
}

/// A number above `min` and up to `max`.
fn above(node: &DocumentNode<'_>, min: f64, max: f64) -> Option<f64> {
    let number = node.number(min..=max)?;
    if number == min {
        node.error(format!("{min} is too low"), format!("write one above {min} and up to {max}"));
    }
    Some(number)
}

fn health_check(table: &DocumentTable<'_>) -> HealthCheck {
    let (path, tcp, grpc) = (table.get("path"), table.get("tcp"), table.get("grpc"));
    let statuses = table.get("status");
    let time = |key, default| table.get(key).and_then(|node| node.time()).unwrap_or(default);
    let (interval, timeout) = (time("interval", Nanos::from_secs(5)), time("timeout", Nanos::SECOND));
    table.check_unknown_keys();
    if [&path, &tcp, &grpc].into_iter().flatten().count() > 1 {
        table.error("path, tcp and grpc exclude each other", "leave all but one out");
    }
    if let (Some(node), None) = (&statuses, &path) {
        node.error("only a check by path has a status", "leave it out");
    }
    let probe = if let Some(node) = tcp {
        if node.boolean() == Some(false) {
            node.error("no check", "write true, or leave out check");
        }
        HealthProbe::Tcp
    } else if let Some(node) = grpc {
        HealthProbe::Grpc { service: node.string().unwrap_or_default().to_owned() }
    } else {
        let path = path.or_else(|| {
            table.error("path missing", r#"write path = "/healthz", tcp = true or grpc = """#);
            None
        });
        let path = path.and_then(|node| {
            let text = node.string()?;
            if !text.starts_with('/') || text.contains('#') || text.parse::<http::uri::PathAndQuery>().is_err() {
                node.expected("path", r#"write it as "/healthz""#);
            }
            Some(text.to_owned())
        });
        let statuses = statuses.and_then(|node| node.statuses()).unwrap_or_else(|| vec![200..=299]);
        HealthProbe::Http { path: path.unwrap_or_default(), statuses }
    };
    HealthCheck { probe, interval, timeout }
}
