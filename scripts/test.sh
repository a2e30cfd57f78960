#!/usr/bin/env bash
# Runs the whole suite: goes on after a failure, and lists all failures at the end.
#
#     scripts/test.sh        after scripts/setup.sh test
#
# What each step printed is kept in target/suite/. Ends with 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."

kept=target/suite
mkdir -p "$kept"
failed=()

# Runs a command under a name. Its output goes to a file that is shown meanwhile, and not to a pipe: a process that is
# left behind would keep that open, and this waiting.
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

# The tests and fuzz targets that failed, as their programs name them.
named() {
    sed -n -E \
        -e 's/^test (.*) \.\.\. FAILED$/    \1/p' \
        -e 's/^(FAILED|ERROR) ([^ ]*::.*)$/    \2/p' \
        -e 's/^fuzz: ([^ ]*) FAILED.*$/    fuzz target \1/p' \
        -e 's/^error: could not compile (.*)$/    could not compile \1/p' "$1"
}

# Each step is a process group of its own, in which Ctrl-C is not ignored as it is in other background jobs; ours
# is passed on to it.
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
echo "test: these failed (all that was printed is in $kept/):" >&2
printf '  %s\n' "${failed[@]}" >&2
exit 1
