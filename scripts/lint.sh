#!/usr/bin/env bash
# Lints of all that is Rust, and its documentation; a warning is an error.
#
# If scripts/linted.sh is the compiler, whose programs the tests run, that is a build; else nothing is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${RUSTC_WORKSPACE_WRAPPER:-}" = "$PWD/scripts/linted.sh" ]; then
    exec cargo build --workspace --all-targets --locked
fi
cargo clippy --workspace --all-targets --locked -- -D warnings
# What clippy sets: with it, documentation takes the crates as the lints have read them, and without it reads all again.
wrapper=$(rustc --print sysroot)/bin/clippy-driver
export CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
RUSTC_WORKSPACE_WRAPPER=$wrapper RUSTDOCFLAGS="-D warnings" \
    cargo doc --workspace --no-deps --document-private-items --locked
