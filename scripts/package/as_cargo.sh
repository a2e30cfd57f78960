#!/usr/bin/env bash
# Stands in for cargo where cargo-zigbuild calls it, and runs the command line of AS_CARGO in place of `cargo build`: in the
# environment that links with zig.
set -euo pipefail
unset CARGO
[ "$1" = build ] || exec cargo "$@"
eval "exec $AS_CARGO"
