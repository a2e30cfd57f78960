//! Each target with its seeds, and with what they become by random changes: a search without a guide, which takes a
//! second, needs no other build, and makes the same inputs each time. `make fuzz` searches on, guided by coverage.

mod mutations;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use mutations::Mutations;
use weir_base::Nanos;
use weir_machine::clock::thread_cpu;

/// Processor time of one target.
const SEARCH: Nanos = Nanos::SECOND;

fn search(name: &str) {
    let target = weir_fuzz::named(name).expect("a target of this name");
    if let Some(file) = std::env::var_os("WEIR_FUZZ_INPUT") {
        return target(&fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "no seed in fuzz/seeds/{name}/");
    for seed in &seeds {
        check(name, target, seed);
    }
    let mut mutations = Mutations::new(seeds, dictionary(name));
    let start = thread_cpu();
    let mut inputs = 0;
    while thread_cpu() - start < SEARCH {
        check(name, target, &mutations.next_input());
        inputs += 1;
    }
    println!("{name} held for {inputs} inputs");
}

/// Runs the target; an input that breaks it is saved.
fn check(name: &str, target: fn(&[u8]), input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        let folder = folder().join("artifacts").join(name);
        let file = folder.join("found");
        fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input)).expect("a file for the input");
        panic!("repeat with: WEIR_FUZZ_INPUT={} cargo test -p weir-fuzz --test wide {name}", file.display());
    }
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Inputs of a target that are kept with it, in the order of their names.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let files = fs::read_dir(folder().join("seeds").join(name)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a seed")).collect()
}

/// Words that inputs of a target consist of, in libFuzzer's format: a string in quotes per line, with `\xNN`.
fn dictionary(name: &str) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(folder().join("dicts").join(format!("{name}.txt"))).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('"')?.1.rsplit_once('"')).map(|(word, _)| unescaped(word)).collect()
}

fn unescaped(word: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("two digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
                after
            }
            (b'\\', [escaped, after @ ..]) => {
                bytes.push(*escaped);
                after
            }
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    bytes
}

/// A test for each target, of its name.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            search(stringify!($name));
        })*
    };
}

weir_fuzz::each_target!(tests);

#[test]
fn words_of_dictionaries_are_read() {
    assert_eq!(unescaped(r#"a\x0d\x0a\"b\\"#), b"a\r\n\"b\\");
    assert!(dictionary("words").contains(&b"ms".to_vec()));
}
