//! Python process that takes the place of this one, for scripts.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_command::given_args;

/// Variable of the environment that names the interpreter.
const PYTHON: &str = "WEIR_PYTHON";

/// Code for the interpreter: imports the package, which loads the script and calls this command again.
const BOOTSTRAP: &str = "\
import sys
try:
    from weir import _script
except ModuleNotFoundError as error:
    if error.name not in ('weir', 'weir._script'):
        raise
    print(f'weir: the Python package weir runs Locust files and other scripts, and {sys.executable} does not have it; '
          'set WEIR_PYTHON to an interpreter that has it, or install it: in a checkout of weir, run '
          f'{sys.executable} -m pip install .', file=sys.stderr)
    sys.exit(2)
_script.main()
";

/// Starts the interpreter in place of this process; returns why it could not.
pub fn replace_process(args: &[OsString]) -> String {
    let interpreter = interpreter();
    // Programs of a study find this one beside them, whatever the interpreter is.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let path = std::env::join_paths(std::env::split_paths(&path).chain(own)).unwrap_or(path);
    let error = Command::new(&interpreter)
        .env("PATH", path)
        .arg("-c")
        .arg(BOOTSTRAP)
        // As they were given: what stands in the environment stays there.
        .args(given_args(args))
        .exec();
    format!(
        "cannot start {}: {error}; set {PYTHON} to an interpreter that has the Python package weir, which runs Locust files",
        interpreter.display()
    )
}

/// Interpreter of scripts: the one that is named, the one beside this program, that of the virtual environment, or the
/// first of the path.
fn interpreter() -> PathBuf {
    if let Some(named) = std::env::var_os(PYTHON).filter(|named| !named.is_empty()) {
        return named.into();
    }
    let beside = std::env::current_exe().ok().and_then(|own| own.parent().map(|folder| folder.join("python")));
    let of_environment = std::env::var_os("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin/python"));
    let found = beside.into_iter().chain(of_environment).find(|path| path.is_file());
    found.unwrap_or_else(|| "python3".into())
}
