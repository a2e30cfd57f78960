//! Times that objectives are about.

use std::fmt;

use crate::recorder::Interval;
use crate::run::Run;
use weir_histogram::Histogram;

/// Time that an objective is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeKind {
    /// From the intended start of a request to the end of its response.
    Response,
    /// From the send to the end of the response.
    Service,
    /// Time of an iteration, think times included.
    Iteration,
    /// Time to the first event of a stream.
    FirstEvent,
    /// Gap between two events of a stream.
    Gap,
    /// Time to the first token of a language model.
    Ttft,
    /// Time per output token.
    Tpot,
    /// Gap between two events with tokens.
    ChunkGap,
    /// Time to the end of the response of a language model.
    EndToEnd,
}

impl TimeKind {
    const ALL: [Self; 9] = [
        Self::Response,
        Self::Service,
        Self::Iteration,
        Self::FirstEvent,
        Self::Gap,
        Self::Ttft,
        Self::Tpot,
        Self::ChunkGap,
        Self::EndToEnd,
    ];

    /// Name before the point in an objective: `service.p99`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::Iteration => "time",
            Self::FirstEvent => "first_event",
            Self::Gap => "gap",
            Self::Ttft => "ttft",
            Self::Tpot => "tpot",
            Self::ChunkGap => "chunk_gap",
            Self::EndToEnd => "e2e",
        }
    }

    /// Kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(super) fn is_of_streams(self) -> bool {
        matches!(self, Self::FirstEvent | Self::Gap)
    }

    pub(super) fn is_of_llm(self) -> bool {
        matches!(self, Self::Ttft | Self::Tpot | Self::ChunkGap | Self::EndToEnd)
    }

    /// Times of this kind of a run; `None` without any, if they are damaged, and for iterations, which have their own.
    pub fn times_of(self, run: &Run) -> Option<Histogram> {
        let (streams, llm) = (run.streams.as_ref(), run.llm.as_ref());
        let times = match self {
            Self::Response => run.response_histogram().ok(),
            Self::Service => run.service_histogram().ok(),
            Self::Iteration => None,
            Self::FirstEvent => streams.and_then(|streams| streams.first_event_times().ok()),
            Self::Gap => streams.and_then(|streams| streams.gaps().ok()),
            Self::Ttft => llm.and_then(|llm| llm.ttft_times().ok()),
            Self::Tpot => llm.and_then(|llm| llm.tpot_times().ok()),
            Self::ChunkGap => llm.and_then(|llm| llm.chunk_gaps().ok()),
            Self::EndToEnd => llm.and_then(|llm| llm.e2e_times().ok()),
        };
        times.filter(|times| times.count() > 0)
    }

    /// Times of this kind in an interval; `None` without any, or if intervals do not have them.
    pub(crate) fn times_in(self, interval: &Interval) -> Option<&Histogram> {
        let streams = interval.streams.as_deref();
        let times = match self {
            Self::Response => Some(&interval.response),
            Self::Service | Self::Iteration => None,
            Self::FirstEvent => streams.map(|streams| &streams.first_event),
            Self::Gap => streams.map(|streams| &streams.gaps),
            Self::Ttft => streams.map(|streams| &streams.ttft),
            Self::Tpot => streams.map(|streams| &streams.tpot),
            Self::ChunkGap => streams.map(|streams| &streams.chunk_gaps),
            Self::EndToEnd => streams.map(|streams| &streams.e2e),
        };
        times.filter(|times| times.count() > 0)
    }

    /// Whether a request that has not ended may still have such a time, above any limit.
    pub(crate) fn is_of_whole_responses(self) -> bool {
        matches!(self, Self::Response | Self::Service | Self::EndToEnd)
    }
}

impl fmt::Display for TimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Response => "response time",
            Self::Service => "service time",
            Self::Iteration => "iteration time",
            Self::FirstEvent => "time to the first event",
            Self::Gap => "gap between events",
            Self::Ttft => "TTFT",
            Self::Tpot => "TPOT",
            Self::ChunkGap => "gap between chunks",
            Self::EndToEnd => "end-to-end time",
        })
    }
}
