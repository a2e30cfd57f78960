//! Sections of test262, ECMAScript's own tests, in the interpreter of users. Its folder is not part of weir:
//! `TEST262=FOLDER cargo test -p weir-k6 --lib test262 -- --nocapture` prints a line for each section.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed precondition fails the test; counts are printed"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Module, Value};
use weir_base::Nanos;
use weir_machine::clock;

use crate::engine::failure::{ScriptFailure, caught};
use crate::engine::vm::Interpreter;
use crate::init::on_own_stack;
use crate::script::{Script, ScriptFile, ScriptInput};

/// Sections that scripts of users depend on, with their folders.
const SECTIONS: &[(&str, &[&str])] = &[
    ("modules", &["language/module-code", "language/import", "language/export"]),
    ("promises", &["built-ins/Promise"]),
    (
        "async functions",
        &["language/statements/async-function", "language/expressions/async-function", "language/expressions/await"],
    ),
    (
        "generators",
        &["language/statements/generators", "language/expressions/generators", "built-ins/GeneratorPrototype"],
    ),
    ("destructuring", &["language/destructuring", "language/expressions/assignment/dstr"]),
    ("classes", &["language/statements/class", "language/expressions/class"]),
    ("arrays", &["built-ins/Array"]),
    ("typed arrays", &["built-ins/TypedArray", "built-ins/TypedArrayConstructors"]),
    ("strings", &["built-ins/String"]),
    ("regular expressions", &["built-ins/RegExp"]),
    ("JSON", &["built-ins/JSON"]),
    ("maps and sets", &["built-ins/Map", "built-ins/Set", "built-ins/WeakMap", "built-ins/WeakSet"]),
];
/// Smallest share of the tests of a section that passes.
const MIN_SHARE: f64 = 0.97;
/// Drafts of ECMAScript that are in no edition yet: their tests are left out.
const DRAFTS: &[&str] = &[
    "await-dictionary",
    "immutable-arraybuffer",
    "import-bytes",
    "import-defer",
    "import-text",
    "source-phase-imports",
];
/// Longest time of a test.
const TIMEOUT: Nanos = Nanos(10_000_000_000);
const HEAP_BYTES: usize = 256 * 1024 * 1024;
/// What tests find of the host.
const HOST: &str = "var __printed = []; globalThis.print = (text) => { __printed.push(String(text)); };
globalThis.$262 = { global: globalThis, gc() {}, evalScript: (text) => (0, eval)(text),
  detachArrayBuffer(buffer) { buffer.transfer(); }, get agent() { throw new Error('no agents'); },
  createRealm() { throw new Error('no realms'); } };";

/// A test with what its head says.
#[derive(Clone, Debug)]
struct LanguageTest {
    path: PathBuf,
    text: String,
    includes: Vec<String>,
    flags: Vec<String>,
    features: Vec<String>,
    /// Name of the error that it ends with.
    negative: Option<String>,
}

