//! Programs that drive the users of an agent.

use weir_load::program::ProgramOptions;
use weir_load::{AgentPosition, LoadPlan, Options};

/// Makes the programs that drive the users of an agent.
pub trait AgentPrograms {
    /// The agent's part of a load, with users that the program drives. `plan` is this part without them.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn prepare(
        &mut self,
        program: &ProgramOptions,
        options: &Options,
        plan: LoadPlan,
        position: AgentPosition,
    ) -> Result<LoadPlan, String>;

    /// Ends the load of the program; returns what a script leaves to the one of the coordinator.
    fn finish(&mut self) -> Option<String>;
}

/// No programs: each is rejected.
#[derive(Clone, Copy, Debug)]
pub struct NoPrograms;

impl AgentPrograms for NoPrograms {
    fn prepare(
        &mut self,
        program: &ProgramOptions,
        _: &Options,
        _: LoadPlan,
        _: AgentPosition,
    ) -> Result<LoadPlan, String> {
        Err(format!("{}: scripts are not supported here", program.shown_name().display()))
    }

    fn finish(&mut self) -> Option<String> {
        None
    }
}
