//! Files that a scenario names.

use weir_hurl::Template;

use super::piece::PieceCompiler;
use super::problem;

/// Source of the content of files, since the room reads none itself.
pub trait FileContents {
    /// Content of a file that the scenario names, relative to the scenario's folder.
    ///
    /// # Errors
    /// Reason why the file cannot be read, for a person.
    fn read(&mut self, name: &str) -> Result<Vec<u8>, String>;
}

impl<F: FnMut(&str) -> Result<Vec<u8>, String>> FileContents for F {
    fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self(name)
    }
}

/// Files while a plan is compiled.
pub(super) struct StepFiles<'a>(pub(super) &'a mut dyn FileContents);

impl StepFiles<'_> {
    /// Name and content of a file; an error is added if there is none.
    pub(super) fn read(&mut self, name: &Template, compiler: &mut PieceCompiler<'_>) -> Option<(String, Vec<u8>)> {
        let text = compiler.fixed_text(name, "the name of a file")?;
        match self.0.read(&text) {
            Ok(bytes) => Some((text, bytes)),
            Err(reason) => {
                let found = format!("'{text}', which cannot be read: {reason}");
                compiler.errors.push(problem(name.position, "the name of a readable file", found, ""));
                None
            }
        }
    }
}
