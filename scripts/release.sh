#!/usr/bin/env bash
# Makes a release in dist/, all but the upload: version, changes, packages, a bill of materials, licences, checksums.
#
#     scripts/release.sh 1.2.3
#
# Begins in a clean checkout, and leaves the change of the version uncommitted: look at it, commit it, and tag it as the
# last lines say. SOURCE_DATE_EPOCH is the time in archives.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

version=${1:-}
say() { echo "release: $*" >&2; }

fail() {
    say "$*"
    exit 2
}

[ -n "$version" ] || fail "which version? make release VERSION=1.2.3"
[ -z "$(git status --porcelain)" ] || fail "the checkout has changes that are not committed; commit or stash them"

date=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%F)
python3 scripts/package/set_version.py "$version" "$date"
# Lines of weir's own crates in Cargo.lock; those of others stay.
cargo update --workspace --offline --quiet

scripts/audit.sh
rm -rf dist
scripts/package.sh all
scripts/package/try.sh

scripts/package/lists.sh
say "next: git commit -am 'Release $version' && git tag -s v$version && git push --follow-tags; then upload dist/"
