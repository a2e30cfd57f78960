//! Folder that the files of a scenario are in.
//!
//! A scenario, a collection or a recording is often of others, and what it names is sent to the host that it names. As in
//! hurl, its files are therefore within a folder: that of the scenario, or `--file-root`. Symbolic links are followed
//! first, so that none leads out. Files that the command line names are the operator's, wherever they are.

use std::fs;
use std::path::{Path, PathBuf};

use super::{ScenarioFile, ScenarioSource};
use weir_machine::input_file;

/// Folder that the files of a scenario are in; none if the command line has named them.
#[derive(Clone, Debug)]
pub(super) struct FileRoot(Option<PathBuf>);

impl FileRoot {
    /// Root of the files of a scenario; those of a single request are given by its options.
    pub(super) fn of(source: &ScenarioSource) -> Self {
        let is_given = !source.line_origins.is_empty();
        Self((!is_given).then(|| source.file_root.clone().unwrap_or_else(|| source.folder.clone())))
    }

    /// Root of the files of a setup or teardown.
    pub(super) fn of_hook(hook: &ScenarioFile, source: &ScenarioSource) -> Self {
        Self(Some(source.file_root.clone().unwrap_or_else(|| hook.folder.clone())))
    }

    /// Content of a file that the scenario names.
    ///
    /// # Errors
    /// Reason why it cannot be read, for a person.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        match &self.0 {
            None => input_file::read(name).map_err(|error| error.to_string()),
            Some(root) => read_file(&path_within(root, Path::new(name))?),
        }
    }
}

/// Content of a file; what is none, such as a named pipe, may never end.
fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    input_file::read(path).map_err(|error| error.to_string())
}

/// Path of a file, relative to `root`, that is within it once all links are followed.
///
/// # Errors
/// Reason why there is none, for a person.
pub fn path_within(root: &Path, name: &Path) -> Result<PathBuf, String> {
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    let cannot = |error: std::io::Error| error.to_string();
    let whole = fs::canonicalize(root).map_err(|error| format!("--file-root {}: {error}", root.display()))?;
    let found = fs::canonicalize(whole.join(name)).map_err(cannot)?;
    if !found.starts_with(&whole) {
        let root = root.display();
        return Err(format!("it is not within {root}; copy it there, or give --file-root FOLDER"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_within_the_root_whatever_leads_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::create_dir(folder.path().join("root-2")).unwrap();
        for name in ["root/a", "root/sub/b", "outside", "root-2/c"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        symlink("../outside", root.join("leads-out")).unwrap();
        symlink("../../root-2", root.join("sub/folder-out")).unwrap();
        symlink("sub/b", root.join("stays")).unwrap();
        let inside = root.join("sub/b");
        let inside = inside.to_str().unwrap();
        for (name, content) in [
            ("a", "root/a"),
            ("./sub/../a", "root/a"),
            ("sub/b", "root/sub/b"),
            ("stays", "root/sub/b"),
            (inside, "root/sub/b"),
        ] {
            let path = path_within(&root, Path::new(name)).unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), content, "{name}");
        }
        let outside = folder.path().join("outside");
        let sibling = folder.path().join("root-2/c");
        for name in [
            "../outside",
            "sub/../../outside",
            "leads-out",
            "sub/folder-out/c",
            "/etc/passwd",
            outside.to_str().unwrap(),
            sibling.to_str().unwrap(),
        ] {
            let why = path_within(&root, Path::new(name)).unwrap_err();
            assert!(why.contains("--file-root"), "{name}: {why}");
        }
        let files = FileRoot(Some(root.clone()));
        assert_eq!(files.read("a"), Ok(b"root/a".to_vec()));
        assert_eq!(files.read("sub"), Err("it is not a file".to_owned()));
        assert!(path_within(&root, Path::new("missing")).unwrap_err().contains("No such file"));
    }
}
