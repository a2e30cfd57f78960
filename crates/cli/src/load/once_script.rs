//! One iteration of a script, with the flags of its load.

use std::ffi::OsString;
use std::path::Path;

use super::LoadArgs;
use super::python_flags::python_script;
use weir_command::Messages;
use weir_command::stdout::reserve_stdout;
use weir_load::Options;
use weir_load::program::{ScriptOptions, is_python};
use weir_report::ReportFormat;
use weir_scripts::{PythonHost, play_script, replace_process};

/// Script of a load that is to play once, if there is one.
///
/// # Errors
/// One line with a flag that is not for it.
pub(super) fn once_script(asked: &mut LoadArgs) -> Result<Option<ScriptOptions>, String> {
    if let Some(path) = asked.request_args.take_python()? {
        asked.check_without_k6()?;
        let script = python_script(asked, path);
        asked.script_args.check_unused()?;
        asked.check_once()?;
        return Ok(Some(ScriptOptions { users: Some(1), ramp_up: None, duration: None, ..script }));
    }
    asked.python_args.check_unused()?;
    if let Some(path) = asked.request_args.take_javascript()? {
        asked.script_args.check_unused()?;
        asked.check_once()?;
        let script = asked.k6_flags.script(path, asked.request_args.url());
        let collection = asked.request_args.collection_input(Path::new(""))?;
        return Ok(Some(ScriptOptions { collection, ..script }));
    }
    asked.check_without_k6()?;
    let Some(path) = asked.request_args.take_script()? else { return Ok(None) };
    asked.check_once()?;
    Ok(Some(asked.script_args.script(&path)))
}

impl LoadArgs {
    /// Checks that nothing is said that one iteration of a script has no use for.
    fn check_once(&self) -> Result<(), String> {
        let given = [
            ("--on", self.agent_args.has_agents()),
            ("--processes", self.python_args.processes.is_some()),
            ("--summary-export", self.k6_result_flags.summary_export.is_some()),
            ("--format k6", self.format == ReportFormat::K6),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} cannot be used with --once; leave out one of them")),
            None => Ok(()),
        }
    }

    /// Plays an iteration of a script, as `weir run` does. Without an interpreter in this process another one takes the
    /// process over for one in Python.
    pub(super) fn play_once(
        mut self,
        script: &ScriptOptions,
        args: &[OsString],
        messages: &Messages,
        host: Option<&dyn PythonHost>,
    ) -> Result<u8, String> {
        if is_python(&script.path) && host.is_none() {
            return Err(replace_process(args));
        }
        self.request_args.read_stdin()?;
        let output = self.play_output();
        if output.is_json {
            reserve_stdout()?;
        }
        let options = Options { no_template: true, ..self.into_options() };
        play_script(script, options, &output, host, messages)
    }
}
