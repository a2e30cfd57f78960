//! Streamed responses in the time series of a run, in bounded memory.
//!
//! A point keeps its histograms while the run lasts, so percentiles of merged points are exact. The result has the
//! percentiles, and of gaps the histograms too, from which a heat map is drawn.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::packed_histogram::{packed_sum, unpacked};
use super::stream_interval::StreamInterval;
use weir_histogram::Histogram;
use weir_histogram::percentiles::null_or_ms;

/// Streamed responses in an interval of a run: events by when they came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamPoint {
    /// Events in the interval.
    pub events: u64,
    /// Time from the intended start to the first event, of first events in the interval.
    pub first_event_ms: PointTimes,
    /// Gaps between events.
    pub gap_ms: PointTimes,
    /// Histogram of `gap_ms`: HdrHistogram V2 at two digits, in nanoseconds, base64; empty without any.
    pub gap_histogram: String,
    /// Requests to a language model; `None` if none succeeded and no token came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm: Option<LlmPoint>,
}

/// Requests to a language model in an interval of a run: tokens by when they came, requests by when they ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LlmPoint {
    /// Requests that succeeded.
    pub requests: u64,
    /// Of these, requests that met all objectives; all without objectives.
    pub good: u64,
    /// Tokens of their responses, as the server counts them.
    pub output_tokens: u64,
    /// Time to first token, from the intended start.
    pub ttft_ms: PointTimes,
    /// Time per output token after the first.
    pub tpot_ms: PointTimes,
    /// Gaps between events with tokens.
    pub chunk_gap_ms: PointTimes,
    /// Histogram of `chunk_gap_ms`, in the format of `gap_histogram`.
    pub chunk_gap_histogram: String,
}

/// Times in an interval of a run, in milliseconds; `None` without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointTimes {
    /// Number of times.
    pub count: u64,
    /// Median.
    #[serde(deserialize_with = "null_or_ms")]
    pub p50: Option<f64>,
    /// 90th percentile.
    #[serde(deserialize_with = "null_or_ms")]
    pub p90: Option<f64>,
    /// 99th percentile.
    #[serde(deserialize_with = "null_or_ms")]
    pub p99: Option<f64>,
    /// Maximum.
    #[serde(deserialize_with = "null_or_ms")]
    pub max: Option<f64>,
}

impl PointTimes {
    fn of(times: &Histogram) -> Self {
        let ms = |quantile| times.quantile_ms(quantile);
        Self { count: times.count(), p50: ms(0.5), p90: ms(0.9), p99: ms(0.99), max: times.max_ms() }
    }
}

impl StreamPoint {
    /// Histogram of the gaps.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn gaps(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.gap_histogram, Histogram::coarse)
    }
}

impl LlmPoint {
    /// Histogram of the gaps between events with tokens.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn chunk_gaps(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.chunk_gap_histogram, Histogram::coarse)
    }
}

/// Point of the series while the run lasts; histograms are empty bytes without times.
#[derive(Clone, Debug, Default)]
pub(super) struct PackedStreamPoint {
    events: u64,
    output_tokens: u64,
    llm_requests: u64,
    good: u64,
    first_event: Vec<u8>,
    gaps: Vec<u8>,
    ttft: Vec<u8>,
    tpot: Vec<u8>,
    chunk_gaps: Vec<u8>,
}

impl PackedStreamPoint {
    pub(super) fn add(&mut self, interval: &StreamInterval) {
        self.events += interval.events;
        self.output_tokens += interval.output_tokens;
        self.llm_requests += interval.llm_requests;
        self.good += interval.good;
        for (own, times) in [
            (&mut self.first_event, &interval.first_event),
            (&mut self.gaps, &interval.gaps),
            (&mut self.ttft, &interval.ttft),
            (&mut self.tpot, &interval.tpot),
            (&mut self.chunk_gaps, &interval.chunk_gaps),
        ] {
            if times.count() > 0 {
                *own = packed_sum(own, times);
            }
        }
    }

    pub(super) fn merge(&mut self, later: &Self) {
        self.add(&StreamInterval {
            events: later.events,
            output_tokens: later.output_tokens,
            llm_requests: later.llm_requests,
            good: later.good,
            first_event: unpacked(&later.first_event),
            gaps: unpacked(&later.gaps),
            ttft: unpacked(&later.ttft),
            tpot: unpacked(&later.tpot),
            chunk_gaps: unpacked(&later.chunk_gaps),
            ..StreamInterval::default()
        });
    }

