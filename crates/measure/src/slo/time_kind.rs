//! Times that objectives are about.

use std::fmt;

use super::figures::{SloFigures, SloScope, TimeFigures};
use crate::histogram::Histogram;
use crate::recorder::Interval;

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
    fn name(self) -> &'static str {
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

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether a part of a run has such times.
    pub(super) fn is_of(self, scope: &SloScope) -> bool {
        match self {
            Self::Iteration => *scope == SloScope::Iterations,
            Self::Response | Self::Service => *scope != SloScope::Iterations,
            _ => *scope == SloScope::Run,
        }
    }

    pub(super) fn is_of_streams(self) -> bool {
        matches!(self, Self::FirstEvent | Self::Gap)
    }

    pub(super) fn is_of_llm(self) -> bool {
        matches!(self, Self::Ttft | Self::Tpot | Self::ChunkGap | Self::EndToEnd)
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

    pub(super) fn of(self, figures: &SloFigures) -> &TimeFigures {
        match self {
            Self::Response | Self::Iteration => &figures.response,
            Self::Service => &figures.service,
            Self::FirstEvent => &figures.first_event,
            Self::Gap => &figures.gap,
            Self::Ttft => &figures.ttft,
            Self::Tpot => &figures.tpot,
            Self::ChunkGap => &figures.chunk_gap,
            Self::EndToEnd => &figures.e2e,
        }
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
