//! Scenario of a mix file.

use std::path::Path;
use std::time::Duration;

use crate::grpc::CallSource;
use crate::program::is_script;
use crate::steps::{DataSource, RowOrder, ScenarioFile, ScenarioSource, ThinkTime};
use weir_base::units;
use weir_document::read::{DocumentNode, DocumentTable};

/// Scenario of a mix file, with its share.
#[derive(Debug)]
pub(super) struct MixEntry {
    pub(super) source: ScenarioSource,
    pub(super) kind: MixKind,
}

/// Kind of the shares of scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MixKind {
    /// Fraction of the iterations.
    Weight,
    /// Users of the closed loop, which have one scenario for good.
    Users,
    /// Iterations per second of the open loop.
    Rate,
}

impl MixKind {
    /// Key in the file.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Weight => "weight",
            Self::Users => "users",
            Self::Rate => "rate",
        }
    }
}

impl MixEntry {
    /// Reads a `[[scenario]]` and its files; `None`, with errors, if it has no readable file.
    pub(super) fn read(node: &DocumentNode<'_>, folder: &Path, variables: &[(String, String)]) -> Option<Self> {
        let table = node.table()?;
        let call = call(&table);
        let file = match (table.get("file"), &call) {
            (Some(node), None) => scenario_file(&node, folder),
            (None, Some(call)) => {
                Some(ScenarioFile { name: call.url.clone(), text: String::new(), folder: folder.to_owned() })
            }
            (Some(_), Some(_)) => {
                table.error("file and call cannot be combined", "write a [[scenario]] for each");
                None
            }
            (None, None) => {
                table.error("a scenario without file", r#"write file = "shop.hurl", or call = "/shop.v1.Cart/Add""#);
                None
            }
        };
        let (kind, weight) = share(&table);
        let text = |key| table.get(key).and_then(|node| node.string().map(str::to_owned));
        let flag = |key| table.get(key).and_then(|node| node.boolean()).unwrap_or(false);
        let source = ScenarioSource {
            title: text("name").unwrap_or_default(),
            weight,
            users: (kind == MixKind::Users).then_some(weight as u64),
            variables: variables.to_vec(),
            think: table.get("think").and_then(|node| think(&node)),
            data: table.get("data").and_then(|node| data(&node, folder)),
            pacing: table.get("pacing").and_then(|node| node.time()).map(|time| Duration::from_nanos(time.0)),
            setup: table.get("setup").and_then(|node| scenario_file(&node, folder)),
            teardown: table.get("teardown").and_then(|node| scenario_file(&node, folder)),
            continue_on_error: flag("continue_on_error"),
            keep_cookies: flag("keep_cookies"),
            call,
            max_redirects: table.get("max_redirects").and_then(|node| node.integer(0..=1000)),
            ..ScenarioSource::default()
        };
        table.check_unknown_keys();
        let ScenarioFile { name, text, folder } = file?;
        Some(Self { source: ScenarioSource { name, text, folder, ..source }, kind })
    }
}

/// Call of gRPC in place of a file.
fn call(table: &DocumentTable<'_>) -> Option<CallSource> {
    let text = |key| table.get(key).and_then(|node| node.string().map(str::to_owned));
    let message = text("message");
    let call = text("call").map(|url| CallSource { url, message: message.clone().unwrap_or_default() });
    if message.is_some() && call.is_none() {
        table.error("a message without call", r#"write call = "/shop.v1.Cart/Add""#);
    }
    call
}

/// Kind and size of the share of a scenario.
fn share(table: &DocumentTable<'_>) -> (MixKind, f64) {
    let weight = table.get("weight");
    let users = table.get("users");
    let rate = table.get("rate");
    let given = [weight.is_some(), users.is_some(), rate.is_some()].into_iter().filter(|is_given| *is_given).count();
    if given > 1 {
        table.error("more than one of weight, users and rate", "keep one");
    }
    match (users, rate) {
        (Some(node), _) => (MixKind::Users, node.integer(1..=1_000_000).unwrap_or(1) as f64),
        (None, Some(node)) => (MixKind::Rate, rate_per_s(&node).unwrap_or(1.0)),
        (None, None) => {
            let weight = weight.and_then(|node| node.number(0.0..=1e9));
            (MixKind::Weight, weight.unwrap_or(1.0))
        }
    }
}

fn rate_per_s(node: &DocumentNode<'_>) -> Option<f64> {
    let text = node.value().as_str().map_or_else(|| node.display(), str::to_owned);
    let rate = units::rate(&text).ok().filter(|rate| *rate > 0.0);
    if rate.is_none() {
        node.expected("rate", r#"write it as "50/s", "3000/m" or 50"#);
    }
    rate
}

fn think(node: &DocumentNode<'_>) -> Option<String> {
    let text = node.string()?;
    if let Err(why) = ThinkTime::parse(text) {
        node.error(why.to_string(), "");
    }
    Some(text.to_owned())
}

fn scenario_file(node: &DocumentNode<'_>, folder: &Path) -> Option<ScenarioFile> {
    let path = folder.join(node.string()?);
    if is_script(&path) {
        node.error("a Lua script in a mix", "write a .hurl file; weir load -s FILE.lua URL plays the script alone");
        return None;
    }
    let read = ScenarioFile::read(&path);
    read.map_err(|why| node.error(why, "")).ok()
}

/// `"users.csv"`, or `{ file = "users.csv", order = "unique" }`.
fn data(node: &DocumentNode<'_>, folder: &Path) -> Option<DataSource> {
    let (name, order) = if node.is_string() {
        (node.string()?, RowOrder::default())
    } else {
        let table = node.table()?;
        let order = table
            .get("order")
            .and_then(|node| node.choice(&RowOrder::ALL.map(|order| (order.name(), order))))
            .unwrap_or_default();
        let file = table.get("file");
        table.check_unknown_keys();
        let Some(file) = file else {
            table.error("data without file", r#"write { file = "users.csv" }"#);
            return None;
        };
        (file.string()?, order)
    };
    DataSource::read(&folder.join(name), order).map_err(|why| node.error(why, "")).ok()
}
