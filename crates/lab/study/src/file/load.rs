//! Loads in a study file: flags of `weir load`, parsed by the command line's own parser.

use std::fmt;
use std::path::{Path, PathBuf};

use super::super::definition::{Definition, FlagValue, StudyLoad};
use super::super::placeholders::{self, PlaceholderValues};
use super::{BUILT_IN_PLACEHOLDERS, PlaceholderNames, scalar};
use weir_document::problem::suggestion;
use weir_document::read::{DocumentNode, NamedNode};
use weir_load::{LoadPlan, Options, RequestBodySource};

/// Parser of arguments, whose scenarios are relative to a folder; an error is one line that names the flag.
pub type LoadParser<'a> = dyn Fn(&[String], &Path) -> Result<ParsedLoad, String> + Sync + 'a;

/// Load of parsed arguments.
#[derive(Debug)]
pub struct ParsedLoad {
    /// Options.
    pub options: Options,
    /// Unused content of its files, and probable mistakes; a line each: the finding, and after a semicolon the remedy.
    pub warnings: Vec<String>,
}

/// Syntax of loads, provided by the command line.
pub struct LoadSyntax<'a> {
    /// Flags without their dashes.
    pub flags: &'a [String],
    /// Parser of arguments.
    pub parse: &'a LoadParser<'a>,
}

impl fmt::Debug for LoadSyntax<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadSyntax").field("flags", &self.flags).finish_non_exhaustive()
    }
}

/// Flags that the study sets itself, or that have no meaning in a study.
pub const DISALLOWED_FLAGS: [&str; 48] = [
    "format",
    "out",
    "summary-export",
    "jtl",
    "csv",
    "csv-steps",
    "html",
    "summary-md",
    "junit",
    "base",
    "save",
    "label",
    "strict",
    "slo",
    "abort",
    "abort-after",
    "warmup",
    "seed",
    "on",
    "agents",
    "per-node",
    "processes",
    "web",
    "web-token",
    "until-stdin-ends",
    "tui",
    "out-jsonl",
    "out-prometheus",
    "out-otlp",
    "out-influx",
    "out-statsd",
    "out-header",
    "out-label",
    "trace",
    "once",
    "verbose",
    "show-secrets",
    "setup",
    "teardown",
    "script-errors",
    "script-timeout",
    "tags",
    "exclude-tags",
    "mix-from",
    "rate-from",
    "scale",
    "speed",
    "log-pattern",
];

