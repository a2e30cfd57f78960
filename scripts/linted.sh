#!/usr/bin/env bash
# A compiler of the workspace's crates that lints them and reads their documentation meanwhile; a warning is an error.
#
#     RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/linted.sh cargo build --workspace --all-targets
#
# What it compiles is what the tests run: where lints and tests are both wanted, nothing is read twice. Lints are those of
# `cargo clippy -- -D warnings`, whose driver is a compiler; documentation is that of libraries, as `cargo doc` reads it.
set -euo pipefail

compiler=$1
shift
sources=() # the root of a crate, if one is compiled
name=
kind=
target=
flags=(--document-private-items -Dwarnings)
arguments=("$@")
while [ $# -gt 0 ]; do
    case $1 in
        --crate-name) name=$2 ;;
        --crate-type) kind=$2 ;;
        --out-dir) target=$2 ;;
        --test) kind=test ;;
        --edition=*) flags+=("$1") ;;
        --extern | -L | --cfg | --check-cfg) flags+=("$1" "$2") ;;
        *.rs) sources+=("$1") ;;
    esac
    shift
done
if [ ${#sources[@]} = 0 ]; then
    exec "$compiler" "${arguments[@]}"
fi
# A library is compiled twice, also with its unit tests: these are linted, and have all of its code. The compiler's own
# warnings, some of which tests do not have, are those of both.
is_linted_with_tests() {
    [ "$kind" = lib ] && ! grep -q '^test = false' "$CARGO_MANIFEST_DIR/Cargo.toml" &&
        ! grep -rqF 'not(test)' "$CARGO_MANIFEST_DIR/src"
}
driver=(clippy-driver)
if is_linted_with_tests; then driver=(); fi
"${driver[@]}" "$compiler" "${arguments[@]}" -Dwarnings
if [ "$kind" = lib ]; then
    pages=$target/../doc-of-$name
    rustdoc --crate-name "$name" --out-dir "$pages" "${flags[@]}" "${sources[0]}"
    rm -rf "$pages"
fi
