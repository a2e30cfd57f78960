//! A pool's figures for Prometheus, looked at when they are asked for: counting costs a job nothing.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{Job, Shared};

pub(super) struct Count<J: Job>(pub(super) Arc<Shared<J>>);

impl<J: Job> Collector for Count<J> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let state = self.0.lock();
        let (queue, backlog) = state.lengths();
        let gauges = [
            ("pool_threads", "Threads of the pool", state.threads),
            ("pool_threads_busy", "Threads at a job", state.busy),
            ("pool_queue_length", "Jobs that wait in the queue for a thread", queue),
            ("pool_backlog_length", "Jobs that wait in front of the queue", backlog),
        ];
        let counters = [
            ("pool_jobs", "Jobs that were done", state.did),
            ("pool_jobs_given_up", "Jobs that nobody wanted any more before a thread began with them", state.given_up),
            ("pool_jobs_refused", "Jobs that found the queue full", state.refused),
        ];
        drop(state);
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value as i64);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}

impl<J: Job> fmt::Debug for Count<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Count")
    }
}
