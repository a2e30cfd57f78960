//! Flags of responses that are streams of events, shared by `load` and `capacity`.

use std::time::Duration;

use clap::Args;

use weir_base::units;
use weir_events::StreamFormat;
use weir_load::event_streams::StreamOptions;

/// Heading of these flags in the help.
const STREAMS: &str = "Streams";

/// Group of the flags by which events are read: of responses, or of connections that listen.
pub(super) const EVENT_SOURCE: &str = "event_source";

/// Responses as streams of events.
#[derive(Clone, Debug, Args)]
pub(super) struct EventStreamArgs {
    /// read responses as event streams: sse, ndjson, chunks or json [without FORMAT: by Content-Type]
    #[arg(
        long,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = EventStreamArgs::AUTO,
        value_parser = format,
        help_heading = STREAMS
    )]
    stream: Option<StreamChoice>,
    /// fail a response that stalls for TIME between two events
    #[arg(long, value_name = "TIME", value_parser = units::seconds, requires = EVENT_SOURCE, help_heading = STREAMS)]
    stall_timeout: Option<Duration>,
    /// end a response after N events
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        requires = EVENT_SOURCE,
        help_heading = STREAMS
    )]
    max_events: Option<u64>,
}

/// Format of a stream, or by its `Content-Type`.
#[derive(Clone, Copy, Debug)]
struct StreamChoice(Option<StreamFormat>);

impl EventStreamArgs {
    /// Name of the choice by `Content-Type`.
    const AUTO: &'static str = "auto";

    /// Options of streams; `None` if responses are not read as such.
    ///
    /// `listens`: whether connections listen, which needs no format.
    pub(super) fn into_options(self, listens: bool) -> Option<StreamOptions> {
        let StreamChoice(format) = self.stream.or(listens.then_some(StreamChoice(None)))?;
        let stall_timeout = self.stall_timeout.map(Into::into);
        Some(StreamOptions { format, stall_timeout, max_events: self.max_events, ..StreamOptions::default() })
    }
}

fn format(text: &str) -> Result<StreamChoice, String> {
    if text == EventStreamArgs::AUTO {
        return Ok(StreamChoice(None));
    }
    StreamFormat::parse(text).map(|format| StreamChoice(Some(format)))
}
