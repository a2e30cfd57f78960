//! Program whose users other processes drive.

use weir_measure::run_steps::StepFacts;

use super::{ProgramOptions, ProgramThread, ThreadProgram, UserProgram};

/// Program whose users other processes drive: this one knows the names of its scenarios.
#[derive(Clone, Debug)]
pub(crate) struct RemoteProgram {
    scenarios: Vec<String>,
    has_own_pace: bool,
}

impl RemoteProgram {
    /// Program that others make of these options.
    pub(crate) fn of(options: &ProgramOptions) -> Self {
        let has_own_pace = matches!(options, ProgramOptions::JavaScript(script) if !script.has_own_load);
        Self { scenarios: options.scenarios().to_vec(), has_own_pace }
    }
}

impl UserProgram for RemoteProgram {
    fn scenarios(&self) -> Vec<String> {
        self.scenarios.clone()
    }

    fn has_own_pace(&self) -> bool {
        self.has_own_pace
    }

    fn steps(&self) -> Vec<StepFacts> {
        Vec::new()
    }

    fn thread(&self, _: ProgramThread) -> Result<Box<dyn ThreadProgram>, String> {
        Err("scripts are for weir load; here they are not supported".to_owned())
    }
}
