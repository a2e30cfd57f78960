//! Names of types and constants, and the length of files: a type's name is unique in the workspace, a constant's name
//! has its noun, and a file has at most 400 lines.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use crate::parsed;
use crate::workspace::root;

/// Type names that several modules may have, each for its own, since they are used with the module: `load::Options`.
const SHARED_TYPE_NAMES: [&str; 6] = ["Error", "Event", "Kind", "Options", "Service", "State"];

/// Names without a noun: constants need one, and a unit where there is one. `MAX` and `MIN` are for a type's own bound.
const BARE_ADJECTIVES: [&str; 29] = [
    "BEST", "BIG", "BIGGEST", "COMMON", "EARLIEST", "ENOUGH", "FAST", "FEW", "FEWEST", "FIRST", "HIGHEST", "KNOWN",
    "LARGEST", "LAST", "LATEST", "LEAST", "LONG", "LONGEST", "LOWEST", "MANY", "MAXIMUM", "MINIMUM", "MOST", "SHORT",
    "SHORTEST", "SLOW", "SMALL", "SMALLEST", "USUAL",
];
const BARE_BOUNDS: [&str; 2] = ["MAX", "MIN"];

const MAX_LINES: usize = 400;

/// Folders and extensions of files with at most [`MAX_LINES`] lines.
const BOUNDED_FOLDERS: [&str; 5] = ["src", "crates", "tests", "python", "benches"];
const BOUNDED_EXTENSIONS: [&str; 9] = ["c", "css", "h", "js", "lua", "py", "pyi", "rs", "sql"];

/// Type or constant of a file.
#[derive(Debug)]
struct NamedItem {
    name: String,
    place: String,
    /// Whether the item belongs to a type, as `Delay::MAX`.
    is_associated: bool,
}

/// Names that a source declares.
#[derive(Default)]
pub(crate) struct Names {
    file: PathBuf,
    types: Vec<NamedItem>,
    constants: Vec<NamedItem>,
    /// Modules with a file of their own, for tests only.
    test_modules: Vec<String>,
}

impl Names {
    /// Names of a source, whose path is for positions and for the modules below it.
    pub(crate) fn of(file: &Path, parsed: &syn::File) -> Self {
        let mut names = Self { file: file.to_owned(), ..Self::default() };
        if !is_test(&parsed.attrs) {
            names.visit_file(parsed);
        }
        names
    }

    fn item(&self, ident: &syn::Ident, is_associated: bool) -> NamedItem {
        let place = format!("{}:{}", self.file.display(), ident.span().start().line);
        NamedItem { name: ident.to_string(), place, is_associated }
    }

    fn add_type(&mut self, ident: &syn::Ident) {
        let item = self.item(ident, false);
        self.types.push(item);
    }

    fn add_constant(&mut self, ident: &syn::Ident, is_associated: bool) {
        let item = self.item(ident, is_associated);
        self.constants.push(item);
    }
}

/// Whether an item exists in tests only: `#[cfg(test)]`, also with `all(...)`.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || (condition.starts_with("all") && condition.contains("test"))
        }
        _ => false,
    })
}

impl<'a> Visit<'a> for Names {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        } else if module.content.is_none() {
            self.test_modules.push(module.ident.to_string());
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, block: &'a syn::ItemImpl) {
        if !is_test(&block.attrs) {
            visit::visit_item_impl(self, block);
        }
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        if !is_test(&item.attrs) {
            self.add_type(&item.ident);
        }
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        if !is_test(&item.attrs) {
            self.add_type(&item.ident);
        }
    }

    fn visit_item_union(&mut self, item: &'a syn::ItemUnion) {
        if !is_test(&item.attrs) {
            self.add_type(&item.ident);
        }
    }

    /// Types that a macro declares, as `merged! { pub struct Counts { ... } }`; in the tokens a macro's own variables
    /// follow `struct` and not a name.
    fn visit_item_macro(&mut self, item: &'a syn::ItemMacro) {
        let tokens = item.mac.tokens.to_string();
        for (_, rest) in tokens.match_indices("struct ").map(|(at, word)| tokens.split_at(at + word.len())) {
            if let Some(name) = rest.split_whitespace().next().filter(|name| name.starts_with(char::is_uppercase)) {
                let line = item.mac.path.segments[0].ident.span().start().line;
                let place = format!("{}:{line}", self.file.display());
                self.types.push(NamedItem { name: name.to_owned(), place, is_associated: false });
            }
        }
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        if !is_test(&item.attrs) {
            self.add_type(&item.ident);
            visit::visit_item_trait(self, item);
        }
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        if !is_test(&item.attrs) {
            self.add_type(&item.ident);
        }
    }

    fn visit_item_const(&mut self, item: &'a syn::ItemConst) {
        if !is_test(&item.attrs) {
            self.add_constant(&item.ident, false);
        }
    }

    fn visit_item_static(&mut self, item: &'a syn::ItemStatic) {
        if !is_test(&item.attrs) {
            self.add_constant(&item.ident, false);
        }
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        if !is_test(&item.attrs) {
            self.add_constant(&item.ident, true);
        }
    }

    fn visit_trait_item_const(&mut self, item: &'a syn::TraitItemConst) {
        self.add_constant(&item.ident, true);
    }
}

