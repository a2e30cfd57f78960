//! Script of a load, in Lua, Python or JavaScript.

use crate::k6_script::K6Script;
use crate::lua_script::{LuaLoad, LuaRole};
use crate::python_host::{PythonHost, PythonScript, PythonScriptSettings, ScriptRole, open_script};
use weir_command::Messages;
use weir_load::program::ScriptOptions;
use weir_load::{LoadError, LoadPlan, Options};
use weir_measure::Run;

/// Script of a load, in Lua, Python or JavaScript.
#[derive(Debug)]
pub enum LoadScript {
    /// There is none.
    Nothing,
    /// Of Python.
    Python(PythonLoad),
    /// Of Lua.
    Lua(WrkScript),
    /// Of JavaScript.
    JavaScript(K6Script),
}

/// Lua script of a load.
#[derive(Debug)]
pub struct WrkScript {
    script: ScriptOptions,
    has_agents: bool,
    has_traces: bool,
    /// Once the load is prepared.
    load: Option<LuaLoad>,
}

/// Python script of a load.
#[derive(Debug)]
pub struct PythonLoad {
    script: Box<dyn PythonScript>,
    options: ScriptOptions,
    has_agents: bool,
}

impl LoadScript {
    /// Whether there is one.
    pub fn is_any(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Whether there is one in Python.
    pub fn is_python(&self) -> bool {
        matches!(self, Self::Python(_))
    }

    /// Whether there is one whose steps are known at the end.
    pub fn has_steps(&self) -> bool {
        matches!(self, Self::Python(_) | Self::JavaScript(_))
    }

    /// Adds to the options of a load what the script says about them.
    ///
    /// # Errors
    /// The script's error, or that it was interrupted.
    pub fn apply(&self, options: &mut Options) -> Result<(), LoadError> {
        match self {
            Self::JavaScript(script) => script.apply(options),
            _ => Ok(()),
        }
    }

    /// Does what the script does before the load.
    ///
    /// # Errors
    /// The script's error, or that it was interrupted.
    pub fn begin(&self, options: &Options) -> Result<(), LoadError> {
        match self {
            Self::JavaScript(script) => script.set_up(options),
            _ => Ok(()),
        }
    }

    /// The script for agents, if they drive the users.
    pub fn for_agents(&self) -> Option<ScriptOptions> {
        match self {
            Self::Python(PythonLoad { options: script, has_agents: true, .. })
            | Self::Lua(WrkScript { script, has_agents: true, .. }) => Some(script.clone()),
            _ => None,
        }
    }

    /// The load with the script's users.
    ///
    /// # Errors
    /// One line with the script's mistake.
    pub fn prepare(&mut self, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
        match self {
            Self::Nothing => Ok(plan),
            Self::Python(python) => python.prepare(options, plan),
            Self::Lua(lua) => lua.prepare(options, plan),
            Self::JavaScript(script) => script.prepare(options, plan),
        }
    }

    /// Does what the script does after the load, and adds to the result what it has measured itself.
    pub fn complete(&self, options: &Options, run: &mut Run, reports: &[String], messages: &Messages) {
        if let Self::JavaScript(script) = self {
            for failed in [script.tear_down(options), script.complete(run, reports)] {
                failed.unwrap_or_else(|why| messages.error(&why));
            }
        }
    }

    /// Passes the result and the reports of agents to the script; returns the exit code that it sets, or that of its
    /// error.
    pub fn done(&self, run: &Run, reports: &[String], messages: &Messages) -> Option<u8> {
        let code = match self {
            Self::Nothing => return None,
            Self::Python(python) => python.script.done(run, reports),
            Self::Lua(lua) => lua.load.as_ref().map_or(Ok(()), |load| load.done(run)).map(|()| None),
            Self::JavaScript(script) => script.done(run),
        };
        code.unwrap_or_else(|why| Some(messages.usage_error(&why)))
    }
}

impl WrkScript {
    /// Script of a load that agents generate, or this process; with traces each request is one of the script, and not
    /// a copy of the first.
    pub fn new(script: ScriptOptions, has_agents: bool, has_traces: bool) -> Self {
        Self { script, has_agents, has_traces, load: None }
    }

    fn prepare(&mut self, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
        let role = match (self.has_agents, self.has_traces) {
            (true, _) => LuaRole::Coordinator,
            (false, true) => LuaRole::Played,
            (false, false) => LuaRole::Single,
        };
        let (plan, made) = LuaLoad::prepare(&self.script, options, plan, role)?;
        self.load = Some(made);
        Ok(plan)
    }
}

impl PythonLoad {
    /// Opens the script of a load that agents generate, or this process; returns also the load that it describes.
    ///
    /// # Errors
    /// One line; details are printed already.
    pub fn open(
        host: &dyn PythonHost,
        mut options: ScriptOptions,
        has_agents: bool,
    ) -> Result<(Self, PythonScriptSettings), String> {
        let role = if has_agents { ScriptRole::Coordinator } else { ScriptRole::Single };
        let (script, settings) = open_script(host, &mut options, role)?;
        Ok((Self { script, options, has_agents }, settings))
    }

    fn prepare(&self, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
        if self.has_agents {
            return self.script.coordinate(plan.users).map(|()| plan.of_script(&self.options.path));
        }
        let program = self.script.program(&plan, options)?;
        let plan = plan.driven_by(program, options).map_err(|error| error.to_string())?;
        Ok(plan.of_script(&self.options.path))
    }
}
