#!/usr/bin/env bash
# Checks what weir depends on by deny.toml: licences, and that all crates are from crates.io. A release does that.
#
#     scripts/audit.sh [--advisories]
#
# With --advisories, known vulnerabilities are looked up, too: those of crates in RustSec's database, which is fetched from
# GitHub, and those of the Python packages in .venv by PyPI's API. So it needs the internet.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

version=0.20.2
tools=$PWD/target/package
if [ "$("$tools/bin/cargo-deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
    echo "audit: building cargo-deny $version, some minutes" >&2
    env -u RUSTC_WORKSPACE_WRAPPER cargo install --quiet --locked --root "$tools" "cargo-deny@$version"
fi
checks=(licenses bans sources)
[ "${1:-}" != --advisories ] || checks+=(advisories)
"$tools/bin/cargo-deny" --locked check --hide-inclusion-graph "${checks[@]}"

if [ "${1:-}" = --advisories ]; then
    python3 -m venv "$tools/audit"
    "$tools/audit/bin/pip" install --quiet --disable-pip-version-check "pip-audit>=2.10"
    "$tools/audit/bin/pip-audit" --path .venv/lib/python3*/site-packages
fi
