//! Tests of whole imports: text in, scenario out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

mod collections;
mod commands;
mod descriptions;
mod exact;
mod plans;
mod properties;
mod recordings;

use crate::{Import, ImportFile, ImportSettings, import, to_hurl};

/// Import of one file.
fn imported(text: &str) -> Import {
    let settings = ImportSettings { all: true, ..ImportSettings::default() };
    import([ImportFile { name: "file", text: text.into(), kind: None }], &settings).unwrap()
}

/// Scenario of one file, as text.
fn hurl(text: &str) -> String {
    to_hurl(&imported(text).scenarios[0])
}

/// Omissions of an import, a line each.
fn omissions(import: &Import) -> Vec<String> {
    import.omissions.iter().map(ToString::to_string).collect()
}

/// Value of a variable; `None` without one.
fn value<'a>(import: &'a Import, name: &str) -> Option<&'a str> {
    import.variables.iter().find(|variable| variable.name == name)?.value.as_deref()
}
