//! Rules for all sources of the crates: where tests stand, which files have `unsafe` and the system's clock, names of files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::path::Path;

use crate::workspace::{sources, words};

/// Modules of decisions in crates that act: they have no dependency of their own that a manifest could check.
const PURE_MODULES: [&str; 7] = [
    "net/address_race.rs",
    "serve/llm/pace.rs",
    "serve/shop/rules",
    "server/control_budget.rs",
    "server/header_block.rs",
    "server/timeouts.rs",
    "server/transfer_pace.rs",
];

/// Crates of which all but these modules are pure: they read what others wrote, and an edge beside them acts on it.
const PURE_BUT: [(&str, &[&str]); 2] =
    [("llm", &["load"]), ("replay", &["load", "log", "log_load.rs", "log_mix.rs", "log_rate.rs"])];

#[test]
fn readers_beside_an_edge_are_pure() {
    let impure = ["fs", "Instant", "SystemTime", "thread", "process", "env", "rustix", "libc", "tokio"];
    for (room, edges) in PURE_BUT {
        let is_edge = |path: &Path| edges.iter().any(|edge| path.starts_with(Path::new(room).join(edge)));
        let all = sources().iter().filter(|source| source.path.starts_with(room));
        let files: Vec<_> = all.filter(|source| !is_edge(&source.path)).collect();
        assert!(files.len() > 5, "{room} has {} files", files.len());
        for source in files {
            let named = words(&source.code).find(|word| impure.contains(word));
            assert!(named.is_none(), "{} uses {named:?}", source.path.display());
        }
    }
}

#[test]
fn decisions_in_crates_that_act_are_pure() {
    let impure = ["fs", "io", "Instant", "SystemTime", "thread", "process", "env", "rustix", "libc", "tokio", "hyper"];
    for module in PURE_MODULES {
        let files: Vec<_> = sources().iter().filter(|source| source.path.starts_with(module)).collect();
        assert!(!files.is_empty(), "{module} is gone");
        for source in files {
            let named = words(&source.code).find(|word| impure.contains(word));
            assert!(named.is_none(), "{} uses {named:?}", source.path.display());
        }
    }
}

#[test]
fn files_that_only_tests_compile_are_below_a_folder_tests() {
    let mut wrong = Vec::new();
    for source in sources() {
        let lines: Vec<&str> = source.code.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let module = line.trim().trim_end_matches(';').rsplit("mod ").next().unwrap_or_default();
            let is_declaration = line.trim().ends_with(';') && line.contains("mod ");
            let attributes = lines[..at].iter().rev().take_while(|line| line.trim().starts_with("#["));
            if is_declaration && module != "tests" && attributes.clone().any(|line| line.contains("cfg(test)")) {
                let is_elsewhere = lines[..at].iter().rev().take(2).any(|line| line.contains("#[path"));
                wrong.extend((!is_elsewhere).then(|| format!("{}: mod {module}", source.path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unsafe_is_in_few_files() {
    let with: Vec<_> =
        sources().iter().filter(|s| words(&s.code).any(|word| word == "unsafe")).map(|s| &s.path).collect();
    let named = [
        "cli/main.rs",
        "k6/engine/compiled.rs",
        "k6/engine/fiber.rs",
        "k6/host/html.rs",
        "k6/host/http.rs",
        "k6/host/response_class.rs",
        "k6/host/state.rs",
        "k6/program/own_thread.rs",
        "lua/interrupt.rs",
        "lua/vm.rs",
        "machine/linux/receive_age.rs",
        "machine/linux/receive_timestamps.rs",
        "machine/linux/unacknowledged.rs",
        "send/store/sqlite/locks.rs",
        "send/store/sqlite/open.rs",
        "serve/functions/crash.rs",
        "serve/functions/library.rs",
        "server/handover.rs",
        "server/systemd.rs",
    ];
    assert_eq!(with, named.map(Path::new));
}

#[test]
fn the_system_clock_is_read_in_one_file() {
    // Linux has one more clock, which another file hands on.
    let clocks = ["machine/clock.rs", "machine/linux/process_settings.rs"].map(Path::new);
    for source in sources().iter().filter(|source| !clocks.contains(&source.path.as_path())) {
        for clock in ["Instant", "SystemTime", "clock_gettime"] {
            assert!(!words(&source.code).any(|word| word == clock), "{} uses {clock}", source.path.display());
        }
    }
}

#[test]
fn files_are_named_for_their_contents_and_have_docs() {
    let mut wrong = Vec::new();
    for source in sources() {
        let name = source.path.file_stem().unwrap().to_str().unwrap();
        if ["utils", "util", "helpers", "misc", "common"].contains(&name) {
            wrong.push(format!("{}: a name without content", source.path.display()));
        }
        if !source.text.starts_with("//!") {
            wrong.push(format!("{} has no docs", source.path.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
