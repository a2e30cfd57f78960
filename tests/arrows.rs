//! Architecture of `src/lib.rs`: imports between modules, purity, files with `unsafe`, names of files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each top-level module, and the other ones that it may import.
const ARROWS: [(&str, &[&str]); 20] = [
    ("agents", &["load", "machine", "measure", "decide"]),
    (
        "cli",
        &[
            "live", "agents", "bulk", "load", "capacity", "gate", "send", "serve", "server", "simulate", "study",
            "document", "machine", "report", "http", "measure", "decide",
        ],
    ),
    ("bulk", &["send", "live", "machine", "measure", "decide"]),
    ("capacity", &["agents", "load", "machine", "measure", "decide"]),
    ("call", &["http", "machine", "decide"]),
    ("gate", &["call", "server", "http", "document", "redis", "machine", "decide"]),
    ("send", &["call", "http", "redis", "machine", "decide"]),
    ("live", &["measure", "decide"]),
    ("load", &["http", "machine", "measure", "decide"]),
    ("serve", &["server", "machine", "decide"]),
    ("server", &["machine", "decide"]),
    ("simulate", &["decide"]),
    ("study", &["agents", "load", "report", "document", "machine", "measure", "decide"]),
    ("document", &["decide"]),
    ("redis", &["http"]),
    ("report", &["measure", "decide"]),
    ("http", &["machine", "decide"]),
    ("machine", &["decide"]),
    ("measure", &["decide"]),
    ("decide", &[]),
];

/// The modules of `decide`, and the other ones of `decide` that each may import. Tests may import any.
const DECIDE_ARROWS: [(&str, &[&str]); 8] = [
    ("admission", &["base"]),
    ("base", &[]),
    ("call", &["ratelimit", "base"]),
    ("delivery", &["call", "ratelimit", "base"]),
    ("load", &["base"]),
    ("ratelimit", &["base"]),
    ("service", &["ratelimit", "base"]),
    ("upstream", &["base"]),
];

/// Paths that pure modules do not use: clocks, sockets, files, threads, the system.
const IMPURE: [&str; 11] = [
    "std::net",
    "std::os",
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "Instant",
    "SystemTime",
    "rustix",
    "libc",
    "tokio",
];

struct Source {
    path: PathBuf,
    /// Folder or file below `src`.
    module: String,
    text: String,
    /// Text without comments and string literals.
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(&root).unwrap().to_owned();
                let module = path.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
                let code = code_of(&text);
                found.push(Source { path, module, text, code });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 30, "{} sources", found.len());
    found
}

/// Removes comments and string literals; sufficient for this code base, though not for all of Rust.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => {
                chars.by_ref().find(|c| *c == '\n');
                code.push('\n');
            }
            '"' => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            // '"', '\'' and b'"' are characters and do not begin strings.
            '\'' => match (chars.next(), chars.peek()) {
                (Some('\\'), _) => {
                    chars.next();
                    chars.by_ref().find(|c| *c == '\'');
                }
                (Some(_), Some('\'')) => drop(chars.next()),
                (Some(c), _) => code.push(c),
                (None, _) => {}
            },
            c => code.push(c),
        }
    }
    code
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Top-level modules that a file names: `crate::module::...` and `crate::{module::..., other}`.
fn imports(code: &str) -> BTreeSet<String> {
    let first_word = |text: &str| words(text.trim_start()).next().unwrap_or_default().to_owned();
    let mut modules = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            modules.insert(first_word(rest));
            continue;
        };
        let mut depth = 0;
        let members = group
            .chars()
            .take_while(|c| {
                depth += i32::from(*c == '{') - i32::from(*c == '}');
                depth >= 0
            })
            .collect::<String>();
        let mut depth = 0;
        let mut member = String::new();
        for c in members.chars().chain([',']) {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if c == ',' && depth == 0 {
                modules.insert(first_word(&member));
                member.clear();
            } else {
                member.push(c);
            }
        }
    }
    modules.remove("");
    modules
}

