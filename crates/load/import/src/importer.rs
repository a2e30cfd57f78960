//! An import from its files to its result.

use std::borrow::Cow;

use crate::bruno;
use crate::collection::{Import, ImportedScenario};
use crate::curl;
use crate::detect::detect;
use crate::error::{ImportError, Mismatch};
use crate::file_reader::NamedFileReader;
use crate::har;
use crate::http_file;
use crate::jmx;
use crate::kind::ImportKind;
use crate::openapi;
use crate::passes;
use crate::postman;
use crate::session::ImportSession;
use crate::settings::ImportSettings;

/// Content of a file to import, with its name and format.
#[derive(Clone, Debug)]
pub struct ImportFile<'a> {
    /// Name for messages.
    pub name: &'a str,
    /// Content. Text that is owned is freed once it is read.
    pub text: Cow<'a, str>,
    /// Format; None to detect it from the content.
    pub kind: Option<ImportKind>,
}

/// Imports files: their steps are one scenario, in the order of the files; a test plan has a scenario for each of its
/// thread groups. Environments give variables their values.
///
/// # Errors
/// The first file that is of no known kind, or not of the kind that it should be.
pub fn import<'a>(
    files: impl IntoIterator<Item = ImportFile<'a>>,
    settings: &ImportSettings,
) -> Result<Import, ImportError> {
    import_with_files(files, settings, NamedFileReader::default())
}

/// Imports files as [`import`] does, with the files that they name: where their content decides what is sent, it
/// becomes text of the scenario.
///
/// # Errors
/// As [`import`].
pub fn import_with_files<'a>(
    files: impl IntoIterator<Item = ImportFile<'a>>,
    settings: &ImportSettings,
    reader: NamedFileReader,
) -> Result<Import, ImportError> {
    let mut session = ImportSession::new(reader);
    let mut whole = ImportedScenario::default();
    let mut separate = Vec::new();
    for file in files {
        file.name.clone_into(&mut session.file);
        let kind = file.kind.or_else(|| detect(file.name, &file.text)).ok_or_else(|| unknown(&file))?;
        session.import.kinds.push(kind);
        let scenarios = read(kind, &file.text, settings, &mut session).map_err(|found| found.in_file(file.name))?;
        for scenario in scenarios {
            match kind {
                ImportKind::Jmx => separate.push(scenario),
                _ => append(&mut whole, scenario),
            }
        }
    }
    http_file::environment::define_all(&mut session);
    let ImportSession { mut import, mut names, formulas, .. } = session;
    if !whole.steps.is_empty() || !whole.end_notes.is_empty() || !whole.notes.is_empty() {
        import.scenarios.push(whole);
    }
    import.scenarios.extend(separate);
    passes::inline(&mut import, &formulas);
    passes::run(&mut import, settings, &mut names);
    passes::verify(&mut import);
    passes::find_undefined(&mut import);
    Ok(import)
}

fn read(
    kind: ImportKind,
    text: &str,
    settings: &ImportSettings,
    session: &mut ImportSession,
) -> Result<Vec<ImportedScenario>, Mismatch> {
    match kind {
        ImportKind::Curl => curl::read(text, session),
        ImportKind::Har => har::read(text, settings, session),
        ImportKind::Postman => postman::read(text, session),
        ImportKind::OpenApi => openapi::read(text, settings, session),
        ImportKind::Http => http_file::read(text, session),
        ImportKind::Jmx => jmx::read(text, session),
        ImportKind::Bruno => bruno::read(text, session),
    }
}

fn append(whole: &mut ImportedScenario, scenario: ImportedScenario) {
    if whole.name.is_empty() {
        whole.name = scenario.name;
    }
    if whole.steps.is_empty() {
        whole.notes.extend(scenario.notes);
    } else {
        whole.end_notes.extend(scenario.notes);
    }
    whole.steps.extend(scenario.steps);
    whole.end_notes.extend(scenario.end_notes);
}

fn unknown(file: &ImportFile<'_>) -> ImportError {
    let names: Vec<&str> = ImportKind::ALL.iter().map(|kind| kind.name()).collect();
    let first = file.text.lines().find(|line| !line.trim().is_empty());
    let found = match first {
        Some(line) => format!("'{}'", crate::text::one_line(line, 40)),
        None => "an empty file".to_owned(),
    };
    let is_k6 =
        ["from 'k6", "from \"k6", "require('k6", "require(\"k6"].iter().any(|import| file.text.contains(import));
    let expected = if is_k6 {
        format!("a file to import; this is a script of k6, which runs as it is: weir load -s {}", file.name)
    } else {
        format!("a file of a known kind ({}; other tools export HAR or OpenAPI)", names.join(", "))
    };
    ImportError { file: file.name.to_owned(), line: 1, expected, found }
}
