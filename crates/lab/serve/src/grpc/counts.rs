//! Counts of the calls.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use serde_json::json;
use weir_base::grpc_status::status_text;
use weir_machine::lock::lock;

/// Counts of all calls.
#[derive(Debug, Default)]
pub(super) struct ServedCalls(Mutex<ServedCounts>);

#[derive(Debug, Default)]
struct ServedCounts {
    calls: u64,
    in_flight: u64,
    /// Calls that have ended without a status: by a fault, or since the client has left.
    without_status: u64,
    statuses: BTreeMap<u16, u64>,
    messages_in: u64,
    messages_out: u64,
}

/// A call that is counted. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct CountedCall {
    calls: Arc<ServedCalls>,
    status: Option<u16>,
    messages_in: u64,
    messages_out: u64,
}

impl ServedCalls {
    /// Body of `GET /stats`.
    pub(super) fn json(&self) -> String {
        let counts = lock(&self.0);
        let statuses: BTreeMap<_, u64> = counts.statuses.iter().map(|(code, n)| (status_text(*code), *n)).collect();
        json!({
            "calls": counts.calls,
            "in_flight": counts.in_flight,
            "status": statuses,
            "without_status": counts.without_status,
            "messages_in": counts.messages_in,
            "messages_out": counts.messages_out,
        })
        .to_string()
    }
}

impl CountedCall {
    /// A call that begins.
    pub(super) fn begin(calls: &Arc<ServedCalls>) -> Self {
        let mut counts = lock(&calls.0);
        counts.calls += 1;
        counts.in_flight += 1;
        drop(counts);
        Self { calls: Arc::clone(calls), status: None, messages_in: 0, messages_out: 0 }
    }

    pub(super) fn received(&mut self) {
        self.messages_in += 1;
    }

    pub(super) fn sent(&mut self) {
        self.messages_out += 1;
    }

    /// Notes the status that the call ends with.
    pub(super) fn end(&mut self, status: u16) {
        self.status = Some(status);
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        let mut counts = lock(&self.calls.0);
        counts.in_flight -= 1;
        counts.messages_in += self.messages_in;
        counts.messages_out += self.messages_out;
        match self.status {
            Some(status) => *counts.statuses.entry(status).or_default() += 1,
            None => counts.without_status += 1,
        }
    }
}

/// Counts for `/metrics`.
#[derive(Debug)]
pub(super) struct CallCollector(pub(super) Arc<ServedCalls>);

impl Collector for CallCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let counts = lock(&self.0.0);
        for (name, help, count) in [
            ("grpc_calls", "Calls of gRPC that began", counts.calls),
            ("grpc_messages_received", "Messages of calls that ended", counts.messages_in),
            ("grpc_messages_sent", "Messages of responses to calls that ended", counts.messages_out),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(metric)?;
        }
        Ok(())
    }
}
