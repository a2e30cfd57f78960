#!/usr/bin/env bash
# Writes what belongs to the packages in dist/: a bill of materials, licences, a recipe for Homebrew, checksums.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:$HOME/.cargo/bin
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)}
export SOURCE_DATE_EPOCH

say() { echo "lists: $*" >&2; }

python3 scripts/package/dependencies.py sbom >"dist/weir-$version.cdx.json"
python3 scripts/package/dependencies.py licences >"dist/THIRD-PARTY-$version.txt"
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' packaging/addresses.toml)
if [ -n "$repository" ]; then
    digest=$(sha256sum "dist/weir-$version-x86_64-linux.tar.gz" | cut -d' ' -f1)
    sed -e "s|@REPOSITORY@|$repository|g; s|@VERSION@|$version|g; s|@SHA256_LINUX@|$digest|g" \
        packaging/homebrew/weir.rb.in >dist/weir.rb
else
    say "without a recipe for Homebrew: packaging/addresses.toml has no address of the repository"
fi
rm -f dist/SHA256SUMS
(cd dist && sha256sum -- * >SHA256SUMS)
cat dist/SHA256SUMS
