//! Scripts in an interpreter, for tests.
#![allow(clippy::expect_used, clippy::panic, reason = "a failed precondition fails the test")]

mod test262;

use std::sync::Arc;

use serde_json::Value;

use crate::engine::failure::ScriptFailure;
use crate::engine::vm::Interpreter;
use crate::host::state::IterationEnd;
use crate::init::on_own_stack;
use crate::program::life::LoadedScript;
use crate::script::{Script, ScriptFile, ScriptInput};

/// Memory of the interpreter.
const HEAP_BYTES: usize = 64 * 1024 * 1024;

/// Value that the default function of a script in JavaScript returns.
pub(crate) fn run(text: &str) -> Value {
    run_files(&[("main.js", text)]).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// Why a script in JavaScript fails, as one line.
pub(crate) fn failure(text: &str) -> String {
    run_files(&[("main.js", text)]).expect_err("a failure")
}

/// Value that the default function of the first of these files returns.
pub(crate) fn run_files(files: &[(&str, &str)]) -> Result<Value, String> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let main = folder.path().join(files[0].0).to_str().expect("UTF-8").to_owned();
    let input = ScriptInput { main, heap_bytes: HEAP_BYTES, ..ScriptInput::default() };
    let script = Arc::new(Script::new(Arc::new(ScriptFile::new(input))));
    let shown = folder.path().to_str().expect("UTF-8").to_owned();
    let json = on_own_stack(&script, |state| {
        let file = &state.script.file;
        let vm = Interpreter::new(state, &file.modules, file.heap_bytes).map_err(ScriptFailure::of_message)?;
        vm.context.with(|ctx| {
            let loaded = LoadedScript::load(&ctx, state)?;
            state.keeps_result.set(true);
            match loaded.iterate(&ctx, state, "default") {
                IterationEnd::Returned => Ok(state.result.take().unwrap_or_default()),
                IterationEnd::Threw(failure) => Err(failure),
                other => Err(ScriptFailure::of_message(format!("{other:?}"))),
            }
        })
    });
    let json = json.map_err(|failure| failure.line().replace(&format!("{shown}/"), ""))?;
    Ok(serde_json::from_str(&json).expect("JSON"))
}
