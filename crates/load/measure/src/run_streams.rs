//! Streams of a run.

use serde::{Deserialize, Serialize};

use super::stream_counts::StreamCounts;
use weir_histogram::Histogram;
use weir_histogram::percentiles::Percentiles;

/// Responses of a run that were read as streams of events: those with a status below 400. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStreams {
    /// Responses that ended, in any way: the sum of the six below.
    pub responses: u64,
    /// Whole responses whose last event is complete.
    pub complete: u64,
    /// Whole responses that ended within an event.
    pub unfinished: u64,
    /// Responses that ended on purpose, after a number of events.
    pub stopped: u64,
    /// Responses that broke off.
    pub broken_off: u64,
    /// Responses that stalled.
    pub stalled: u64,
    /// Responses that did not end within the timeout.
    pub timed_out: u64,
    /// Responses without any event, of those that ended.
    pub without_events: u64,
    /// Responses that were in flight when the run ended; none of those that ended.
    #[serde(default)]
    pub cut_off: u64,
    /// Events of all responses, also of those that were cut off; so are times and gaps.
    pub events: u64,
    /// Events that arrived together with the one before them; their gaps are 0.
    pub coalesced: u64,
    /// Events per second, by their arrival within the window.
    pub events_per_s: f64,
    /// Bytes of bodies per second, by their arrival within the window.
    pub bytes_per_s: f64,
    /// Time from the send to the first byte.
    pub first_byte_ms: Percentiles,
    /// Time from the intended start to the first event.
    pub first_event_ms: Percentiles,
    /// Time from the send to the first event.
    pub first_event_service_ms: Percentiles,
    /// Gaps between the events of a response, of all responses.
    pub gap_ms: Percentiles,
    /// Longest gap of each response with two events and more.
    pub longest_gap_ms: Percentiles,
    /// Histogram of `first_event_ms`, in the format of [`Run::histogram`](crate::Run::histogram).
    pub first_event_histogram: String,
    /// Histogram of `gap_ms`, in the same format.
    pub gap_histogram: String,
}

impl RunStreams {
    /// Streams of these counts, in a window of `duration_s` seconds.
    pub fn of(counts: &StreamCounts, duration_s: f64) -> Self {
        Self {
            responses: counts.responses,
            complete: counts.complete,
            unfinished: counts.unfinished,
            stopped: counts.stopped,
            broken_off: counts.broken_off,
            stalled: counts.stalled,
            timed_out: counts.timed_out,
            without_events: counts.without_events,
            cut_off: counts.cut_off,
            events: counts.events,
            coalesced: counts.coalesced,
            events_per_s: counts.events_in_window as f64 / duration_s,
            bytes_per_s: counts.bytes_in_window as f64 / duration_s,
            first_byte_ms: counts.first_byte.percentiles(),
            first_event_ms: counts.first_event.percentiles(),
            first_event_service_ms: counts.first_event_service.percentiles(),
            gap_ms: counts.gaps.percentiles(),
            longest_gap_ms: counts.longest_gaps.percentiles(),
            first_event_histogram: counts.first_event.to_base64(),
            gap_histogram: counts.gaps.to_base64(),
        }
    }

    /// Histogram of the times to the first event.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn first_event_times(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.first_event_histogram, Histogram::precise)
    }

    /// Histogram of the gaps.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn gaps(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.gap_histogram, Histogram::precise)
    }
}
