//! Script of k6 of a load.

use weir_k6::{K6Load, K6Role};
use weir_load::program::ScriptOptions;
use weir_load::{LoadPlan, Options};
use weir_measure::Run;

/// Script of k6 of a load.
#[derive(Debug)]
pub struct K6Script {
    load: K6Load,
    /// Whether the command line has the load, and not the options of the script.
    has_own_load: bool,
}

impl K6Script {
    /// Opens a script: its file runs once. `has_own_load`: the command line has the load.
    ///
    /// # Errors
    /// One line with its mistake.
    pub fn open(options: &ScriptOptions, has_own_load: bool) -> Result<Self, String> {
        Ok(Self { load: K6Load::open(options)?, has_own_load })
    }

    /// Users of the script's options, if these are the short form of one scenario.
    pub fn users(&self) -> Option<u64> {
        self.load.users_of_short_form()
    }

    pub(crate) fn apply(&self, options: &mut Options) {
        self.load.apply(options, self.has_own_load);
    }

    pub(crate) fn prepare(&mut self, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
        self.load.prepare(options, plan, self.has_own_load, K6Role::Single)
    }

    pub(crate) fn set_up(&self, options: &Options) -> Result<(), String> {
        self.load.set_up(options)
    }

    pub(crate) fn tear_down(&self, options: &Options) -> Result<(), String> {
        self.load.tear_down(options)
    }

    pub(crate) fn complete(&self, run: &mut Run) {
        self.load.complete(run);
    }

    pub(crate) fn done(&self, run: &Run) -> Result<Option<u8>, String> {
        self.load.done(run)
    }
}
