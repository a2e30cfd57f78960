//! Collections of Postman as scripts in JavaScript, which keep their own scripts.

use std::fmt::Write as _;

use crate::error::{ImportError, Mismatch};
use crate::importer::ImportFile;
use crate::tree::{SourceNode, SourceValue, parse_json};

/// Members that say nothing about what is sent: numbers of Postman's store, saved responses.
const DROPPED: [&str; 5] = ["_postman_id", "_exporter_id", "_collection_link", "uid", "response"];

/// Longest line on which a list or an object stands.
const LINE_WIDTH: usize = 100;

/// A collection of Postman, with its environments, as a script: its requests as objects, its scripts as texts.
///
/// # Errors
/// A file that is neither, or no collection or several.
pub fn to_script(files: &[ImportFile<'_>]) -> Result<String, ImportError> {
    let mut collection = None;
    let mut environments = Vec::new();
    for file in files {
        let root = parse_json(&file.text).map_err(|found| found.in_file(file.name))?;
        let wrapped = root.get("collection").filter(|inner| inner.get("item").is_some()).is_some();
        let root = match root.value {
            SourceValue::Map(members) if wrapped => members.into_iter().find(|(name, _)| name.get() == "collection"),
            value => Some((crate::tree::SourceText::Escaped(""), SourceNode { line: root.line, value })),
        };
        let Some((_, root)) = root else { continue };
        if root.get("item").is_none() {
            environments.push(root);
            continue;
        }
        if collection.is_some() {
            let wanted = "one collection in a script";
            return Err(Mismatch::new(root.line, wanted, "a second one; import it by itself").in_file(file.name));
        }
        collection = Some((file.name, root));
    }
    let Some((name, collection)) = collection else {
        let name = files.first().map_or("stdin", |file| file.name);
        return Err(Mismatch::new(1, "a Postman collection, for a script", "none").in_file(name));
    };
    let mut text = format!(
        "// Requests and scripts of {name}.\nimport {{ collection }} from 'weir/postman';\n\n\
         export {{ options }} from 'weir/postman';\n\nexport default collection("
    );
    write_node(&collection, "", 0, &mut text);
    if !environments.is_empty() {
        text.push_str(", { environment: [\n");
        for variable in environments.iter().flat_map(|environment| environment.items_of("values")) {
            text.push_str("  ");
            write_node(variable, "", 1, &mut text);
            text.push_str(",\n");
        }
        text.push_str("] }");
    }
    text.push_str(");\n");
    Ok(text)
}

/// Writes a value that is the member `name`.
fn write_node(node: &SourceNode<'_>, name: &str, depth: usize, out: &mut String) {
    match &node.value {
        SourceValue::Null => out.push_str("null"),
        SourceValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        SourceValue::Number(digits) => out.push_str(digits),
        SourceValue::Unread(json) => out.push_str(json),
        SourceValue::Text(text) if name == "exec" => write_code(&text.get(), out),
        SourceValue::Text(text) => write_text(&text.get(), out),
        SourceValue::List(items) if name == "exec" => {
            let lines: Vec<_> = items.iter().filter_map(SourceNode::text).collect();
            write_code(&lines.join("\n"), out);
        }
        SourceValue::List(items) => {
            let mut parts = Vec::new();
            for item in items.iter().filter(|item| name != "event" || !has_no_code(item)) {
                parts.push(made(|part| write_node(item, "", depth + 1, part)));
            }
            write_parts('[', ']', &parts, depth, out);
        }
        SourceValue::Map(members) => {
            let is_script = members.iter().any(|(name, _)| name.get() == "exec");
            let is_saved = node.get("request").is_some() || node.get("item").is_some();
            let mut parts = Vec::new();
            for (name, value) in members {
                let name = name.get();
                let is_noise = match name.as_ref() {
                    "id" => is_script || node.get("listen").is_some(),
                    "type" | "packages" => is_script,
                    other => DROPPED.contains(&other) && (is_saved || other.starts_with('_')),
                };
                if is_noise || (name == "event" && value.items().iter().all(has_no_code)) {
                    continue;
                }
                parts.push(made(|part| {
                    write_name(&name, part);
                    part.push_str(": ");
                    write_node(value, &name, depth + 1, part);
                }));
            }
            write_parts('{', '}', &parts, depth, out);
        }
    }
}

/// Whether a script does nothing.
fn has_no_code(event: &SourceNode<'_>) -> bool {
    let Some(script) = event.get("script") else { return true };
    let code = script.get("exec").unwrap_or(script);
    let lines = code.items().iter().chain([code]).filter_map(SourceNode::text);
    !lines.into_iter().any(|text| text.lines().any(|line| !line.trim().is_empty()))
}

fn made(write: impl FnOnce(&mut String)) -> String {
    let mut part = String::new();
    write(&mut part);
    part
}

/// Writes parts on one line if they fit, else one to a line.
fn write_parts(open: char, close: char, parts: &[String], depth: usize, out: &mut String) {
    let width: usize = parts.iter().map(|part| part.len() + 2).sum();
    let is_short = width + 2 * depth < LINE_WIDTH && parts.iter().all(|part| !part.contains('\n'));
    out.push(open);
    if is_short {
        let space = if open == '{' && !parts.is_empty() { " " } else { "" };
        out.push_str(space);
        out.push_str(&parts.join(", "));
        out.push_str(space);
    } else {
        for part in parts {
            let _ = write!(out, "\n{:indent$}{part},", "", indent = 2 * (depth + 1));
        }
        let _ = write!(out, "\n{:indent$}", "", indent = 2 * depth);
    }
    out.push(close);
}

fn write_name(name: &str, out: &mut String) {
    let mut signs = name.bytes();
    let is_plain = signs.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && signs.all(|sign| sign.is_ascii_alphanumeric() || sign == b'_')
        && name != "__proto__";
    match (is_plain, name) {
        (true, _) => out.push_str(name),
        // As a computed name it is one like the others.
        (false, "__proto__") => out.push_str("['__proto__']"),
        (false, _) => write_text(name, out),
    }
}

/// Writes a text in single quotes.
fn write_text(text: &str, out: &mut String) {
    out.push('\'');
    for sign in text.chars() {
        match sign {
            '\'' => out.push_str("\\'"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            sign if (sign as u32) < 0x20 || matches!(sign, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{:04x}", sign as u32);
            }
            sign => out.push(sign),
        }
    }
    out.push('\'');
}

/// Writes a script as it is, between lines of its own; one with templates of its own as a text.
fn write_code(code: &str, out: &mut String) {
    let code = code.replace("\r\n", "\n").replace('\r', "\n");
    if code.contains('`') || code.contains("${") || code.contains('\0') {
        let lines: Vec<String> = code.split('\n').map(|line| made(|part| write_text(line, part))).collect();
        let _ = write!(out, "[\n{},\n]", lines.join(",\n"));
        return;
    }
    let _ = write!(out, "String.raw`\n{code}\n`");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> String {
        let file = ImportFile { name: "shop.json", text: text.into(), kind: None };
        to_script(&[file]).expect("a collection")
    }

    #[test]
    fn a_script_keeps_requests_and_scripts_and_no_noise() {
        let made = script(
            r#"{"info": {"_postman_id": "x", "name": "it's"}, "item": [{"name": "a", "id": "1", "response": [{"big": 1}],
            "event": [{"listen": "test", "script": {"id": "2", "type": "text/javascript", "exec": ["const x = /\\d/;", "x"]}},
              {"listen": "prerequest", "script": {"exec": [""]}}],
            "request": {"method": "GET", "url": "{{host}}/a", "header": [{"key": "X-A", "value": "1", "type": "text"}]}}]}"#,
        );
        let expected = r"// Requests and scripts of shop.json.
import { collection } from 'weir/postman';

export { options } from 'weir/postman';

export default collection({
  info: { name: 'it\'s' },
  item: [
    {
      name: 'a',
      id: '1',
      event: [
        {
          listen: 'test',
          script: {
            exec: String.raw`
const x = /\d/;
x
`,
          },
        },
      ],
      request: { method: 'GET', url: '{{host}}/a', header: [{ key: 'X-A', value: '1', type: 'text' }] },
    },
  ],
});
";
        assert_eq!(made, expected);
    }

    #[test]
    fn code_with_templates_is_a_text() {
        let made = script(r#"{"item": [{"event": [{"listen": "test", "script": {"exec": "a(`${b}`);\r\nc('d')"}}]}]}"#);
        assert!(made.contains("exec: [\n'a(`${b}`);',\n'c(\\'d\\')',\n]"), "{made}");
    }

    #[test]
    fn a_script_is_of_one_collection() {
        let file = |name, text: &'static str| ImportFile { name, text: text.into(), kind: None };
        let one = || file("a.json", r#"{"item": []}"#);
        let two = to_script(&[one(), one()]).expect_err("two");
        assert!(two.to_string().contains("a second one"), "{two}");
        let none = to_script(&[file("e.json", r#"{"name": "dev", "values": []}"#)]).expect_err("none");
        assert!(none.to_string().contains("a Postman collection"), "{none}");
        let both = to_script(&[one(), file("e.json", r#"{"values": [{"key": "host", "value": "h"}]}"#)]).expect("both");
        assert!(both.ends_with("{ environment: [\n  { key: 'host', value: 'h' },\n] });\n"), "{both}");
    }
}
