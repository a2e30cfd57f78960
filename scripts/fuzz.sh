#!/usr/bin/env bash
# Builds the fuzz targets with the stable compiler and runs each for some seconds.
#
#     scripts/fuzz.sh [SECONDS] [TARGET...]        10 seconds each, all targets
#
# An input that makes a target fail is saved in fuzz/artifacts/TARGET/; the exit code is then 1, and the command that
# repeats the failure is printed. Inputs with new coverage are saved in fuzz/corpus/TARGET/, from where the next call
# continues; the first one starts from fuzz/seeds/TARGET/.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-10}
shift $(($# > 0 ? 1 : 0))
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
    echo "fuzz: invalid number of seconds '$seconds'; write scripts/fuzz.sh [SECONDS] [TARGET...]" >&2
    exit 2
fi
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    for file in fuzz/src/targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi

# Flags of `cargo fuzz` without the sanitizers, which need nightly; there is hardly any unsafe code to sanitize.
flags=(
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
    --cfg fuzzing
)
host=$(rustc -vV | sed -n 's/^host: //p')
built=${CARGO_TARGET_DIR:-$PWD/target/fuzz}
# With --target, the flags do not apply to build scripts and procedural macros.
RUSTFLAGS=${flags[*]} cargo build --quiet --profile fuzz --locked -p weir-fuzz --features libfuzzer \
    --target "$host" --target-dir "$built"
built=$built/$host/fuzz
programs=$built/named
mkdir -p "$programs"
for target in "${targets[@]}"; do
    if [ ! -f "fuzz/src/targets/$target.rs" ]; then
        echo "fuzz: no target '$target'; fuzz/src/targets/ has them" >&2
        exit 2
    fi
    ln -f "$built/targets" "$programs/$target"
done

# Runs one target; returns 1 if an input made it fail.
run() {
    local target=$1 corpus=fuzz/corpus/$1 artifacts=fuzz/artifacts/$1 program=$programs/$1
    local log=$artifacts/log.txt runs found
    mkdir -p "$corpus" "$artifacts"
    # An input may take long by the clock where others use the processor.
    local options=(-max_total_time="$seconds" -max_len=4096 -timeout=60 -rss_limit_mb=1024 -print_final_stats=1)
    [ -f "fuzz/dicts/$target.txt" ] && options+=(-dict="fuzz/dicts/$target.txt")
    local corpora=("$corpus")
    [ -d "fuzz/seeds/$target" ] && corpora+=("fuzz/seeds/$target")
    if "$program" "${options[@]}" -artifact_prefix="$artifacts/" "${corpora[@]}" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "fuzz: $target held for ${runs:-?} inputs in $seconds s"
        return
    fi
    found=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
    echo "fuzz: $target FAILED; repeat with: $program ${found:-$log}" >&2
    grep -v -e '^#[0-9]' -e '^INFO' -e 'NEW_FUNC' -e '^WARNING' "$log" | head -40 >&2 || true
    return 1
}

# As many at a time as there are cores.
failed=0
running=0
for target in "${targets[@]}"; do
    if [ "$running" = "$(nproc)" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    run "$target" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"
