#!/usr/bin/env bash
# Runs the whole suite; continues after a failure, and lists all failures at the end.
#
#     scripts/test.sh        after scripts/setup.sh test
#
# The output of each step is saved in target/suite/. The exit code is 1 if any step failed.
set -uo pipefail
cd "$(dirname "$0")/.."

kept=target/suite
mkdir -p "$kept"
failed=()

# Starts a command under a name. Its output goes to a file and not to a pipe, which a process that is left behind would
# keep open.
start() {
    local log=$kept/$1.log
    shift
    : >"$log"
    "$@" >"$log" 2>&1 </dev/null &
    started=$!
}

# Shows the output of a started command until its end: its name, its process, the command.
follow() {
    local name=$1 running=$2 log=$kept/$1.log status=0
    shift 2
    printf '== %s\n' "$*"
    tail -n +1 -s 0.2 -f --pid="$running" "$log" &
    local shown=$!
    wait "$running" || status=$?
    wait "$shown"
    # In this shell: another one has no children yet.
    times >"$kept/times"
    printf -- '-- %s: ended after %s s; processor time of all that has ended: %s\n' "$name" "$SECONDS" "$(tail -1 "$kept/times")"
    if [ "$status" != 0 ]; then
        failed+=("$name ($*) ended with $status")
        mapfile -t -O "${#failed[@]}" failed < <(named "$log")
    fi
}

step() {
    start "$@"
    local name=$1
    shift
    follow "$name" "$started" "$@"
}

# Names of failed tests and fuzz targets, from the output of their programs.
named() {
    sed -n -E \
        -e 's/^test (.*) \.\.\. FAILED$/    \1/p' \
        -e 's/^(FAILED|ERROR) ([^ ]*::.*)$/    \2/p' \
        -e 's/^fuzz: ([^ ]*) FAILED.*$/    fuzz target \1/p' \
        -e 's/^error: could not compile (.*)$/    could not compile \1/p' "$1"
}

# Each step is a process group of its own, which does not ignore Ctrl-C as other background jobs do; the trap forwards
# the signal to it.
set -m
trap 'for job in $(jobs -p); do kill -INT -- "-$job"; done 2>/dev/null; exit 130' INT TERM

# Most tests wait for a service or a clock; more of them than cores run side by side. Fuzzing takes the processor time
# that those in Python leave.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))}
# Targets of fuzzing are built with instrumentation, by their script.
packages=(--workspace --exclude weir-fuzz --locked)
step build cargo test "${packages[@]}" --no-run
step rust cargo test "${packages[@]}" --no-fail-fast
step benches cargo build "${packages[@]}" --benches
# Cargo builds one thing at a time in a folder, and tests in Rust build examples.
fuzz=(nice -n 19 scripts/fuzz.sh --shared 3)
start fuzz "${fuzz[@]}"
fuzzing=$started
# Tests in Python wait, too; each file stays in one worker, which has its services and its browser.
step python .venv/bin/python -m pytest -q -n $(($(nproc) + 2)) --dist loadfile
follow fuzz "$fuzzing" "${fuzz[@]}"

if [ ${#failed[@]} = 0 ]; then
    echo "test: all passed"
    exit
fi
echo "test: these failed (output in $kept/):" >&2
printf '  %s\n' "${failed[@]}" >&2
exit 1
