//! Options of a load of a language model's server.

use super::endpoint_options::EndpointOptions;
use super::load_options::LlmLoadOptions;
use super::prompt_options::PromptOptions;

/// Options of a load of a language model's server, not yet validated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LlmOptions {
    /// Where requests go.
    pub endpoint: EndpointOptions,
    /// Prompts of the requests.
    pub prompts: PromptOptions,
    /// Number of conversations, and their objectives.
    pub load: LlmLoadOptions,
}
