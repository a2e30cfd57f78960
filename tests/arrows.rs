//! Holds what `src/lib.rs` draws: who may import whom, what is pure, where `unsafe` may be, how long a file may get.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room, and those that it may import; itself aside.
const ARROWS: [(&str, &[&str]); 19] = [
    ("agents", &["load", "machine", "measure", "decide"]),
    (
        "cli",
        &[
            "live", "agents", "load", "capacity", "gate", "send", "serve", "server", "simulate", "study", "document",
            "machine", "report", "http", "measure", "decide",
        ],
    ),
    ("capacity", &["agents", "load", "machine", "measure", "decide"]),
    ("call", &["http", "machine", "decide"]),
    ("gate", &["call", "server", "http", "document", "redis", "machine", "decide"]),
    ("send", &["call", "http", "redis", "machine", "decide"]),
    ("live", &["measure", "decide"]),
    ("load", &["report", "http", "machine", "measure", "decide"]),
    ("serve", &["server", "machine", "decide"]),
    ("server", &["machine", "decide"]),
    ("simulate", &["decide"]),
    ("study", &["agents", "load", "report", "document", "machine", "measure", "decide"]),
    ("document", &["decide"]),
    ("redis", &["http"]),
    ("report", &["measure", "decide"]),
    ("http", &["machine", "decide"]),
    ("machine", &["measure", "decide"]),
    ("measure", &["decide"]),
    ("decide", &[]),
];

/// What a room that is PURE does not touch: clocks, sockets, files, threads, the system.
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

const MOST_LINES: usize = 500;

struct Source {
    path: PathBuf,
    /// The folder, or the file, right below `src`.
    room: String,
    text: String,
    /// The text without comments and without what is in quotes.
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
                let room = path.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
                let code = code_of(&text);
                found.push(Source { path, room, text, code });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 30, "the sources are there");
    found
}

/// Leaves comments and the insides of quotes out. Good for this code base, not for all Rust.
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
            // '"' and '\'' and b'"' are characters and open no quotes.
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

/// The rooms that a file names: `crate::room::...` and `crate::{room::..., other}`.
fn imports(code: &str) -> BTreeSet<String> {
    let first_word = |text: &str| words(text.trim_start()).next().unwrap_or_default().to_owned();
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            rooms.insert(first_word(rest));
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
                rooms.insert(first_word(&member));
                member.clear();
            } else {
                member.push(c);
            }
        }
    }
    rooms.remove("");
    rooms
}

#[test]
fn rooms_import_along_the_arrows_only() {
    let mut wrong = Vec::new();
    for source in sources() {
        if matches!(source.room.as_str(), "lib" | "main") {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(room, _)| *room == source.room) else {
            wrong.push(format!("{}: a room that is not in the drawing", source.path.display()));
            continue;
        };
        for room in imports(&source.code) {
            if room != source.room && !allowed.contains(&room.as_str()) {
                wrong.push(format!("{} imports {room}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_map_in_the_crate_root_names_every_room() {
    let root = sources().into_iter().find(|source| source.room == "lib").unwrap();
    let declared: BTreeSet<&str> =
        root.code.lines().filter_map(|line| line.trim().strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(declared, ARROWS.iter().map(|(room, _)| *room).collect());
    for room in declared {
        assert!(root.text.contains(&format!("//! - [`{room}`]")), "{room} has no line on the map");
    }
}

#[test]
fn decisions_measures_and_simulations_touch_no_clock_no_socket_and_no_file() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| matches!(source.room.as_str(), "decide" | "measure" | "simulate")) {
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
        // Through a group, too: use std::{fs, net}.
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
        "http/client/outstanding.rs",
        "http/stamp.rs",
        "main.rs",
        "send/store/sqlite/locks.rs",
        "send/store/sqlite/open.rs",
        "serve/functions/crash.rs",
        "serve/functions/library.rs",
        "server/arrival.rs",
    ];
    assert_eq!(with, named.map(Path::new));
}

#[test]
fn the_raw_clock_is_asked_in_one_file() {
    for source in sources().iter().filter(|source| source.path != Path::new("machine/clock.rs")) {
        for clock in ["Instant", "SystemTime", "clock_gettime"] {
            assert!(!words(&source.code).any(|word| word == clock), "{} uses {clock}", source.path.display());
        }
    }
}

#[test]
fn files_stay_small_and_are_named_for_what_they_hold() {
    let mut wrong = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > MOST_LINES {
            wrong.push(format!("{} has {lines} lines", source.path.display()));
        }
        let name = source.path.file_stem().unwrap().to_str().unwrap();
        if ["utils", "util", "helpers", "misc", "common"].contains(&name) {
            wrong.push(format!("{}: a name that says nothing", source.path.display()));
        }
        if !source.text.starts_with("//!") {
            wrong.push(format!("{} does not say what it is for", source.path.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_reading_of_sources_sees_what_it_must() {
    let code = code_of(
        "use crate::{a::{b, c}, d}; // crate::no\nlet x = \"crate::no \\\" crate::no\"; 'l: '\"' b'\\'' crate::e::f",
    );
    assert_eq!(imports(&code).into_iter().collect::<Vec<_>>(), ["a", "d", "e"]);
    assert!(code.contains("let x = ;"), "{code}");
}
