//! Sources as syn parses them, once for all tests of this program: that takes most of its time.
#![allow(clippy::unwrap_used, reason = "a failed precondition fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use crate::circles::NamedPaths;
use crate::names::{Names, files, parse};
use crate::workspace::root;

/// Folders of Rust sources whose types share one namespace.
const SOURCES: [&str; 2] = ["crates", "python/src"];

/// What tests need of a source.
pub(crate) struct ParsedSource {
    pub(crate) names: Names,
    pub(crate) named_paths: NamedPaths,
}

/// All sources but those of test programs, by their paths in the repository.
pub(crate) fn sources() -> &'static BTreeMap<PathBuf, ParsedSource> {
    static PARSED: OnceLock<BTreeMap<PathBuf, ParsedSource>> = OnceLock::new();
    PARSED.get_or_init(|| {
        let is_source = |path: &PathBuf| !path.iter().take(4).any(|part| part == "tests");
        let paths: Vec<PathBuf> =
            SOURCES.into_iter().flat_map(|folder| files(folder, &["rs"])).filter(is_source).collect();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let parse_some = |first: usize| -> Vec<(PathBuf, ParsedSource)> {
            paths.iter().skip(first).step_by(threads).map(|path| (path.clone(), read(path))).collect()
        };
        thread::scope(|scope| {
            let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || parse_some(first))).collect();
            parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
        })
    })
}

fn read(path: &Path) -> ParsedSource {
    let parsed = parse(path, &fs::read_to_string(root().join(path)).unwrap());
    ParsedSource { names: Names::of(path, &parsed), named_paths: NamedPaths::of(&parsed) }
}
