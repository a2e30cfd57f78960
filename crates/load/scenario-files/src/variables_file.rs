//! Files of variables: `NAME=VALUE` a line, or environments of Postman.
//!
//! Values are as on the command line: `"..."` is a text, with the spaces at its ends. `$'...'` is one with line breaks, as
//! shells write it: `\n`, `\r`, `\'` and `\\`.

use std::path::Path;

use serde_json::Value as Json;
use weir_load::steps::Value;
use weir_machine::input_file;

/// Names and values of a file of variables.
///
/// # Errors
/// One line, if the file cannot be read or a line has no equals sign.
pub fn read_variables(path: &Path) -> Result<Vec<(String, String)>, String> {
    let text = input_file::read_to_string(path)
        .map_err(|error| format!("--variables-file: cannot read '{}': {error}", path.display()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim_start().starts_with('{') {
        return of_environment(path, text);
    }
    let lines = (1..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, line): &(u64, &str)| !line.is_empty() && !line.starts_with('#'));
    // The line may be a secret.
    let pair = |(number, line): (u64, &str)| {
        let problem = || format!("--variables-file: {}:{number}: write NAME=VALUE", path.display());
        let (name, value) = line.split_once('=').ok_or_else(problem)?;
        Ok((name.trim_end().to_owned(), unescaped(value)))
    };
    lines.map(pair).collect()
}

/// Names and values of an environment of Postman, which are texts.
fn of_environment(path: &Path, text: &str) -> Result<Vec<(String, String)>, String> {
    let problem = |why: &str| format!("--variables-file: {}: {why}", path.display());
    let root: Json = serde_json::from_str(text).map_err(|error| problem(&error.to_string()))?;
    let values = root.get("values").and_then(Json::as_array);
    let values = values.ok_or_else(|| problem("write NAME=VALUE, or give an environment of Postman"))?;
    let pair = |entry: &Json| {
        let name = entry.get("key").and_then(Json::as_str)?;
        let is_off = entry.get("enabled") == Some(&Json::Bool(false));
        let value = match entry.get("value") {
            Some(Json::String(text)) => text.clone(),
            None | Some(Json::Null) => String::new(),
            Some(other) => other.to_string(),
        };
        (!is_off).then(|| (name.to_owned(), Value::quoted_text(&value)))
    };
    Ok(values.iter().filter_map(pair).collect())
}

/// Value of a line as a command line would have it.
fn unescaped(value: &str) -> String {
    let Some(escaped) = value.strip_prefix("$'").and_then(|rest| rest.strip_suffix('\'')) else {
        return value.to_owned();
    };
    let mut text = String::with_capacity(escaped.len());
    let mut rest = escaped.chars();
    while let Some(next) = rest.next() {
        match (next, rest.as_str().chars().next()) {
            ('\\', Some(named @ ('n' | 'r' | '\'' | '\\'))) => {
                rest.next();
                text.push(match named {
                    'n' => '\n',
                    'r' => '\r',
                    other => other,
                });
            }
            _ => text.push(next),
        }
    }
    Value::quoted_text(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_of_postman_are_variables() {
        let path = Path::new("dev.json");
        let text = r#"{"name": "dev", "values": [{"key": "host", "value": "h", "enabled": true}, {"key": "off", "value": "x",
            "enabled": false}, {"key": "n", "value": 5}, {"key": "text", "value": "05"}]}"#;
        let found = of_environment(path, text).expect("an environment");
        let texts: Vec<_> =
            found.iter().map(|(name, value)| (name.as_str(), Value::of_text(value).template_text())).collect();
        let expected = [("host", "h"), ("n", "5"), ("text", "05")].map(|(name, value)| (name, Some(value.to_owned())));
        assert_eq!(texts, expected);
        assert!(of_environment(path, "{").is_err() && of_environment(path, r#"{"a": 1}"#).is_err());
    }

    #[test]
    fn values_keep_their_texts() {
        for (line, expected) in [
            ("0042", "0042"),
            ("1e5", "1e5"),
            ("1.10", "1.10"),
            ("+49301234", "+49301234"),
            ("007", "007"),
            ("00000000000000000000001", "00000000000000000000001"),
            ("\" x \"", " x "),
            ("\"\"quoted\"\"", "\"quoted\""),
            ("$'a\\nb\\\\n\\'c'", "a\nb\\n'c"),
            ("$'open", "$'open"),
            ("a=b", "a=b"),
            ("1_000", "1_000"),
            ("-0", "-0"),
            ("1.", "1."),
            (".5", ".5"),
            ("0x10", "0x10"),
            ("Infinity", "Infinity"),
            ("NaN", "NaN"),
            ("1E+2", "1E+2"),
        ] {
            let value = Value::of_text(&unescaped(line));
            assert_eq!(value.template_text().as_deref(), Some(expected), "{line}");
        }
    }
}
