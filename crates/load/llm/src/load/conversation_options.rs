//! Conversations as agents make them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::endpoint_options::EndpointOptions;
use super::llm_load::prompts_and_endpoint;
use super::llm_program::LlmProgram;
use super::prompt_options::PromptOptions;
use weir_load::program::{BuiltInProgram, ProgramOptions};
use weir_load::{LoadPlan, Options};

/// Conversations of a load, as agents make them: on this machine, where the data set is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationOptions {
    /// Where requests go.
    pub endpoint: EndpointOptions,
    /// Prompts of the requests.
    pub prompts: PromptOptions,
    /// Seed of all random choices.
    pub seed: u64,
}

impl ConversationOptions {
    /// Name of the program in the protocol of agents.
    pub const PROGRAM: &str = "llm";

    /// Options and plan of a load whose conversations agents have.
    ///
    /// # Errors
    /// One line: the load does not go with agents.
    pub fn on_agents(&self, options: Options, plan: &LoadPlan) -> Result<(Options, LoadPlan), String> {
        let program = BuiltInProgram::new(Self::PROGRAM, plan.scenario_names(), self)?;
        let options = Options { program: Some(ProgramOptions::BuiltIn(program)), ..options };
        let plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
        Ok((options, plan))
    }

    /// An agent's part of a load, with its conversations.
    ///
    /// # Errors
    /// One line, e.g. about a file that has changed.
    pub fn agent_plan(program: &BuiltInProgram, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
        let Self { endpoint, prompts, seed } = program.options()?;
        let (prompts, endpoint) = prompts_and_endpoint(&endpoint, &prompts, seed)?;
        // Their head: the plan of an agent has no request of its own.
        let head = LoadPlan::new(&Options { program: None, ..options.clone() }).map_err(|error| error.to_string())?;
        let program = LlmProgram::new(endpoint.settings, prompts, &head)?;
        plan.driven_by(Arc::new(program), options).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReplySource, TokenCount};
    use weir_events::llm::LlmApi;
    use weir_load::steps::ThinkTime;

    #[test]
    fn options_survive_their_way_to_an_agent() {
        let endpoint = EndpointOptions {
            url: "http://h:1/v1".to_owned(),
            model: Some("m".to_owned()),
            api: Some(LlmApi::OllamaGenerate),
            temperature: Some(0.5),
            ..EndpointOptions::default()
        };
        let prompts = PromptOptions {
            dataset: Some("a.jsonl".into()),
            output_tokens: Some(TokenCount::Normal { mean: 5, deviation: 1 }),
            think: ThinkTime::parse("1s..3s").ok(),
            replies: ReplySource::Server,
            ..PromptOptions::default()
        };
        let own = ConversationOptions { endpoint, prompts, seed: u64::MAX };
        let program = BuiltInProgram::new(ConversationOptions::PROGRAM, vec!["llm".to_owned()], &own);
        assert_eq!(program.and_then(|program| program.options()), Ok(own));
    }
}
