//! `weir load -s FILE.py`: the Python process that it needs, and the load that the script drives.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::LoadArgs;
use crate::python_host::{PythonHost, PythonScript, PythonScriptArgs};
use weir_load::{LoadPlan, Options};

const SCRIPT: &str = "Python script (as Locust)";

/// Variable of the environment that names the interpreter.
const PYTHON: &str = "WEIR_PYTHON";

/// What the interpreter runs: the package, which loads the script and calls this command again.
const BOOTSTRAP: &str = "\
import sys
try:
    from weir import _script
except ModuleNotFoundError as error:
    if error.name not in ('weir', 'weir._script'):
        raise
    print(f'weir: {sys.executable} has no package weir; write {sys.executable} -m pip install weir-http', file=sys.stderr)
    sys.exit(2)
_script.main()
";

/// Flags of Python scripts.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct PythonFlags {
    /// run only tasks of a Python script with this tag; repeatable
    #[arg(long, value_name = "TAG", num_args = 1.., value_delimiter = ',', help_heading = SCRIPT)]
    tags: Vec<String>,
    /// leave out tasks of a Python script with this tag; repeatable
    #[arg(long, value_name = "TAG", num_args = 1.., value_delimiter = ',', help_heading = SCRIPT)]
    exclude_tags: Vec<String>,
}

/// Python script of a load.
pub(super) struct PythonLoad(pub(super) Box<dyn PythonScript>);

impl PythonLoad {
    /// Loads the script of the arguments, if there is one. Without an interpreter in this process another one takes the
    /// process over.
    ///
    /// # Errors
    /// One line.
    pub(super) fn open(
        asked: &mut LoadArgs,
        args: &[OsString],
        host: Option<&dyn PythonHost>,
    ) -> Result<Option<Self>, String> {
        let Some(path) = asked.request_args.take_python()? else {
            let is_given = !asked.python_args.tags.is_empty() || !asked.python_args.exclude_tags.is_empty();
            return match is_given {
                true => Err("--tags and --exclude-tags need a Python script; name one with -s FILE.py".to_owned()),
                false => Ok(None),
            };
        };
        let conflict = |flag: &str, why: &str| Err(format!("{flag} does not go with a Python script; {why}"));
        if asked.agent_args.has_agents() {
            return conflict("--on", "its interpreter is on this machine");
        }
        if asked.once {
            return conflict("--once", "write breakpoint() in a task, and --users 1");
        }
        if asked.threads.unwrap_or(1) > 1 {
            return conflict("--threads", "Python runs on one thread");
        }
        asked.threads = Some(1);
        let Some(host) = host else { return Err(replace_process(args)) };
        let mut own = asked.script_args.take_args();
        // Without a URL the first argument after -- stands in its place.
        if asked.request_args.url().starts_with('-') {
            own.insert(0, asked.request_args.take_url());
        }
        let given = PythonScriptArgs {
            url: asked.request_args.url().to_owned(),
            args: own,
            tags: asked.python_args.tags.clone(),
            exclude_tags: asked.python_args.exclude_tags.clone(),
            users: asked.users.or(asked.connections),
            ramp_up: asked.ramp_up,
            duration: asked.duration,
        };
        let script = host.open(&path, &given)?;
        let settings = script.settings();
        if asked.request_args.url().is_empty() {
            let url = settings.url.ok_or_else(|| no_url(&path))?;
            asked.request_args.set_url(url);
        }
        let is_open = asked.rate.is_some() || asked.stages.is_some();
        if !is_open && asked.connections.is_none() {
            asked.users = asked.users.or(settings.users);
        }
        if asked.requests.is_none() && asked.loops.is_none() {
            asked.duration = asked.duration.or(settings.duration);
        }
        Ok(Some(Self(script)))
    }

    /// The load with the script's users.
    ///
    /// # Errors
    /// One line.
    pub(super) fn prepare(&self, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
        let headers = plan.script_headers(options).map_err(|error| error.to_string())?;
        let program = self.0.program(&plan, &headers)?;
        plan.driven_by(program, options).map_err(|error| error.to_string())
    }
}

fn no_url(path: &Path) -> String {
    let name = path.display();
    format!("{name}: no class has a host; write it there, or the URL: weir load -s {name} http://localhost:8080")
}

/// Starts the interpreter in place of this process; returns why it could not.
fn replace_process(args: &[OsString]) -> String {
    let interpreter = interpreter();
    let error = Command::new(&interpreter).arg("-c").arg(BOOTSTRAP).args(args.get(1..).unwrap_or_default()).exec();
    format!("cannot start {}: {error}; set {PYTHON} to a Python with the package weir", interpreter.display())
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
