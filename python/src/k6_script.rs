//! `weir.load(script=...)`: scripts of k6, and collections of Postman with scripts.

use std::cell::RefCell;

use pyo3::prelude::*;
use weir::k6::{K6Load, K6Role};
use weir::load::program::{ProgramOptions, ScriptOptions};
use weir::load::{LoadPlan, Options};
use weir::measure::Run;

use crate::errors;

/// Names with their texts.
pub(crate) type Summaries = Vec<(String, String)>;

/// Script of a load.
pub(crate) struct PythonK6 {
    load: K6Load,
    /// Whether the arguments have the load, and not the options of the script.
    has_own_load: bool,
    has_agents: bool,
}

impl PythonK6 {
    /// Opens the script of a load, if it has one: its file runs once, and the options get what it says about them.
    pub(crate) fn open(options: &mut Options, has_agents: bool) -> PyResult<Option<Self>> {
        let Some(ProgramOptions::JavaScript(script)) = options.program.take_if(|program| program.is_javascript())
        else {
            return Ok(None);
        };
        let has_pace = options.connections.is_some()
            || options.users.is_some()
            || options.rate.is_some()
            || options.loops.is_some()
            || !options.stages.is_empty()
            || !options.user_stages.is_empty();
        let has_own_load = has_pace || options.requests.is_some() || options.duration.is_some();
        if options.ramp_up.is_some() && !has_own_load {
            return Err(errors::usage("ramp_up needs users; the load of a script's own options has its stages there"));
        }
        let script = ScriptOptions { url: options.url.clone(), ..script };
        let load = K6Load::open(&script).map_err(|why| errors::usage(&why))?;
        if has_own_load && !has_pace {
            // As in k6, the users stay those of the script.
            options.users = Some(load.users_of_short_form().unwrap_or(1));
        }
        load.apply(options, has_own_load);
        Ok(Some(Self { load, has_own_load, has_agents }))
    }

    /// Does what the script does before the load, as long as it goes on.
    pub(crate) fn set_up(&self, options: &mut Options, go_on: &mut dyn FnMut() -> bool) -> PyResult<()> {
        let go_on = RefCell::new(go_on);
        let asked = || go_on.borrow_mut()();
        self.load.set_up(options, &asked).map_err(|why| errors::load(&why))?;
        if self.has_agents {
            // They are given what the function has returned.
            options.program = Some(ProgramOptions::JavaScript(self.load.for_agents(self.has_own_load)));
        }
        Ok(())
    }

    /// The load with the script's users.
    pub(crate) fn prepare(&mut self, options: &Options, plan: LoadPlan) -> PyResult<LoadPlan> {
        let role = if self.has_agents { K6Role::Coordinator } else { K6Role::Single };
        self.load.prepare(options, plan, self.has_own_load, role).map_err(|why| errors::usage(&why))
    }

    /// Does what the script does after the load, and adds to the result what it has measured itself.
    pub(crate) fn complete(&self, options: &Options, run: &mut Run, reports: &[String]) -> PyResult<()> {
        let done = self.load.tear_down(options);
        let added = self.load.add_reports(reports);
        self.load.complete(run);
        done.and(added).map_err(|why| errors::serve(&why))
    }

    /// Texts of the script's own summaries, by the names of files, `stdout` or `stderr`, as long as it goes on.
    pub(crate) fn own_summaries(&self, run: &Run, go_on: &mut dyn FnMut() -> bool) -> Result<Summaries, String> {
        let go_on = RefCell::new(go_on);
        self.load.own_summaries(run, &|| go_on.borrow_mut()())
    }
}