#[test]
fn modules_import_allowed_modules_only() {
    let mut wrong = Vec::new();
    for source in sources() {
        if matches!(source.module.as_str(), "lib" | "main") {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(module, _)| *module == source.module) else {
            wrong.push(format!("{}: a module without an entry", source.path.display()));
            continue;
        };
        for module in imports(&source.code) {
            if module != source.module && !allowed.contains(&module.as_str()) {
                wrong.push(format!("{} imports {module}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_allowed_arrow_is_used() {
    let sources = sources();
    for (module, allowed) in ARROWS {
        let used: BTreeSet<String> =
            sources.iter().filter(|source| source.module == module).flat_map(|source| imports(&source.code)).collect();
        let unused: Vec<_> = allowed.iter().filter(|to| !used.contains(**to)).collect();
        assert!(unused.is_empty(), "{module} does not import {unused:?}");
    }
}

/// Modules of `decide` that a file below it names, by `crate::decide::` or `super::`.
fn decide_imports(source: &Source) -> BTreeSet<String> {
    // Paths from the crate root become paths from `decide`; what is left of `decide::` at its root are re-exports.
    let mut named = imports(&source.code.replace("crate::decide::", "crate::"));
    let depth = source.path.components().count() - usize::from(source.path.ends_with("mod.rs"));
    let up = "super::".repeat(depth - 1);
    for (at, _) in source.code.match_indices(&up) {
        let path = &source.code[at + up.len()..];
        if !path.starts_with("super") && !source.code[..at].ends_with("super::") {
            named.extend(words(path).next().map(str::to_owned));
        }
    }
    named.retain(|module| DECIDE_ARROWS.iter().any(|(name, _)| name == module));
    named
}

#[test]
fn decisions_of_one_product_do_not_import_those_of_another() {
    let sources = sources();
    for (module, allowed) in DECIDE_ARROWS {
        let folder = Path::new("decide").join(module);
        let product = sources
            .iter()
            .filter(|source| source.path.starts_with(&folder) && !source.path.iter().any(|part| part == "tests"));
        let mut used = BTreeSet::new();
        for source in product {
            // Unit tests at the end of a file may import any.
            let code = source.code.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            let source = Source { path: source.path.clone(), module: source.module.clone(), text: String::new(), code };
            for to in decide_imports(&source) {
                assert!(to == module || allowed.contains(&to.as_str()), "{} imports {to}", source.path.display());
                used.insert(to);
            }
        }
        let unused: Vec<_> = allowed.iter().filter(|to| !used.contains(**to)).collect();
        // The root of `decide` re-exports the time types of `base`.
        assert!(unused.iter().all(|to| **to == "base"), "decide::{module} does not import {unused:?}");
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
fn the_crate_root_lists_every_module() {
    let root = sources().into_iter().find(|source| source.module == "lib").unwrap();
    let declared: BTreeSet<&str> =
        root.code.lines().filter_map(|line| line.trim().strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(declared, ARROWS.iter().map(|(module, _)| *module).collect());
    for module in declared {
        assert!(root.text.contains(&format!("//! - [`{module}`]")), "{module} has no line in the list");
    }
}

#[test]
fn decisions_measures_and_simulations_do_not_use_clocks_sockets_and_files() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| matches!(source.module.as_str(), "decide" | "measure" | "simulate"))
    {
        for impure in IMPURE {
            let used = if impure.contains("::") {
                source.code.contains(impure)
            } else {
                words(&source.code).any(|word| word == impure)
            };
            if used {
                wrong.push(format!("{} uses {impure}", source.path.display()));
            }
        }
        // Also in groups: use std::{fs, net}.
        for group in source.code.split("use std::{").skip(1) {
            let group = group.split(';').next().unwrap_or_default();
            let named = words(group).find(|word| ["net", "fs", "thread", "os", "env", "process"].contains(word));
            wrong.extend(named.map(|word| format!("{} uses std::{word}", source.path.display())));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unsafe_is_in_few_files() {
    let all = sources();
    let with: Vec<_> = all.iter().filter(|s| words(&s.code).any(|word| word == "unsafe")).map(|s| &s.path).collect();
    let named = [
        "http/client/unacknowledged.rs",
        "http/kernel_timestamps.rs",
        "main.rs",
        "send/store/sqlite/locks.rs",
        "send/store/sqlite/open.rs",
        "serve/functions/crash.rs",
        "serve/functions/library.rs",
        "server/receive_age.rs",
    ];
    assert_eq!(with, named.map(Path::new));
}

#[test]
fn the_system_clock_is_read_in_one_file() {
    for source in sources().iter().filter(|source| source.path != Path::new("machine/clock.rs")) {
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

#[test]
fn the_scan_of_sources_finds_imports() {
    let code = code_of(
        "use crate::{a::{b, c}, d}; // crate::no\nlet x = \"crate::no \\\" crate::no\"; 'l: '\"' b'\\'' crate::e::f",
    );
    assert_eq!(imports(&code).into_iter().collect::<Vec<_>>(), ["a", "d", "e"]);
    assert!(code.contains("let x = ;"), "{code}");
}
