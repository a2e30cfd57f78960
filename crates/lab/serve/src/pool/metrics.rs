//! Metrics of a pool for Prometheus, read at each scrape, so that counting costs a job nothing.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{PoolJob, PoolShared};
use weir_machine::lock::lock;

pub(super) struct PoolMetrics<J: PoolJob>(pub(super) Arc<PoolShared<J>>);

impl<J: PoolJob> Collector for PoolMetrics<J> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let state = lock(&self.0.state);
        let gauges = [
            ("pool_threads", "Threads of the pool", state.threads),
            ("pool_threads_busy", "Threads that run a job", state.busy),
            ("pool_queue_length", "Jobs in the queue", state.queued()),
            ("pool_backlog_length", "Jobs in front of the full queue", state.backlog()),
        ];
        let counters = [
            ("pool_jobs", "Jobs completed", state.completed),
            ("pool_jobs_abandoned", "Jobs abandoned before a thread started them", state.cancelled),
            ("pool_jobs_rejected", "Jobs rejected because of a full queue", state.rejected),
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

impl<J: PoolJob> fmt::Debug for PoolMetrics<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PoolMetrics")
    }
}
