//! Result of an import.

use std::collections::HashMap;

use crate::kind::ImportKind;
use crate::omission::{Omission, OmissionKind};
use crate::request::ImportedStep;

/// Scenarios of imported files, the values of their variables, and what is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Import {
    /// Scenarios: one, or one for each thread group of a test plan.
    pub scenarios: Vec<ImportedScenario>,
    /// Variables that the scenarios need.
    pub variables: Vec<ImportedVariable>,
    /// Places of variables that were defined, by name.
    pub(crate) places: HashMap<String, usize>,
    /// Omissions, in the order of the files.
    pub omissions: Vec<Omission>,
    /// Kinds of the files.
    pub kinds: Vec<ImportKind>,
}

/// Steps that a user plays, and how many users play them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedScenario {
    /// Name; empty if the file has none.
    pub name: String,
    /// Comments at the beginning.
    pub notes: Vec<String>,
    /// Steps in order.
    pub steps: Vec<ImportedStep>,
    /// Comments at the end.
    pub end_notes: Vec<String>,
    /// Load, if the file has one.
    pub load: ImportedLoad,
    /// When it is played.
    pub role: ScenarioRole,
}

/// When a scenario is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScenarioRole {
    /// By the users of the load.
    #[default]
    Users,
    /// Once before the load.
    Setup,
    /// Once after the load.
    Teardown,
}

/// Load of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedLoad {
    /// Users of the closed loop.
    pub users: Option<u64>,
    /// Time over which users start, in seconds.
    pub ramp_up_s: Option<u64>,
    /// Iterations of each user.
    pub loops: Option<u64>,
    /// Duration in seconds.
    pub duration_s: Option<u64>,
    /// Think time between steps, such as `1s..3s`.
    pub think: Option<String>,
    /// File with rows of data.
    pub data: Option<ImportedData>,
    /// Whether an iteration goes on after a failed step.
    pub continue_on_error: bool,
    /// Whether users keep their cookies between iterations.
    pub keep_cookies: bool,
}

/// File with rows of data; its first line has the names of the columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedData {
    /// Name of the file.
    pub file: String,
    /// Order of the rows: `circular`, `unique` or `once`.
    pub order: &'static str,
    /// Columns, which are variables.
    pub columns: Vec<String>,
    /// Whether the file has no line with the names of the columns.
    pub lacks_header: bool,
    /// Delimiter of the columns.
    pub delimiter: String,
}

/// Variable that scenarios need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedVariable {
    /// Name.
    pub name: String,
    /// Value; `None` if the files have none.
    pub value: Option<String>,
    /// Whether the value is a secret.
    pub is_secret: bool,
}

impl Import {
    /// Whether anything has to be said about the load: then a mix file is needed.
    pub fn has_load(&self) -> bool {
        self.scenarios.len() > 1 || self.scenarios.iter().any(|scenario| scenario.load != ImportedLoad::default())
    }

    /// Variables without a value.
    pub fn undefined(&self) -> impl Iterator<Item = &ImportedVariable> {
        self.variables.iter().filter(|variable| variable.value.is_none())
    }

    /// Steps that are played.
    pub fn active_steps(&self) -> usize {
        self.scenarios.iter().flat_map(|scenario| &scenario.steps).filter(|step| !step.is_disabled).count()
    }

    /// Place of a variable.
    fn place_of(&self, name: &str) -> Option<usize> {
        match self.places.get(name) {
            // Variables may have been dropped since.
            Some(place) if self.variables.get(*place).is_some_and(|variable| variable.name == name) => Some(*place),
            Some(_) => self.variables.iter().position(|variable| variable.name == name),
            None => None,
        }
    }

    /// A variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&ImportedVariable> {
        self.variables.get(self.place_of(name)?)
    }

    /// Sets the value of a variable, unless it has one.
    pub(crate) fn define(&mut self, name: &str, value: &str, is_secret: bool) {
        let found = self.place_of(name);
        match found.and_then(|place| self.variables.get_mut(place)) {
            Some(variable) if variable.value.is_some() => {}
            Some(variable) => (variable.value, variable.is_secret) = (Some(value.to_owned()), is_secret),
            None => {
                let (name, value) = (name.to_owned(), Some(value.to_owned()));
                self.places.insert(name.clone(), self.variables.len());
                self.variables.push(ImportedVariable { name, value, is_secret });
            }
        }
    }

    /// Adds an omission, and its comment to a step.
    pub(crate) fn omit(
        omissions: &mut Vec<Omission>,
        step: &mut ImportedStep,
        kind: OmissionKind,
        what: impl Into<String>,
    ) {
        let what = what.into();
        step.notes.push(format!("left out: {what}"));
        omissions.push(Omission { file: step.file.clone(), line: step.line, kind, what });
    }
}
