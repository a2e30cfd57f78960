//! Program that drives the users of a load in other processes, as they make it.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ScriptOptions;
use super::script_path::{is_javascript, is_python};

/// Program that drives the users of a load in other processes, as they make it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramOptions {
    /// Script in Lua.
    Lua(ScriptOptions),
    /// Script, or classes, in Python.
    Python(ScriptOptions),
    /// Script in JavaScript.
    JavaScript(ScriptOptions),
    /// Program of weir's own.
    BuiltIn(BuiltInProgram),
}

/// Program of weir's own, with options that its crate has a type for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltInProgram {
    /// Name of the program.
    pub name: String,
    /// Names of its scenarios, in order.
    pub scenarios: Vec<String>,
    /// Its options, as JSON.
    options: String,
}

impl ProgramOptions {
    /// Program of a script, whose language is that of its file's extension; classes without a file are Python's.
    pub fn of_script(script: ScriptOptions) -> Self {
        match &script.path {
            _ if !script.classes.is_empty() => Self::Python(script),
            path if is_python(path) => Self::Python(script),
            path if is_javascript(path) => Self::JavaScript(script),
            _ => Self::Lua(script),
        }
    }

    /// Names of the scenarios, in order.
    pub fn scenarios(&self) -> &[String] {
        match self {
            Self::Lua(script) | Self::Python(script) | Self::JavaScript(script) => &script.scenarios,
            Self::BuiltIn(program) => &program.scenarios,
        }
    }

    /// Script, unless the program is weir's own.
    pub fn script(&self) -> Option<&ScriptOptions> {
        match self {
            Self::Lua(script) | Self::Python(script) | Self::JavaScript(script) => Some(script),
            Self::BuiltIn(_) => None,
        }
    }

    /// Whether it is in JavaScript.
    pub fn is_javascript(&self) -> bool {
        matches!(self, Self::JavaScript(_))
    }

    /// Whether other machines can run it, with copies of its files.
    pub fn is_shippable(&self) -> bool {
        matches!(self, Self::JavaScript(script) if !script.files.is_empty())
    }

    /// Name for messages: the script's file, or the program's name.
    pub fn shown_name(&self) -> PathBuf {
        match self {
            Self::Lua(script) | Self::Python(script) | Self::JavaScript(script) => script.path.clone(),
            Self::BuiltIn(program) => PathBuf::from(&program.name),
        }
    }
}

impl BuiltInProgram {
    /// Program of this name with its scenarios and options.
    ///
    /// # Errors
    /// One line, if the options have a value that JSON cannot have, such as a path that is not UTF-8.
    pub fn new(name: &str, scenarios: Vec<String>, options: &impl Serialize) -> Result<Self, String> {
        let options = serde_json::to_string(options).map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name: name.to_owned(), scenarios, options })
    }

    /// Options of the program.
    ///
    /// # Errors
    /// One line, if they are those of another program.
    pub fn options<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_str(&self.options).map_err(|error| format!("{}: invalid options: {error}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_survives_its_way_to_another_process() {
        let own = BuiltInProgram::new("llm", vec!["llm".to_owned()], &(1, "a")).expect("it serialises");
        let script = |path: &str| ProgramOptions::of_script(ScriptOptions::of_file(path.into()));
        let classes = ScriptOptions { classes: vec!["a:B".to_owned()], ..ScriptOptions::default() };
        let classes = ProgramOptions::of_script(classes);
        assert!(matches!(classes, ProgramOptions::Python(_)));
        for program in [script("a.lua"), script("b.py"), script("c.js"), classes, ProgramOptions::BuiltIn(own.clone())]
        {
            let line = serde_json::to_string(&program).expect("it serialises");
            assert_eq!(serde_json::from_str::<ProgramOptions>(&line).expect("own line"), program);
        }
        assert_eq!(own.options::<(u8, String)>(), Ok((1, "a".to_owned())));
        assert!(own.options::<u8>().is_err());
    }
}
