//! Names of modules, and where their sources are.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rquickjs::loader::{ImportAttributes, Resolver};
use rquickjs::{Ctx, Exception, Result};

use crate::modules;

/// Place of the modules of jslib, which k6's scripts import by their addresses.
const JSLIB: &str = "https://jslib.k6.io/";

/// Where modules of others come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModuleFiles {
    /// Folder in place of `https://jslib.k6.io/`.
    pub(crate) js_lib: Option<PathBuf>,
    /// Path of the collection of Postman that is the script's file.
    pub(crate) collection: Option<String>,
}

impl ModuleFiles {
    /// Name of a module that `base` imports as `name`: that of one of weir's, or the path of a file.
    ///
    /// # Errors
    /// One line that names the module, and what to do.
    pub(crate) fn resolve(&self, base: &str, name: &str) -> std::result::Result<String, String> {
        if let Some(own) = name.strip_prefix(modules::OWN_IMPORT) {
            return Ok(own.to_owned());
        }
        if modules::source(name).is_some() {
            if modules::is_internal(name) && !modules::is_own(base) {
                return Err(format!("no module '{name}'"));
            }
            return Ok(name.to_owned());
        }
        if let Some(why) = modules::rejection(name) {
            return Err(why);
        }
        if self.collection.as_deref().is_some_and(|own| own != name) {
            return Err(format!("'{name}' is not imported: scripts of a collection read no files"));
        }
        if let Some(path) = name.strip_prefix(JSLIB) {
            let Some(folder) = &self.js_lib else {
                return Err(format!(
                    "'{name}' is not fetched; download it into a folder and name that by --js-lib FOLDER ({path})"
                ));
            };
            return existing(&folder.join(path), name);
        }
        if let Some((scheme, _)) = name.split_once("://").filter(|(scheme, _)| *scheme != "file") {
            return Err(format!("'{name}' is not fetched ({scheme}); download the file and import its path"));
        }
        let name_path = name.strip_prefix("file://").unwrap_or(name);
        let is_path = name_path.starts_with('/') || name_path.starts_with("./") || name_path.starts_with("../");
        if !is_path && !base.is_empty() {
            let why = "neither a module of k6 nor a path";
            return Err(format!(
                "no module '{name}': {why}; bundle packages of npm into a file, and import './FILE.js'"
            ));
        }
        existing(&beside(base, name_path), name)
    }
}

/// Path of a file that is there; a missing extension is added.
fn existing(path: &Path, name: &str) -> std::result::Result<String, String> {
    let path = normal(path);
    let with = |extension: &str| PathBuf::from(format!("{}.{extension}", path.display()));
    let candidates = [path.clone(), with("js"), with("ts")];
    let found = candidates.iter().find(|path| path.is_file());
    let found = found.ok_or_else(|| format!("no module '{name}': cannot find the file {}", path.display()))?;
    found.to_str().map(str::to_owned).ok_or_else(|| format!("no module '{name}': its path is not UTF-8"))
}

/// Path of a file that `base` names by a path or an address of `file:`.
pub(crate) fn beside(base: &str, name: &str) -> PathBuf {
    let folder = Path::new(base).parent().unwrap_or(Path::new(""));
    normal(&folder.join(name.strip_prefix("file://").unwrap_or(name)))
}

/// Path without `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// Names of modules for an interpreter.
#[derive(Debug)]
pub(crate) struct ModuleResolver(Arc<ModuleFiles>);

impl ModuleResolver {
    /// Resolver of these files.
    pub(crate) fn new(files: Arc<ModuleFiles>) -> Self {
        Self(files)
    }
}

impl Resolver for ModuleResolver {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        self.0.resolve(base, name).map_err(|why| Exception::throw_reference(ctx, &why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_weirs_own_or_files_and_others_are_rejected_by_name() {
        let files = ModuleFiles::default();
        assert_eq!(files.resolve("/x/main.js", "k6/http"), Ok("k6/http".to_owned()));
        let rejected = |name: &str| files.resolve("/x/main.js", name).expect_err(name);
        assert!(rejected("weir:native").contains("no module 'weir:native'"));
        assert!(rejected("lodash").contains("bundle"));
        assert!(rejected("k6/browser").contains("k6/browser"));
        assert!(rejected("k6/x/sql").contains("extension"));
        assert!(rejected("https://jslib.k6.io/k6-utils/1.4.0/index.js").contains("--js-lib"));
        assert!(rejected("https://example.org/a.js").contains("download"));
        assert!(rejected("./missing.js").contains("/x/missing.js"));
    }

    #[test]
    fn scripts_of_a_collection_import_no_files() {
        let file = std::env::current_exe().expect("this program").display().to_string();
        let files = ModuleFiles { collection: Some(file.clone()), ..ModuleFiles::default() };
        assert_eq!(files.resolve("", &file), Ok(file.clone()));
        assert_eq!(files.resolve("<input>", "k6/http"), Ok("k6/http".to_owned()));
        for name in ["/etc/hostname", "./a.json", "file:///etc/hostname", "https://jslib.k6.io/a.js"] {
            assert!(files.resolve(&file, name).is_err_and(|why| why.contains("read no files")), "{name}");
        }
    }

    #[test]
    fn paths_have_no_dots() {
        assert_eq!(normal(Path::new("/a/./b/../c.js")), Path::new("/a/c.js"));
        assert_eq!(normal(Path::new("../c.js")), Path::new("../c.js"));
    }
}
