//! Scripts among the scenarios of a command line, and what does not go with them.

use std::path::{Path, PathBuf};

use super::RequestArgs;
use weir_load::program::{is_javascript, is_python, take_script};

/// Remedies in place of flags that do not go with a kind of script; without one a flag goes with it.
struct ScriptRemedies {
    kind: &'static str,
    check: &'static str,
    success: &'static str,
    variable: &'static str,
    think: &'static str,
    weights: &'static str,
    pipeline: &'static str,
    /// Of method and body.
    request: Option<&'static str>,
}

const PYTHON: ScriptRemedies = ScriptRemedies {
    kind: "a Python script",
    check: "write r.check() in its tasks",
    success: "write r.success() or r.failure() in its tasks",
    variable: "give arguments after --",
    think: "write think in its classes",
    weights: "write the weights of its tasks",
    pipeline: "a task waits for each response",
    request: Some("its tasks have their own"),
};

const K6: ScriptRemedies = ScriptRemedies {
    kind: "a k6 script",
    check: "write check() in it",
    success: "write responseCallback in it",
    variable: "write -e NAME=VALUE",
    think: "write sleep() in it",
    weights: "choose in the script",
    pipeline: "a user waits for each response",
    request: Some("its requests have their own"),
};

const LUA: ScriptRemedies = ScriptRemedies {
    kind: "a Lua script",
    check: "check the response in response()",
    success: "check the response in response()",
    variable: "give arguments after --",
    think: "write delay()",
    weights: "choose the body in request()",
    pipeline: "return several requests in one string from request()",
    request: None,
};

impl RequestArgs {
    /// Takes the Python script out of the scenarios; braces are then text.
    ///
    /// # Errors
    /// One line, if something does not go with it.
    pub(crate) fn take_python(&mut self) -> Result<Option<PathBuf>, String> {
        self.take_alone(is_python, &PYTHON)
    }

    /// Takes the script of k6 out of the scenarios; braces are then text.
    ///
    /// # Errors
    /// One line, if something does not go with it.
    pub(crate) fn take_javascript(&mut self) -> Result<Option<PathBuf>, String> {
        self.take_alone(is_javascript, &K6)
    }

    /// Takes the Lua script out of the scenarios; braces are then text.
    ///
    /// # Errors
    /// One line, if something does not go with it.
    pub(crate) fn take_script(&mut self) -> Result<Option<PathBuf>, String> {
        let Some(path) = take_script(&mut self.scenarios)? else { return Ok(None) };
        if self.url.is_empty() {
            return Err(format!("a Lua script needs a URL; write e.g. -s {} http://localhost:8080/", path.display()));
        }
        self.check_flags_of(&LUA)?;
        if self.bodies.len() > 1 {
            return Err("a Lua script takes one --body; choose among several in request()".to_owned());
        }
        self.no_template = true;
        Ok(Some(path))
    }

    fn take_alone(&mut self, is_kind: fn(&Path) -> bool, remedies: &ScriptRemedies) -> Result<Option<PathBuf>, String> {
        let Some(at) = self.scenarios.iter().position(|path| is_kind(path)) else { return Ok(None) };
        if self.scenarios.len() > 1 {
            let name = self.scenarios[at].display();
            return Err(format!("{} must be the only scenario; leave out {name} or the others", remedies.kind));
        }
        self.check_flags_of(remedies)?;
        self.no_template = true;
        Ok(Some(self.scenarios.remove(at)))
    }

    fn check_flags_of(&self, remedies: &ScriptRemedies) -> Result<(), String> {
        let given = [
            ("--check", !self.checks.is_empty(), Some(remedies.check)),
            ("--success", self.success.is_some(), Some(remedies.success)),
            ("--variable", !self.variables.is_empty(), Some(remedies.variable)),
            ("--think", self.think.is_some(), Some(remedies.think)),
            ("--method", self.method.is_some(), remedies.request),
            ("--body", !self.bodies.is_empty(), remedies.request),
            ("--weights", !self.weights.is_empty(), Some(remedies.weights)),
            ("--pipeline", self.pipeline.is_some(), Some(remedies.pipeline)),
        ];
        let first = given.iter().find_map(|(flag, is_given, remedy)| remedy.filter(|_| *is_given).map(|it| (flag, it)));
        if let Some((flag, remedy)) = first {
            return Err(format!("{flag} cannot be used with {}; {remedy}", remedies.kind));
        }
        match self.scenario_args.first_given() {
            Some(flag) => Err(format!("{flag} cannot be used with {}; it is for scenarios", remedies.kind)),
            None => Ok(()),
        }
    }
}
