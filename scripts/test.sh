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

# Runs a command under a name. Its output goes to a file that is shown meanwhile, and not to a pipe, which a process
# that is left behind would keep open.
step() {
    local name=$1 log=$kept/$1.log status=0
    shift
    printf '== %s\n' "$*"
    "$@" >"$log" 2>&1 </dev/null &
    local running=$!
    tail -n +1 -s 0.2 -f --pid="$running" "$log" &
    local shown=$!
    wait "$running" || status=$?
    wait "$shown"
    if [ "$status" != 0 ]; then
        failed+=("$name ($*) ended with $status")
        mapfile -t -O "${#failed[@]}" failed < <(named "$log")
    fi
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

step rust cargo test --workspace --locked --no-fail-fast
step benches cargo build --benches --locked
step python .venv/bin/python -m pytest -q
step fuzz scripts/fuzz.sh 5

if [ ${#failed[@]} = 0 ]; then
    echo "test: all passed"
    exit
fi
echo "test: these failed (output in $kept/):" >&2
printf '  %s\n' "${failed[@]}" >&2
exit 1
