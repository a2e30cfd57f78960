//! Finds the files that `include` names.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::file;
use weir_document::DocumentFile;

/// Files that a pattern names, by name; relative to the folder of the file that includes them. `*` and `?` stand for
/// characters of one name, and not for a dot at its beginning. A pattern without them names a file that has to exist.
///
/// # Errors
/// A file or folder cannot be read.
pub(super) fn find(from: &DocumentFile, pattern: &str) -> Result<Vec<DocumentFile>, String> {
    if pattern.contains(char::is_control) {
        return Err(format!("invalid file name {pattern:?}"));
    }
    matching(&from.folder, pattern)?.iter().map(|path| read(path)).collect()
}

/// Reads an included file.
fn read(path: &Path) -> Result<DocumentFile, String> {
    let failed = |why: &str| format!("cannot read {}: {why}", path.display());
    let bytes = file::read(path).map_err(|why| failed(&why))?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8"))?;
    let identity = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok(DocumentFile { name: path.display().to_string(), path: identity, folder, text })
}

/// Paths that a pattern names, in order.
fn matching(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = vec![folder.to_owned()];
    let mut has_wildcard = false;
    for component in Path::new(pattern).components() {
        let name = match component {
            Component::Normal(name) => name.to_string_lossy(),
            other => {
                found.iter_mut().for_each(|path| path.push(other.as_os_str()));
                continue;
            }
        };
        if !name.contains(['*', '?']) {
            found.iter_mut().for_each(|path| path.push(&*name));
            // Of the folders that a wildcard stands for, those without such an entry are not meant.
            found.retain(|path| !has_wildcard || path.exists());
            continue;
        }
        has_wildcard = true;
        let mut next = Vec::new();
        for folder in found.iter().filter(|folder| folder.as_os_str().is_empty() || folder.is_dir()) {
            let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let failed = |error: &std::io::Error| {
                format!("cannot read {}: {}", shown.display(), file::without_number(&error.to_string()))
            };
            for entry in fs::read_dir(shown).map_err(|error| failed(&error))? {
                let entry = entry.map_err(|error| failed(&error))?.file_name();
                if entry.to_str().is_some_and(|entry| is_match(&name, entry)) {
                    next.push(folder.join(entry));
                }
            }
        }
        next.sort();
        found = next;
    }
    Ok(found)
}

/// Whether a name is one that the pattern stands for.
fn is_match(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut of) = (0, 0);
    // Where to go on if the last `*` has to stand for one character more.
    let mut again = None;
    while of < name.len() {
        match pattern.get(at) {
            Some('*') => {
                again = Some((at, of));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[of] => (at, of) = (at + 1, of + 1),
            _ => match again {
                Some((star, taken)) => {
                    again = Some((star, taken + 1));
                    (at, of) = (star + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, which takes exponential time.
    fn is_match_by_definition(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=name.len()).any(|count| is_match_by_definition(rest, &name[count..])),
            ([b'?', rest @ ..], [_, name @ ..]) => is_match_by_definition(rest, name),
            ([c, rest @ ..], [d, name @ ..]) => c == d && is_match_by_definition(rest, name),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn patterns_match_by_their_definition(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            prop_assert_eq!(is_match(&pattern, &name), is_match_by_definition(pattern.as_bytes(), name.as_bytes()));
        }
    }

    #[test]
    fn hidden_names_are_matched_by_name_only() {
        assert!(!is_match("*.toml", ".a.toml"));
        assert!(is_match(".*.toml", ".a.toml"));
        assert!(!is_match("*.toml", "a.toml~"));
    }
}
