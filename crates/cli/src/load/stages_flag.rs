//! Stages of a load as a flag.

use weir_decide::load::notation;
use weir_decide::load::schedule::LoadStage;

/// Stages as one value; clap would take a bare `Vec` for a repeatable option.
#[derive(Clone, Debug)]
pub(crate) struct StagesFlag(pub(crate) Vec<LoadStage>);

impl StagesFlag {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        notation::stages(text).map(Self)
    }
}
