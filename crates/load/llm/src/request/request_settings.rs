//! Settings of all requests to a language model: API, model, sampling and further members of the body.

use weir_events::llm::LlmApi;

use super::BodyTemplate;
use crate::json_text::{JsonMember, is_object, members};

/// Settings that all requests of a load have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestSettings {
    /// API.
    pub api: LlmApi,
    /// Body in place of the API's own.
    pub template: Option<BodyTemplate>,
    /// Name of the model; none if the server has one only.
    pub model: Option<String>,
    /// Whether responses are streamed.
    pub streams: bool,
    /// Whether responses have as many tokens as they may, as vLLM's `ignore_eos`.
    pub ignores_end: bool,
    /// Whether responses are to have as many tokens as they may and no fewer, as `min_tokens` of vLLM.
    pub has_minimum: bool,
    /// Temperature of the sampling.
    pub temperature: Option<f64>,
    /// Members of a JSON object that are added to each body, or replace its own; null removes one.
    pub extra: String,
}

impl RequestSettings {
    /// Names, without their quotes, and values of the extra members.
    ///
    /// # Errors
    /// If they are not a JSON object.
    pub(super) fn extra_members(&self) -> Result<Vec<JsonMember<'_>>, String> {
        let text = self.extra.trim();
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let wrong = |why: &str| format!("--extra-body: {why}; write a JSON object, e.g. {{\"top_k\": 20}}");
        if let Err(why) = serde_json::from_str::<&serde_json::value::RawValue>(text) {
            return Err(wrong(&why.to_string()));
        }
        if is_object(text.as_bytes()) { Ok(members(text.as_bytes())) } else { Err(wrong("not an object")) }
    }
}
