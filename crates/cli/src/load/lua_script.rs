//! Lua scripts, as far as this build has them.

#[cfg(feature = "lua")]
pub(crate) use weir_lua::{LuaLoad, LuaRole};

#[cfg(not(feature = "lua"))]
pub(crate) use self::absent::{AbsentLua as LuaLoad, AbsentRole as LuaRole};

#[cfg(not(feature = "lua"))]
mod absent {
    use weir_load::program::ScriptOptions;
    use weir_load::{LoadPlan, Options};
    use weir_measure::Run;

    /// Lua script of a load: there is none.
    #[derive(Debug)]
    pub(crate) enum AbsentLua {}

    /// Who calls the functions of a Lua script.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum AbsentRole {
        Single,
        Played,
        Coordinator,
        Agent(u64),
    }

    impl AbsentLua {
        pub(crate) fn prepare(
            script: &ScriptOptions,
            _: &Options,
            _: LoadPlan,
            _: AbsentRole,
        ) -> Result<(LoadPlan, Self), String> {
            let name = script.path.display();
            Err(format!("{name}: this weir was built without Lua; build it with the feature lua"))
        }

        pub(crate) fn done(&self, _: &Run) -> Result<(), String> {
            match *self {}
        }
    }
}
