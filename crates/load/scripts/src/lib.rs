//! Scripts in Lua, Python and JavaScript that drive users.
//!
//! - [`PythonHost`]: seam to a Python interpreter that this process has; [`replace_process`]: another process that has one
//! - [`LuaLoad`]: scripts of wrk, as far as this build has them
//! - [`K6Script`]: scripts of k6
//! - [`LoadScript`], [`SearchScript`], [`StudyScripts`]: scripts of a load, of a search, of a study; [`play_script`]: one
//!   iteration; [`run_agent`]: those of an agent

mod hosted_scripts;
mod k6_load;
mod k6_script;
mod load_script;
mod lua_script;
mod played_script;
mod python_host;
mod python_process;
mod search_script;
mod study_scripts;

pub use self::hosted_scripts::run_agent;
pub use self::k6_script::K6Script;
pub use self::load_script::{LoadScript, PythonLoad, WrkScript};
pub use self::lua_script::{LuaLoad, LuaRole};
pub use self::played_script::play_script;
pub use self::python_host::{PythonHost, PythonScript, PythonScriptSettings, ScriptRole, open_script};
pub use self::python_process::replace_process;
pub use self::search_script::SearchScript;
pub use self::study_scripts::StudyScripts;
