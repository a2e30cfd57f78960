//! Periodic work of a thread: timeouts, and the report of each interval.

use super::{Flow, Worker, WorkerReport};
use crate::exchange::FlowExchange;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::clock::thread_cpu;

impl<F: Flow> Worker<'_, F> {
    /// Periodic work: timeouts, and the report of each interval.
    pub(super) fn tick(&mut self, now: Nanos) {
        let plan = self.shared.plan;
        if self.connections.connecting() > 0 {
            self.attempt_further_addresses(now);
        }
        self.expire(now);
        self.expire_stalled(now);
        self.expire_moved(now);
        F::tick(self, now);
        self.care_for_streams(now);
        let backlog = self.feed.backlog(now);
        self.results.counters.record_backlog(backlog);
        self.record_cpu(now);
        let stretch = now.0 / plan.interval.0;
        if stretch > self.results.interval {
            self.publish(backlog);
            self.results.interval = stretch;
        }
        let next_stretch = Nanos((stretch + 1) * plan.interval.0);
        let stall_timeout = plan.streams.and_then(|streams| streams.stall_timeout).unwrap_or(Nanos::NEVER);
        // Requests of a program may have timeouts of their own.
        let longest = if plan.program.is_some() { 20_000_000 } else { 100_000_000 };
        let scan = Nanos((plan.timeout.min(stall_timeout).0 / 20).clamp(1_000_000, longest));
        self.next_tick = next_stretch.min(now + scan);
    }

    pub(super) fn record_cpu(&mut self, now: Nanos) {
        let script = self.flow.take_script_time();
        self.results.counters.record_cpu(now, thread_cpu(), script);
    }

    /// Latest start of a timeout: the end of the load, however late a connection or a stream came. What users send at
    /// their end has a timeout of its own.
    pub(super) fn latest_timeout_start(&self) -> Nanos {
        if self.flow.is_stopping() { Nanos::NEVER } else { self.until }
    }

    fn expire(&mut self, now: Nanos) {
        let latest = self.latest_timeout_start();
        for index in self.connections.indices() {
            let Some(slot) = self.connections.get(index) else { continue };
            if slot.streams.is_some() {
                self.expire_streams(index, now);
                continue;
            }
            if F::is_framed(slot) && F::expires_otherwise(self, index, now) {
                continue;
            }
            let Some(slot) = self.connections.get(index) else { continue };
            let timeout = slot.exchange.timeout().unwrap_or(self.shared.plan.timeout);
            if slot.waiting_since().is_some_and(|since| now - since.min(latest) > timeout) {
                let pending = slot.attempts.as_ref().map(|attempts| attempts.pending_text());
                self.fail(index, FailureKind::Timeout, &|| match &pending {
                    Some(pending) => format!("no connection within {timeout}: {pending}"),
                    None => format!("no response within {timeout}"),
                });
            }
        }
    }

    pub(super) fn publish(&mut self, backlog: u64) {
        let mut interval = self.results.counters.take_interval(backlog);
        F::add_to_interval(self, &mut interval);
        if self.shared.per_interval {
            self.results.counters.take_offers(&mut self.feed);
            interval.counts = Some(self.results.counters.take_counts());
        }
        // The receiver is dropped only when the run is abandoned.
        let _ = self.reports.send(WorkerReport::Interval(self.results.interval, interval));
    }
}
