//! Intervals as the page reads them: counts, and histograms from which any percentile of any range is calculated.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::grpc_status::{GRPC_STATUS_NAMES, status_text};
use weir_histogram::Histogram;
use weir_measure::outcome_counts::OutcomeCounts;
use weir_measure::recorder::Interval;
use weir_measure::stream_interval::StreamInterval;
use weir_measure::websocket_series::WebSocketPoint;

/// One interval of a run, or several neighbours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct LiveBin {
    /// Number of the first interval.
    pub(crate) n: u64,
    /// Number of intervals.
    pub(crate) w: u64,
    /// Successes.
    pub(crate) ok: u64,
    /// Failed requests.
    pub(crate) failed: u64,
    /// Bytes read.
    pub(crate) bytes: u64,
    /// Requests in flight at the end.
    pub(crate) in_flight: u64,
    pub(crate) max_in_flight: u64,
    /// Arrivals that wait for a connection at the end.
    pub(crate) backlog: u64,
    /// Iterations that ended.
    pub(crate) iterations: u64,
    /// Response times of successes.
    pub(crate) times: BinTimes,
    /// Times of failures.
    pub(crate) failed_times: BinTimes,
    /// Number of responses by status.
    #[serde(serialize_with = "by_text")]
    pub(crate) status: BTreeMap<u16, u64>,
    /// Successes whose status is one of failures, by status.
    #[serde(serialize_with = "by_text")]
    pub(crate) accepted: BTreeMap<u16, u64>,
    /// Requests without a response, by kind.
    pub(crate) failures: BTreeMap<&'static str, u64>,
    /// Message of the first failure of each kind that occurred in it first, as the report has it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) details: BTreeMap<&'static str, String>,
    /// CPU time of what generates the load, in nanoseconds.
    pub(crate) cpu: u64,
    /// Steps of scenarios.
    pub(crate) steps: Vec<BinStep>,
    /// Streamed responses; none if responses are not read as streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) streams: Option<BinStreams>,
    /// Connections of WebSocket; none without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) websocket: Option<WebSocketPoint>,
}

/// Serialises counts by the text of a status.
fn by_text<S: Serializer>(counts: &BTreeMap<u16, u64>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(counts.iter().map(|(status, n)| (status_text(*status), n)))
}

/// Streamed responses of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct BinStreams {
    /// Events.
    pub(crate) events: u64,
    /// Tokens of language models.
    pub(crate) tokens: u64,
    /// Time to the first event.
    pub(crate) first: BinTimes,
    /// Gaps between events.
    pub(crate) gaps: BinTimes,
}

impl BinStreams {
    fn of(interval: &StreamInterval) -> Self {
        Self {
            events: interval.events,
            tokens: interval.output_tokens,
            first: BinTimes::of(&interval.first_event),
            gaps: BinTimes::of(&interval.gaps),
        }
    }

    fn add(&mut self, later: &Self) {
        self.events += later.events;
        self.tokens += later.tokens;
        self.first.add(&later.first);
        self.gaps.add(&later.gaps);
    }
}

/// Step of a scenario in an interval: requests, failed ones, failed checks, and the sum of its response times in
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct BinStep(pub(crate) u64, pub(crate) u64, pub(crate) u64, pub(crate) u64);

/// Times with their numbers, in nanoseconds and ascending order; those of one bucket of the histogram are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BinTimes(pub(crate) Vec<(u64, u64)>);

/// Flat, each time as the distance from the one before: in half the length.
impl Serialize for BinTimes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut before = 0;
        to.collect_seq(self.0.iter().flat_map(|(time, n)| {
            let distance = time - std::mem::replace(&mut before, *time);
            [distance, *n]
        }))
    }
}

impl BinTimes {
    fn of(histogram: &Histogram) -> Self {
        Self(histogram.recorded().map(|(time, n)| (time.0, n)).collect())
    }

    fn add(&mut self, other: &Self) {
        if other.0.is_empty() {
            return;
        }
        let mut sum: BTreeMap<u64, u64> = self.0.iter().copied().collect();
        for (time, n) in &other.0 {
            *sum.entry(*time).or_default() += n;
        }
        self.0 = sum.into_iter().collect();
    }
}

fn named(outcomes: &OutcomeCounts) -> impl Iterator<Item = (&'static str, String)> {
    let kinds = outcomes.details.iter().map(|(kind, message)| (kind.name(), message.clone()));
    let messages = outcomes.messages.iter();
    let statuses = messages
        .filter_map(|(status, text)| GRPC_STATUS_NAMES.get(usize::from(*status)).map(|name| (*name, text.clone())));
    kinds.chain(statuses)
}

impl LiveBin {
    /// Interval number `n`.
    pub(crate) fn of(n: u64, interval: &Interval, cpu: Nanos) -> Self {
        let outcomes = interval.outcomes.as_deref();
        let kinds = outcomes.into_iter().flat_map(|outcomes| FailureKind::ALL.iter().zip(outcomes.failures));
        Self {
            n,
            w: 1,
            ok: interval.ok,
            failed: interval.failed,
            bytes: interval.bytes_in,
            in_flight: interval.in_flight,
            max_in_flight: interval.max_in_flight,
            backlog: interval.backlog,
            iterations: interval.iterations,
            cpu: cpu.0,
            times: BinTimes::of(&interval.response),
            failed_times: BinTimes::of(&interval.failed_response),
            status: outcomes.map(|outcomes| outcomes.statuses.iter().collect()).unwrap_or_default(),
            accepted: outcomes.map(|outcomes| outcomes.accepted.iter().collect()).unwrap_or_default(),
            failures: kinds.filter(|(_, n)| *n > 0).map(|(kind, n)| (kind.name(), n)).collect(),
            details: outcomes.into_iter().flat_map(named).collect(),
            steps: interval
                .steps
                .iter()
                .map(|step| BinStep(step.requests, step.failed, step.checks_failed, step.response.0))
                .collect(),
            streams: interval.streams.as_deref().map(BinStreams::of),
            websocket: interval.websocket.as_deref().copied(),
        }
    }

    /// Adds a later neighbour.
    pub(crate) fn add(&mut self, later: &Self) {
        if let Some(streams) = &later.streams {
            self.streams.get_or_insert_default().add(streams);
        }
        if let Some(point) = later.websocket {
            let upgraded = self.websocket.map_or(0, |own| own.upgraded) + point.upgraded;
            self.websocket = Some(WebSocketPoint { upgraded, ..point });
        }
        self.w = later.n + later.w - self.n;
        self.ok += later.ok;
        self.failed += later.failed;
        self.bytes += later.bytes;
        (self.in_flight, self.backlog) = (later.in_flight, later.backlog);
        self.max_in_flight = self.max_in_flight.max(later.max_in_flight);
        self.iterations += later.iterations;
        self.cpu += later.cpu;
        self.times.add(&later.times);
        self.failed_times.add(&later.failed_times);
        later.status.iter().for_each(|(status, n)| *self.status.entry(*status).or_default() += n);
        later.accepted.iter().for_each(|(status, n)| *self.accepted.entry(*status).or_default() += n);
        later.failures.iter().for_each(|(kind, n)| *self.failures.entry(kind).or_default() += n);
        for (kind, message) in &later.details {
            self.details.entry(kind).or_insert_with(|| message.clone());
        }
        if self.steps.len() < later.steps.len() {
            self.steps.resize(later.steps.len(), BinStep::default());
        }
        for (own, step) in self.steps.iter_mut().zip(&later.steps) {
            *own = BinStep(own.0 + step.0, own.1 + step.1, own.2 + step.2, own.3 + step.3);
        }
    }
}
