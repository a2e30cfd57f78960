//! Architecture beyond what the manifests of `crates/` say: unused dependencies, imports between the modules of
//! decisions, purity, files with `unsafe`, names of files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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

/// Crates that are pure.
const PURE: [&str; 9] = ["decide", "events", "http2", "hurl", "import", "json", "measure", "scenario", "simulate"];

/// Dependencies of pure crates: data, and no action.
const PURE_DEPENDENCIES: [&str; 26] = [
    "base64",
    "chrono",
    "csv",
    "encoding_rs",
    "hdrhistogram",
    "html5gum",
    "httpdate",
    "idna",
    "md-5",
    "memchr",
    "regex",
    "regex-syntax",
    "roxmltree",
    "rustc-hash",
    "saphyr-parser",
    "serde",
    "serde_json",
    "sha2",
    "statrs",
    "strsim",
    "weir-decide",
    "weir-events",
    "weir-hurl",
    "weir-json",
    "weir-scenario",
    "xpath-eval",
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
    /// Path from the crate's sources, below the crate's name: `gate/config/mod.rs`.
    path: PathBuf,
    /// Folder of the crate in `crates/`.
    room: String,
    text: String,
    /// Text without comments and string literals.
    code: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Names of the folders in `crates/`, in order.
fn rooms() -> Vec<String> {
    let mut rooms: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|room| root().join("crates").join(room).join("Cargo.toml").exists())
        .collect();
    rooms.sort();
    assert!(rooms.len() > 15, "{rooms:?}");
    rooms
}

/// Sources of a crate's folder.
fn sources_in(room: &str, folder: &str) -> Vec<Source> {
    let root = root().join("crates").join(room).join(folder);
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let path = Path::new(room).join(path.strip_prefix(&root).unwrap());
                let code = code_of(&text);
                found.push(Source { path, room: room.to_owned(), text, code });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Sources of all crates that are published.
fn sources() -> Vec<Source> {
    let found: Vec<Source> =
        rooms().iter().filter(|room| *room != "testing").flat_map(|room| sources_in(room, "src")).collect();
    assert!(found.len() > 300, "{} sources", found.len());
    found
}

/// Names of the dependencies in a section of a crate's manifest.
fn dependencies(room: &str, section: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join("crates").join(room).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    manifest
        .get(section)
        .and_then(|table| table.as_table())
        .into_iter()
        .flat_map(|table| table.keys().cloned())
        .collect()
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

/// Name of a dependency in code.
fn in_code(dependency: &str) -> String {
    match dependency {
        "weir-http-core" => "weir_net".to_owned(),
        "md-5" => "md5".to_owned(),
        "rustls-webpki" => "webpki".to_owned(),
        other => other.replace('-', "_"),
    }
}

#[test]
fn each_dependency_is_used() {
    let mut unused = Vec::new();
    for room in rooms() {
        let sources = sources_in(&room, "src");
        let tests: Vec<Source> = ["tests", "examples"].iter().flat_map(|folder| sources_in(&room, folder)).collect();
        for (section, sources) in [
            ("dependencies", sources.iter().collect::<Vec<_>>()),
            ("dev-dependencies", sources.iter().chain(&tests).collect()),
        ] {
            for dependency in dependencies(&room, section) {
                let name = in_code(&dependency);
                if !sources.iter().any(|source| words(&source.code).any(|word| word == name)) {
                    unused.push(format!("{room} does not use {dependency} ({section})"));
                }
            }
        }
    }
    assert!(unused.is_empty(), "{unused:#?}");
}

#[test]
fn decisions_measures_and_simulations_have_no_dependency_that_acts() {
    for room in PURE {
        for dependency in dependencies(room, "dependencies") {
            assert!(PURE_DEPENDENCIES.contains(&dependency.as_str()), "{room} depends on {dependency}");
        }
    }
}

/// Modules of `decide` that a file below it names, by `crate::` or `super::`.
fn decide_imports(source: &Source) -> BTreeSet<String> {
    let mut named = imports(&source.code);
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
            let source = Source { path: source.path.clone(), room: source.room.clone(), text: String::new(), code };
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
fn the_map_lists_every_crate() {
    let map = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    for room in rooms().iter().filter(|room| *room != "testing") {
        assert!(map.contains(&format!("//! - [`{room}`]")), "{room} has no line in the list");
        assert!(map.contains(&format!(" as {room};")), "{room} is not exported");
    }
}

#[test]
fn decisions_measures_and_simulations_do_not_use_clocks_sockets_and_files() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| PURE.contains(&source.room.as_str())) {
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
        "cli/main.rs",
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

#[test]
fn the_scan_of_sources_finds_imports() {
    let code = code_of(
        "use crate::{a::{b, c}, d}; // crate::no\nlet x = \"crate::no \\\" crate::no\"; 'l: '\"' b'\\'' crate::e::f",
    );
    assert_eq!(imports(&code).into_iter().collect::<Vec<_>>(), ["a", "d", "e"]);
    assert!(code.contains("let x = ;"), "{code}");
}