pub(super) fn load(
    it: &NamedNode<'_>,
    known: &PlaceholderNames,
    definition: &Definition,
    words: &LoadSyntax<'_>,
) -> Option<StudyLoad> {
    let table = it.node.table()?;
    let mut load = StudyLoad { name: it.key.to_owned(), flags: Vec::new(), when: Vec::new() };
    let members = table.members();
    let known_flags: Vec<&str> = words
        .flags
        .iter()
        .map(String::as_str)
        .filter(|flag| !DISALLOWED_FLAGS.contains(flag))
        .chain(["url", "when"])
        .collect();
    let mut whole = true;
    let of_variants: Vec<&str> =
        definition.variants.iter().flat_map(|variant| variant.values.keys().map(String::as_str)).collect();
    for member in &members {
        if member.key == "when" {
            load.when = when(&member.node, definition);
            continue;
        }
        let flag = member.key.replace('_', "-");
        if !known_flags.contains(&flag.as_str()) {
            let remedy = if matches!(flag.as_str(), "setup" | "teardown") {
                "leave it out; a variant has a setup, and a scenario can log in itself".to_owned()
            } else if flag == "mix-from" {
                "leave it out; a mix file has scenarios with weights".to_owned()
            } else if matches!(flag.as_str(), "rate-from" | "scale" | "speed" | "log-pattern") {
                "leave it out; stages have a rate over time".to_owned()
            } else if DISALLOWED_FLAGS.contains(&flag.as_str()) {
                "leave it out; the study sets it".to_owned()
            } else {
                suggestion(&flag, &known_flags).replace('-', "_")
            };
            member.node.error("unknown key of a load", remedy);
            whole = false;
            continue;
        }
        let word = flag_value(&member.node);
        if let Some(FlagValue::Values(values)) = &word {
            for value in values {
                whole &= known.check(&member.node, value, &of_variants);
            }
        }
        whole &= word.is_some();
        load.flags.extend(word.map(|word| (flag, word)));
    }
    if !members.iter().any(|member| matches!(member.key, "url" | "scenario")) {
        table.error("a load without url", r#"write url = "http://127.0.0.1:{port}/""#);
        whole = false;
    }
    if whole {
        check(&load, &it.node, &members, definition, words);
    }
    Some(load)
}

/// `{ parameter = [values] }`: points of the sweep at which a load is applied.
fn when(node: &DocumentNode<'_>, definition: &Definition) -> Vec<(String, Vec<String>)> {
    let mut when = Vec::new();
    for it in node.table().map(|table| table.members()).unwrap_or_default() {
        let Some(parameter) = definition.sweep.iter().find(|parameter| parameter.name == it.key) else {
            let names: Vec<&str> = definition.sweep.iter().map(|parameter| parameter.name.as_str()).collect();
            it.node.error("unknown parameter of the sweep", suggestion(it.key, &names));
            continue;
        };
        let nodes = if it.node.value().is_array() { it.node.list().unwrap_or_default() } else { vec![it.node.clone()] };
        let mut values = Vec::new();
        for node in &nodes {
            let Some(value) = scalar(node) else { continue };
            if !parameter.values.contains(&value) {
                let known: Vec<&str> = parameter.values.iter().map(String::as_str).collect();
                node.error(
                    format!("{} is not among the parameter's values", node.display()),
                    suggestion(&value, &known),
                );
            }
            values.push(value);
        }
        when.push((parameter.name.clone(), values));
    }
    when
}

fn flag_value(node: &DocumentNode<'_>) -> Option<FlagValue> {
    if let Some(yes) = node.value().as_bool() {
        return Some(FlagValue::Flag(yes));
    }
    if node.value().is_array() {
        return node.list()?.iter().map(scalar).collect::<Option<Vec<String>>>().map(FlagValue::Values);
    }
    scalar(node).map(|value| FlagValue::Values(vec![value]))
}

/// Checks the load as it will be for each variant at each point of the sweep; reports the first error only.
fn check(
    load: &StudyLoad,
    node: &DocumentNode<'_>,
    members: &[NamedNode<'_>],
    definition: &Definition,
    words: &LoadSyntax<'_>,
) {
    let mut warned = Vec::new();
    for variant in &definition.variants {
        for point in definition.points().into_iter().filter(|point| load.is_driven_at(point)) {
            let mut values: PlaceholderValues =
                BUILT_IN_PLACEHOLDERS.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect();
            values.extend(definition.services.iter().map(|it| (format!("{}.port", it.name), "1".to_owned())));
            values.extend(point.values().map(|(name, value)| (name.to_owned(), value.to_owned())));
            values.extend(definition.values.clone());
            values.extend(variant.values.clone());
            let why = match plan(load, &values, &definition.folder, words) {
                Ok(warnings) => {
                    for warning in warnings {
                        if !warned.contains(&warning) {
                            let (what, remedy) = warning.split_once("; ").unwrap_or((&warning, ""));
                            node.warn(what, remedy);
                            warned.push(warning);
                        }
                    }
                    continue;
                }
                Err(why) => why,
            };
            let flag = |member: &&NamedNode<'_>| {
                let flag = member.key.replace('_', "-");
                why.contains(&format!("--{flag}")) || (flag == "url" && why.contains("URL"))
            };
            let at = members.iter().find(flag).map_or(node, |member| &member.node);
            // Some messages contain a remedy after the error.
            let (what, remedy) = why.split_once("; ").unwrap_or((&why, ""));
            at.error(what, remedy);
            return;
        }
    }
}

/// Warnings of the load with its placeholders filled in, if it has a plan.
///
/// # Errors
/// The error, in one line.
fn plan(
    load: &StudyLoad,
    values: &PlaceholderValues,
    folder: &Path,
    words: &LoadSyntax<'_>,
) -> Result<Vec<String>, String> {
    let parsed = parse(load, values, folder, words)?;
    LoadPlan::new(&parsed.options).map_err(|error| error.to_string())?;
    Ok(parsed.warnings)
}

/// Options of the load with its placeholders filled in.
///
/// # Errors
/// The error, in one line.
pub(crate) fn options(
    load: &StudyLoad,
    values: &PlaceholderValues,
    folder: &Path,
    words: &LoadSyntax<'_>,
) -> Result<Options, String> {
    parse(load, values, folder, words).map(|parsed| parsed.options)
}

fn parse(
    load: &StudyLoad,
    values: &PlaceholderValues,
    folder: &Path,
    words: &LoadSyntax<'_>,
) -> Result<ParsedLoad, String> {
    let filled = |text: &String| {
        placeholders::fill(text, values).map_err(|name| format!("unknown placeholder {{{name}}} for this variant"))
    };
    let mut args = Vec::new();
    let mut url = String::new();
    for (flag, word) in &load.flags {
        match word {
            FlagValue::Flag(true) => args.push(format!("--{flag}")),
            FlagValue::Flag(false) => {}
            FlagValue::Values(texts) if flag == "url" => {
                url = texts.first().map(filled).transpose()?.unwrap_or_default();
            }
            FlagValue::Values(texts) if flag == "weights" => {
                args.push(format!("--{flag}={}", texts.iter().map(filled).collect::<Result<Vec<_>, _>>()?.join(",")));
            }
            FlagValue::Values(texts) => {
                for text in texts {
                    args.push(format!("--{flag}={}", filled(text)?));
                }
            }
        }
    }
    args.extend(["--".to_owned(), url]);
    let mut parsed = (words.parse)(&args, folder)?;
    let options = &mut parsed.options;
    let beside = |path: &mut PathBuf| *path = folder.join(&path);
    for body in &mut options.bodies {
        if let RequestBodySource::File(path) = body {
            beside(path);
        }
    }
    let tls = &mut options.tls;
    [&mut tls.cacert, &mut tls.cert, &mut tls.key, &mut options.unix_socket].into_iter().flatten().for_each(beside);
    Ok(parsed)
}
