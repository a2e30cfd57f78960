//! `weir llm` as a call of another program, such as Python's `weir.llm`.

use std::ffi::OsString;

use clap::Parser;

use super::LlmCommandArgs;
use super::prepared::PreparedLlm;
use crate::one_line;
use weir_load::LoadError;
use weir_measure::{Run, RunProgress};

/// Load of a language model's server, ready to run once.
#[derive(Debug)]
pub struct LlmCall(PreparedLlm);

/// Reason why a call has no result.
#[derive(Debug)]
pub enum LlmCallError {
    /// The load cannot start.
    Load(LoadError),
    /// The tokens cannot be counted; in one line.
    Tokens(String),
}

impl From<LoadError> for LlmCallError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

/// Parses arguments, as they follow `weir llm`, and checks them; flags of reports and files have no effect.
///
/// # Errors
/// First invalid argument, or line of the data set, in one line.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<LlmCall, String> {
    #[derive(Parser)]
    #[command(name = "weir llm", no_binary_name = true, disable_help_flag = true)]
    struct LlmCommand {
        #[command(flatten)]
        llm: LlmCommandArgs,
    }
    let asked = LlmCommand::try_parse_from(args).map_err(|error| one_line(&error, "llm"))?.llm;
    if asked.load_args.sweep()?.is_some() || asked.load_args.capacity()?.is_some() {
        return Err("--sweep and --capacity are for the command; call it once for each load".to_owned());
    }
    if asked.agent_args.has_agents() {
        return Err("--on is for the command; a call generates its load in this process".to_owned());
    }
    PreparedLlm::new(asked, None).map(LlmCall)
}

impl LlmCall {
    /// Notes for a person, such as conversations that are left out.
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// Executes the load until its end, or until `go_on` is false; `command` is recorded in the manifest.
    ///
    /// # Errors
    /// If it cannot start, or tokens cannot be counted.
    pub fn run(&self, command: &[String], go_on: &mut dyn FnMut() -> bool) -> Result<Run, LlmCallError> {
        let Some((_, plan)) = self.0.loads.first() else { return Err(LoadError::Interrupted.into()) };
        let mut run = weir_load::run(plan, command, &mut |_: &RunProgress<'_>| go_on(), None)?;
        if let Some(counter) = &self.0.counter {
            counter.count(&self.0.program, plan, &mut run).map_err(LlmCallError::Tokens)?;
        }
        self.0.objectives.judge(&mut run, self.0.objectives.watch(plan), false);
        Ok(run)
    }
}
