//! Script of a search for the highest load.

use crate::k6_load::K6Load;
use crate::k6_script::set_up;
use crate::python_host::{PythonHost, PythonScript, PythonScriptSettings, ScriptRole, open_script};
use weir_load::program::ScriptOptions;
use weir_load::{LoadError, Options};

/// Script of a search for the highest load: agents drive its users in one load after the other.
#[derive(Debug, Default)]
pub struct SearchScript {
    options: Option<ScriptOptions>,
    python: Option<Box<dyn PythonScript>>,
    k6: Option<K6Load>,
    reports: Vec<String>,
}

impl SearchScript {
    /// Script in Lua.
    pub fn lua(options: ScriptOptions) -> Self {
        Self { options: Some(options), ..Self::default() }
    }

    /// Opens a script of k6; the loads are those of the search.
    ///
    /// # Errors
    /// One line with its mistake.
    pub fn k6(options: &ScriptOptions) -> Result<Self, String> {
        let load = K6Load::open(options)?;
        Ok(Self { options: Some(load.for_agents(true)), k6: Some(load), ..Self::default() })
    }

    /// Adds to the options of all loads what the script says about them, and does what it does before them.
    ///
    /// # Errors
    /// The script's error, or that it was interrupted.
    pub fn set_up(&mut self, options: &mut Options) -> Result<(), LoadError> {
        let Some(load) = &self.k6 else { return Ok(()) };
        load.apply(options, true);
        set_up(load, options)?;
        self.options = Some(load.for_agents(true));
        Ok(())
    }

    /// Opens a script in Python; returns also the load that it describes.
    ///
    /// # Errors
    /// One line; details are printed already.
    pub fn python(host: &dyn PythonHost, mut options: ScriptOptions) -> Result<(Self, PythonScriptSettings), String> {
        let (script, settings) = open_script(host, &mut options, ScriptRole::Coordinator)?;
        script.coordinate(1)?;
        Ok((Self { options: Some(options), python: Some(script), ..Self::default() }, settings))
    }

    /// Whether it is in Python, which runs on one thread.
    pub fn is_python(&self) -> bool {
        self.python.is_some()
    }

    /// The script for agents.
    pub fn options(&self) -> Option<ScriptOptions> {
        self.options.clone()
    }

    /// Takes what the script of an agent has left after a load.
    pub fn add_report(&mut self, report: &str) {
        self.reports.push(report.to_owned());
    }

    /// Ends the search: the script does what it does after all loads.
    ///
    /// # Errors
    /// One line; details are printed already.
    pub fn end(&self, options: &Options) -> Result<(), String> {
        if let Some(load) = &self.k6 {
            return load.tear_down(options);
        }
        self.python.as_ref().map_or(Ok(()), |script| script.end_search(&self.reports))
    }
}
