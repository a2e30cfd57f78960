//! Pages of the documentation.

use std::env;
use std::path::PathBuf;

/// Folder of the pages in a checkout, with a final slash.
const DOCS: &str = "docs/";
/// Folder of the pages that a package has installed, from the folder above the program's.
const INSTALLED_DOCS: &str = "share/doc/weir";

/// Base of the addresses of pages, with a final slash: where a package has installed them, else that of a checkout.
pub fn base() -> String {
    let above = |program: PathBuf| Some(program.parent()?.parent()?.join(INSTALLED_DOCS));
    match env::current_exe().ok().and_then(above) {
        Some(folder) if folder.join("README.md").is_file() => format!("{}/", folder.display()),
        _ => DOCS.to_owned(),
    }
}
