//! Study file: its definition, the folder of its results, an example to begin with.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::definition::Definition;
use crate::file::{EXAMPLE, LoadSyntax, parse};
use weir_machine::input_file;

/// Path of a study file.
#[derive(Clone, Debug)]
pub struct StudyFile(PathBuf);

impl StudyFile {
    /// File of this path, or `study.toml` of the folder.
    pub fn new(named: &Path) -> Self {
        Self(if named.is_dir() { named.join("study.toml") } else { named.to_owned() })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes an example to begin with.
    ///
    /// # Errors
    /// One line, if the file is there or cannot be written.
    pub fn create(&self) -> Result<(), String> {
        let wrong = |error: io::Error| format!("cannot write {}: {error}", self.0.display());
        let mut file = fs::File::create_new(&self.0).map_err(wrong)?;
        file.write_all(EXAMPLE.as_bytes()).map_err(wrong)
    }

    /// Definition of the study, and warnings, a line each.
    ///
    /// # Errors
    /// All errors, a line each.
    pub fn read(&self, words: &LoadSyntax<'_>, quick: bool) -> Result<(Definition, Vec<String>), Vec<String>> {
        let shown = self.0.display();
        let text =
            input_file::read_to_string(&self.0).map_err(|error| vec![format!("cannot read {shown}: {error}")])?;
        let folder = self.0.parent().unwrap_or(Path::new(""));
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let named = |problems: Vec<weir_document::Diagnostic>| -> Vec<String> {
            problems.iter().map(|problem| format!("{shown}:{problem}")).collect()
        };
        let (definition, warnings) = parse(&text, folder, words, quick).map_err(named)?;
        Ok((definition, named(warnings)))
    }

    /// Results folder. Those of a trial run are apart from results that are kept: in the `target` of a
    /// Cargo workspace, if the study is in one.
    pub fn default_folder(&self, is_quick: bool) -> PathBuf {
        let folder = self.0.parent().unwrap_or(Path::new(""));
        if !is_quick {
            return folder.join("results");
        }
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let target =
            absolute.ancestors().map(|above| above.join("target")).find(|it| it.join("CACHEDIR.TAG").is_file());
        match (target, absolute.file_name()) {
            (Some(target), Some(name)) => target.join("studies").join("quick").join(name),
            _ => folder.join("results-quick"),
        }
    }
}