impl LanguageTest {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).expect("a test");
        let head = text.split_once("/*---").and_then(|(_, rest)| rest.split_once("---*/")).map_or("", |(head, _)| head);
        let list = |name: &str| -> Vec<String> {
            let Some((_, rest)) = head.split_once(&format!("\n{name}:")) else { return Vec::new() };
            let inner = match rest.trim_start().strip_prefix('[') {
                Some(inner) => inner.split(']').next().unwrap_or_default().replace(',', "\n"),
                // One to a line, behind hyphens.
                None => rest
                    .lines()
                    .skip(1)
                    .take_while(|line| line.trim_start().starts_with('-'))
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            inner
                .lines()
                .map(|line| line.trim().trim_start_matches("- ").to_owned())
                .filter(|line| !line.is_empty())
                .collect()
        };
        let negative = head.split_once("\nnegative:").and_then(|(_, rest)| {
            let line = rest.lines().find_map(|line| line.trim().strip_prefix("type:"));
            line.map(|name| name.trim().to_owned())
        });
        Self { includes: list("includes"), flags: list("flags"), features: list("features"), negative, path, text }
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    fn is_of_draft(&self) -> bool {
        self.features.iter().any(|own| DRAFTS.contains(&own.as_str()))
    }

    /// Whether it passes, in each mode that it is for.
    fn passes(&self, harness: &Path) -> bool {
        let modes: &[bool] = match () {
            () if self.has("onlyStrict") => &[true],
            () if self.has("noStrict") || self.has("raw") || self.has("module") => &[false],
            () => &[false, true],
        };
        modes.iter().all(|is_strict| self.passes_in(harness, *is_strict))
    }

    fn passes_in(&self, harness: &Path, is_strict: bool) -> bool {
        let main = self.path.to_str().expect("UTF-8").to_owned();
        let input = ScriptInput { main, heap_bytes: HEAP_BYTES, ..ScriptInput::default() };
        let script = Arc::new(Script::new(Arc::new(ScriptFile::new(input))));
        let (own, harness) = (self.clone(), harness.to_owned());
        let result = on_own_stack(&script, move |state| {
            let file = &state.script.file;
            state.compute.set_until(clock::monotonic() + TIMEOUT);
            let vm = Interpreter::new(state, &file.modules, file.heap_bytes).map_err(ScriptFailure::of_message)?;
            vm.context.with(|ctx| {
                evaluated(&ctx, HOST, false)?;
                if !own.has("raw") {
                    let common = ["assert.js", "sta.js", "doneprintHandle.js"].map(str::to_owned);
                    for name in common.iter().chain(&own.includes) {
                        let text = std::fs::read_to_string(harness.join(name)).expect("a file of the harness");
                        evaluated(&ctx, &text, false)?;
                    }
                }
                if own.has("module") {
                    let promise = caught(&ctx, Module::import(&ctx, file.main.as_str()))?;
                    caught(&ctx, promise.finish::<Value<'_>>())?;
                } else {
                    evaluated(&ctx, &own.text, is_strict)?;
                }
                while ctx.execute_pending_job() {}
                if own.has("async") {
                    let printed = "__printed.find((line) => line.startsWith('Test262:Async')) || 'nothing printed'";
                    let line: String = caught(&ctx, ctx.eval(printed))?;
                    if line != "Test262:AsyncTestComplete" {
                        return Err(ScriptFailure::of_message(line));
                    }
                }
                Ok(())
            })
        });
        match (&self.negative, result) {
            (None, result) => result.is_ok(),
            (Some(name), Err(failure)) => failure.message.starts_with(name.as_str()),
            (Some(_), Ok(())) => false,
        }
    }
}

fn evaluated(ctx: &Ctx<'_>, text: &str, is_strict: bool) -> Result<(), ScriptFailure> {
    let mut options = EvalOptions::default();
    options.strict = is_strict;
    caught(ctx, ctx.eval_with_options::<Value<'_>, _>(text, options)).map(drop)
}

fn collect(folder: &Path, tests: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Tables of Unicode, which take an hour.
        let is_table = path.ends_with("property-escapes/generated");
        if path.is_dir() && !is_table {
            collect(&path, tests);
        } else if path.is_file() && name.ends_with(".js") && !name.contains("_FIXTURE") {
            tests.push(path);
        }
    }
}

#[test]
fn test262_passes_as_far_as_the_engine_does() {
    let Some(folder) = std::env::var_os("TEST262").map(PathBuf::from) else {
        println!("skipped: no TEST262=FOLDER");
        return;
    };
    let mut wrong = Vec::new();
    for (name, folders) in SECTIONS {
        let mut paths = Vec::new();
        folders.iter().for_each(|section| collect(&folder.join("test").join(section), &mut paths));
        let tests: Vec<LanguageTest> =
            paths.into_iter().map(LanguageTest::read).filter(|test| !test.is_of_draft()).collect();
        let failed: Vec<&LanguageTest> = tests.iter().filter(|test| !test.passes(&folder.join("harness"))).collect();
        let (all, passed) = (tests.len(), tests.len() - failed.len());
        println!("| {name} | {passed} | {all} | {:.1}% |", 100.0 * passed as f64 / all.max(1) as f64);
        if std::env::var_os("TEST262_FAILED").is_some() {
            failed.iter().for_each(|test| println!("  {}", test.path.display()));
        }
        if (passed as f64) < MIN_SHARE * all as f64 {
            wrong.push(*name);
        }
    }
    assert_eq!(wrong, Vec::<&str>::new());
}
