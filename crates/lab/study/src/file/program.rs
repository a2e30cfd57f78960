//! Programs in a study file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::definition::{Program, ReadyCheck, Variant};
use super::{BUILT_IN_PLACEHOLDERS, PlaceholderNames, scalar, strings};
use weir_document::read::{DocumentNode, DocumentTable, NamedNode, named_nodes};
use weir_machine::input_file;

/// Service that is started before each variant.
pub(super) fn service(it: &NamedNode<'_>, known: &PlaceholderNames, folder: &Path) -> Option<Program> {
    let table = it.node.table()?;
    let program = program(it, &table, known, &[], folder);
    table.check_unknown_keys();
    program
}

/// Variant.
pub(super) fn variant(it: &NamedNode<'_>, known: &PlaceholderNames, folder: &Path) -> Option<Variant> {
    let table = it.node.table()?;
    let kinds = [("service", false), ("client", true)];
    let is_client = table.get("kind").and_then(|node| node.choice(&kinds)).unwrap_or(false);
    let values = values(table.get("values").as_ref(), &known.names);
    let more: Vec<&str> = values.keys().map(String::as_str).collect();
    let program = program(it, &table, known, &more, folder);
    if is_client && let Some(node) = table.get("ready") {
        node.error("a client has no readiness check", "leave it out; a client ends by itself");
    }
    table.check_unknown_keys();
    Some(Variant { program: program?, is_client, values })
}

/// Placeholders and their values; the names must not be among those `taken`.
pub(super) fn values(node: Option<&DocumentNode<'_>>, taken: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for it in named_nodes(node) {
        if BUILT_IN_PLACEHOLDERS.contains(&it.key) || taken.contains(it.key) {
            it.node.error(format!("{{{}}} is already defined", it.key), "choose another name");
        }
        values.extend(scalar(&it.node).map(|value| (it.key.to_owned(), value)));
    }
    values
}

fn program(
    it: &NamedNode<'_>,
    table: &DocumentTable<'_>,
    known: &PlaceholderNames,
    more: &[&str],
    folder: &Path,
) -> Option<Program> {
    let command = table.get("command");
    if command.is_none() {
        table.error("no command", r#"write command = "..." for a shell, or command = ["program", "argument"]"#);
    }
    let command = command.and_then(|node| self::command(&node, known, more));
    let ready = table.get("ready");
    let otherwise =
        if command.as_ref().is_some_and(|words| uses_port(words)) { ReadyCheck::Port } else { ReadyCheck::Immediate };
    let ready = ready.and_then(|node| self::ready(&node, known, more)).unwrap_or(otherwise);
    let mut environment = BTreeMap::new();
    for it in table.get("environment").and_then(|node| node.table()).map(|table| table.members()).unwrap_or_default() {
        if it.key.is_empty() || it.key.contains(['=', '\0']) {
            it.node.error(format!("invalid variable name {:?}", it.key), "use letters, digits and \"_\"");
        }
        let Some(value) = scalar(&it.node) else { continue };
        known.check(&it.node, &value, more);
        environment.insert(it.key.to_owned(), value);
    }
    let own_folder = table.get("folder").and_then(|node| {
        let text = node.string()?;
        known.check(&node, text, more);
        if !text.contains('{') && !folder.join(text).is_dir() {
            node.error(format!("folder {} does not exist", node.display()), "write one relative to the study file");
        }
        Some(text.to_owned())
    });
    let setup = table.get("setup").map(|node| lines(&node, known, more)).unwrap_or_default();
    let requirements = table.get("requirements").map(|node| requirements(&node, folder)).unwrap_or_default();
    Some(Program {
        name: it.key.to_owned(),
        command: command?,
        environment,
        folder: own_folder.unwrap_or_else(|| ".".to_owned()),
        setup,
        ready,
        requirements,
    })
}

/// Command: a list is run as it is, a string by a shell.
fn command(node: &DocumentNode<'_>, known: &PlaceholderNames, more: &[&str]) -> Option<Vec<String>> {
    if let Some(text) = node.value().as_str() {
        known.check(node, text, more);
        if text.trim().is_empty() {
            node.error("the command is empty", r#"write command = "...""#);
            return None;
        }
        return Some(vec!["sh".into(), "-c".into(), text.into()]);
    }
    let words = lines(node, known, more);
    if words.first().is_none_or(String::is_empty) {
        node.error("the command is empty", r#"write command = ["program", "argument"]"#);
        return None;
    }
    Some(words)
}

fn lines(node: &DocumentNode<'_>, known: &PlaceholderNames, more: &[&str]) -> Vec<String> {
    let lines = strings(node);
    for line in &lines {
        known.check(node, line, more);
    }
    lines
}

fn uses_port(words: &[String]) -> bool {
    words.iter().any(|word| super::super::placeholders::names(word).contains(&"port"))
}

fn ready(node: &DocumentNode<'_>, known: &PlaceholderNames, more: &[&str]) -> Option<ReadyCheck> {
    const HELP: &str = r#"write "http://127.0.0.1:{port}/", "port", "at once", or { line = "text" }"#;
    if let Some(text) = node.value().as_str() {
        known.check(node, text, more);
        return match text {
            "port" => Some(ReadyCheck::Port),
            "at once" => Some(ReadyCheck::Immediate),
            url if url.starts_with("http://") || url.starts_with("https://") => Some(ReadyCheck::Url(url.to_owned())),
            _ => {
                node.expected("readiness check", HELP);
                None
            }
        };
    }
    if !node.is_table() {
        node.expected("readiness check", HELP);
        return None;
    }
    let table = node.table()?;
    let line = table.get("line");
    if line.is_none() {
        table.error("no line", HELP);
    }
    let line = line.and_then(|node| node.string().map(|text| ReadyCheck::Line(text.to_owned())));
    table.check_unknown_keys();
    line
}

/// List of packages, or name of a file with one per line.
fn requirements(node: &DocumentNode<'_>, folder: &Path) -> Vec<String> {
    let Some(name) = node.value().as_str() else { return strings(node) };
    match input_file::read_to_string(folder.join(name)) {
        Ok(text) => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(str::to_owned).collect()
        }
        Err(_) => {
            node.error(
                format!("cannot read {}", node.display()),
                r#"write the name of a file, or a list of packages, e.g. ["flask==3.1"]"#,
            );
            Vec::new()
        }
    }
}
