//! Flows of a thread's users: compiled steps, or a program.

use super::program_flows::ProgramFlows;
use super::step_flows::StepFlows;

/// Flows of a thread's users.
#[derive(Debug)]
pub(crate) enum UserFlows<'a> {
    /// Compiled steps of scenarios.
    Steps(Box<StepFlows<'a>>),
    /// Program.
    Program(Box<ProgramFlows<'a>>),
}
