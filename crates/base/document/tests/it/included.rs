//! Documents of several files, and variables in their strings.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::env::VarError;
use std::path::PathBuf;

use weir_document::read::DocumentTable;
use weir_document::{DocumentFile, parse_with_includes};

/// Files by name; the first one that is read is `main`.
struct Files(BTreeMap<&'static str, &'static str>);

/// Values and names that were read, as text: one line per member.
type Read = Result<Vec<String>, Vec<String>>;

impl Files {
    fn new(files: &[(&'static str, &'static str)]) -> Self {
        Self(files.iter().copied().collect())
    }

    fn file(&self, name: &str) -> DocumentFile {
        let own = if name == "main" { "" } else { name };
        let folder = PathBuf::from(name).parent().unwrap().to_owned();
        DocumentFile { name: own.to_owned(), path: name.into(), folder, text: self.0[name].to_owned() }
    }

    /// Reads the documents' `number`, `yes`, `text` and the members of `tables` and `list`.
    fn read(&self) -> Read {
        let find = |_: &DocumentFile, pattern: &str| match pattern.strip_suffix('*') {
            Some(prefix) => {
                Ok(self.0.keys().filter(|name| name.starts_with(prefix)).map(|name| self.file(name)).collect())
            }
            None if self.0.contains_key(pattern) => Ok(vec![self.file(pattern)]),
            None => Err(format!("cannot read {pattern}")),
        };
        let lookup = |name: &str| match name {
            "NUMBER" => Ok("12".to_owned()),
            "YES" => Ok("true".to_owned()),
            "NAME" => Ok("b*".to_owned()),
            "SECRET" => Ok("hunter2".to_owned()),
            _ => Err(VarError::NotPresent),
        };
        let taken = parse_with_includes(self.file("main"), &lookup, &find, |root, _| {
            let _ = root.get("include");
            let mut lines = Vec::new();
            if let Some(number) = root.get("number").and_then(|node| node.integer(0..=100)) {
                lines.push(format!("number {number}"));
            }
            if let Some(number) = root.get("fraction").and_then(|node| node.number(0.0..=1000.0)) {
                lines.push(format!("fraction {number}"));
            }
            if let Some(yes) = root.get("yes").and_then(|node| node.boolean()) {
                lines.push(format!("yes {yes}"));
            }
            if let Some(text) = root.get("text").and_then(|node| node.string()) {
                lines.push(format!("text {text}"));
            }
            for member in root.get("tables").and_then(|node| node.table()).iter().flat_map(DocumentTable::members) {
                lines.push(format!("table {} in {:?}", member.key, member.node.folder()));
            }
            for node in root.get("list").and_then(|node| node.list()).unwrap_or_default() {
                let table = node.table().unwrap();
                let _ = table.get("a").and_then(|node| node.integer(0..=9));
                table.check_unknown_keys();
                lines.push(format!("item {}", node.path));
            }
            root.check_unknown_keys();
            lines
        });
        let named = |problems: Vec<weir_document::Diagnostic>| {
            problems.iter().map(|problem| problem.with_file("main")).collect::<Vec<_>>()
        };
        match taken {
            Ok((lines, warnings)) => Ok(lines.into_iter().chain(named(warnings)).collect()),
            Err(problems) => Err(named(problems)),
        }
    }
}

#[test]
fn tables_and_lists_of_all_files_are_one_document() {
    let files = Files::new(&[
        ("main", "include = ['${NAME}', 'a']\ntext = 'x'\n[tables.one]\n[[list]]\na = 1\n"),
        ("b1", "[tables.two]\n[[list]]\na = 2\n[[list]]\n"),
        ("b/2", "number = 3\n[[list]]\n"),
        ("a", "include = ['b1']\n[tables.three]\n"),
    ]);
    let expected = [
        "number 3",
        "text x",
        "table one in \"\"",
        "table two in \"\"",
        "table three in \"\"",
        "item list[0]",
        "item list[0]",
        "item list[0]",
        "item list[1]",
    ];
    assert_eq!(files.read(), Ok(expected.map(str::to_owned).to_vec()));
}

