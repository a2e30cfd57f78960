//! Observer of streamed responses: parses events as bytes arrive, and measures their times.
//!
//! A worker has an observer for each response in flight, and calls it at four places: when the head is there
//! ([`StreamObserver::begin`]), for each piece of the body ([`StreamObserver::body`]), when its timers are due
//! ([`StreamObserver::stalls_at`]), and at the end: [`StreamObserver::settle`] says how the response ended, and
//! [`StreamObserver::record`] takes it into the counts once it is known whether the request succeeded. Nothing is
//! allocated per event.

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_events::llm::error_message;
use weir_events::{EventReader, StreamEvent, StreamFormat};
use weir_measure::llm_counts::LlmCounts;
use weir_measure::llm_timeline::LlmTimeline;
use weir_measure::stream_counts::StreamCounts;
use weir_measure::stream_interval::StreamInterval;
use weir_measure::stream_timeline::{StreamEnd, StreamTimeline};
use weir_measure::time_window::TimeWindow;

use super::arrived_events::ArrivedEvents;
pub use super::content_fault::ContentFault;
use super::options::StreamOptions;
use super::read_wait::ReadWait;
use weir_scenario::plan::StreamEndRule;

/// Lowest status of responses that are errors, and not read as streams.
const FIRST_ERROR_STATUS: u16 = 400;

/// Counts that observers add to.
#[derive(Debug)]
pub struct StreamSinks<'c> {
    /// Window of the run.
    pub window: TimeWindow,
    /// Whether all of the response counts: of one to a request of the warm-up, only what comes within the window does.
    pub is_counted: bool,
    /// Counts of the current interval.
    pub interval: &'c mut StreamInterval,
    /// Counts of streams.
    pub streams: &'c mut StreamCounts,
    /// Counts of requests to language models; `None` if responses are other streams.
    pub llm: Option<&'c mut LlmCounts>,
    /// Buffer of events for a program that reads them.
    pub arrived: Option<&'c mut ArrivedEvents>,
    /// Wait of reads, which gaps decide about; none if reads do not wait.
    pub reads: Option<&'c mut ReadWait>,
}

/// Arrival of a piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceArrival {
    /// Time of the arrival: the kernel's, or that of the read.
    pub at: Nanos,
    /// Time until it was read; none if the arrival is the time of the read.
    pub read_delay: Option<Nanos>,
}

/// Observer of one response after another.
#[derive(Clone, Debug)]
pub struct StreamObserver {
    reader: EventReader,
    timeline: StreamTimeline,
    llm: LlmTimeline,
    /// Bytes of the body.
    bytes: u64,
    max_events: u64,
    /// Text of an event after which the response ends; none if empty.
    last_text: Vec<u8>,
    /// Delay with which the last piece was read, if the kernel has timed its arrival.
    read_delay: Option<Nanos>,
    is_reading: bool,
    has_stopped: bool,
    fault: Option<ContentFault>,
    /// Whether an event has said that the response is whole.
    has_end: bool,
}

impl StreamObserver {
    /// Observer before its first response.
    pub fn new(options: &StreamOptions) -> Self {
        Self {
            reader: EventReader::new(options.format.unwrap_or(StreamFormat::Chunks)),
            timeline: StreamTimeline::new(Nanos::ZERO, Nanos::ZERO),
            llm: LlmTimeline::new(Nanos::ZERO, Nanos::ZERO),
            bytes: 0,
            max_events: u64::MAX,
            last_text: Vec::new(),
            read_delay: None,
            is_reading: false,
            has_stopped: false,
            fault: None,
            has_end: false,
        }
    }

