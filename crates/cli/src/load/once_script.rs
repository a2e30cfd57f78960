//! One iteration of a script, with the flags of its load.

use std::ffi::OsString;
use std::path::Path;

use clap::parser::ValueSource;

use super::python_flags::python_script;
use super::{LiveArgs, LoadArgs, RunFileArgs, SpanArgs};
use crate::help;
use crate::live_args::LIVE;
use crate::out_args::OUTPUTS;
use weir_command::Messages;
use weir_command::stdout::reserve_stdout;
use weir_load::Options;
use weir_load::program::ScriptOptions;
use weir_report::ReportFormat;
use weir_scripts::{PythonHost, play_script};

/// Script of a load that is to play once, if there is one.
///
/// # Errors
/// One line with a flag that is not for it.
pub(super) fn once_script(asked: &mut LoadArgs) -> Result<Option<ScriptOptions>, String> {
    if let Some(path) = asked.request_args.take_python()? {
        asked.check_without_k6()?;
        let script = python_script(asked, path);
        asked.script_args.check_unused()?;
        return Ok(Some(ScriptOptions { users: Some(1), ramp_up: None, duration: None, ..script }));
    }
    asked.python_args.check_unused()?;
    if let Some(path) = asked.request_args.take_javascript()? {
        asked.script_args.check_unused()?;
        let script = asked.k6_flags.script(path, asked.request_args.url());
        let collection = asked.request_args.collection_input(Path::new(""))?;
        return Ok(Some(ScriptOptions { collection, ..script }));
    }
    asked.check_without_k6()?;
    let Some(path) = asked.request_args.take_script()? else { return Ok(None) };
    Ok(Some(asked.script_args.script(&path)))
}

/// Names of the flags that one iteration has no use for: what judges, shows or writes a load.
fn flags_of_a_load(args: &[OsString]) -> Vec<String> {
    const HEADINGS: [&str; 3] = [super::RESULT, LIVE, OUTPUTS];
    const OF_ONCE: [&str; 5] = ["format", "once", "seed", "show_secrets", "verbose"];
    let Ok(matches) = help::command().try_get_matches_from(args) else { return Vec::new() };
    let Some((_, given)) = matches.subcommand() else { return Vec::new() };
    let command = super::command();
    let of_a_load = command.get_arguments().filter(|arg| {
        let id = arg.get_id().as_str();
        arg.get_help_heading().is_some_and(|heading| HEADINGS.contains(&heading))
            && !OF_ONCE.contains(&id)
            && given.value_source(id) == Some(ValueSource::CommandLine)
    });
    of_a_load.filter_map(|arg| arg.get_long().map(|name| format!("--{name}"))).collect()
}

impl LoadArgs {
    /// Takes from the arguments what one iteration has no use for, and says so.
    pub(super) fn drop_flags_of_a_load(&mut self, args: &[OsString], messages: &Messages) {
        let unused = flags_of_a_load(args);
        if !unused.is_empty() {
            messages.note(&format!("--once plays one iteration; not used: {}", unused.join(", ")));
        }
        (self.slos, self.abort) = (Vec::new(), None);
        (self.file_args, self.live_args) = (RunFileArgs::default(), LiveArgs::default());
        self.span_args = SpanArgs::default();
    }

    /// Checks that nothing is said that one iteration cannot do.
    pub(super) fn check_once(&self) -> Result<(), String> {
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

    /// Plays an iteration of a script, as `weir run` does.
    pub(super) fn play_once(
        mut self,
        script: &ScriptOptions,
        messages: &Messages,
        host: Option<&dyn PythonHost>,
    ) -> Result<u8, String> {
        self.request_args.read_stdin()?;
        let output = self.play_output();
        if output.is_json {
            reserve_stdout()?;
        }
        let options = Options { no_template: true, ..self.into_options() };
        play_script(script, options, &output, host, messages)
    }
}