    pub(super) fn point(&self) -> StreamPoint {
        let times = |packed: &[u8]| PointTimes::of(&unpacked(packed));
        let has_llm = self.llm_requests > 0 || !self.chunk_gaps.is_empty();
        let llm = has_llm.then(|| LlmPoint {
            requests: self.llm_requests,
            good: self.good,
            output_tokens: self.output_tokens,
            ttft_ms: times(&self.ttft),
            tpot_ms: times(&self.tpot),
            chunk_gap_ms: times(&self.chunk_gaps),
            chunk_gap_histogram: BASE64_STANDARD.encode(&self.chunk_gaps),
        });
        StreamPoint {
            events: self.events,
            first_event_ms: times(&self.first_event),
            gap_ms: times(&self.gaps),
            gap_histogram: BASE64_STANDARD.encode(&self.gaps),
            llm,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recorder::Interval;
    use crate::series::{MAX_POINTS, RunSeries};
    use weir_base::Nanos;

    fn interval(gaps_ms: &[u64], tokens: u64) -> Interval {
        let mut streams = StreamInterval::default();
        streams.record_event(None);
        streams.first_event.record(Nanos::from_millis(5));
        for gap in gaps_ms {
            streams.record_event(Some(Nanos::from_millis(*gap)));
            if tokens > 0 {
                streams.chunk_gaps.record(Nanos::from_millis(*gap));
            }
        }
        (streams.llm_requests, streams.good, streams.output_tokens) = (u64::from(tokens > 0), 0, tokens);
        Interval { streams: Some(Box::new(streams)), ..Interval::default() }
    }

    #[test]
    fn a_run_without_streams_has_none_and_one_without_tokens_no_language_model() {
        let mut series = RunSeries::default();
        series.add(0, &Interval::default());
        assert_eq!(series.points(1.0)[0].streams, None);
        series.add(0, &interval(&[1, 3], 0));
        let point = series.points(1.0)[0].streams.clone().expect("streams");
        assert_eq!((point.events, point.gap_ms.count, &point.llm), (3, 2, &None));
        let near = |ms: Option<f64>, truth: f64| ms.is_some_and(|ms| (ms - truth).abs() < 0.05);
        assert!(near(point.gap_ms.max, 3.0) && near(point.first_event_ms.p50, 5.0), "{point:?}");
    }

    proptest! {
        // A series of 1,200 points takes a second in a debug build.
        #![proptest_config(ProptestConfig::with_cases(6))]

        /// Oracle: all gaps of the seconds that a point covers, in one histogram.
        #[test]
        fn points_of_any_width_have_all_events_of_all_threads(
            seconds in prop::collection::vec((0..4 * MAX_POINTS as u64, prop::collection::vec(1..500_u64, 0..6)), 1..30)
        ) {
            let mut series = RunSeries::default();
            seconds.iter().for_each(|(at, gaps)| series.add(*at, &interval(gaps, 7)));
            let points = series.points(4.0 * MAX_POINTS as f64);
            prop_assert!(points.len() <= MAX_POINTS);
            for point in &points {
                let covered = seconds.iter().filter(|(at, _)| {
                    (point.t_s..point.t_s + point.width_s).contains(&(*at as f64))
                });
                let (mut all, mut responses) = (Histogram::coarse(), 0);
                for (_, gaps) in covered {
                    gaps.iter().for_each(|gap| all.record(Nanos::from_millis(*gap)));
                    responses += 1;
                }
                let streams = point.streams.clone().unwrap_or_default();
                prop_assert_eq!(streams.events, all.count() + responses);
                prop_assert_eq!(streams.gap_ms, PointTimes::of(&all));
                prop_assert_eq!(streams.gaps().expect("own histogram").percentiles(), all.percentiles());
                let llm = streams.llm.unwrap_or_default();
                prop_assert_eq!((llm.requests, llm.output_tokens), (responses, 7 * responses));
                prop_assert_eq!(llm.chunk_gap_ms, PointTimes::of(&all));
            }
        }
    }
}
