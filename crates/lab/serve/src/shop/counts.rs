//! Counts of the shop. A request counts when its path is known; its end is a status, a reset, or a client that left.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use serde_json::{Map, Value, json};

use super::endpoint::ShopEndpoint;
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_machine::lock::lock;

/// Counts of all endpoints.
#[derive(Debug, Default)]
pub(super) struct ShopCounters(Mutex<BTreeMap<ShopEndpoint, EndpointCounts>>);

/// Requests to an endpoint by status and outcome, and their service times.
#[derive(Debug)]
struct EndpointCounts {
    requests: u64,
    statuses: BTreeMap<u16, u64>,
    resets: u64,
    client_closed: u64,
    /// Responses with another body than the shop's.
    wrong_bodies: u64,
    /// Times from the request's arrival to its response.
    service_times: Histogram,
}

/// How a request ended: with a response, or a reset of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShopRequestEnd {
    Response { status: u16, has_wrong_body: bool, service_time: Nanos },
    Reset,
}

/// Guard of a request without an end so far; without one when it is dropped, the client has left.
#[derive(Debug)]
pub(super) struct ShopRequestGuard<'a> {
    counters: &'a ShopCounters,
    endpoint: ShopEndpoint,
    has_ended: bool,
}

impl Default for EndpointCounts {
    fn default() -> Self {
        Self {
            requests: 0,
            statuses: BTreeMap::new(),
            resets: 0,
            client_closed: 0,
            wrong_bodies: 0,
            service_times: Histogram::precise(),
        }
    }
}

impl ShopCounters {
    /// Counts a request to this endpoint.
    pub(super) fn enter(&self, endpoint: ShopEndpoint) -> ShopRequestGuard<'_> {
        lock(&self.0).entry(endpoint).or_default().requests += 1;
        ShopRequestGuard { counters: self, endpoint, has_ended: false }
    }

    /// Counts by endpoint, and their sums.
    pub(super) fn json(&self) -> Map<String, Value> {
        let all = lock(&self.0);
        let mut endpoints = Map::new();
        for (endpoint, counts) in all.iter() {
            endpoints.insert(endpoint.name().to_owned(), counts.json());
        }
        let sum = |of: fn(&EndpointCounts) -> u64| -> Value { all.values().map(of).sum::<u64>().into() };
        let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
        for (status, count) in all.values().flat_map(|counts| &counts.statuses) {
            *statuses.entry(*status).or_default() += count;
        }
        let mut json = Map::new();
        json.insert("requests".to_owned(), sum(|counts| counts.requests));
        json.insert("statuses".to_owned(), json!(statuses));
        json.insert("resets".to_owned(), sum(|counts| counts.resets));
        json.insert("client_closed".to_owned(), sum(|counts| counts.client_closed));
        json.insert("in_flight".to_owned(), sum(EndpointCounts::in_flight));
        json.insert("wrong_bodies".to_owned(), sum(|counts| counts.wrong_bodies));
        json.insert("endpoints".to_owned(), endpoints.into());
        json
    }
}

impl EndpointCounts {
    fn in_flight(&self) -> u64 {
        self.requests - self.statuses.values().sum::<u64>() - self.resets - self.client_closed
    }

    fn json(&self) -> Value {
        json!({
            "requests": self.requests,
            "statuses": self.statuses,
            "resets": self.resets,
            "client_closed": self.client_closed,
            "in_flight": self.in_flight(),
            "wrong_bodies": self.wrong_bodies,
            "service_ms": self.service_times.percentiles(),
        })
    }
}

impl ShopRequestGuard<'_> {
    /// Counts the end of the request.
    pub(super) fn end(mut self, end: ShopRequestEnd) {
        self.has_ended = true;
        let mut all = lock(&self.counters.0);
        let counts = all.entry(self.endpoint).or_default();
        match end {
            ShopRequestEnd::Response { status, has_wrong_body, service_time } => {
                *counts.statuses.entry(status).or_default() += 1;
                counts.wrong_bodies += u64::from(has_wrong_body);
                counts.service_times.record(service_time);
            }
            ShopRequestEnd::Reset => counts.resets += 1,
        }
    }
}

impl Drop for ShopRequestGuard<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            lock(&self.counters.0).entry(self.endpoint).or_default().client_closed += 1;
        }
    }
}

/// Counts for `/metrics`.
#[derive(Debug)]
pub(super) struct ShopCollector(pub(super) Arc<ShopCounters>);

impl Collector for ShopCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let help = "Requests by endpoint";
        let mut requests = encoder.encode_descriptor("shop_requests", help, None, MetricType::Counter)?;
        for (endpoint, counts) in lock(&self.0.0).iter() {
            let labels = [("endpoint", endpoint.name())];
            ConstCounter::new(counts.requests).encode(requests.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
