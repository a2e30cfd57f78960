//! Program whose users other processes drive.

use weir_measure::run_steps::StepFacts;

use super::{ProgramThread, ThreadProgram, UserProgram};

/// Program whose users other processes drive: this one knows the names of its scenarios.
#[derive(Clone, Debug)]
pub(crate) struct RemoteProgram(pub(crate) Vec<String>);

impl UserProgram for RemoteProgram {
    fn scenarios(&self) -> Vec<String> {
        self.0.clone()
    }

    fn steps(&self) -> Vec<StepFacts> {
        Vec::new()
    }

    fn thread(&self, _: ProgramThread) -> Result<Box<dyn ThreadProgram>, String> {
        Err("scripts are for weir load; here they are not supported".to_owned())
    }
}
