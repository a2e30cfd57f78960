//! Options of a load of a language model's server.

use super::endpoint_options::EndpointOptions;
use super::load_options::LlmLoadOptions;
use super::prompt_options::PromptOptions;
use super::trace_options::TraceOptions;

/// Options of a load of a language model's server, not yet validated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LlmOptions {
    /// Where requests go.
    pub endpoint: EndpointOptions,
    /// Prompts of the requests.
    pub prompts: PromptOptions,
    /// Number of conversations, and their objectives.
    pub load: LlmLoadOptions,
    /// Trace whose requests are replayed, in place of prompts and a rate.
    pub trace: Option<TraceOptions>,
}
