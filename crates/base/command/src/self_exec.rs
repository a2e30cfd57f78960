//! Command line that starts this program again, for guards and agents.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Program and arguments before the subcommand, also if it was started through an interpreter: its own arguments are
/// the last ones of the process.
pub fn self_command(args: &[OsString]) -> Vec<OsString> {
    let all: Vec<OsString> = std::env::args_os().collect();
    let before = (all.len() + 1).saturating_sub(args.len());
    let through = all.get(1..before).unwrap_or_default();
    [vec![program_path(all.first().map_or(OsStr::new(""), OsString::as_os_str))], through.to_vec()].concat()
}

/// Arguments after the program, as this process was started with them.
pub fn given_args(args: &[OsString]) -> Vec<OsString> {
    let all: Vec<OsString> = std::env::args_os().collect();
    let count = args.len().saturating_sub(1);
    all.get(all.len().saturating_sub(count)..).unwrap_or_default().to_vec()
}

/// Path of the program by the name of its call, which is often a link: Python finds its environment by that name.
fn program_path(called: &OsStr) -> OsString {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("weir"));
    let is_own =
        |path: &PathBuf| fs::canonicalize(path).is_ok_and(|real| fs::canonicalize(&own).is_ok_and(|own| own == real));
    let called = Path::new(called);
    let folders = match called.components().count() {
        1 => std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
        _ => vec![PathBuf::new()],
    };
    let found = folders.into_iter().map(|folder| folder.join(called)).find(is_own);
    let found = found.and_then(|path| std::path::absolute(path).ok());
    found.unwrap_or(own).into_os_string()
}
