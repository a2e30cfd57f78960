//! All fuzz targets in one program, so that instrumented code is compiled and linked once: the name by which the program
//! is called says which target it is (`scripts/fuzz.sh` makes a link for each).
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let program = std::env::args().next().unwrap_or_default();
    let name = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    weir_fuzz::named(name)
        .unwrap_or_else(|| panic!("no target is named '{name}'; call this program by a link with its name"))
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
