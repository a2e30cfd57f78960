//! Encoder of the intervals of a run for one receiver.

use std::sync::Arc;

use super::influx_lines;
use super::interval_sample::IntervalSample;
use super::json_lines;
use super::otlp_metrics::OtlpEncoder;
use super::output_subject::OutputSubject;
use super::remote_write::RemoteWriteEncoder;
use super::statsd_lines;

/// Encoder of intervals; what several have become may be sent one after the other.
#[derive(Debug)]
pub(crate) enum OutputEncoder {
    JsonLines { subject: Arc<OutputSubject>, has_started: bool },
    RemoteWrite(RemoteWriteEncoder),
    Otlp(OtlpEncoder),
    Influx(Arc<OutputSubject>),
    Statsd(Arc<OutputSubject>),
}

impl OutputEncoder {
    /// Bytes before the first interval; `None` before all others, and in formats without a start.
    pub(crate) fn start(&mut self, sample: &IntervalSample) -> Option<Vec<u8>> {
        let Self::JsonLines { subject, has_started } = self else { return None };
        if std::mem::replace(has_started, true) {
            return None;
        }
        let started_unix_ns = sample.frame.end_unix_ns.saturating_sub(sample.frame.end.0);
        Some(json_lines::start(subject, started_unix_ns as f64 / 1e9).into_bytes())
    }

    /// An interval.
    pub(crate) fn encode(&mut self, sample: &IntervalSample) -> Vec<u8> {
        match self {
            Self::JsonLines { .. } => json_lines::interval(sample).into_bytes(),
            Self::RemoteWrite(encoder) => encoder.encode(sample),
            Self::Otlp(encoder) => encoder.encode(sample),
            Self::Influx(subject) => influx_lines::lines(sample, subject).into_bytes(),
            Self::Statsd(subject) => statsd_lines::lines(sample, subject).into_bytes(),
        }
    }

    /// Bytes after the last interval; `None` in formats without an end.
    pub(crate) fn end(&self, end: &RunEnd) -> Option<Vec<u8>> {
        let Self::JsonLines { has_started, .. } = self else { return None };
        match end {
            RunEnd::Run(json) => Some(json_lines::summary("run", json).into_bytes()),
            RunEnd::Capacity(json) => Some(json_lines::summary("capacity", json).into_bytes()),
            // A run that could not start leaves what an earlier one has written.
            RunEnd::Failure(message) => has_started.then(|| json_lines::error(message).into_bytes()),
        }
    }
}

/// End of a run, or of a search.
#[derive(Clone, Debug)]
pub enum RunEnd {
    /// Result of a run as JSON.
    Run(Arc<str>),
    /// Result of a search for capacity as JSON.
    Capacity(Arc<str>),
    /// Why it failed.
    Failure(Arc<str>),
}
