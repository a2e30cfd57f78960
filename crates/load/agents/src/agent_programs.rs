//! Programs that drive the users of an agent.

use weir_load::program::ProgramOptions;
use weir_load::{AgentPosition, LoadPlan, Options};

/// Part of a load that an agent has, without its users.
#[derive(Debug)]
pub struct AgentPart<'a> {
    /// Options of the whole load.
    pub options: &'a Options,
    /// Plan of the part.
    pub plan: LoadPlan,
    /// Position of the agent among all.
    pub position: AgentPosition,
}

/// Makes the programs that drive the users of an agent.
pub trait AgentPrograms {
    /// The agent's part of a load, with users that the program drives.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn prepare(&mut self, program: &ProgramOptions, part: AgentPart<'_>) -> Result<LoadPlan, String>;

    /// Ends the load of the program; returns the final report of a script, for the coordinator's.
    fn finish(&mut self) -> Option<String>;
}

/// No programs: each is rejected.
#[derive(Clone, Copy, Debug)]
pub struct NoPrograms;

impl AgentPrograms for NoPrograms {
    fn prepare(&mut self, program: &ProgramOptions, _: AgentPart<'_>) -> Result<LoadPlan, String> {
        Err(format!("{}: scripts are not supported here", program.shown_name().display()))
    }

    fn finish(&mut self) -> Option<String> {
        None
    }
}
