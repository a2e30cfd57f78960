//! Arrows between crates: what a product's folder may name, what pure crates may depend on, and the map in `src/lib.rs`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::workspace::{Crate, FAMILIES, Source, crates, root, sources, words};

/// Libraries of pure crates: data, and no action.
const DATA_LIBRARIES: [&str; 27] = [
    "base64",
    "chrono",
    "csv",
    "encoding_rs",
    "flate2",
    "hdrhistogram",
    "html5gum",
    "httpdate",
    "idna",
    "md-5",
    "memchr",
    "percent-encoding",
    "prost",
    "prost-reflect",
    "protox",
    "regex",
    "regex-syntax",
    "roxmltree",
    "rustc-hash",
    "saphyr-parser",
    "serde",
    "serde_json",
    "sha1",
    "sha2",
    "statrs",
    "strsim",
    "xpath-eval",
];

fn by_name() -> BTreeMap<&'static str, &'static Crate> {
    crates().iter().map(|one| (one.name.as_str(), one)).collect()
}

#[test]
fn a_folder_names_those_below_it_alone() {
    let all = by_name();
    let mut wrong = Vec::new();
    for one in all.values() {
        let Some(family) = &one.family else { continue };
        let (_, allowed) = FAMILIES.iter().find(|(name, _)| name == family).unwrap();
        for to in one.own_dependencies() {
            let is_allowed = all[to.as_str()].family.as_ref().is_some_and(|family| allowed.contains(&family.as_str()));
            if !is_allowed {
                wrong.push(format!("{family}/{} depends on {to}", one.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_crate_has_the_name_of_its_folder() {
    for one in crates() {
        assert_eq!(one.value("package", "name"), Some(format!("weir-{}", one.name).as_str()));
        let library = format!("weir_{}", one.name.replace('-', "_"));
        assert_eq!(one.value("lib", "name").unwrap_or(&library), library);
    }
}

#[test]
fn pure_crates_depend_on_pure_crates_and_on_data() {
    let all = by_name();
    let pure: Vec<&Crate> = all.values().copied().filter(|one| one.is_pure()).collect();
    assert!(pure.len() > 12, "{pure:?}");
    for one in pure {
        for dependency in one.dependencies("dependencies") {
            let is_pure = match dependency.strip_prefix("weir-") {
                Some(name) => all[name].is_pure(),
                None => DATA_LIBRARIES.contains(&dependency.as_str()),
            };
            assert!(is_pure, "{} depends on {dependency}", one.name);
        }
    }
}

#[test]
fn each_dependency_is_used() {
    // Name of a dependency in code, where it is another.
    let in_code = |dependency: &str| match dependency {
        "md-5" => "md5".to_owned(),
        "rustls-webpki" => "webpki".to_owned(),
        other => other.replace('-', "_"),
    };
    let mut unused = Vec::new();
    for one in crates() {
        let own = sources().iter().filter(|source| source.path.starts_with(&one.name));
        let own: Vec<&Source> = own.collect();
        // Those that are not published are read here alone.
        let rest = ["src", "tests", "examples"].map(|folder| {
            let is_read = folder == "src" && !own.is_empty();
            if is_read { Vec::new() } else { one.sources(folder) }
        });
        for (section, sources) in [
            ("dependencies", own.iter().copied().chain(&rest[0]).collect::<Vec<_>>()),
            ("dev-dependencies", own.iter().copied().chain(rest.iter().flatten()).collect()),
        ] {
            for dependency in one.dependencies(section) {
                let name = in_code(&dependency);
                if !sources.iter().any(|source| words(&source.code).any(|word| word == name)) {
                    unused.push(format!("{} does not use {dependency} ({section})", one.name));
                }
            }
        }
    }
    assert!(unused.is_empty(), "{unused:#?}");
}

/// A command line is for a person: what a program asks for has types.
#[test]
fn the_python_package_names_the_command_line_only_to_run_it() {
    let mut named = Vec::new();
    let mut folders = vec![root().join("python/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let uses = text.split("weir::cli").skip(1).filter(|rest| !rest.starts_with("::run_with("));
            named.extend(uses.map(|_| path.display().to_string()));
        }
    }
    assert!(named.is_empty(), "{named:#?}");
}

/// The map of `src/lib.rs`, from the manifests and the folders' pages.
fn map() -> String {
    let all = crates();
    let mut map = String::new();
    let line = |one: &Crate| {
        let name = one.name.replace('-', "_");
        let pure = if one.is_pure() { ", pure" } else { "" };
        let what = one.value("package", "description").unwrap();
        // What all may name says nothing about a crate.
        let is_base = |name: &String| all.iter().any(|one| one.name == *name && one.family.as_deref() == Some("base"));
        let own: Vec<String> = one.own_dependencies();
        let named: Vec<&str> = own
            .iter()
            .filter(|name| one.family.as_deref() == Some("base") || !is_base(name))
            .map(String::as_str)
            .collect();
        let arrow = if named.is_empty() { String::new() } else { format!(" ──► {}", named.join(", ")) };
        format!("//! - [`{name}`]{pure}: {what}{arrow}\n")
    };
    for (family, _) in FAMILIES {
        let page = fs::read_to_string(root().join("crates").join(family).join("README.md")).unwrap();
        let (title, text) = page.split_once("\n\n").unwrap();
        writeln!(map, "//! ## {}: `crates/{family}`\n//!", title.trim_start_matches("# ")).unwrap();
        text.trim_end().lines().for_each(|text| writeln!(map, "//! {text}").unwrap());
        map.push_str("//!\n");
        all.iter().filter(|one| one.family.as_deref() == Some(family)).for_each(|one| map.push_str(&line(one)));
        map.push_str("//!\n");
    }
    map.push_str("//! ## Command: `crates/cli`\n//!\n");
    all.iter().filter(|one| one.name == "cli").for_each(|one| map.push_str(&line(one)));
    map
}

/// With `WEIR_BLESS` set it writes the map instead.
#[test]
fn the_map_is_that_of_the_manifests() {
    let path = root().join("src/lib.rs");
    let text = fs::read_to_string(&path).unwrap();
    let (from, to) = ("//! # The crates\n//!\n", "//!\n//! # The path of a request\n");
    let begin = text.find(from).unwrap() + from.len();
    let end = begin + text[begin..].find(to).unwrap();
    let map = map();
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(path, format!("{}{map}{}", &text[..begin], &text[end..])).unwrap();
    } else {
        assert!(text[begin..end] == map, "src/lib.rs differs from the manifests; WEIR_BLESS=1 writes:\n{map}");
    }
    for one in crates().iter().filter(|one| one.name != "testing") {
        let name = one.name.replace('-', "_");
        assert!(text.contains(&format!("pub use weir_{name} as {name};")), "{name} is not exported");
    }
}
