//! Result of a check of a machine.

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// Nothing that distorts a measurement.
    Ok,
    /// Matters to some measurements, or cannot be seen on this machine.
    Note,
    /// Distorts measurements, or ends them.
    Warning,
}

impl CheckStatus {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
        }
    }
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineCheck {
    /// Subject of the check, e.g. `open files`.
    pub name: &'static str,
    /// How much it matters.
    pub status: CheckStatus,
    /// Finding, with its number and unit.
    pub found: String,
    /// Consequence for a measurement.
    pub meaning: &'static str,
    /// Remedy; None where nothing needs to be done.
    pub remedy: Option<String>,
}

impl MachineCheck {
    pub(super) fn ok(name: &'static str, found: String, meaning: &'static str) -> Self {
        Self { name, status: CheckStatus::Ok, found, meaning, remedy: None }
    }

    pub(super) fn note(self, remedy: impl Into<String>) -> Self {
        Self { status: CheckStatus::Note, remedy: Some(remedy.into()), ..self }
    }

    pub(super) fn warning(self, remedy: impl Into<String>) -> Self {
        Self { status: CheckStatus::Warning, remedy: Some(remedy.into()), ..self }
    }

    /// The note or warning if the condition holds.
    pub(super) fn warning_if(self, holds: bool, remedy: &str) -> Self {
        if holds { self.warning(remedy) } else { self }
    }
}
