//! Observer of streamed responses: what is looked at as their bytes arrive, and what is measured of it.
//!
//! A worker has an observer for each response in flight, and calls it at four places: when the head is there
//! ([`StreamObserver::begin`]), for each piece of the body ([`StreamObserver::body`]), when its timers are due
//! ([`StreamObserver::stalls_at`]), and at the end ([`StreamObserver::end`]). Nothing is allocated per event.

use weir_decide::Nanos;
use weir_events::llm::LlmApi;
use weir_events::{EventReader, StreamEvent, StreamFormat};
use weir_measure::goodput::GoodputObjectives;
use weir_measure::llm_counts::LlmCounts;
use weir_measure::llm_timeline::LlmTimeline;
use weir_measure::stream_counts::StreamCounts;
use weir_measure::stream_timeline::{StreamEnd, StreamTimeline};

/// Options of streamed responses; the same for all of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Format of the events; by `Content-Type` without one.
    pub format: Option<StreamFormat>,
    /// Stall timeout: maximum time without an event behind the first; never without one.
    pub stall_timeout: Option<Nanos>,
    /// Number of events after which a response ends on purpose; none without one.
    pub max_events: Option<u64>,
    /// API of a language model, whose tokens are looked for; none if responses are other streams.
    pub api: Option<LlmApi>,
    /// Objectives of requests to the language model.
    pub objectives: GoodputObjectives,
}

/// Counts that observers add to: those of the interval or window of a request's intended start. Gaps of responses that
/// do not count are not recorded.
#[derive(Debug)]
pub struct StreamSinks<'c> {
    /// Counts of streams.
    pub streams: &'c mut StreamCounts,
    /// Counts of requests to language models.
    pub llm: &'c mut LlmCounts,
}

/// Whether a response goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamAction {
    /// Read on.
    Continue,
    /// Cancel the response: it has the events that were asked for.
    Stop,
}

/// Observer of one response after another.
#[derive(Clone, Debug)]
pub struct StreamObserver {
    reader: EventReader,
    timeline: StreamTimeline,
    llm: LlmTimeline,
    /// Bytes of the body.
    bytes: u64,
    has_stopped: bool,
}

impl StreamObserver {
    /// Observer before its first response.
    pub fn new(options: &StreamOptions) -> Self {
        Self {
            reader: EventReader::new(options.format.unwrap_or(StreamFormat::Chunks)),
            timeline: StreamTimeline::new(Nanos::ZERO, Nanos::ZERO),
            llm: LlmTimeline::new(Nanos::ZERO, Nanos::ZERO),
            bytes: 0,
            has_stopped: false,
        }
    }

    /// Begins a response, whose head came at `at` and has this `Content-Type`; empty without one.
    pub fn begin(&mut self, options: &StreamOptions, (intended, sent): (Nanos, Nanos), at: Nanos, content_type: &[u8]) {
        self.reader.restart(options.format.unwrap_or_else(|| StreamFormat::of_content_type(content_type)));
        self.timeline = StreamTimeline::new(intended, sent);
        self.timeline.record_bytes(at);
        self.llm = LlmTimeline::new(intended, sent);
        (self.bytes, self.has_stopped) = (0, false);
    }

    /// Reads a piece of the body that came at `at`. What is behind the last event that was asked for is not read.
    #[inline]
    pub fn body(
        &mut self,
        options: &StreamOptions,
        piece: &[u8],
        at: Nanos,
        mut sinks: Option<&mut StreamSinks<'_>>,
    ) -> StreamAction {
        if self.has_stopped {
            return StreamAction::Stop;
        }
        self.bytes += piece.len() as u64;
        let mut rest = piece;
        while let Some(event) = self.reader.next_event(&mut rest) {
            record_event(&mut self.timeline, &mut self.llm, options, event, at, sinks.as_deref_mut());
            if options.max_events.is_some_and(|maximum| self.timeline.events >= maximum) {
                self.has_stopped = true;
                return StreamAction::Stop;
            }
        }
        StreamAction::Continue
    }

    /// Time at which the response has stalled if no further event comes.
    pub fn stalls_at(&self, options: &StreamOptions) -> Nanos {
        options.stall_timeout.map_or(Nanos::NEVER, |timeout| self.timeline.stalls_at(timeout))
    }

    /// Ends the response at `done`: whole, broken off, or stalled. Whether it succeeded, by status and checks, decides
    /// whether its times as a request to a language model count.
    pub fn end(
        &mut self,
        options: &StreamOptions,
        end: StreamEnd,
        done: Nanos,
        has_succeeded: bool,
        mut sinks: Option<&mut StreamSinks<'_>>,
    ) -> StreamEnd {
        let is_cut = self.reader.is_within_event() && self.reader.format() == StreamFormat::Sse;
        let end = match end {
            _ if self.has_stopped => StreamEnd::Stopped,
            StreamEnd::Complete if is_cut => StreamEnd::Unfinished,
            end => end,
        };
        if end == StreamEnd::Complete
            && let Some(event) = self.reader.end()
        {
            record_event(&mut self.timeline, &mut self.llm, options, event, done, sinks.as_deref_mut());
        }
        if let Some(sinks) = sinks {
            sinks.streams.record_response(&self.timeline, end, self.bytes);
            if options.api.is_some() && has_succeeded {
                sinks.llm.record_response(&self.llm, done, &options.objectives);
            } else if options.api.is_some() {
                sinks.llm.record_failure(&self.llm);
            }
        }
        end
    }

    /// Times of the response so far.
    pub fn timeline(&self) -> &StreamTimeline {
        &self.timeline
    }

    /// Times of the response so far, as one of a language model.
    pub fn llm_timeline(&self) -> &LlmTimeline {
        &self.llm
    }
}

#[inline]
fn record_event(
    timeline: &mut StreamTimeline,
    llm: &mut LlmTimeline,
    options: &StreamOptions,
    event: StreamEvent<'_>,
    at: Nanos,
    sinks: Option<&mut StreamSinks<'_>>,
) {
    let gap = timeline.record_event(at);
    let mut chunk_gap = None;
    if let Some(api) = options.api {
        match api.read(event.data) {
            Ok(event) => {
                llm.record_usage(event.usage.input, event.usage.output);
                if event.token.is_some() {
                    chunk_gap = llm.record_chunk(at);
                }
            }
            Err(_) => llm.broken_events += 1,
        }
    }
    if let Some(sinks) = sinks {
        gap.into_iter().for_each(|gap| sinks.streams.record_gap(gap));
        chunk_gap.into_iter().for_each(|gap| sinks.llm.record_gap(gap));
    }
}

#[cfg(test)]
mod tests;
