//! Python packages of a variant, in a virtual environment that is created once and cached.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::definition_hash::short_hash;
use super::failure::MeasurementError;
use super::guarded_process::{GuardedProcess, Launcher};
use weir_base::Nanos;
use weir_machine::supervisor::{ProgramExit, ProgramSpec};

/// Marker file of a complete environment.
const COMPLETE_FILE: &str = "complete";

/// Folder of an environment with these packages, created if there is none.
///
/// # Errors
/// It cannot be created, or the packages cannot be installed; with the last lines of the output.
pub(super) fn environment(
    requirements: &[String],
    launcher: &Launcher,
    marker: &BTreeMap<String, String>,
    timeout: Nanos,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<PathBuf, MeasurementError> {
    let wrong = |what: &str, error: std::io::Error| MeasurementError::without_output(format!("{what}: {error}"));
    let folder = cache_folder().join(short_hash(&requirements.join("\n")));
    fs::create_dir_all(&folder).map_err(|error| wrong(&format!("cannot make {}", folder.display()), error))?;
    // Another study may be creating it.
    let lock = File::create(folder.join("lock")).map_err(|error| wrong("cannot lock an environment", error))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| wrong("cannot lock an environment", error.into()))?;
    if folder.join(COMPLETE_FILE).exists() {
        return Ok(folder);
    }
    let shown = folder.display().to_string();
    let venv = ["python3", "-m", "venv", "--clear", &format!("{shown}/venv")].map(str::to_owned).to_vec();
    let mut install = vec![format!("{shown}/venv/bin/python")];
    // Isolated: pip would count packages on today's PYTHONPATH as installed.
    install.extend(["-I", "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--"].map(str::to_owned));
    install.extend_from_slice(requirements);
    for (what, command) in [("make an environment for Python", venv), ("install its packages", install)] {
        let done = run_to_end(command, Path::new("."), marker.clone(), launcher, timeout, go_on);
        done.map_err(|why| why.attributed_to(&format!("cannot {what}")))?;
    }
    fs::write(folder.join(COMPLETE_FILE), requirements.join("\n"))
        .map_err(|error| wrong("cannot save an environment", error))?;
    Ok(folder)
}

/// Folder of the interpreter in an environment.
pub(super) fn bin_folder(environment: &Path) -> PathBuf {
    environment.join("venv/bin")
}

fn cache_folder() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("weir/python")
}

/// Runs a command to its end.
///
/// # Errors
/// It cannot be run, fails, or takes too long.
pub(super) fn run_to_end(
    command: Vec<String>,
    folder: &Path,
    environment: BTreeMap<String, String>,
    launcher: &Launcher,
    timeout: Nanos,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(), MeasurementError> {
    // Errors show the line of a shell rather than the shell.
    let shown = command.last().filter(|_| command.first().is_some_and(|word| word == "sh")).cloned();
    let shown = shown.unwrap_or_else(|| command.iter().take(4).cloned().collect::<Vec<_>>().join(" "));
    let start = ProgramSpec { command, environment, folder: folder.to_owned(), cpus: Vec::new() };
    let running = GuardedProcess::start(launcher, start, None).map_err(MeasurementError::without_output)?;
    running.wait_for_end(timeout, go_on).map_err(|why| match why {
        MeasurementError::Failed(_) => running.failure(format!("'{shown}' did not end within {timeout}")),
        other => other,
    })?;
    match running.ending() {
        Some(ProgramExit::Code(0)) => Ok(()),
        Some(ending) => Err(running.failure(format!("'{shown}' failed: {ending}"))),
        None => Err(running.failure(format!("'{shown}' was lost"))),
    }
}
