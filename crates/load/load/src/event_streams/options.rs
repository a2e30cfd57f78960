//! Options of streamed responses.

use serde::{Deserialize, Serialize};
use weir_base::Nanos;
use weir_events::StreamFormat;
use weir_events::llm::LlmApi;
use weir_measure::goodput::GoodputObjectives;

/// Options of streamed responses; the same for all of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
