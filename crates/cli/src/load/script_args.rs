//! Flags of Lua scripts, and the load that a script drives.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};

use weir_base::units;
use weir_load::program::ScriptOptions;

const SCRIPT: &str = "Lua script (as wrk)";

/// Flags of Lua scripts.
#[derive(Clone, Debug, Args)]
pub(super) struct ScriptArgs {
    /// stop the run on a Lua error, or count it [default: stop]
    #[arg(long, value_name = "POLICY", value_enum, help_heading = SCRIPT)]
    script_errors: Option<ErrorPolicy>,
    /// fail a Lua call that takes longer than TIME [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = SCRIPT)]
    script_timeout: Option<Duration>,
    /// arguments of a script, after --
    #[arg(value_name = "ARGS")]
    script_args: Vec<String>,
}

/// Consequence of a script's error: the run stops, or the error is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ErrorPolicy {
    /// end the run
    Stop,
    /// count the iteration as failed
    Count,
}

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

    /// The script of a file, as agents open it.
    pub(super) fn script(&self, path: &Path) -> ScriptOptions {
        ScriptOptions {
            args: self.script_args.clone(),
            counts_errors: self.script_errors == Some(ErrorPolicy::Count),
            timeout: self.script_timeout,
            ..ScriptOptions::of_file(path.to_owned())
        }
    }
}
