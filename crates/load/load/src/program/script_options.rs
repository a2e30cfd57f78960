//! Script of a load, as other processes open it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::collection_path::CollectionInput;

/// Script of a load, as other processes open it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptOptions {
    /// File.
    pub path: PathBuf,
    /// Names of its scenarios, in order.
    pub scenarios: Vec<String>,
    /// URL as it is given; empty if the script names it.
    pub url: String,
    /// Arguments of its own.
    pub args: Vec<String>,
    /// Tags of the tasks that run; all if empty.
    pub tags: Vec<String>,
    /// Tags of tasks that do not run.
    pub exclude_tags: Vec<String>,
    /// Classes of users, as `module:name`; those of the file if empty.
    pub classes: Vec<String>,
    /// Name of the one class of users that runs; all if there is none.
    pub user: Option<String>,
    /// Folders that modules are imported from, before the others.
    pub folders: Vec<String>,
    /// Number of users of the closed loop, if it is given.
    pub users: Option<u64>,
    /// Time over which they start.
    pub ramp_up: Option<Duration>,
    /// Duration, if it is given.
    pub duration: Option<Duration>,
    /// Whether an error of the script fails its iteration, and does not end the run.
    pub counts_errors: bool,
    /// Maximum duration of a call, if it is given.
    pub timeout: Option<Duration>,
    /// Variables of the environment of a script in JavaScript, beside those of the process.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// Folder in place of the site of k6's libraries.
    #[serde(default)]
    pub js_lib: Option<PathBuf>,
    /// Whether the load is that of the command line, and not the one that a script in JavaScript describes.
    #[serde(default)]
    pub has_own_load: bool,
    /// Value that the function before the load has returned, as JSON.
    #[serde(default)]
    pub setup_data: Option<String>,
    /// Whether each process calls the functions around the load of a script in JavaScript itself: a load of a study,
    /// whose service begins after the study has.
    #[serde(default)]
    pub calls_hooks: bool,
    /// Memory of the interpreter of each user of a script in JavaScript, in bytes.
    #[serde(default)]
    pub js_heap: Option<u64>,
    /// Variables and rows of a collection of Postman.
    #[serde(default)]
    pub collection: CollectionInput,
    /// Absolute paths of the files that a script in JavaScript has read, its own among them; none if other machines
    /// could not run it with copies of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

/// Folder of a script's files on another machine.
const SHIPPED_FOLDER: &str = "script";

impl ScriptOptions {
    /// Script of a file, whose one scenario has the file's name.
    pub fn of_file(path: PathBuf) -> Self {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self { scenarios: vec![stem.unwrap_or_default()], path, ..Self::default() }
    }

    /// The script as another machine opens it, and the files to copy there: local path and name. The files lie to each
    /// other as they do here.
    pub fn shipped(&self) -> (Self, Vec<(PathBuf, String)>) {
        let Some(first) = self.files.first() else { return (self.clone(), Vec::new()) };
        let is_above = |folder: &&Path| self.files.iter().all(|file| file.starts_with(folder));
        let base = first.ancestors().skip(1).find(is_above).unwrap_or(Path::new("/"));
        let there = |path: &Path| path.strip_prefix(base).ok().map(|below| Path::new(SHIPPED_FOLDER).join(below));
        let name = |file: &PathBuf| {
            let below = file.strip_prefix(base).unwrap_or(file);
            (file.clone(), Path::new(SHIPPED_FOLDER).join(below).to_string_lossy().into_owned())
        };
        // The files have its real path.
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let path = there(&real).unwrap_or(real);
        let js_lib = self.js_lib.as_deref().and_then(there);
        (Self { path, js_lib, files: Vec::new(), ..self.clone() }, self.files.iter().map(name).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_files_lie_to_each_other_as_they_do_here() {
        let files = ["/a/data/users.csv", "/a/lib/1.0/index.js", "/a/tests/deep/shop.js"].map(PathBuf::from).to_vec();
        let script = ScriptOptions {
            js_lib: Some("/a/lib".into()),
            files,
            ..ScriptOptions::of_file("/a/tests/deep/shop.js".into())
        };
        let (there, files) = script.shipped();
        assert_eq!(there.path, Path::new("script/tests/deep/shop.js"));
        assert_eq!(there.js_lib.as_deref(), Some(Path::new("script/lib")));
        let names: Vec<&str> = files.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["script/data/users.csv", "script/lib/1.0/index.js", "script/tests/deep/shop.js"]);
        assert_eq!(files[0].0, Path::new("/a/data/users.csv"));
        let alone = ScriptOptions { files: vec!["/a/shop.js".into()], ..ScriptOptions::of_file("/a/shop.js".into()) };
        assert_eq!(alone.shipped().1, [(PathBuf::from("/a/shop.js"), "script/shop.js".to_owned())]);
    }
}
