//! Memory of users: what the interpreter of each holds before its first iteration.

use std::sync::Arc;

use crate::engine::failure::ScriptFailure;
use crate::engine::vm::Interpreter;
use crate::init::on_own_stack;
use crate::program::life::LoadedScript;
use crate::script::{Script, ScriptFile, ScriptInput};

/// Bytes that an interpreter holds: without a script, and with this one.
fn held(text: &str) -> (i64, i64) {
    let folder = tempfile::tempdir().expect("a folder");
    let main = folder.path().join("main.js");
    std::fs::write(&main, text).expect("written");
    let main = main.to_str().expect("UTF-8").to_owned();
    let input = ScriptInput { main, heap_bytes: 64 << 20, ..ScriptInput::default() };
    let script = Arc::new(Script::new(Arc::new(ScriptFile::new(input))));
    let held = |script: &Arc<Script>| {
        on_own_stack(script, |state| {
            let file = &state.script.file;
            let vm = Interpreter::new(state, &file.modules, file.heap_bytes).map_err(ScriptFailure::of_message)?;
            let bytes = || vm.context.runtime().memory_usage().malloc_size;
            let empty = bytes();
            vm.context.with(|ctx| LoadedScript::load(&ctx, state).map(drop))?;
            vm.context.runtime().run_gc();
            Ok((empty, bytes()))
        })
        .expect("valid")
    };
    // The first one compiles.
    let _ = held(&script);
    held(&script)
}

#[test]
fn a_user_of_requests_and_checks_adds_little_to_an_interpreter() {
    let text = "import http from 'k6/http';\nimport { check, sleep } from 'k6';\n\
                export default function () { check(http.get('/'), { ok: (r) => r.status === 200 }); sleep(1); }";
    let (empty, whole) = held(text);
    assert!(whole - empty < 30_000, "{} bytes beside {empty}", whole - empty);
}

#[test]
fn a_module_adds_little_until_it_is_used() {
    for (import, most) in
        [("k6", 4_000), ("k6/http", 16_000), ("k6/metrics", 12_000), ("k6/data", 12_000), ("k6/execution", 20_000)]
    {
        let nothing = "export default function () {}";
        let (_, without) = held(nothing);
        let (_, with) = held(&format!("import '{import}';\n{nothing}"));
        assert!(with - without < most, "{import}: {} bytes", with - without);
    }
}
