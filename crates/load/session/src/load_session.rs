//! A load as a command runs it, from its files to its exit code.

use std::ffi::OsString;
use std::sync::Arc;

use crate::exit_code::{exit_code, not_begun};
use crate::live::{LiveOptions, LiveSession};
use crate::run_files::{RunFileOptions, RunFiles};
use crate::run_plan::{EndedPlan, PlanRun, execute};
use crate::samplers::samplers;
use weir_agents::{AgentSpec, Coordinator};
use weir_base::Nanos;
use weir_command::Interrupt;
use weir_command::Messages;
use weir_command::exit;
use weir_load::objectives::{AbortState, Objectives};
use weir_load::request_log::RequestLog;
use weir_load::{LoadError, LoadPlan, Options, setup};
use weir_measure::Run;
use weir_terminal::progress_bar::Extent;

/// Options of a load's display and of its result.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Files of the result.
    pub files: RunFileOptions,
    /// Displays and controls of the load while it runs.
    pub live: LiveOptions,
    /// Whether a run that is not trusted fails.
    pub strict: bool,
}

/// Load of a session.
#[derive(Debug)]
pub struct SessionLoad {
    /// Options of the load.
    pub options: Options,
    /// Their plan.
    pub plan: LoadPlan,
    /// Objectives of the run; checked for the plan.
    pub objectives: Objectives,
    /// Command line for the manifest, without secrets.
    pub command: Vec<String>,
    /// Agents that generate the load, if not this process.
    pub agents: Option<AgentSpec>,
    /// Labels and URLs in a log of requests; those of the plan without any.
    pub samplers: Option<Vec<(String, String)>>,
    /// Length of the progress bar; that of the plan, with its steps, without one.
    pub extent: Option<Extent>,
}

/// A load as a command runs it: [`LoadSession::open`], [`LoadSession::run`], [`LoadSession::report`],
/// [`LoadSession::finish`].
#[derive(Debug)]
pub struct LoadSession<'s> {
    asked: &'s SessionOptions,
    messages: &'s Messages,
    files: RunFiles,
}

/// Load that has been run, until its session is finished.
#[derive(Debug)]
pub struct MeasuredLoad {
    /// Result.
    pub run: Run,
    /// Final reports of the agents' scripts.
    pub script_reports: Vec<String>,
    /// Time at which the plan, which is dropped, would have ended.
    pub plan_end: Nanos,
    objectives: Objectives,
    abort: AbortState,
    interrupt: Arc<Interrupt>,
    live: LiveSession,
    log: Option<RequestLog>,
    /// Exit code of what has failed beside the run; [`exit::OK`] if nothing has.
    pub written: u8,
    /// Dropped at the end, after the result has been written: ending agents may take seconds.
    crew: Option<Coordinator>,
}

impl<'s> LoadSession<'s> {
    /// Opens the files; `args` is the command line, whose other arguments no output writes over.
    ///
    /// # Errors
    /// One line: a file cannot be written, or two are the same one.
    pub fn open(asked: &'s SessionOptions, args: &[OsString], messages: &'s Messages) -> Result<Self, String> {
        let files = RunFiles::open(&asked.files, asked.live.jsonl(), asked.strict)?;
        files.ensure_not_arguments(args)?;
        Ok(Self { asked, messages, files })
    }

    /// Executes the load, with the setups and teardowns of its scenarios; `begin` is called when all else is ready. None
    /// if it was interrupted before its start.
    ///
    /// # Errors
    /// One line, if the run cannot start.
    pub fn run(
        &mut self,
        load: SessionLoad,
        begin: &mut dyn FnMut() -> Result<(), LoadError>,
    ) -> Result<Option<MeasuredLoad>, String> {
        let SessionLoad { options, plan, objectives, command, agents, samplers: named, extent } = load;
        let (live_options, messages) = (&self.asked.live, self.messages);
        let mut abort = objectives.watch(&plan);
        let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
        let interrupt = Arc::new(interrupt);
        live_options.watch_stdin();
        let options = match setup::set_up(&options, &mut || !interrupt.is_requested()) {
            Ok(options) => options,
            Err(why) => return not_begun(&why, messages).map(|_| None),
        };
        // With what the setups have captured; without any it is the same again.
        let plan = if plan.has_setup() { LoadPlan::new(&options).map_err(|error| error.to_string())? } else { plan };
        let log = self.files.request_log(&named.unwrap_or_else(|| samplers(&plan)))?;
        let slos: Vec<String> = objectives.slos.iter().map(|placed| placed.slo.to_string()).collect();
        let lines = (messages, self.files.jsonl());
        let (plan, mut live) = LiveSession::open(live_options, (&options, plan), &slos, &interrupt, lines)?;
        if let Err(why) = begin() {
            return give_up(live, &why, messages);
        }
        let asked = PlanRun {
            options: &options,
            plan: &plan,
            command: &command,
            agents: agents.as_ref(),
            extent,
            messages,
            interrupt: &interrupt,
        };
        let EndedPlan { run, script_reports, crew } = execute(&asked, Some(&mut live), log.as_ref(), &mut abort);
        // A second Ctrl-C ends the process at once, so that nothing else needs to end the teardown.
        let torn_down = setup::tear_down(&options, &mut || true);
        if let Err(why) = &torn_down {
            messages.error(&why.to_string());
        }
        let run = match run {
            Ok(run) => run,
            Err(why) => return give_up(live, &why, messages),
        };
        let plan_end = plan.end();
        let written = torn_down.map_or(exit::USAGE, |()| exit::OK);
        let measured =
            MeasuredLoad { run, script_reports, plan_end, objectives, abort, interrupt, live, log, written, crew };
        Ok(Some(measured))
    }

    /// Judges the run and prints its report, which `render` makes with or without colours.
    pub fn report(&mut self, measured: &mut MeasuredLoad, render: impl FnOnce(&Run, bool) -> String) {
        let run = &mut measured.run;
        self.files.finish_log(measured.log.take(), run);
        let abort = std::mem::take(&mut measured.abort);
        measured.objectives.judge(run, abort, measured.interrupt.is_requested());
        let shown = self.files.print(self.messages, |colors| render(run, colors));
        measured.written = measured.written.max(shown);
    }

    /// Ends without a result: shows why on the page and in the outputs.
    pub fn fail(self, measured: MeasuredLoad, why: &str) {
        measured.live.finish(Err(why), self.messages);
    }

    /// Writes the files and delivers the rest of the outputs; returns the exit code.
    pub fn finish(mut self, measured: MeasuredLoad) -> u8 {
        let kept = self.files.write(&measured.run, self.messages);
        let MeasuredLoad { run, live, written, crew, .. } = measured;
        let delivered = live.finish(Ok(&run), self.messages);
        let code = exit_code(&run, self.asked.strict, written.max(kept).max(delivered), self.messages);
        drop(crew);
        code
    }
}

/// Ends a session whose load has not begun: shows why on the page and in the outputs.
fn give_up(mut live: LiveSession, why: &LoadError, messages: &Messages) -> Result<Option<MeasuredLoad>, String> {
    // What is printed while the screen is taken is gone with it.
    live.end_keys();
    if !why.is_interrupt() {
        live.finish(Err(&why.to_string()), messages);
    }
    not_begun(why, messages).map(|_| None)
}
