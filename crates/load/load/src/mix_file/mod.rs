//! Mix files: several scenarios with their shares, data and thresholds, as TOML.
//!
//! ```toml
//! [load]
//! base_url = "http://127.0.0.1:8080"
//! duration = "1m"
//! [[scenario]]
//! file = "shop.hurl"
//! users = 20
//! [thresholds]
//! "shop: p99" = "< 300ms"
//! ```
//!
//! A mix file says what the flags of `weir load` say, in their words; a flag of the command line wins. Paths are relative
//! to the file's folder. All mistakes are found at once, each with line and column.

mod scenario;
mod thresholds;

use std::path::Path;

use self::scenario::{MixEntry, MixKind};
use crate::objectives::PlacedObjective;
use crate::steps::ScenarioSource;
use crate::steps::Value;
use weir_document::problem::{Diagnostic, suggestion};
use weir_document::read::{DocumentNode, DocumentTable};
use weir_machine::input_file;
use weir_measure::abort::AbortRule;

/// Check of flags of `weir load`; an error is one line that names the flag.
pub type FlagCheck<'a> = dyn Fn(&[String]) -> Result<(), String> + 'a;

/// Content of a mix file.
#[derive(Debug, Default)]
pub struct MixFile {
    /// Scenarios in order, with their weights.
    pub scenarios: Vec<ScenarioSource>,
    /// URL before the paths of steps.
    pub base_url: Option<String>,
    /// Flags of `weir load` that the file gives, as arguments.
    pub flags: Vec<String>,
    /// Sum of the users of the scenarios.
    pub users: Option<u64>,
    /// Sum of the rates of the scenarios, in iterations per second.
    pub rate_per_s: Option<f64>,
    /// Objectives, with their places in the file.
    pub slos: Vec<PlacedObjective>,
    /// Condition that ends the run early.
    pub abort: Option<AbortRule>,
    /// Probable mistakes, a line each.
    pub warnings: Vec<String>,
}

/// Flags of `weir load` that are keys of `[load]`.
pub const LOAD_KEYS: [&str; 18] = [
    "users",
    "ramp_up",
    "loops",
    "connections",
    "threads",
    "requests",
    "duration",
    "rate",
    "arrivals",
    "stages",
    "warmup",
    "seed",
    "timeout",
    "think",
    "success",
    "header",
    "no_keepalive",
    "insecure",
];

