//! Scripts that drive the users of an agent.

use weir_load::program::ScriptOptions;
use weir_load::{AgentPosition, LoadPlan, Options};

/// Opens the scripts that drive the users of an agent.
pub trait AgentScripts {
    /// The agent's part of a load, with users that the script drives. `plan` is this part without them.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn prepare(
        &mut self,
        script: &ScriptOptions,
        options: &Options,
        plan: LoadPlan,
        position: AgentPosition,
    ) -> Result<LoadPlan, String>;

    /// Ends the load of the script; returns what it leaves to the script of the coordinator.
    fn finish(&mut self) -> Option<String>;
}

/// No scripts: each is rejected.
#[derive(Clone, Copy, Debug)]
pub struct NoScripts;

impl AgentScripts for NoScripts {
    fn prepare(
        &mut self,
        script: &ScriptOptions,
        _: &Options,
        _: LoadPlan,
        _: AgentPosition,
    ) -> Result<LoadPlan, String> {
        Err(format!("{}: scripts are not supported here", script.path.display()))
    }

    fn finish(&mut self) -> Option<String> {
        None
    }
}
