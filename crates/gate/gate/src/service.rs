//! The gateway as a service of the server.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::{Request, header};
use prometheus_client::registry::Registry;

use super::config_cell::ConfigCell;
use super::decision::{RouteDecision, split};
use super::direct;
use super::distributed_limits::DistributedLimits;
use super::gate_thread::GateThread;
use super::metrics::GateMetrics;
use super::routed::RoutedRequest;
use super::runtime::GateRuntime;
use super::sent_request::Reports;
use super::tracing::Tracer;
use weir_base::Nanos;
use weir_call::CallEngine;
use weir_machine::executor::spawn_task;
use weir_machine::logger::Logger;
use weir_net::client::{Client, Options as ClientOptions};
use weir_net::lookup::has_field;
use weir_net::path::{PathRule, normalize};
use weir_net::wire::PassedNames;
use weir_resilience::admission::ConnectionNumber;
use weir_server::{self as server, DirectReply, RequestBody, RequestContext, ServiceReply, Timer};
use weir_telemetry::SpanSender;

/// The gateway, for all event loops.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) config_cell: Arc<ConfigCell>,
    pub(super) options: super::Options,
    /// Exporter of traces, and the sampled fraction.
    pub(super) span_sender: Option<(SpanSender, f64)>,
    /// Logger of the gateway.
    pub(super) logger: Logger,
    /// Whether an event loop runs health checks, resolver and the log of conditions already.
    pub(super) has_health_checks: AtomicBool,
    /// Event loops so far.
    pub(super) thread_count: AtomicU64,
    /// Cluster-wide limits, if the gateway is in a cluster.
    pub(super) distributed_limits: Option<Arc<DistributedLimits>>,
}

impl server::Service for Service {
    type Local = GateThread;

    fn init_thread(&self, timer: &Timer) -> io::Result<GateThread> {
        let client = Client::new(timer.clone(), ClientOptions::default());
        let engine = CallEngine::new(client.clone(), timer.clone(), self.options.seed);
        spawn_task(sweep_connections(client, timer.clone()));
        if !self.has_health_checks.swap(true, Ordering::Relaxed) {
            super::health_checks::start(Arc::clone(&self.config_cell), engine.clone());
            super::resolver::start(Arc::clone(&self.config_cell), engine.clone(), self.logger.clone());
            super::condition_watch::start(Arc::clone(&self.config_cell), timer.clone(), self.logger.clone());
        }
        let tracer =
            self.span_sender.as_ref().map(|(sender, fraction)| Tracer::new(sender.clone(), *fraction, timer.clock()));
        let number = self.thread_count.fetch_add(1, Ordering::Relaxed);
        let runtime = self.config_cell.cached(timer.clock());
        Ok(GateThread::new(engine, runtime, tracer, (self.options.seed, number)))
    }

    fn register_metrics(&self, registry: &mut Registry) {
        let (config_cell, distributed_limits) = (Arc::clone(&self.config_cell), self.distributed_limits.clone());
        registry.register_collector(Box::new(GateMetrics { config_cell, distributed_limits }));
    }

    fn builtin_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        normalize(path, PathRule::default()).unwrap_or(Cow::Borrowed(path))
    }

    fn passed_names(&self, local: &GateThread) -> PassedNames {
        local.runtime.with(&self.config_cell, |runtime| runtime.passed_names)
    }

    fn crowds_out_others(&self, local: &GateThread, connection: u32) -> bool {
        let (runtime, now) = (local.runtime.get(&self.config_cell), local.engine.timer().now());
        let of_upstreams = runtime.upstreams.iter().filter_map(|(_, one)| one.upstream.permits());
        let of_routes = runtime.routes.iter().filter_map(|one| one.plan().permits.as_ref());
        let connection = ConnectionNumber(connection);
        of_upstreams.chain(of_routes).any(|permits| permits.crowds_out_others(now, connection))
    }

    fn has_direct(&self) -> bool {
        // Reports need the story of a call.
        self.options.has_direct_calls && self.options.call_logger.is_none() && self.span_sender.is_none()
    }

    fn direct(
        &self,
        local: &GateThread,
        request: &mut Request<RequestBody>,
        context: &RequestContext,
    ) -> Option<DirectReply> {
        // An access log may have the story, too, and a tunnel needs its connection.
        if context.is_logged() || has_field(request.headers(), &header::UPGRADE) {
            return None;
        }
        let runtime = local.runtime.get(&self.config_cell);
        Some(direct::begin(local, runtime, std::mem::take(request), context))
    }

    async fn handle(
        &self,
        local: &GateThread,
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> ServiceReply {
        let runtime = local.runtime.get(&self.config_cell);
        let (parts, headers, passed, body) = split(request, &runtime);
        let decision = match RouteDecision::of(local, &runtime, (&parts, &headers, &passed), &body, context) {
            Ok(decision) => decision,
            Err(reply) => return reply,
        };
        let routed = self.routed(local, &runtime, &decision, context);
        if let Some(failed) = routed.rejection() {
            return routed.reject(&parts, &headers, failed);
        }
        let terms = routed.terms(&headers);
        if let Some(reply) = routed.early_reply(&parts, &headers, &body, terms) {
            return reply;
        }
        routed.forward(&parts, (headers, passed), body, terms).await
    }
}

impl Service {
    /// The request on the route that was decided on.
    fn routed<'a>(
        &'a self,
        local: &'a GateThread,
        runtime: &'a GateRuntime,
        decision: &'a RouteDecision,
        context: &'a RequestContext,
    ) -> RoutedRequest<'a> {
        let call_logger = self.options.call_logger.as_ref();
        let reports = Reports { call_logger, tracer: local.tracer.as_ref() };
        RoutedRequest::new(&local.engine, runtime, decision, context, reports)
    }
}

/// Closes connections that have been idle for too long, once per second.
async fn sweep_connections(client: Client, timer: Timer) {
    loop {
        timer.sleep(Nanos::SECOND).await;
        client.sweep(timer.now());
    }
}