impl MixFile {
    /// Whether a path is that of a mix file, by its extension.
    pub fn is_named(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "toml")
    }

    /// Reads a file, and the files that it names; `check` finds mistakes of flags.
    ///
    /// # Errors
    /// All mistakes, a line each.
    pub fn read(path: &Path, check: &FlagCheck<'_>) -> Result<Self, String> {
        let shown = path.display();
        let text = input_file::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let lines = |problems: Vec<Diagnostic>| -> Vec<String> {
            problems.iter().map(|problem| format!("{shown}:{problem}")).collect()
        };
        let parsed = weir_document::parse(&text, folder, |table, _| Self::take(table, folder, check));
        let (mut mix, warnings) = parsed.map_err(|problems| lines(problems).join("\n"))?;
        mix.slos.iter_mut().for_each(|objective| objective.place = format!("{shown}:{}", objective.place));
        Ok(Self { warnings: lines(warnings), ..mix })
    }

    /// Keys of `[load]` that the file gives, as they are in it.
    pub fn load_keys(&self) -> impl Iterator<Item = String> {
        let names = self.flags.iter().filter_map(|flag| flag.strip_prefix("--"));
        names.map(|flag| flag.split('=').next().unwrap_or_default().replace('-', "_"))
    }

    fn take(table: &DocumentTable<'_>, folder: &Path, check: &FlagCheck<'_>) -> Self {
        let mut mix = Self::default();
        let variables = table.get("variables").map(|node| variables(&node)).unwrap_or_default();
        let entries = match table.get("scenario") {
            Some(node) => entries(&node, folder, &variables),
            None => {
                table.error("a mix without scenarios", r#"write [[scenario]] with file = "shop.hurl""#);
                Vec::new()
            }
        };
        if let Some(node) = table.get("load") {
            mix.load(&node, &entries, check);
        }
        if let Some(node) = table.get("thresholds") {
            (mix.slos, mix.abort) = thresholds::read(&node);
        }
        table.check_unknown_keys();
        let sum: f64 = entries.iter().map(|entry| entry.source.weight).sum();
        match entries.first().map(|entry| entry.kind) {
            Some(MixKind::Users) => mix.users = Some(sum as u64),
            Some(MixKind::Rate) => mix.rate_per_s = Some(sum),
            Some(MixKind::Weight) | None => {}
        }
        mix.scenarios = entries.into_iter().map(|entry| entry.source).collect();
        mix
    }

    fn load(&mut self, node: &DocumentNode<'_>, entries: &[MixEntry], check: &FlagCheck<'_>) {
        let Some(table) = node.table() else { return };
        let kind = entries.first().map(|entry| entry.kind);
        for member in table.members() {
            if member.key == "base_url" {
                self.base_url = member.node.string().map(str::to_owned);
                continue;
            }
            if !LOAD_KEYS.contains(&member.key) {
                let known: Vec<&str> = LOAD_KEYS.into_iter().chain(["base_url"]).collect();
                member.node.error("unknown key", suggestion(member.key, &known));
                continue;
            }
            let is_of_scenarios = match kind {
                Some(MixKind::Users) => matches!(member.key, "users" | "rate" | "stages"),
                Some(MixKind::Rate) => matches!(member.key, "users" | "rate" | "stages" | "ramp_up" | "loops"),
                Some(MixKind::Weight) | None => false,
            };
            if is_of_scenarios {
                member
                    .node
                    .error("the scenarios say it already", "write weight instead in [[scenario]], or leave it out");
                continue;
            }
            let flags = flags(member.key, &member.node);
            match check(&flags) {
                Ok(()) => self.flags.extend(flags),
                Err(why) => {
                    let (what, remedy) = why.split_once("; ").unwrap_or((&why, ""));
                    member.node.error(what, remedy);
                }
            }
        }
    }
}

/// Arguments of a key of `[load]`.
fn flags(key: &str, node: &DocumentNode<'_>) -> Vec<String> {
    let flag = key.replace('_', "-");
    if let Some(is_on) = node.value().as_bool() {
        return if is_on { vec![format!("--{flag}")] } else { Vec::new() };
    }
    let nodes = if node.value().is_array() { node.list().unwrap_or_default() } else { vec![node.clone()] };
    nodes.iter().filter_map(scalar).map(|value| format!("--{flag}={value}")).collect()
}

/// Text of a string, number or boolean.
fn scalar(node: &DocumentNode<'_>) -> Option<String> {
    if node.is_string() {
        return node.string().map(str::to_owned);
    }
    if node.is_table() || node.value().is_array() {
        node.expected("value", "write a string, a number or true");
        return None;
    }
    Some(node.display())
}

fn variables(node: &DocumentNode<'_>) -> Vec<(String, String)> {
    let members = node.table().map(|table| table.members()).unwrap_or_default();
    let value = |node: &DocumentNode<'_>| match scalar(node)? {
        text if node.is_string() => Some(Value::quoted_text(&text)),
        text => Some(text),
    };
    members.iter().filter_map(|member| Some((member.key.to_owned(), value(&member.node)?))).collect()
}

/// Scenarios; their shares are all of one kind, and their names are different.
fn entries(node: &DocumentNode<'_>, folder: &Path, variables: &[(String, String)]) -> Vec<MixEntry> {
    let nodes = node.list().unwrap_or_default();
    let mut entries: Vec<MixEntry> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let Some(entry) = MixEntry::read(node, folder, variables) else { continue };
        if let Some(first) = entries.first().filter(|first| first.kind != entry.kind) {
            let (first, kind) = (first.kind.key(), entry.kind.key());
            node.error(format!("{kind} here, and {first} before"), "give all scenarios weight, users or rate");
        }
        let name = entry.source.scenario_name();
        if entries.iter().any(|other| other.source.scenario_name() == name) {
            node.error(format!("a second scenario with the name {name:?}"), r#"give it another one, name = "...""#);
        }
        entries.push(entry);
    }
    if nodes.is_empty() {
        node.error("a mix without scenarios", r#"write [[scenario]] with file = "shop.hurl""#);
    }
    entries
}
