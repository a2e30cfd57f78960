//! State of a reader: names of variables, omissions, and comments that wait for their step.

use std::collections::{BTreeSet, HashMap};

use weir_hurl::Template;

use crate::collection::{Import, ImportedScenario};
use crate::file_reader::NamedFileReader;
use crate::http_environment::HttpEnvironment;
use crate::names::VariableNameTable;
use crate::omission::{Omission, OmissionKind};
use crate::request::ImportedStep;
use crate::text;

/// Most characters of a description that are shown.
const MAX_WHAT_CHARS: usize = 160;

/// Most parts of outer elements that all steps together have.
const MAX_INHERITED: usize = 200_000;

/// Most omissions that are described.
const MAX_OMISSIONS: usize = 10_000;

/// State of the readers of an import, one file after another.
#[derive(Debug, Default)]
pub(crate) struct ImportSession {
    /// Name of the current file.
    pub(crate) file: String,
    pub(crate) names: VariableNameTable,
    pub(crate) import: Import,
    /// Variables whose values have variables or functions.
    pub(crate) formulas: HashMap<String, Template>,
    /// Environments of JetBrains, until all files are read.
    pub(crate) environments: Vec<HttpEnvironment>,
    /// Files that imported files name.
    pub(crate) reader: NamedFileReader,
    /// Headers, credentials, captures and checks that steps have of outer elements so far.
    inherited: usize,
    /// Variables of fixed credentials, by their values.
    pub(crate) credentials: HashMap<String, String>,
    /// Variables that scripts have captured so far.
    pub(crate) captured: BTreeSet<String>,
    /// Comments for the next step.
    pending: Vec<String>,
}

impl ImportSession {
    /// State before the first file.
    pub(crate) fn new(reader: NamedFileReader) -> Self {
        Self { reader, ..Self::default() }
    }

    /// Content of a file that the current file names; `None` if it is not there, or too large for a text.
    pub(crate) fn read_file(&self, name: &str) -> Option<Vec<u8>> {
        self.reader.read(&self.file, name)
    }

    /// Value of a variable, if the files say it.
    pub(crate) fn known_value(&self, name: &str) -> Option<&str> {
        let formula = self.formulas.get(name);
        let of_formula = formula.and_then(|value| if value.parts.is_empty() { Some("") } else { value.as_text() });
        let variable = self.import.variable(name);
        of_formula.or_else(|| variable?.value.as_deref())
    }

    /// Records an omission and writes its comment above the next step.
    pub(crate) fn omit(&mut self, line: u32, kind: OmissionKind, what: impl AsRef<str>) {
        if self.is_full() {
            return;
        }
        let what = text::one_line(what.as_ref(), MAX_WHAT_CHARS);
        self.pending.push(format!("left out: {what}"));
        self.count(line, kind, what);
    }

    /// Whether no further omission is described, since there are too many.
    pub(crate) fn is_full(&mut self) -> bool {
        let count = self.import.omissions.len();
        if count == MAX_OMISSIONS {
            self.count(1, OmissionKind::Setting, "and more, which are not described".to_owned());
        }
        count >= MAX_OMISSIONS
    }

    /// Records an omission without a comment.
    pub(crate) fn omit_quietly(&mut self, line: u32, kind: OmissionKind, what: &str) {
        self.count(line, kind, text::one_line(what, MAX_WHAT_CHARS));
    }

    fn count(&mut self, line: u32, kind: OmissionKind, what: String) {
        self.import.omissions.push(Omission { file: self.file.clone(), line, kind, what });
    }

    /// Writes a comment above the next step.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        self.pending.push(text::one_line(text.as_ref(), MAX_WHAT_CHARS));
    }

    /// Counts a header, a credential or a check that a step has of an outer element; false once there are too many: each of
    /// many steps would have all of many.
    pub(crate) fn may_inherit(&mut self) -> bool {
        self.inherited += 1;
        self.inherited <= MAX_INHERITED
    }

    /// Comments that wait for their step.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.pending)
    }

    /// Takes the comment that was written last.
    pub(crate) fn take_last_note(&mut self) -> Option<String> {
        self.pending.pop()
    }

    /// Adds a step to a scenario, with the comments that wait for it.
    pub(crate) fn push(&mut self, scenario: &mut ImportedScenario, mut step: ImportedStep) {
        let own = std::mem::take(&mut step.notes);
        step.notes = self.take_notes();
        step.notes.extend(own);
        step.file.clone_from(&self.file);
        scenario.steps.push(step);
    }

    /// Ends a scenario: comments that still wait are its last ones.
    pub(crate) fn end(&mut self, scenario: &mut ImportedScenario) {
        scenario.end_notes.extend(std::mem::take(&mut self.pending));
    }
}
