//! Flags of Lua scripts, and the load that a script drives.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};

use weir_decide::base::units;
use weir_load::{LoadPlan, Options};
use weir_measure::Run;

const SCRIPT: &str = "Lua script (as wrk)";

/// Flags of Lua scripts.
#[derive(Clone, Debug, Args)]
pub(super) struct ScriptArgs {
    /// what follows an error of a Lua script: stop or count [default: stop]
    #[arg(long, value_name = "POLICY", value_enum, help_heading = SCRIPT)]
    script_errors: Option<ErrorPolicy>,
    /// maximum duration of a call of a Lua script [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = SCRIPT)]
    script_timeout: Option<Duration>,
    /// arguments of a script, after --
    #[arg(value_name = "ARGS")]
    script_args: Vec<String>,
}

/// What follows an error of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ErrorPolicy {
    /// The run ends.
    Stop,
    /// The iteration has failed.
    Count,
}

/// Script that drives a load, or that has said what the load sends.
#[derive(Debug)]
pub(super) struct LoadScript(#[cfg(feature = "lua")] std::sync::Arc<weir_lua::LuaScript>);

impl ScriptArgs {
    /// Takes the arguments after `--`.
    pub(super) fn take_args(&mut self) -> Vec<String> {
        std::mem::take(&mut self.script_args)
    }

    /// Checks that nothing is said of a script that is not there.
    ///
    /// # Errors
    /// One line with the argument.
    pub(super) fn check_unused(&self) -> Result<(), String> {
        if let Some(argument) = self.script_args.first() {
            let argument = argument.escape_debug();
            return Err(format!("unexpected argument '{argument}'; arguments after the URL are for a Lua script"));
        }
        let given =
            [("--script-errors", self.script_errors.is_some()), ("--script-timeout", self.script_timeout.is_some())];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} needs a Lua script; name one with -s FILE.lua")),
            None => Ok(()),
        }
    }

    /// Loads the script of a file; returns the load with it.
    ///
    /// # Errors
    /// One line with the script's mistake.
    #[cfg(feature = "lua")]
    pub(super) fn prepare(
        &self,
        path: &Path,
        options: &Options,
        plan: LoadPlan,
    ) -> Result<(LoadPlan, LoadScript), String> {
        use std::sync::Arc;
        use weir_lua::{LuaScript, ScriptErrors, ScriptSource};

        let name = path.display().to_string();
        let text = std::fs::read(path).map_err(|error| format!("cannot read the script '{name}': {error}"))?;
        let source = ScriptSource {
            text,
            args: self.script_args.clone(),
            url: options.url.clone(),
            target: plan.target.clone(),
            addresses: plan.addresses.clone(),
            method: plan.method.clone(),
            headers: plan.script_headers(options).map_err(|error| error.to_string())?,
            body: plan.script_body(options).map_err(|error| error.to_string())?,
            seed: plan.seed,
            errors: match self.script_errors {
                Some(ErrorPolicy::Count) => ScriptErrors::Count,
                Some(ErrorPolicy::Stop) | None => ScriptErrors::Stop,
            },
            timeout: self.script_timeout.unwrap_or(DEFAULT_TIMEOUT).max(MIN_TIMEOUT),
            name,
        };
        let script = LuaScript::new(&source, plan.threads, |why| {
            // The thread of the call cannot be ended, and the run not without it.
            eprintln!("weir: {why}");
            // Not by exit: it would wait for a pipe that the call waits for.
            signal_hook::low_level::exit(i32::from(crate::exit::USAGE));
        })?;
        let script = Arc::new(script);
        let plan = match script.single_request() {
            Some(request) => plan.with_request(request.clone()),
            None => plan.driven_by(Arc::<LuaScript>::clone(&script), options).map_err(|error| error.to_string())?,
        };
        Ok((plan, LoadScript(script)))
    }

    #[cfg(not(feature = "lua"))]
    pub(super) fn prepare(&self, path: &Path, _: &Options, _: LoadPlan) -> Result<(LoadPlan, LoadScript), String> {
        Err(format!("{}: this weir was built without Lua; build it with the feature lua", path.display()))
    }
}

impl LoadScript {
    /// Passes the result to the script.
    ///
    /// # Errors
    /// One line with the script's error.
    #[cfg_attr(not(feature = "lua"), allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with Lua"))]
    pub(super) fn done(&self, run: &Run) -> Result<(), String> {
        #[cfg(feature = "lua")]
        return self.0.done(run);
        #[cfg(not(feature = "lua"))]
        {
            let _ = run;
            Ok(())
        }
    }
}

/// Default of `--script-timeout`.
#[cfg(feature = "lua")]
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);
/// Shortest time that the watchdog can keep.
#[cfg(feature = "lua")]
const MIN_TIMEOUT: Duration = Duration::from_millis(10);
