//! Scripts among the scenarios of a command line, recognized by their extensions.

use std::path::{Path, PathBuf};

use super::collection_path::is_collection;

/// Takes the Lua script out of the scenarios of a load.
///
/// # Errors
/// One line, if it is not alone.
pub fn take_script(scenarios: &mut Vec<PathBuf>) -> Result<Option<PathBuf>, String> {
    let Some(at) = scenarios.iter().position(|path| is_script(path)) else { return Ok(None) };
    if scenarios.len() > 1 {
        let name = scenarios[at].display();
        return Err(format!("a Lua script must be the only scenario; leave out {name} or the others"));
    }
    Ok(Some(scenarios.remove(at)))
}

/// Whether a path is that of a Lua script, by its extension.
pub fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "lua")
}

/// Whether a path is that of a script in JavaScript or TypeScript, by its extension, or of a collection of Postman with
/// scripts.
pub fn is_javascript(path: &Path) -> bool {
    is_javascript_file(path) || is_collection(path)
}

fn is_javascript_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["js", "mjs", "cjs", "ts"].iter().any(|known| extension == *known))
}

/// Whether a path is that of a Python script, by its extension.
pub fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}
