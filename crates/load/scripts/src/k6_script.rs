//! Script of k6 of a load.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::k6_load::{K6Load, K6Role};
use weir_command::Interrupt;
use weir_command::exit;
use weir_command::stdout::print;
use weir_load::program::{ProgramOptions, ScriptOptions};
use weir_load::{LoadError, LoadPlan, Options};
use weir_measure::Run;

/// Script of k6 of a load.
#[derive(Debug)]
pub struct K6Script {
    load: K6Load,
    /// Whether the command line has the load, and not the options of the script.
    has_own_load: bool,
    has_agents: bool,
    /// File of a summary of k6.
    summary_export: Option<PathBuf>,
    /// Whether exit codes are those of k6.
    has_k6_codes: bool,
    /// Whether people read stdout.
    has_text_report: bool,
    /// Whether its teardown has failed.
    is_broken: AtomicBool,
}

/// Exit code of k6 if a threshold was not met.
const THRESHOLDS_CROSSED: u8 = 99;

/// Does what a script does before the load, which Ctrl-C ends.
pub(crate) fn set_up(load: &K6Load, options: &Options) -> Result<(), LoadError> {
    let interrupt = Interrupt::install().map_err(LoadError::System)?;
    load.set_up(options, &|| !interrupt.is_requested())?;
    interrupt.hand_over().map_err(LoadError::System)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write '{}': {error}", path.display()))
}

impl K6Script {
    /// Opens a script: its file runs once. `has_own_load`: the command line has the load;
    /// `has_agents`: agents drive its users.
    ///
    /// # Errors
    /// One line with its mistake.
    pub fn open(options: &ScriptOptions, has_own_load: bool, has_agents: bool) -> Result<Self, String> {
        let load = K6Load::open(options)?;
        let is_broken = AtomicBool::new(false);
        let (has_k6_codes, has_text_report) = (false, true);
        Ok(Self { load, has_own_load, has_agents, summary_export: None, has_k6_codes, has_text_report, is_broken })
    }

    /// The same script, whose summary is written into a file, and whose exit codes are those of k6 if `has_k6_codes`.
    pub fn with_summary(self, summary_export: Option<PathBuf>, has_k6_codes: bool, has_text_report: bool) -> Self {
        Self { summary_export, has_k6_codes, has_text_report, ..self }
    }

    /// Users of the script's options, if these are the short form of one scenario.
    pub fn users(&self) -> Option<u64> {
        self.load.users_of_short_form()
    }

    pub(crate) fn apply(&self, options: &mut Options) -> Result<(), LoadError> {
        self.load.apply(options, self.has_own_load);
        if self.has_agents {
            // They are given what the function has returned.
            set_up(&self.load, options)?;
            options.program = Some(ProgramOptions::JavaScript(self.load.for_agents(self.has_own_load)));
        }
        Ok(())
    }

    pub(crate) fn prepare(&mut self, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
        let role = if self.has_agents { K6Role::Coordinator } else { K6Role::Single };
        self.load.prepare(options, plan, self.has_own_load, role)
    }

    pub(crate) fn set_up(&self, options: &Options) -> Result<(), LoadError> {
        set_up(&self.load, options)
    }

    pub(crate) fn tear_down(&self, options: &Options) -> Result<(), String> {
        self.load.tear_down(options).inspect_err(|_| self.is_broken.store(true, Ordering::Relaxed))
    }

    pub(crate) fn complete(&self, run: &mut Run, reports: &[String]) -> Result<(), String> {
        let added = self.load.add_reports(reports);
        self.load.complete(run);
        added
    }

    /// Writes the summaries of the script itself, and that of `--summary-export`.
    pub(crate) fn done(&self, run: &Run) -> Result<Option<u8>, String> {
        for (name, text) in self.load.own_summaries(run, &|| true)? {
            match name.as_str() {
                // The report may be what a program reads.
                "stdout" if self.has_text_report => print(&text, false)?,
                "stdout" => eprint!("{text}"),
                "stderr" => eprint!("{text}"),
                _ => write(Path::new(&name), &text)?,
            }
        }
        if let Some(path) = &self.summary_export {
            write(path, &self.load.summary_export(run))?;
        }
        if self.is_broken.load(Ordering::Relaxed) {
            // What it was to clean up may still be there, whatever was measured.
            return Ok(Some(exit::USAGE));
        }
        // As k6 says it to those who ask for its summary.
        let is_missed = self.has_k6_codes && run.slo.iter().any(|held| !held.ok);
        Ok(is_missed.then_some(THRESHOLDS_CROSSED))
    }
}
