//! Options of a gateway beside its configuration.

use weir_machine::logger::Logger;

/// Options of a gateway beside its configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Logger of each call's attempt log, as text.
    pub call_logger: Option<Logger>,
    /// Export of traces.
    pub otlp: Option<OtlpOptions>,
    /// Seed of retry backoff jitter, and of the hashes by which callers keep their upstreams and hosts.
    pub seed: u64,
    /// Whether a call is a value as long as that does, and not a future. Both do the same; a value costs less.
    pub has_direct_calls: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { call_logger: None, otlp: None, seed: 0, has_direct_calls: true }
    }
}

/// Export of traces to an OpenTelemetry collector, as OTLP over HTTP.
#[derive(Clone, Debug)]
pub struct OtlpOptions {
    /// URL of the collector, e.g. `http://127.0.0.1:4318`.
    pub url: String,
    /// Fraction of calls traced if the caller has not decided, 0 to 1.
    pub sample_fraction: f64,
}
