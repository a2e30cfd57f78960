#!/usr/bin/env bash
# Prints the compiler's flags for fuzzing, or with arguments runs them as a compiler with these flags: a wrapper of rustc.
#
#     RUSTFLAGS=$(scripts/coverage.sh) cargo build ...                                 all crates
#     RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/coverage.sh cargo build ...                 those of the workspace
set -euo pipefail

# Flags of `cargo fuzz` without the sanitizers, which need nightly; there is hardly any unsafe code to sanitize.
flags=(
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
    --cfg fuzzing
)
if [ $# = 0 ]; then
    echo "${flags[*]}"
elif [[ " $* " == *" --crate-name "* ]]; then
    # A search of seconds finds less than optimising costs: 390 s of processor time for all crates.
    exec "$@" "${flags[@]}" -Copt-level=0
else
    exec "$@"
fi
