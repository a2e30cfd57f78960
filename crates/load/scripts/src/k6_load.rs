//! Loads of k6's scripts, as far as this build has them.

#[cfg(feature = "engines")]
pub(crate) use weir_k6::{K6Load, K6Role};

#[cfg(not(feature = "engines"))]
pub(crate) use self::absent::{AbsentK6 as K6Load, AbsentK6Role as K6Role};

#[cfg(not(feature = "engines"))]
mod absent {
    use weir_load::program::ScriptOptions;
    use weir_load::{LoadError, LoadPlan, Options};
    use weir_measure::Run;

    /// Script of k6: there is none.
    #[derive(Debug)]
    pub(crate) enum AbsentK6 {}

    /// Who calls the functions of a script.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum AbsentK6Role {
        /// This process, with all users.
        Single,
        /// This process, for one iteration that is shown.
        Played,
        /// Agents, which this process coordinates.
        Coordinator,
    }

    #[expect(clippy::unused_self, reason = "there is never a value")]
    impl AbsentK6 {
        /// Never a load.
        ///
        /// # Errors
        /// One line: this build has no JavaScript.
        pub(crate) fn open(script: &ScriptOptions) -> Result<Self, String> {
            let name = script.path.display();
            Err(format!("{name}: this build of weir has no JavaScript; build it with the feature scripts"))
        }

        /// Never called.
        pub(crate) fn users_of_short_form(&self) -> Option<u64> {
            match *self {}
        }

        /// Never called.
        pub(crate) fn apply(&self, _: &mut Options, _: bool) {
            match *self {}
        }

        /// Never called.
        ///
        /// # Errors
        /// None.
        pub(crate) fn prepare(
            &mut self,
            _: &Options,
            _: LoadPlan,
            _: bool,
            _: AbsentK6Role,
        ) -> Result<LoadPlan, String> {
            match *self {}
        }

        /// Never called.
        ///
        /// # Errors
        /// None.
        pub(crate) fn set_up(&self, _: &Options, _: &dyn Fn() -> bool) -> Result<(), LoadError> {
            match *self {}
        }

        /// Never called.
        ///
        /// # Errors
        /// None.
        pub(crate) fn tear_down(&self, _: &Options) -> Result<(), String> {
            match *self {}
        }

        /// Never called.
        pub(crate) fn for_agents(&self, _: bool) -> ScriptOptions {
            match *self {}
        }

        /// Never called.
        pub(crate) fn report(&self) -> Option<String> {
            match *self {}
        }

        /// Never called.
        ///
        /// # Errors
        /// None.
        pub(crate) fn add_reports(&self, _: &[String]) -> Result<(), String> {
            match *self {}
        }

        /// Never called.
        pub(crate) fn complete(&self, _: &mut Run) {
            match *self {}
        }

        /// Never called.
        ///
        /// # Errors
        /// None.
        pub(crate) fn own_summaries(&self, _: &Run, _: &dyn Fn() -> bool) -> Result<Vec<(String, String)>, String> {
            match *self {}
        }

        /// Never called.
        pub(crate) fn summary_export(&self, _: &Run) -> String {
            match *self {}
        }
    }
}