    /// Begins a response, which has come since `at`, and has this status and `Content-Type`; the latter empty without
    /// one. The times are those of the request: its intended start, when only the generator itself could delay it, and
    /// its send. The response to an error is not read as a stream: its one event would say nothing about those of
    /// others.
    pub fn begin(
        &mut self,
        options: &StreamOptions,
        (intended, ready, sent): (Nanos, Nanos, Nanos),
        at: Nanos,
        (status, content_type): (u16, &[u8]),
    ) {
        self.reader.restart(options.format.unwrap_or_else(|| StreamFormat::of_content_type(content_type)));
        self.timeline = StreamTimeline::new(intended, sent);
        self.timeline.record_bytes(at);
        self.llm = LlmTimeline { ready: ready.min(sent), ..LlmTimeline::new(intended, sent) };
        (self.bytes, self.has_stopped, self.has_end, self.fault) = (0, false, false, None);
        self.is_reading = status < FIRST_ERROR_STATUS;
        self.max_events = options.max_events.unwrap_or(u64::MAX);
        self.last_text.clear();
    }

    /// Ends the response that has begun on purpose when a step says so.
    pub fn end_by(&mut self, rule: &StreamEndRule) {
        self.max_events = rule.max_events.unwrap_or(self.max_events);
        self.last_text.extend_from_slice(rule.text.as_deref().unwrap_or_default().as_bytes());
    }

    /// Ends the response here on purpose.
    pub fn stop(&mut self) {
        self.has_stopped = true;
    }

    /// Forgets the response, which is not recorded.
    pub fn abandon(&mut self) {
        self.is_reading = false;
    }

    /// Whether it is within a response that is read as a stream.
    pub fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Bytes of the body that were read.
    pub fn read_bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the response has the maximum number of events.
    pub fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    /// Reads a piece of the body; returns the number of bytes up to the last event that was asked for,
    /// or all. What is behind it is not read, and [`Self::has_stopped`].
    #[inline]
    pub fn body(
        &mut self,
        options: &StreamOptions,
        piece: &[u8],
        PieceArrival { at, read_delay }: PieceArrival,
        sinks: &mut StreamSinks<'_>,
    ) -> usize {
        if !self.is_reading {
            return piece.len();
        }
        if self.has_stopped {
            return 0;
        }
        let before = self.bytes;
        self.bytes += piece.len() as u64;
        self.read_delay = read_delay;
        let (mut rest, mut used) = (piece, piece.len());
        while let Some(event) = self.reader.next_event(&mut rest) {
            let end = event.end;
            let is_last = !self.last_text.is_empty() && memchr::memmem::find(event.data, &self.last_text).is_some();
            let parts = (&mut self.timeline, &mut self.llm, &mut self.fault, &mut self.has_end);
            record_event(parts, options, event, PieceArrival { at, read_delay }, sinks);
            if is_last || self.timeline.events >= self.max_events {
                self.has_stopped = true;
                self.bytes = end;
                used = usize::try_from(end.saturating_sub(before)).unwrap_or(used).min(used);
                break;
            }
        }
        if sinks.window.contains(at) {
            sinks.streams.bytes_in_window += used as u64;
        }
        used
    }

    /// Time at which the response has stalled if no further event comes.
    pub fn stalls_at(&self, options: &StreamOptions) -> Nanos {
        match options.stall_timeout {
            Some(timeout) if self.is_reading => self.timeline.stalls_at(timeout),
            _ => Nanos::NEVER,
        }
    }

    /// Kind of failure, if this one ends the response: within a stream a connection that closes breaks it off.
    pub fn failure_kind(&self, kind: FailureKind) -> FailureKind {
        match kind {
            FailureKind::Closed | FailureKind::Reset | FailureKind::Protocol if self.is_reading => {
                FailureKind::BrokenOff
            }
            kind => kind,
        }
    }

    /// Ends the reading of a whole response at `done`; what is wrong with its content makes it a failure.
    pub fn settle(
        &mut self,
        options: &StreamOptions,
        done: Nanos,
        sinks: &mut StreamSinks<'_>,
    ) -> Option<ContentFault> {
        if !self.is_reading {
            return None;
        }
        if !self.has_stopped
            && let Some(event) = self.reader.end()
        {
            let arrival = PieceArrival { at: done, read_delay: self.read_delay };
            let parts = (&mut self.timeline, &mut self.llm, &mut self.fault, &mut self.has_end);
            record_event(parts, options, event, arrival, sinks);
        }
        if let Some(api) = options.api
            && !self.has_stopped
        {
            let is_streamed = matches!(self.reader.format(), StreamFormat::Sse | StreamFormat::JsonLines);
            let missing = match self.timeline.events {
                0 => Some(ContentFault::Empty),
                _ if api.has_tokens() && self.llm.chunks == 0 => Some(ContentFault::NoToken),
                _ if api.has_tokens() && is_streamed && !self.has_end => Some(ContentFault::NoEnd),
                _ => None,
            };
            self.fault = self.fault.take().or(missing);
        }
        self.fault.clone()
    }

