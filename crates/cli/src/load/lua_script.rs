//! Lua script of a load: its interpreters, and what it does with the result.

#[cfg(feature = "lua")]
use std::time::Duration;

use weir_load::program::ScriptOptions;
use weir_load::{LoadPlan, Options};
use weir_machine::input_file;
use weir_measure::Run;
#[cfg(feature = "lua")]
use weir_pace::shard::Shard;

/// Lua script of a load: it drives the users, or has said what the load sends, or runs in agents.
#[derive(Debug)]
pub(crate) struct LuaLoad(#[cfg(feature = "lua")] std::sync::Arc<weir_lua::LuaScript>);

/// Process that calls the functions of a Lua script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LuaRole {
    /// This process, with all threads; a script of one request becomes a plain load.
    Single,
    /// This process, with all threads; each request is one of the script.
    Played,
    /// Agents; this process calls `done`.
    Coordinator,
    /// This process, with the threads of one of this number of agents.
    Agent(u64),
}

impl LuaLoad {
    /// Loads a script; returns the load with it.
    ///
    /// # Errors
    /// One line with the script's mistake.
    #[cfg(feature = "lua")]
    pub(crate) fn prepare(
        script: &ScriptOptions,
        options: &Options,
        plan: LoadPlan,
        role: LuaRole,
    ) -> Result<(LoadPlan, Self), String> {
        use std::sync::Arc;
        use weir_lua::{LuaScript, ScriptErrors, ScriptSource, ScriptThreads};

        let name = script.path.display().to_string();
        let text =
            input_file::read(&script.path).map_err(|error| format!("cannot read the script '{name}': {error}"))?;
        let source = ScriptSource {
            text,
            args: script.args.clone(),
            url: options.url.clone(),
            target: plan.target.clone(),
            addresses: plan.addresses.all().to_vec(),
            method: plan.method.clone(),
            headers: plan.script_headers(options).map_err(|error| error.to_string())?,
            body: plan.script_body(options).map_err(|error| error.to_string())?,
            seed: plan.seed,
            errors: if script.counts_errors { ScriptErrors::Count } else { ScriptErrors::Stop },
            timeout: script.timeout.unwrap_or(DEFAULT_TIMEOUT).max(MIN_TIMEOUT),
            name,
        };
        let threads = match role {
            LuaRole::Single | LuaRole::Played => {
                ScriptThreads { count: plan.threads, numbers: Shard::WHOLE, all: plan.threads }
            }
            LuaRole::Coordinator => ScriptThreads { count: 0, numbers: Shard::WHOLE, all: 0 },
            LuaRole::Agent(agents) => {
                ScriptThreads { count: plan.threads, numbers: plan.shard, all: plan.threads.saturating_mul(agents) }
            }
        };
        let made = LuaScript::new(&source, threads, |why| {
            // The thread of the call cannot be ended, and the run not without it.
            eprintln!("weir: {why}");
            // Not by exit: it would wait for a pipe that the call waits for.
            signal_hook::low_level::exit(i32::from(crate::exit::USAGE));
        })?;
        let made = Arc::new(made);
        if role == LuaRole::Coordinator {
            made.check_coordinator()?;
            return Ok((plan, Self(made)));
        }
        let plan = match made.single_request().filter(|_| role == LuaRole::Single) {
            Some(request) => plan.with_request(request.clone()),
            None => plan.driven_by(Arc::<LuaScript>::clone(&made), options).map_err(|error| error.to_string())?,
        };
        Ok((plan, Self(made)))
    }

    #[cfg(not(feature = "lua"))]
    pub(crate) fn prepare(
        script: &ScriptOptions,
        _: &Options,
        _: LoadPlan,
        _: LuaRole,
    ) -> Result<(LoadPlan, Self), String> {
        let name = script.path.display();
        Err(format!("{name}: this weir was built without Lua; build it with the feature lua"))
    }

    /// Passes the result to the script.
    ///
    /// # Errors
    /// One line with the script's error.
    #[cfg_attr(not(feature = "lua"), allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with Lua"))]
    pub(crate) fn done(&self, run: &Run) -> Result<(), String> {
        #[cfg(feature = "lua")]
        return self.0.done(run);
        #[cfg(not(feature = "lua"))]
        {
            let _ = run;
            Ok(())
        }
    }
}

/// Default of `--script-timeout`.
#[cfg(feature = "lua")]
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);
/// Shortest time that the watchdog can keep.
#[cfg(feature = "lua")]
const MIN_TIMEOUT: Duration = Duration::from_millis(10);
