//! Files of variables.

use std::borrow::Cow;

use crate::collection::Import;

/// Variables, `NAME=VALUE` a line: first those without a value, then the others, secrets last.
pub fn to_variables_file(import: &Import) -> String {
    let mut out = String::new();
    let groups = [
        ("needed: no file has a value", import.undefined().collect::<Vec<_>>()),
        ("values of the files", of(import, false)),
        ("secrets: keep this file out of version control", of(import, true)),
    ];
    for (title, variables) in groups {
        if variables.is_empty() {
            continue;
        }
        let gap = if out.is_empty() { "" } else { "\n" };
        out.push_str(&format!("{gap}# {title}\n"));
        for variable in variables {
            let value = variable.value.as_deref().unwrap_or_default();
            out.push_str(&format!("{}={}\n", variable.name, written(value)));
        }
    }
    out
}

/// A value in the notation in which a file of variables has it: as it is, in double quotes if its first or last
/// character would be lost, or as `$'...'` with line breaks.
fn written(value: &str) -> Cow<'_, str> {
    if value.contains(['\n', '\r']) || value.starts_with("$'") {
        let escaped = value.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\r', "\\r");
        return format!("$'{escaped}'").into();
    }
    let is_quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
    if is_quoted || value.trim() != value { format!("\"{value}\"").into() } else { value.into() }
}

fn of(import: &Import, is_secret: bool) -> Vec<&crate::ImportedVariable> {
    let defined = import.variables.iter().filter(|variable| variable.value.is_some());
    defined.filter(|variable| variable.is_secret == is_secret).collect()
}
