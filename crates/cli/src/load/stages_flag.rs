//! Stages of a load as a flag.

use weir_pace::live_load::LevelKind;
use weir_pace::notation;
use weir_pace::schedule::LoadStage;

/// Stages as one value; clap would take a bare `Vec` for a repeatable option.
#[derive(Clone, Debug)]
pub(crate) struct StagesFlag(pub(crate) Vec<LoadStage>);

/// Stages of a rate, or of users.
#[derive(Clone, Debug)]
pub(super) struct LoadStagesFlag(pub(super) LevelKind, pub(super) Vec<LoadStage>);

impl LoadStagesFlag {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        notation::stages_of_load(text).map(|(kind, stages)| Self(kind, stages))
    }

    /// Whether they are stages of users.
    pub(super) fn are_of_users(&self) -> bool {
        self.0 == LevelKind::Users
    }

    /// Stages of a rate, and stages of users; one of them is empty.
    pub(super) fn by_kind(self) -> [Vec<LoadStage>; 2] {
        match self.0 {
            LevelKind::Rate => [self.1, Vec::new()],
            LevelKind::Users => [Vec::new(), self.1],
        }
    }
}

impl StagesFlag {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        notation::stages(text).map(Self)
    }
}
