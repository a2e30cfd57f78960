//! A file of a document.

use std::path::PathBuf;

/// Text of a configuration file, with its name for messages and the folder of its relative paths.
#[derive(Clone, Debug, Default)]
pub struct DocumentFile {
    /// Name in messages; empty for a document's first file.
    pub name: String,
    /// Identity, by which a file that includes itself is found; empty if unknown.
    pub path: PathBuf,
    /// Folder to which paths in it are relative.
    pub folder: PathBuf,
    /// Content.
    pub text: String,
}
