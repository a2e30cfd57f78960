//! Programs that drive the users of an agent.

use crate::k6_load::{K6Load, K6Role};
use crate::lua_script::{LuaLoad, LuaRole};
use crate::python_host::{PythonHost, PythonScript, ScriptRole};
use weir_agents::{AgentPart, AgentPrograms, process};
use weir_command::Messages;
use weir_command::exit;
use weir_llm::load::ConversationOptions;
use weir_load::program::{BuiltInProgram, ProgramOptions, ScriptOptions};
use weir_load::{LoadPlan, Options};

/// Scripts that drive the users of an agent.
struct HostedScripts<'a> {
    host: Option<&'a dyn PythonHost>,
    /// Script in Python that is open: loads that follow use it again.
    python: Option<(ScriptOptions, Box<dyn PythonScript>)>,
    is_running: bool,
    /// Script of k6 of the last load, with the load's options if the agent calls its functions around the load.
    k6: Option<(K6Load, Option<Options>)>,
    messages: &'a Messages,
}

impl<'a> HostedScripts<'a> {
    /// Scripts of a process with this interpreter.
    fn new(host: Option<&'a dyn PythonHost>, messages: &'a Messages) -> Self {
        Self { host, python: None, is_running: false, k6: None, messages }
    }
}

/// Makes the users of a program of weir's own.
type BuiltInPlan = fn(&BuiltInProgram, &Options, LoadPlan) -> Result<LoadPlan, String>;

/// Programs of weir's own, by their names.
const BUILT_IN: &[(&str, BuiltInPlan)] = &[(ConversationOptions::PROGRAM, ConversationOptions::agent_plan)];

impl HostedScripts<'_> {
    fn prepare_python(&mut self, script: &ScriptOptions, part: AgentPart<'_>) -> Result<LoadPlan, String> {
        let AgentPart { options, plan, position } = part;
        let host = self.host.ok_or("the agent has no Python; start it by the package weir-http")?;
        let opened = match self.python.take().filter(|(known, _)| known == script) {
            Some((_, opened)) => opened,
            None => host.open(script, ScriptRole::Agent(position.index))?,
        };
        let program = opened.program(&plan, options);
        self.is_running = program.is_ok();
        self.python = Some((script.clone(), opened));
        plan.driven_by(program?, options).map_err(|error| error.to_string())
    }
}

impl AgentPrograms for HostedScripts<'_> {
    fn prepare(&mut self, program: &ProgramOptions, part: AgentPart<'_>) -> Result<LoadPlan, String> {
        let AgentPart { options, plan, position } = part;
        match program {
            ProgramOptions::Lua(script) => {
                LuaLoad::prepare(script, options, plan, LuaRole::Agent(position.count)).map(|(plan, _)| plan)
            }
            ProgramOptions::Python(script) => self.prepare_python(script, AgentPart { options, plan, position }),
            ProgramOptions::JavaScript(script) => {
                let mut load = K6Load::open(script)?;
                let plan = load.prepare(options, plan, script.has_own_load, K6Role::Single)?;
                if script.calls_hooks {
                    load.set_up(options, &|| true).map_err(|error| error.to_string())?;
                }
                self.k6 = Some((load, script.calls_hooks.then(|| options.clone())));
                Ok(plan)
            }
            ProgramOptions::BuiltIn(program) => {
                let name = &program.name;
                let found = BUILT_IN.iter().find(|(known, _)| known == name).map(|(_, plan)| plan);
                let make = found.ok_or_else(|| {
                    format!("the agent's build of weir has no '{name}'; build it with the feature {name}")
                })?;
                make(program, options, plan)
            }
        }
    }

    fn finish(&mut self) -> Option<String> {
        if let Some((load, options)) = self.k6.take() {
            let torn_down = options.map_or(Ok(()), |options| load.tear_down(&options));
            torn_down.unwrap_or_else(|why| self.messages.error(&why));
            return load.report();
        }
        let (_, opened) = self.python.as_ref().filter(|_| std::mem::take(&mut self.is_running))?;
        // The report of a script that fails at the end is its traceback.
        opened.report().ok()
    }
}

/// Hidden command of an agent process.
pub fn run_agent(messages: &Messages, host: Option<&dyn PythonHost>) -> u8 {
    match process::run(&mut HostedScripts::new(host, messages)) {
        Ok(()) => exit::OK,
        Err(error) => {
            messages.error(&format!("internal command of 'weir load --on': {error}"));
            exit::USAGE
        }
    }
}
