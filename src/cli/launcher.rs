//! How this program is started anew, for what runs beside it: guards and agents.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The program, and what stands before a command of ours, whatever it was started through: its own arguments are the last of
/// the process's.
pub(super) fn launcher(args: &[OsString]) -> Vec<OsString> {
    let line = fs::read("/proc/self/cmdline").unwrap_or_default();
    let all: Vec<OsString> = line.split(|b| *b == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    // The line ends with a 0, so there is an empty word behind the last.
    let before = all.len().saturating_sub(args.len());
    let own = std::env::current_exe().map_or_else(|_| OsString::from("weir"), PathBuf::into_os_string);
    let through = all.get(1..before).unwrap_or_default();
    [vec![own], through.to_vec()].concat()
}
