//! Counts of the responses.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use serde_json::json;

use super::SharedPlays;
use super::play_end::PlayEnd;
use super::script::StreamFault;
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_machine::lock::lock;

/// Counts of all responses.
#[derive(Debug, Default)]
pub(super) struct PlayedStreams(Mutex<PlayCounts>);

#[derive(Debug, Default)]
struct PlayCounts {
    responses: u64,
    in_flight: u64,
    complete: u64,
    client_closed: u64,
    faults: BTreeMap<&'static str, u64>,
    events: u64,
    /// Time from the request's arrival to the first event as it was written.
    first_event: Histogram,
    /// Gaps between events as they were written.
    gaps: Histogram,
}

impl PlayedStreams {
    /// Counts a response that begins.
    pub(super) fn enter(&self) {
        let mut counts = lock(&self.0);
        counts.responses += 1;
        counts.in_flight += 1;
    }

    /// Counts the end of a response, with the times of its events.
    pub(super) fn leave(&self, end: PlayEnd, fault: Option<StreamFault>, sent_ns: &[u64]) {
        let mut counts = lock(&self.0);
        counts.in_flight -= 1;
        match end {
            PlayEnd::Complete => counts.complete += 1,
            PlayEnd::ClientClosed => counts.client_closed += 1,
            PlayEnd::Cut | PlayEnd::Half => {}
        }
        if let Some(fault) = fault.filter(|_| end != PlayEnd::ClientClosed) {
            *counts.faults.entry(fault.name()).or_default() += 1;
        }
        counts.events += sent_ns.len() as u64;
        if let Some(first) = sent_ns.first() {
            counts.first_event.record(Nanos(*first));
        }
        for pair in sent_ns.windows(2) {
            counts.gaps.record(Nanos(pair[1]) - Nanos(pair[0]));
        }
    }

    /// Body of `GET /stats`.
    pub(super) fn json(&self) -> String {
        let counts = lock(&self.0);
        json!({
            "responses": counts.responses,
            "in_flight": counts.in_flight,
            "complete": counts.complete,
            "client_closed": counts.client_closed,
            "faults": counts.faults,
            "events": counts.events,
            "first_event_ms": counts.first_event.percentiles(),
            "gap_ms": counts.gaps.percentiles(),
        })
        .to_string()
    }
}

/// Counts for `/metrics`.
#[derive(Debug)]
pub(super) struct StreamCollector(pub(super) Arc<SharedPlays>);

impl Collector for StreamCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let counts = lock(&self.0.counts.0);
        for (name, help, count) in [
            ("stream_responses", "Streamed responses that began", counts.responses),
            ("stream_events", "Events of streamed responses that ended", counts.events),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(metric)?;
        }
        Ok(())
    }
}