/// A source text as syn reads it.
pub(crate) fn parse(file: &Path, text: &str) -> syn::File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Folder of the modules that a file declares.
fn folder_of_modules(file: &Path) -> PathBuf {
    match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") => file.parent().unwrap().to_owned(),
        _ => file.with_extension(""),
    }
}

/// Files of a folder with one of these extensions, relative to the repository, in order.
pub(crate) fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Peers and results of benchmarks, which are not kept, are in folders `out`.
                if !path.ends_with("out") {
                    folders.push(path);
                }
            } else if path.extension().and_then(|it| it.to_str()).is_some_and(|it| extensions.contains(&it)) {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Names of all sources, without test modules.
fn all_names() -> Vec<&'static Names> {
    let parsed = parsed::sources().iter().filter(|(path, _)| !path.starts_with("crates/testing"));
    let names: Vec<&Names> = parsed.map(|(_, source)| &source.names).collect();
    assert!(names.len() > 300, "{} files", names.len());
    let tests: BTreeSet<PathBuf> = names
        .iter()
        .flat_map(|names| names.test_modules.iter().map(|name| folder_of_modules(&names.file).join(name)))
        .collect();
    let is_tested = |file: &Path| file.ancestors().any(|path| tests.contains(&path.with_extension("")));
    names.into_iter().filter(|names| !is_tested(&names.file)).collect()
}

#[test]
fn type_names_are_unique() {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for item in all_names().into_iter().flat_map(|names| &names.types) {
        places.entry(&item.name).or_default().push(&item.place);
    }
    places.retain(|name, places| places.len() > 1 && !SHARED_TYPE_NAMES.contains(name));
    assert!(places.is_empty(), "{} names of several types: {places:#?}", places.len());
}

#[test]
fn constants_have_a_noun() {
    let bare = |item: &&NamedItem| {
        let name = item.name.as_str();
        BARE_ADJECTIVES.contains(&name) || (!item.is_associated && BARE_BOUNDS.contains(&name))
    };
    let wrong: Vec<&NamedItem> = all_names().into_iter().flat_map(|names| &names.constants).filter(bare).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn files_have_at_most_400_lines() {
    let lines = |path: &PathBuf| fs::read_to_string(root().join(path)).unwrap().lines().count();
    let long: Vec<String> = BOUNDED_FOLDERS
        .into_iter()
        .flat_map(|folder| files(folder, &BOUNDED_EXTENSIONS))
        .map(|path| (lines(&path), path))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, path)| format!("{} has {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn the_scan_finds_items_outside_of_tests() {
    let path = Path::new("src/room/mod.rs");
    let parsed = parse(
        path,
        "struct A; enum B {} trait C { const MOST: u8; type No; } type D = A; const E: u8 = 1; static F: u8 = 1;
         impl A { const LEAST: u8 = 1; } mod inner { struct G; fn f() { struct H; } }
         #[cfg(test)] mod tests; #[cfg(test)] struct Gone; #[cfg(all(test, unix))] mod more { struct Gone; }",
    );
    let names = Names::of(path, &parsed);
    let list = |items: &[NamedItem]| items.iter().map(|item| item.name.clone()).collect::<Vec<_>>().join(" ");
    assert_eq!(list(&names.types), "A B C D G H");
    assert_eq!(list(&names.constants), "MOST E F LEAST");
    assert_eq!(names.types[0].place, "src/room/mod.rs:1");
    assert_eq!(folder_of_modules(&names.file).join(&names.test_modules[0]), Path::new("src/room/tests"));
}
