//! Counts of all requests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use serde_json::json;

use super::SharedModel;
use super::record::{GeneratedTokens, GenerationEnd};
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_machine::lock::lock;

/// Counts of all requests to the model.
#[derive(Debug, Default)]
pub(super) struct GenerationCounts(Mutex<GenerationSums>);

#[derive(Debug, Default)]
struct GenerationSums {
    requests: u64,
    statuses: BTreeMap<u16, u64>,
    complete: u64,
    cut: u64,
    client_closed: u64,
    input_tokens: u64,
    output_tokens: u64,
    queue: Histogram,
    ttft: Histogram,
    tpot: Histogram,
    gaps: Histogram,
}

impl GenerationCounts {
    /// Counts a request to one of the APIs.
    pub(super) fn enter(&self) {
        lock(&self.0).requests += 1;
    }

    /// Counts the status of a response that begins.
    pub(super) fn respond(&self, status: u16) {
        *lock(&self.0).statuses.entry(status).or_default() += 1;
    }

    /// Counts the end of a response that was generated: when a slot was free, its tokens in and out, the times of its
    /// chunks, and its time per token.
    pub(super) fn leave(
        &self,
        end: GenerationEnd,
        started: Option<Nanos>,
        tokens: GeneratedTokens,
        chunks_ns: &[u64],
        tpot_ns: Option<u64>,
    ) {
        let mut sums = lock(&self.0);
        match end {
            GenerationEnd::Complete => {
                sums.complete += 1;
                sums.output_tokens += tokens.output;
            }
            GenerationEnd::Cut => sums.cut += 1,
            GenerationEnd::ClientClosed => sums.client_closed += 1,
        }
        sums.input_tokens += tokens.input;
        started.into_iter().for_each(|time| sums.queue.record(time));
        chunks_ns.first().into_iter().for_each(|time| sums.ttft.record(Nanos(*time)));
        tpot_ns.into_iter().for_each(|time| sums.tpot.record(Nanos(time)));
        chunks_ns.windows(2).for_each(|pair| sums.gaps.record(Nanos(pair[1]) - Nanos(pair[0])));
    }

    /// Body of `GET /stats`.
    pub(super) fn json(&self, running: u64) -> String {
        let sums = lock(&self.0);
        json!({
            "requests": sums.requests,
            "statuses": sums.statuses,
            "running": running,
            "complete": sums.complete,
            "cut": sums.cut,
            "client_closed": sums.client_closed,
            "input_tokens": sums.input_tokens,
            "output_tokens": sums.output_tokens,
            "queue_ms": sums.queue.percentiles(),
            "ttft_ms": sums.ttft.percentiles(),
            "tpot_ms": sums.tpot.percentiles(),
            "gap_ms": sums.gaps.percentiles(),
        })
        .to_string()
    }
}

/// Counts for `/metrics`.
#[derive(Debug)]
pub(super) struct GenerationCollector(pub(super) Arc<SharedModel>);

impl Collector for GenerationCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let sums = lock(&self.0.counts.0);
        for (name, help, count) in [
            ("llm_requests", "Requests to the language model", sums.requests),
            ("llm_input_tokens", "Tokens of prompts", sums.input_tokens),
            ("llm_output_tokens", "Tokens of whole responses", sums.output_tokens),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(metric)?;
        }
        Ok(())
    }
}
