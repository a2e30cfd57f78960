#!/usr/bin/env bash
# Type-checks the command for other systems than Linux: what they alone compile is read by a compiler, and not run.
#
# A check links nothing, so C is not compiled either: a stand-in writes empty objects where a build script asks for them.
# LuaJIT's build does not go without a compiler for the system: scripts are left out, but for the crate of k6's.
set -euo pipefail
cd "$(dirname "$0")/.."

stub=$(mktemp -d)
trap 'rm -rf "$stub"' EXIT
cat > "$stub/cc" <<'END'
#!/bin/sh
out=
while [ $# -gt 0 ]; do
    case "$1" in
        -o) out=$2; shift ;;
        -o*) out=${1#-o} ;;
    esac
    shift
done
[ -z "$out" ] || : > "$out"
END
chmod +x "$stub/cc"

for target in x86_64-apple-darwin x86_64-unknown-freebsd; do
    rustup target list --installed | grep -qx "$target" || rustup target add "$target"
    name=${target//-/_}
    # Neither Apple's SDK nor an archiver of the system is there, and neither is needed.
    env SDKROOT=/ "CC_$name=$stub/cc" "CXX_$name=$stub/cc" "AR_$name=/bin/true" \
        cargo clippy --target "$target" --target-dir target/systems --locked -p weir-cli -p weir-k6 \
        --no-default-features --features weir-cli/redis,weir-cli/schema,weir-cli/sqlite,weir-cli/tokenizer -- -D warnings
done
