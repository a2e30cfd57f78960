//! All fuzz targets in one program, so that instrumented code is compiled and linked once: the name by which the program
//! is called says which target it is (`scripts/fuzz.sh` makes a link for each).
#![no_main]

#[path = "../../crates/http2/tests/seeded_peer/allocation.rs"]
mod allocation;
mod stream_pieces;

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

/// Defines the function of a target, `run`, from an input of a type that [`libfuzzer_sys::arbitrary`] knows and a body. A
/// body fails by a panic.
macro_rules! target {
    (|$input:ident: $kind:ty| $body:block) => {
        pub(crate) fn run(bytes: &[u8]) {
            use libfuzzer_sys::arbitrary::{Arbitrary, Unstructured};
            let Ok($input) = <$kind as Arbitrary>::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
            $body
        }
    };
}
use target;

/// Declares the modules of the targets and [`named`].
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        mod targets {
            $(pub(crate) mod $name;)*
        }

        /// Target of a name.
        fn named(name: &str) -> Option<fn(&[u8])> {
            match name {
                $(stringify!($name) => Some(targets::$name::run),)*
                _ => None,
            }
        }
    };
}

targets![
    accesslog,
    agents,
    answers,
    cookies,
    datasets,
    dns,
    events,
    gate_config,
    http2,
    hurl,
    import,
    jobs,
    json_path,
    paths,
    proxy_header,
    rehearsal,
    request,
    results,
    run,
    scenario,
    services,
    study_file,
    target,
    upstream,
    words,
];

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let program = std::env::args().next().unwrap_or_default();
    let name = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    named(name).unwrap_or_else(|| panic!("no target is named '{name}'; call this program by a link with its name"))
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
