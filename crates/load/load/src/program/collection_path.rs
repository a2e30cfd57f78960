//! Collections of Postman among the scenarios of a command line: those with scripts are programs.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_machine::input_file;

/// Deepest nesting of folders.
const MAX_DEPTH: usize = 100;

/// Environment and variables that a command line gives to a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionInput {
    /// Names and values of variables of the environment.
    pub variables: Vec<(String, String)>,
    /// File of the rows of data.
    pub data: Option<PathBuf>,
}

impl CollectionInput {
    /// The input as JSON, for scripts, behind variables of `--env`.
    pub fn json(&self, environment: &[(String, String)]) -> String {
        let variables = environment.iter().chain(&self.variables);
        let variables: Vec<Value> =
            variables.map(|(key, value)| serde_json::json!({ "key": key, "value": value })).collect();
        let mut input = serde_json::json!({ "variables": variables });
        if let Some(path) = &self.data {
            input["data"] = Value::from(path.display().to_string());
        }
        input.to_string()
    }
}

/// Whether a path is that of a collection of Postman with scripts.
pub fn is_collection(path: &Path) -> bool {
    if path.extension().is_none_or(|extension| extension != "json") || !path.is_file() {
        return false;
    }
    let Ok(bytes) = input_file::read(path) else { return false };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let Ok(root) = serde_json::from_slice::<Value>(bytes) else { return false };
    let root = root.get("collection").filter(|inner| inner.get("item").is_some()).unwrap_or(&root);
    root.get("item").is_some_and(Value::is_array) && has_scripts(root, 0)
}

/// Whether a collection, a folder or a request has a script with code, or one in it has.
fn has_scripts(owner: &Value, depth: usize) -> bool {
    let listed = |name: &str| owner.get(name).and_then(Value::as_array).into_iter().flatten();
    listed("event").any(has_code) || (depth < MAX_DEPTH && listed("item").any(|inner| has_scripts(inner, depth + 1)))
}

fn has_code(event: &Value) -> bool {
    let script = event.get("script");
    let code = script.and_then(|script| script.get("exec")).or(script);
    let is_code = |text: &str| text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with("//"));
    match code {
        Some(Value::String(text)) => is_code(text),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).any(is_code),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_with_code_are_programs() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            is_collection(&path)
        };
        let with = |exec: &str| {
            format!(r#"{{"item": [{{"item": [{{"event": [{{"listen": "test", "script": {{"exec": {exec}}}}}]}}]}}]}}"#)
        };
        assert!(of("a.json", &with(r#"["pm.test('x')"]"#)));
        assert!(of("b.json", &with(r#""pm.test('x')""#)));
        assert!(of("c.json", &format!(r#"{{"collection": {}}}"#, with(r#"["x"]"#))));
        assert!(!of("d.json", &with(r#"["", "  // x"]"#)), "no code");
        assert!(!of("e.json", r#"{"item": [{"request": "http://h"}]}"#));
        assert!(!of("f.txt", &with(r#"["x"]"#)), "another extension");
        assert!(!of("g.json", "[1"));
        assert!(!is_collection(folder.path()));
    }
}