    /// Records the response, which ended at `done` this way. Whether it succeeded, by status, content and checks,
    /// decides whether its times as a request to a language model count.
    pub fn record(
        &mut self,
        options: &StreamOptions,
        end: StreamEnd,
        done: Nanos,
        has_succeeded: bool,
        sinks: &mut StreamSinks<'_>,
    ) -> StreamEnd {
        let is_cut = self.reader.is_within_event() && self.reader.format() == StreamFormat::Sse;
        let end = match end {
            StreamEnd::Complete if self.has_stopped => StreamEnd::Stopped,
            StreamEnd::Complete if is_cut => StreamEnd::Unfinished,
            end => end,
        };
        if !std::mem::take(&mut self.is_reading) {
            return end;
        }
        if options.api.is_some() && has_succeeded {
            sinks.interval.record_llm_response(&self.llm, done, &options.objectives);
        }
        if sinks.is_counted {
            sinks.streams.record_response(&self.timeline, end, self.bytes);
        }
        if let Some(llm) = &mut sinks.llm {
            if has_succeeded {
                llm.in_window.record_response(&self.llm, done, &options.objectives, &sinks.window);
            }
            match (sinks.is_counted, has_succeeded) {
                (true, true) => llm.record_response(&self.llm, done, &options.objectives),
                (true, false) if end != StreamEnd::CutOff => llm.record_failure(&self.llm),
                (_, _) => {}
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
    (timeline, llm, fault, has_end): (&mut StreamTimeline, &mut LlmTimeline, &mut Option<ContentFault>, &mut bool),
    options: &StreamOptions,
    event: StreamEvent<'_>,
    PieceArrival { at, read_delay }: PieceArrival,
    sinks: &mut StreamSinks<'_>,
) {
    if let Some(arrived) = &mut sinks.arrived {
        arrived.push(&event);
    }
    let content = options.api.map(|api| api.read_event(event.name, event.data));
    if matches!(content, Some(Ok(None))) {
        return;
    }
    let gap = timeline.record_event(at);
    let mut chunk_gap = None;
    match content {
        Some(Ok(Some(content))) => {
            llm.record_usage(content.usage.input, content.usage.output);
            *has_end |= content.is_end;
            if content.is_error && fault.is_none() {
                *fault = Some(ContentFault::Error(timeline.events, error_message(event.data)));
            }
            if content.token.is_some() {
                chunk_gap = llm.record_chunk(at, &sinks.window);
                if llm.chunks == 1 {
                    llm.first_read_delay = read_delay;
                }
            }
        }
        Some(Err(_)) => {
            llm.broken_events += 1;
            fault.get_or_insert_with(|| ContentFault::not_json(timeline.events, event.data));
        }
        Some(Ok(None)) | None => {}
    }
    sinks.interval.record_event(gap);
    if gap.is_none() {
        sinks.interval.record_first_event(timeline);
    }
    if let Some(reads) = &mut sinks.reads {
        reads.record_event(gap);
    }
    sinks.streams.events_in_window += u64::from(sinks.window.contains(at));
    if let Some(gap) = gap.filter(|_| sinks.is_counted) {
        sinks.streams.record_gap(gap);
    }
    if let Some(gap) = chunk_gap {
        sinks.interval.chunk_gaps.record(gap);
        if let Some(llm) = sinks.llm.as_mut().filter(|_| sinks.is_counted) {
            llm.record_gap(gap);
        }
    }
}

#[cfg(test)]
mod tests;
