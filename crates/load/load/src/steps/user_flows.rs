//! What users of a thread follow: compiled steps, or a program.

use super::program_flows::ProgramFlows;
use super::step_flows::StepFlows;

/// What users of a thread follow.
#[derive(Debug)]
pub(crate) enum UserFlows<'a> {
    /// Compiled steps of scenarios.
    Steps(Box<StepFlows<'a>>),
    /// Program.
    Program(Box<ProgramFlows<'a>>),
}
