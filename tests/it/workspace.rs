//! The workspace as files: crates, their manifests and their sources.
#![allow(clippy::unwrap_used, reason = "a failed precondition fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Folders of `crates/` with a product's crates, in the order of the map: each may name those that its line lists, itself
/// included.
pub(crate) const FAMILIES: [(&str, &[&str]); 6] = [
    ("base", &["base"]),
    ("net", &["base", "net"]),
    ("load", &["base", "net", "load"]),
    ("gate", &["base", "net", "gate"]),
    ("send", &["base", "net", "send"]),
    ("lab", &["base", "net", "load", "gate", "send", "lab"]),
];

/// A crate below `crates/`.
#[derive(Clone, Debug)]
pub(crate) struct Crate {
    /// Its folder's name, which is also that of its package without `weir-`.
    pub(crate) name: String,
    /// Folder above it, if it is that of a product.
    pub(crate) family: Option<String>,
    /// Path of its folder.
    pub(crate) path: PathBuf,
    manifest: toml::Table,
}

impl Crate {
    fn read(path: &Path, family: Option<&str>) -> Option<Self> {
        let manifest = fs::read_to_string(path.join("Cargo.toml")).ok()?.parse().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        Some(Self { name, family: family.map(str::to_owned), path: path.to_owned(), manifest })
    }

    /// Names of the dependencies in a section of the manifest, in order.
    pub(crate) fn dependencies(&self, section: &str) -> Vec<String> {
        let table = self.manifest.get(section).and_then(|table| table.as_table());
        table.into_iter().flat_map(|table| table.keys().cloned()).collect()
    }

    /// Crates of the workspace that it depends on, by their names without `weir-`.
    pub(crate) fn own_dependencies(&self) -> Vec<String> {
        self.dependencies("dependencies")
            .iter()
            .filter_map(|name| name.strip_prefix("weir-").map(str::to_owned))
            .collect()
    }

    /// A value of the manifest's section `package`, or of its section `lib`.
    pub(crate) fn value(&self, section: &str, key: &str) -> Option<&str> {
        self.manifest.get(section)?.get(key)?.as_str()
    }

    /// Whether it has the lints of pure crates.
    pub(crate) fn is_pure(&self) -> bool {
        fs::read_link(self.path.join("clippy.toml")).is_ok_and(|link| link == Path::new("../../pure.toml"))
    }

    /// Sources below a folder of the crate.
    pub(crate) fn sources(&self, folder: &str) -> Vec<Source> {
        let root = self.path.join(folder);
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&path).unwrap();
                    let path = Path::new(&self.name).join(path.strip_prefix(&root).unwrap());
                    let code = code_of(&text);
                    found.push(Source { path, text, code });
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }
}

/// A source of a crate.
pub(crate) struct Source {
    /// Path from the crate's sources, below the crate's name: `gate/config/mod.rs`.
    pub(crate) path: PathBuf,
    /// The text as it is.
    pub(crate) text: String,
    /// Text without comments and string literals.
    pub(crate) code: String,
}

/// Folder of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All crates below `crates/`, by name; read once.
pub(crate) fn crates() -> &'static [Crate] {
    static CRATES: OnceLock<Vec<Crate>> = OnceLock::new();
    CRATES.get_or_init(read_crates)
}

fn read_crates() -> Vec<Crate> {
    let folder = root().join("crates");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    };
    let mut found = Vec::new();
    for path in entries(&folder) {
        let family = path.file_name().unwrap().to_str().unwrap();
        match Crate::read(&path, None) {
            Some(alone) => found.push(alone),
            None => found.extend(entries(&path).iter().filter_map(|path| Crate::read(path, Some(family)))),
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() > 30, "{found:?}");
    found
}

/// Sources of all crates that are published; read once.
pub(crate) fn sources() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let published = crates().iter().filter(|one| one.name != "testing");
        let found: Vec<Source> = published.flat_map(|one| one.sources("src")).collect();
        assert!(found.len() > 300, "{} sources", found.len());
        found
    })
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

/// Words of a text of code.
pub(crate) fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[test]
fn code_is_without_comments_and_literals() {
    let code = code_of("a // no\nlet x = \"no \\\" no\"; 'l: '\"' b'\\'' b");
    assert_eq!(words(&code).filter(|word| !word.is_empty()).collect::<Vec<_>>(), ["a", "let", "x", "l", "b", "b"]);
}