#[test]
fn errors_have_the_file_that_they_are_in() {
    let files = Files::new(&[
        ("main", "include = ['a', 'none', 3, 'z*']\n[[list]]\n[[list]]\nb = 1\n"),
        ("a", "\nnumber = 101\n[[list]]\n[[list]]\n  c = 1\n"),
    ]);
    let expected = [
        "main:1:17: include[1]: cannot read none",
        "main:1:25: include[2]: invalid file name; write it as include = [\"routes/*.toml\"]",
        "main:4:1: list[1].b: unknown key; did you mean \"a\"?",
        "a:2:10: number: invalid number 101; write one from 0 to 100",
        "a:5:3: list[1].c: unknown key; did you mean \"a\"?",
    ];
    assert_eq!(files.read(), Err(expected.map(str::to_owned).to_vec()));
    let files = Files::new(&[("main", "include = 'a'"), ("a", "")]);
    let expected = ["main:1:11: include: invalid list of files; write it as include = [\"routes/*.toml\"]"];
    assert_eq!(files.read(), Err(expected.map(str::to_owned).to_vec()));
    let files = Files::new(&[("main", "include = ['z*']")]);
    assert_eq!(files.read(), Ok(vec!["main:1:12: include[0]: no file matches \"z*\"".to_owned()]));
}

#[test]
fn syntax_errors_of_all_files_are_reported_at_once() {
    let files = Files::new(&[("main", "include = ['a', 'b']\nx = \n"), ("a", "\n\n[\n"), ("b", "text = '${NONE}'\n")]);
    let problems = files.read().unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("main:2:"), "{problems:?}");
    assert!(problems[1].starts_with("a:3:"), "{problems:?}");
}

#[test]
fn a_key_is_in_one_file_only() {
    let files = Files::new(&[
        ("main", "include = ['a']\n\nnumber = 1\n[tables.one]\n[[list]]\n"),
        ("a", "list = 1\nnumber = 2\n[tables.one]\n"),
    ]);
    let expected = [
        "a:1:1: list: list is in another file, too: see line 5 of the including file; write it in one of them",
        "a:2:1: number: number is in another file, too: see line 3 of the including file; write it in one of them",
        "a:3:9: tables.one: tables.one is in another file, too: see line 4 of the including file; write it in one of them",
    ];
    assert_eq!(files.read(), Err(expected.map(str::to_owned).to_vec()));
}

#[test]
fn a_file_that_includes_itself_is_an_error() {
    let files = Files::new(&[("main", "include = ['a']"), ("a", "include = ['b']"), ("b", "\ninclude = ['b', 'a']")]);
    let expected = [
        "b:2:12: include[0]: a file includes itself: b -> b; leave one of them out",
        "b:2:17: include[1]: a file includes itself: a -> b -> a; leave one of them out",
    ];
    assert_eq!(files.read(), Err(expected.map(str::to_owned).to_vec()));
    let files = Files::new(&[("main", "include = ['a']"), ("a", "include = ['main']")]);
    assert_eq!(files.read().unwrap_err().len(), 1);
}

#[test]
fn variables_stand_for_strings_numbers_and_booleans() {
    let files = Files::new(&[(
        "main",
        "# ${NONE}\nnumber = '${NUMBER}'\nfraction = '${FRACTION:-0.5}'\nyes = '${YES}'\ntext = '${NUMBER}'\n",
    )]);
    assert_eq!(files.read(), Ok(["number 12", "fraction 0.5", "yes true", "text 12"].map(str::to_owned).to_vec()));
    // Only as a whole.
    let files = Files::new(&[("main", "number = '1${NUMBER}'\nyes = '${NUMBER}'\nfraction = '${SECRET}'\n")]);
    let expected = [
        "main:1:10: number: invalid whole number \"1${NUMBER}\"; write one from 0 to 100",
        "main:2:7: yes: invalid boolean \"${NUMBER}\"; write true or false",
        "main:3:12: fraction: invalid number \"${SECRET}\"; write one from 0 to 1000",
    ];
    assert_eq!(files.read(), Err(expected.map(str::to_owned).to_vec()));
}

#[test]
fn a_variable_without_a_value_is_one_error() {
    let files = Files::new(&[
        ("main", "include = ['a']\nnumber = '${NONE}'\n"),
        ("a", "[[list]]\na = '${NONE'\n[tables.b]\nc = ['', { d = '${N:-${M}}' }]\n"),
    ]);
    let syntax = "write it as \"${NAME}\" or \"${NAME:-default}\"; a literal ${ is $${";
    let expected = [
        "main:2:10: number: the environment variable NONE is not set; set it, or give a default: \"${NONE:-default}\"",
        &format!("a:2:5: list[0].a: invalid variable \"${{NONE\"; {syntax}"),
        &format!("a:4:16: tables.b.c[1].d: invalid variable \"${{N:-${{M}}}}\"; {syntax}"),
    ];
    assert_eq!(files.read(), Err(expected.map(str::to_owned).to_vec()));
}
