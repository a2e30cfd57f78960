//! Counts of streamed responses.

use serde::{Deserialize, Serialize};

use super::merge::{AddPart, PeerValue, merged};
use super::stream_timeline::{StreamEnd, StreamTimeline};
use weir_base::Nanos;
use weir_histogram::Histogram;

merged! {
    /// Counts of streamed responses; sums over threads and agents.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct StreamCounts {
        /// Responses that ended, in any way: the sum of the six below.
        pub responses: u64 => sum,
        /// Whole responses whose last event is complete.
        pub complete: u64 => sum,
        /// Whole responses that ended within an event.
        pub unfinished: u64 => sum,
        /// Responses that ended on purpose, after a number of events or a match.
        pub stopped: u64 => sum,
        /// Responses that broke off.
        pub broken_off: u64 => sum,
        /// Responses that stalled.
        pub stalled: u64 => sum,
        /// Responses that did not end within the timeout of their requests.
        pub timed_out: u64 => sum,
        /// Responses without any event, of those that ended.
        pub without_events: u64 => sum,
        /// Responses that were in flight when the run ended; none of those that ended.
        #[serde(default)]
        pub cut_off: u64 => sum,
        /// Events of all responses, also of those that were cut off; so are times and gaps.
        pub events: u64 => sum,
        /// Events that arrived together with the one before them.
        pub coalesced: u64 => sum,
        /// Bytes of bodies.
        pub bytes: u64 => sum,
        /// Time from the send to the first byte.
        pub first_byte: Histogram => sum,
        /// Time from the intended start to the first event.
        pub first_event: Histogram => sum,
        /// Time from the send to the first event.
        pub first_event_service: Histogram => sum,
        /// Gaps between events, of all responses.
        pub gaps: Histogram => sum,
        /// Longest gap of each response with two events and more.
        pub longest_gaps: Histogram => sum,
        /// Events that came within the window, also those of responses that began in the warm-up.
        pub events_in_window: u64 => sum,
        /// Bytes of bodies that came within the window, of the same responses.
        pub bytes_in_window: u64 => sum,
    }
}

impl StreamCounts {
    /// Records a gap, as [`StreamTimeline::record_event`] returned it.
    #[inline]
    pub fn record_gap(&mut self, gap: Nanos) {
        self.gaps.record(gap);
    }

    /// Records the end of a response with a body of `bytes`, whose gaps were recorded one by one.
    pub fn record_response(&mut self, timeline: &StreamTimeline, end: StreamEnd, bytes: u64) {
        let has_ended = end != StreamEnd::CutOff;
        self.responses += u64::from(has_ended);
        *match end {
            StreamEnd::Complete => &mut self.complete,
            StreamEnd::Unfinished => &mut self.unfinished,
            StreamEnd::Stopped => &mut self.stopped,
            StreamEnd::BrokenOff => &mut self.broken_off,
            StreamEnd::Stalled => &mut self.stalled,
            StreamEnd::TimedOut => &mut self.timed_out,
            StreamEnd::CutOff => &mut self.cut_off,
        } += 1;
        self.events += timeline.events;
        self.coalesced += timeline.coalesced;
        self.bytes += bytes;
        if let Some(at) = timeline.first_byte {
            self.first_byte.record(at - timeline.sent);
        }
        if let Some(at) = timeline.first_event {
            self.first_event.record(at - timeline.intended);
            self.first_event_service.record(at - timeline.sent);
        } else {
            self.without_events += u64::from(has_ended);
        }
        if timeline.events > 1 {
            self.longest_gaps.record(timeline.longest_gap);
        }
    }

    /// Whether the counts add up. Gaps may be of responses that end in a later part.
    pub(super) fn adds_up(&self) -> bool {
        let ends = [self.complete, self.unfinished, self.stopped, self.broken_off, self.stalled, self.timed_out];
        let with_events = self.responses - self.without_events.min(self.responses);
        self.responses == ends.iter().sum::<u64>()
            && (with_events..=with_events.saturating_add(self.cut_off)).contains(&self.first_event.count())
            && self.first_event_service.count() == self.first_event.count()
            && self.longest_gaps.count() <= self.first_event.count()
    }
}

impl AddPart for StreamCounts {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for StreamCounts {
    fn check(&self) -> Result<(), String> {
        self.check_values()?;
        if self.adds_up() { Ok(()) } else { Err("counts of streams that do not add up".into()) }
    }
}

#[cfg(test)]
mod tests;
