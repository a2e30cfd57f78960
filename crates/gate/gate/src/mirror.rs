//! Copies of requests to a second upstream. Their responses are dropped, and nothing waits for them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use http_body_util::BodyExt;

use super::config::MirrorRule;
use weir_base::Nanos;
use weir_call::{CallEngine, CallPlan, CallRequest, Success, Upstream};
use weir_machine::executor::spawn_task;
use weir_machine::lock::lock;
use weir_net::client::{OutgoingBody, WireOptions};
use weir_resilience::admission::Priority;
use weir_resilience::policy::Policy;
use weir_retry::retry_budget::RetryBudget;

/// Copies of a route's requests to a second upstream, over all event loops.
#[derive(Debug)]
pub(super) struct Mirror {
    rule: MirrorRule,
    plan: CallPlan,
    budget: Option<Mutex<RetryBudget>>,
    in_flight: AtomicUsize,
    counts: Arc<MirrorCounts>,
}

/// Counts of a route's copies, by outcome.
#[derive(Debug, Default)]
struct MirrorCounts {
    sent: AtomicU64,
    in_flight: AtomicU64,
    body: AtomicU64,
    budget: AtomicU64,
}

/// One copy in flight.
struct MirrorPermit(Arc<Mirror>);

impl Drop for MirrorPermit {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl Mirror {
    /// A mirror; that of before if its rule and upstream are the same.
    pub(super) fn new_or_kept(rule: &MirrorRule, upstream: Arc<Upstream>, kept: Option<&Arc<Self>>) -> Arc<Self> {
        if let Some(kept) = kept.filter(|kept| kept.rule == *rule && Arc::ptr_eq(&kept.plan.upstream, &upstream)) {
            return Arc::clone(kept);
        }
        let policy = Policy { deadline: rule.deadline, ..Policy::default() };
        Arc::new(Self {
            plan: CallPlan::new(policy, Success::default(), upstream),
            budget: rule.budget.map(|budget| Mutex::new(RetryBudget::new(budget))),
            in_flight: AtomicUsize::new(0),
            counts: kept.map(|kept| Arc::clone(&kept.counts)).unwrap_or_default(),
            rule: rule.clone(),
        })
    }

    /// Copies by outcome; the names are the values of the metrics' label.
    pub(super) fn outcomes(&self) -> [(&'static str, u64); 4] {
        let MirrorCounts { sent, in_flight, body, budget } = &*self.counts;
        [("sent", sent), ("skipped_in_flight", in_flight), ("skipped_body", body), ("skipped_budget", budget)]
            .map(|(name, counter)| (name, counter.load(Relaxed)))
    }

    /// Sends a copy of a request in a task of its own, if it is its turn. `random` has 64 random bits.
    pub(super) fn copy(
        self: &Arc<Self>,
        engine: &CallEngine,
        random: u64,
        request: &CallRequest<'_>,
        body: &OutgoingBody,
    ) {
        let now = engine.timer().now();
        if let Some(budget) = &self.budget {
            lock(budget).deposit(now);
        }
        if !is_sampled(random, self.rule.fraction) {
            return;
        }
        let Some((body, permit)) = self.admit(now, request, body) else { return };
        self.counts.sent.fetch_add(1, Relaxed);
        let (engine, method, headers) = (engine.clone(), request.method.clone(), request.headers.clone());
        let passed = request.wire.passed.cloned();
        let (target, spread, client) = (request.target.to_owned(), request.spread, request.client);
        spawn_task(async move {
            let request = CallRequest {
                // Under overload copies go first.
                priority: Priority::Low,
                spread,
                client,
                wire: WireOptions { passed: passed.as_ref(), ..WireOptions::default() },
                ..CallRequest::new(&permit.0.plan, &method, &target, &headers)
            };
            if let Ok(mut response) = engine.call(&request, body).await {
                // Read to its end, so that its connection can be used again; the call's deadline holds.
                while let Some(Ok(_)) = response.body.frame().await {}
            }
        });
    }

    /// The body of a copy and its permit, unless it is to be skipped.
    fn admit(
        self: &Arc<Self>,
        now: Nanos,
        request: &CallRequest<'_>,
        body: &OutgoingBody,
    ) -> Option<(OutgoingBody, MirrorPermit)> {
        let body = match body {
            _ if request.upgrade => None,
            OutgoingBody::Empty => Some(OutgoingBody::Empty),
            OutgoingBody::Bytes(bytes) if bytes.len() <= self.rule.max_body_bytes => {
                Some(OutgoingBody::Bytes(bytes.clone()))
            }
            OutgoingBody::Bytes(_) | OutgoingBody::Stream(_) => None,
        };
        let Some(body) = body else {
            self.counts.body.fetch_add(1, Relaxed);
            return None;
        };
        let is_full = self.in_flight.fetch_add(1, Relaxed) >= self.rule.max_in_flight;
        let permit = MirrorPermit(Arc::clone(self));
        if is_full {
            self.counts.in_flight.fetch_add(1, Relaxed);
            return None;
        }
        if self.budget.as_ref().is_some_and(|budget| !lock(budget).withdraw(now)) {
            self.counts.budget.fetch_add(1, Relaxed);
            return None;
        }
        Some((body, permit))
    }
}

/// Whether 64 random bits are in the first `fraction` of all.
fn is_sampled(random: u64, fraction: f64) -> bool {
    (random >> 11) as f64 / (1_u64 << 53) as f64 <= fraction && fraction > 0.0
}

#[cfg(test)]
mod tests {
    use super::is_sampled;
    use weir_base::rng::SeededRng;

    #[test]
    fn a_fraction_of_all_is_sampled() {
        let mut random = SeededRng::new(1, 2);
        for fraction in [0.0, 0.05, 0.5, 1.0] {
            let sampled = (0..100_000).filter(|_| is_sampled(random.bits(), fraction)).count() as f64 / 1e5;
            assert!((sampled - fraction).abs() < 0.01, "{sampled} of {fraction}");
        }
        assert!(is_sampled(u64::MAX, 1.0) && !is_sampled(0, 0.0));
    }
}
