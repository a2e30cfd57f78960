//! Circles of files: within a crate, files that import one another. A file and its own folder do not count.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use crate::names::is_test;
use crate::parsed;
use crate::workspace::{crates, root};

/// Folders of crates' sources.
fn folders() -> Vec<PathBuf> {
    let crates = crates().iter().map(|one| one.path.join("src"));
    crates.chain([root().join("python/src")]).collect()
}

/// Circles that may stay, by a member each, with the reason. At most five.
const ARGUED: [(&str, &str); 4] = [
    ("hurl/template", "the grammar is recursive: a template has expressions, those have filters, and these templates"),
    ("scenario/evaluate/template", "as in the grammar: templates have filters, which have templates"),
    ("json/segment", "as in RFC 9535: segments have filters, which have paths of segments"),
    ("scenario/plan/step", "request, checks and options of a step are compiled and rendered with one set of variables"),
];

type Module = Vec<String>;

/// Modules of a crate: their paths, and their files.
fn modules(folder: &Path) -> BTreeMap<Module, PathBuf> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("tests") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).unwrap().with_extension("");
                let mut module: Module = name.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
                module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
                found.insert(module, path);
            }
        }
    }
    found
}

/// Paths that a file names, without those of tests.
#[derive(Default)]
pub(crate) struct NamedPaths(Vec<Vec<String>>);

impl NamedPaths {
    pub(crate) fn of(file: &syn::File) -> Self {
        let mut named = Self::default();
        named.visit_file(file);
        named
    }

    fn add_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.0.push(with(&name.ident)),
            syn::UseTree::Rename(rename) => self.0.push(with(&rename.ident)),
            syn::UseTree::Glob(_) => self.0.push(before.to_vec()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(before, tree)),
        }
    }
}

impl<'a> Visit<'a> for NamedPaths {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        if !is_test(&item.attrs) {
            self.add_tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

/// Longest module that a path names, seen from a module.
fn resolve(path: &[String], from: &Module, all: &BTreeMap<Module, PathBuf>) -> Option<Module> {
    let (mut at, mut rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (from.clone(), &path[1..]),
        "super" => (from.clone(), path),
        _ => return None,
    };
    while rest.first().is_some_and(|part| part == "super") {
        at.pop();
        rest = &rest[1..];
    }
    for part in rest {
        at.push(part.clone());
        if !all.contains_key(&at) {
            at.pop();
            break;
        }
    }
    Some(at)
}

/// Imports between the modules of a crate; a folder and what is in it do not count.
fn imports(all: &BTreeMap<Module, PathBuf>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut found = BTreeMap::new();
    for (module, file) in all {
        let named = &parsed::sources()[file.strip_prefix(root()).unwrap()].named_paths;
        let targets = named.0.iter().filter_map(|path| resolve(path, module, all));
        let others = targets.filter(|to| !to.starts_with(module) && !module.starts_with(to));
        found.insert(module.clone(), others.collect::<BTreeSet<Module>>());
    }
    found
}

/// Modules that a module reaches.
fn reached(from: &Module, imports: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = next.pop() {
        for to in imports.get(&module).into_iter().flatten() {
            if found.insert(to.clone()) {
                next.push(to.clone());
            }
        }
    }
    found
}

/// Circles of a crate's files, each once.
fn circles(all: &BTreeMap<Module, PathBuf>) -> BTreeSet<BTreeSet<Module>> {
    let imports = imports(all);
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        all.keys().map(|module| (module, reached(module, &imports))).collect();
    let in_circle = all.keys().filter(|module| reached[module].contains(*module));
    in_circle
        .map(|module| {
            all.keys()
                .filter(|other| reached[module].contains(*other) && reached[other].contains(module))
                .cloned()
                .collect()
        })
        .collect()
}

#[test]
fn files_that_import_one_another_are_argued() {
    let mut unknown = Vec::new();
    let mut left: BTreeSet<&str> = ARGUED.iter().map(|(member, _)| *member).collect();
    for folder in folders() {
        let parent = folder.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        for circle in circles(&modules(&folder)) {
            let members: Vec<String> = circle.iter().map(|module| format!("{parent}/{}", module.join("/"))).collect();
            let argued: Vec<&str> = left.iter().filter(|name| members.iter().any(|m| m == *name)).copied().collect();
            match argued.first() {
                Some(name) => drop(left.remove(name)),
                None => unknown.push(members),
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(left.is_empty(), "no longer circles: {left:?}");
    assert!(ARGUED.len() <= 5);
}
