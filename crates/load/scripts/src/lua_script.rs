//! Lua scripts, as far as this build has them.

#[cfg(feature = "engines")]
pub use weir_lua::{LuaLoad, LuaRole};

#[cfg(not(feature = "engines"))]
pub use self::absent::{AbsentLua as LuaLoad, AbsentRole as LuaRole};

#[cfg(not(feature = "engines"))]
mod absent {
    use weir_load::program::ScriptOptions;
    use weir_load::{LoadPlan, Options};
    use weir_measure::Run;

    /// Lua script of a load: there is none.
    #[derive(Debug)]
    pub enum AbsentLua {}

    /// Who calls the functions of a Lua script.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AbsentRole {
        /// That of a load.
        Single,
        /// That of one iteration, or of a load whose requests are shown.
        Played,
        /// That of agents.
        Coordinator,
        /// An agent, one of this many.
        Agent(u64),
    }

    impl AbsentLua {
        /// Never a load.
        ///
        /// # Errors
        /// One line: this build has no Lua.
        pub fn prepare(
            script: &ScriptOptions,
            _: &Options,
            _: LoadPlan,
            _: AbsentRole,
        ) -> Result<(LoadPlan, Self), String> {
            let name = script.path.display();
            Err(format!("{name}: this build of weir has no Lua; build it with the feature scripts"))
        }

        /// Never called.
        ///
        /// # Errors
        /// None.
        pub fn done(&self, _: &Run) -> Result<(), String> {
            match *self {}
        }
    }
}
