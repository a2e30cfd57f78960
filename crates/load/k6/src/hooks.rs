//! Functions of a script around the load: `setup`, `teardown` and `handleSummary`.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use weir_base::Nanos;
use weir_load::{LoadError, LoadPlan, Options};
use weir_machine::clock;
use weir_machine::lock::lock;
use weir_measure::Run;
use weir_measure::end_reason::EndReason;
use weir_pace::shard::Shard;

use crate::K6Load;
use crate::k6_load::head;
use crate::program::{K6Program, ProgramParts};
use crate::results::add_bytes;
use crate::script::{ScenarioFacts, Script};
use crate::summary::{data, export};

/// Names of the functions before and after the load.
const SETUP: &str = "setup";
const TEARDOWN: &str = "teardown";
/// Name of the function that writes summaries.
const SUMMARY: &str = "handleSummary";

/// A function around the load.
#[derive(Clone, Copy, Debug)]
struct Hook {
    name: &'static str,
    timeout: Nanos,
}

impl K6Load {
    /// Does what the script does before the load, as long as it `goes_on`.
    ///
    /// # Errors
    /// The script's mistake, or that it was interrupted.
    pub fn set_up(&self, options: &Options, goes_on: &dyn Fn() -> bool) -> Result<(), LoadError> {
        if !self.functions.contains(SETUP) || self.script.setup_data.get().is_some() {
            return Ok(());
        }
        let result =
            self.call_hook(Hook { name: SETUP, timeout: self.script.options.setup_timeout }, options, goes_on)?;
        let json = result.unwrap_or_else(|| "null".to_owned());
        if let Some(program) = &self.program {
            let _ = program.script.setup_data.set(json.clone());
        }
        let _ = self.script.setup_data.set(json);
        Ok(())
    }

    /// Does what the script does after the load.
    ///
    /// # Errors
    /// One line with its mistake.
    pub fn tear_down(&self, options: &Options) -> Result<(), String> {
        if !self.functions.contains(TEARDOWN) {
            return Ok(());
        }
        let hook = Hook { name: TEARDOWN, timeout: self.script.options.teardown_timeout };
        self.call_hook(hook, options, &|| true).map(drop).map_err(|error| error.to_string())
    }

    /// Calls a function once with the setup's value, on a user of its own; returns its value as JSON.
    fn call_hook(
        &self,
        hook: Hook,
        options: &Options,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<String>, LoadError> {
        self.call_with((*self.script).clone(), hook, options, goes_on)
    }

    /// Calls a function of a script once with the setup's value; returns its value as JSON.
    fn call_with(
        &self,
        mut script: Script,
        Hook { name, timeout }: Hook,
        options: &Options,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<String>, LoadError> {
        let failed = |error: &dyn fmt::Display| LoadError::Program(error.to_string());
        let out_of_time = |place: &str| failed(&format_args!("{place}{name}() has not returned within {timeout}"));
        let script_name = Some(self.script.file.main.clone());
        let options = Options { program: None, script_name, ..options.single_iteration(Vec::new()) };
        let plan = LoadPlan::new(&options).map_err(|error| failed(&error))?;
        script.scenarios = vec![ScenarioFacts::of_command_line(name, "shared-iterations", timeout)];
        script.scenarios[0].exec = name.to_owned();
        script.load = Arc::new(options.clone());
        script.group = format!("::{name}");
        script.head = head(&script, &plan.script_headers(&options).map_err(|error| failed(&error))?);
        let hook = K6Program::new(ProgramParts {
            script: Arc::new(script),
            paces: Vec::new(),
            stops_at_exceptions: true,
            keeps_result: true,
            target: None,
            is_closed: true,
            shard: Shard::WHOLE,
        });
        let plan = plan.driven_by(Arc::<K6Program>::clone(&hook), &options).map_err(|error| failed(&error))?;
        let begun = clock::monotonic();
        let is_in_time = || clock::monotonic() - begun < timeout;
        let run = match weir_load::run(&plan, &[], &mut |_| is_in_time() && goes_on(), None) {
            Err(LoadError::Interrupted) if !goes_on() => return Err(LoadError::SetupInterrupted),
            Err(LoadError::Interrupted) => return Err(out_of_time("")),
            ended => ended?,
        };
        let mut sums = hook.sums();
        add_bytes(&mut sums, &run);
        lock(&self.around).merge(&sums);
        if !goes_on() {
            return Err(LoadError::SetupInterrupted);
        }
        if !is_in_time() {
            let place = hook.notes().cut_places.first().map(|place| format!("{place}: ")).unwrap_or_default();
            return Err(out_of_time(&place));
        }
        match run.ended_by {
            Some(EndReason::ScriptError(why)) => Err(failed(&format_args!("{name}(): {why}"))),
            _ => Ok(hook.take_result()),
        }
    }

    /// The file of k6's `--summary-export`, as JSON.
    pub fn summary_export(&self, run: &Run) -> String {
        format!("{:#}\n", export(run))
    }

    /// Lets the script write summaries of its own, in `handleSummary`: texts by the names of files, `stdout` or
    /// `stderr`. None without such a function. It ends with its timeout, or once it no longer `goes_on`.
    ///
    /// # Errors
    /// One line with the script's error.
    pub fn own_summaries(&self, run: &Run, goes_on: &dyn Fn() -> bool) -> Result<Vec<(String, String)>, String> {
        if !self.functions.contains(SUMMARY) {
            return Ok(Vec::new());
        }
        let given = data(run, &self.script.options).to_string();
        let script = Script { setup_data: OnceLock::from(given), ..(*self.script).clone() };
        let hook = Hook { name: SUMMARY, timeout: script.options.summary_timeout };
        let load = self.program.as_ref().map_or_else(Arc::default, |program| Arc::clone(&program.script.load));
        let texts = self.call_with(script, hook, &load, goes_on).map_err(|error| error.to_string())?;
        let texts = texts.unwrap_or_else(|| "null".to_owned());
        let texts: Value = serde_json::from_str(&texts).map_err(|error| format!("{SUMMARY}(): {error}"))?;
        let Value::Object(texts) = texts else {
            return if texts.is_null() {
                Ok(Vec::new())
            } else {
                Err(format!("{SUMMARY}() has not returned an object"))
            };
        };
        let text = |(name, value): (String, Value)| match value {
            Value::String(text) => Ok((name, text)),
            other => Err(format!("{SUMMARY}(): '{name}' is {other} and no text")),
        };
        texts.into_iter().map(text).collect()
    }
}
