//! Script of a load, in Lua or Python.

use std::ffi::OsString;

use super::LoadArgs;
use super::lua_script::{LuaLoad, LuaRole};
use super::python_script::PythonLoad;
use crate::python_host::PythonHost;
use weir_command::Messages;
use weir_load::program::ScriptOptions;
use weir_load::{LoadPlan, Options};
use weir_measure::Run;

/// Script of a load, in Lua or Python.
pub(super) enum LoadScript {
    /// There is none.
    Nothing,
    Python(PythonLoad),
    Lua {
        script: ScriptOptions,
        has_agents: bool,
        /// Whether each request is one of the script, and not a copy of the first.
        has_traces: bool,
        /// Once the load is prepared.
        load: Option<LuaLoad>,
    },
}

impl LoadScript {
    /// Opens the script of the arguments.
    ///
    /// # Errors
    /// One line.
    pub(super) fn open(asked: &mut LoadArgs, args: &[OsString], host: Option<&dyn PythonHost>) -> Result<Self, String> {
        if let Some(python) = PythonLoad::open(asked, args, host)? {
            return asked.script_args.check_unused().map(|()| Self::Python(python));
        }
        let Some(path) = asked.request_args.take_script()? else {
            return asked.script_args.check_unused().map(|()| Self::Nothing);
        };
        if asked.agent_args.are_remote() {
            return Err(
                "--on does not go with a Lua script; its interpreters are on this machine: --on local".to_owned()
            );
        }
        if asked.once {
            return Err(format!("--once does not go with a Lua script; write weir run {}", path.display()));
        }
        let (script, has_agents) = (asked.script_args.script(&path), asked.agent_args.has_agents());
        Ok(Self::Lua { script, has_agents, has_traces: asked.live_args.has_traces(), load: None })
    }

    /// Whether there is one.
    pub(super) fn is_any(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Whether there is one in Python, whose steps are known at the end.
    pub(super) fn is_python(&self) -> bool {
        matches!(self, Self::Python(_))
    }

    /// The script for agents, if they drive the users.
    pub(super) fn for_agents(&self) -> Option<ScriptOptions> {
        match self {
            Self::Nothing => None,
            Self::Python(python) => python.for_agents(),
            Self::Lua { script, has_agents, .. } => has_agents.then(|| script.clone()),
        }
    }

    /// The load with the script's users.
    ///
    /// # Errors
    /// One line with the script's mistake.
    pub(super) fn prepare(&mut self, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
        match self {
            Self::Nothing => Ok(plan),
            Self::Python(python) => python.prepare(options, plan),
            Self::Lua { script, has_agents, has_traces, load } => {
                let role = match (*has_agents, *has_traces) {
                    (true, _) => LuaRole::Coordinator,
                    (false, true) => LuaRole::Played,
                    (false, false) => LuaRole::Single,
                };
                let (plan, made) = LuaLoad::prepare(script, options, plan, role)?;
                *load = Some(made);
                Ok(plan)
            }
        }
    }

    /// Passes the result and the reports of agents to the script; returns the exit code that it sets, or that of its
    /// error.
    pub(super) fn done(&self, run: &Run, reports: &[String], messages: &Messages) -> Option<u8> {
        let code = match self {
            Self::Nothing => return None,
            Self::Python(python) => python.done(run, reports),
            Self::Lua { load, .. } => load.as_ref().map_or(Ok(()), |load| load.done(run)).map(|()| None),
        };
        code.unwrap_or_else(|why| Some(messages.usage_error(&why)))
    }
}
