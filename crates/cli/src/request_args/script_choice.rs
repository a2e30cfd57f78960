//! Scripts among the scenarios of a command line, and what does not go with them.

use std::path::{Path, PathBuf};

use super::RequestArgs;
use weir_load::program::{CollectionInput, is_collection, is_javascript, is_python, take_script};
use weir_load::steps::Value;
use weir_request::secret_mask::shown_pair;
use weir_scenario_files::read_variables;

/// Remedies in place of flags that do not go with a kind of script; without one a flag goes with it.
struct ScriptRemedies {
    kind: &'static str,
    check: &'static str,
    success: &'static str,
    variable: Option<&'static str>,
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
    variable: Some("give arguments after --"),
    think: "write think in its classes",
    weights: "write the weights of its tasks",
    pipeline: "a task waits for each response",
    request: Some("its tasks have their own"),
};

const K6: ScriptRemedies = ScriptRemedies {
    kind: "a k6 script",
    check: "write check() in it",
    success: "write responseCallback in it",
    variable: Some("write -e NAME=VALUE"),
    think: "write sleep() in it",
    weights: "choose in the script",
    pipeline: "a user waits for each response",
    request: Some("its requests have their own"),
};

const COLLECTION: ScriptRemedies = ScriptRemedies {
    kind: "a Postman collection with scripts",
    check: "write pm.test() in it",
    success: "write pm.test() in it",
    variable: None,
    think: "write setTimeout() in it",
    ..K6
};

const LUA: ScriptRemedies = ScriptRemedies {
    kind: "a Lua script",
    check: "check the response in response()",
    success: "check the response in response()",
    variable: Some("give arguments after --"),
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
        let is_postman = self.scenarios.iter().any(|path| is_collection(path));
        self.take_alone(is_javascript, if is_postman { &COLLECTION } else { &K6 })
    }

    /// Takes variables and rows of a collection of Postman; files are relative to `folder`.
    ///
    /// # Errors
    /// One line, if a file cannot be read or a variable has no value.
    pub(crate) fn collection_input(&mut self, folder: &Path) -> Result<CollectionInput, String> {
        let files = std::mem::take(&mut self.variable_files).into_iter().map(|path| folder.join(path));
        let data = self.scenario_args.data.take().map(|path| folder.join(path));
        collection_input(files, &std::mem::take(&mut self.variables), data.as_deref())
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
            ("--variable", !self.variables.is_empty(), remedies.variable),
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
        let takes_data = remedies.variable.is_none();
        match self.scenario_args.first_given().filter(|flag| !takes_data || *flag != "--data") {
            Some(flag) => Err(format!("{flag} cannot be used with {}; it is for scenarios", remedies.kind)),
            None => Ok(()),
        }
    }
}

/// Name and value of a variable, of this flag.
///
/// # Errors
/// One line, if there is no equals sign.
pub(crate) fn named_value(flag: &str, pair: &str) -> Result<(String, String), String> {
    let named = pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    named.ok_or_else(|| format!("--{flag} '{}': write NAME=VALUE", shown_pair(pair)))
}

/// Variables and rows of a collection of Postman: those of files, then the pairs.
///
/// # Errors
/// One line, if a file cannot be read or a pair has no equals sign.
pub(crate) fn collection_input(
    files: impl Iterator<Item = PathBuf>,
    pairs: &[String],
    data: Option<&Path>,
) -> Result<CollectionInput, String> {
    let mut variables = Vec::new();
    for path in files {
        variables.extend(read_variables(&path)?);
    }
    for pair in pairs {
        variables.push(named_value("variable", pair)?);
    }
    // Values are texts, as those of environments.
    let text = |(name, value): (String, String)| {
        let text = Value::of_text(&value).template_text();
        (name, text.unwrap_or(value))
    };
    let data = data.map(|path| {
        std::fs::canonicalize(path).map_err(|error| format!("cannot read the data '{}': {error}", path.display()))
    });
    Ok(CollectionInput { variables: variables.into_iter().map(text).collect(), data: data.transpose()? })
}
