#!/usr/bin/env bash
# Runs the suite, or what `make test-all` has besides; continues after a failure, and lists all failures at the end.
#
#     scripts/test.sh test|test-all        after scripts/setup.sh of the same name
#
# The output of a step is shown whole, one step after the other, and saved in target/suite/, and tests that failed in any
# of the last ten runs are listed (scripts/flaky.py). The exit code is 1 if any step failed.
set -uo pipefail
cd "$(dirname "$0")/.."

suite=${1:-test}
[ -x .venv/bin/python ] || {
    echo "test: .venv is missing; run: make $suite" >&2
    exit 2
}
kept=target/suite
mkdir -p "$kept"
failed=()
names=()
reasons=()

# Runs a command as a step: the output goes to a file and not to a pipe, which a process that is left behind would keep
# open; then its status and its times to another one.
run() {
    local name=$1 log=$kept/$1.log status=0 TIMEFORMAT='%R s, processor time %U s + %S s'
    shift
    echo "== $*" >"$log"
    { time "$@" >>"$log" 2>&1 </dev/null; } 2>"$kept/$name.took" || status=$?
    echo "$status $(tail -1 "$kept/$name.took"), ended after $SECONDS s" >"$kept/$name.new"
    mv "$kept/$name.new" "$kept/$name.end"
}

# Waits for the end of a step, or of all of them if they were killed.
ended() {
    while [ ! -e "$kept/$1.end" ] && kill -0 "$steps_pid" 2>/dev/null; do sleep 0.2; done
    [ -e "$kept/$1.end" ]
}

# Shows the output of a step from its beginning to its end.
show() {
    local name=$1 log=$kept/$1.log status times
    while [ ! -e "$log" ] && kill -0 "$steps_pid" 2>/dev/null; do sleep 0.2; done
    ended "$name" &
    tail -n +1 -s 0.2 -f --pid=$! "$log"
    ended "$name" && read -r status times <"$kept/$name.end" || { status=137 times=killed; }
    printf -- '-- %s: %s\n' "$name" "$times"
    if [ "$status" != 0 ]; then
        failed+=("$name ($(sed 's/^== //;q' "$log")) ended with $status")
        mapfile -t -O "${#names[@]}" names < <(named "$log")
    fi
    mapfile -t -O "${#reasons[@]}" reasons < <(reasons "$log")
}

# Names of failed tests, from the output of their programs.
named() {
    sed -n -E \
        -e 's/^test (.*) \.\.\. FAILED$/\1/p' \
        -e 's/^(FAILED|ERROR) ([^ ]*::.*)$/\2/p' \
        -e 's/^error: could not compile (.*)$/could not compile \1/p' "$1" | awk '!seen[$0]++'
}

# What failed tests have printed, without stacks, to show it at the end.
reasons() {
    awk '
        /^---- .* stdout ----$/ { left = 16 }
        /^stack backtrace:$/ { left = 0 }
        /^E  / { print }
        left > 0 { print; left-- }' "$1" | cut -c -600 | head -100
}

# The steps are a process group of their own, which does not ignore Ctrl-C as other background jobs do; the trap forwards
# the signal to it.
set -m
trap 'for job in $(jobs -p); do kill -INT -- "-$job"; done 2>/dev/null; exit 130' INT TERM

# Images of containers set it: every process would then compile each module that it imports, and the tests are 1,000 processes.
unset PYTHONDONTWRITEBYTECODE
# Most tests wait for a service or a clock; more of them than cores run side by side.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((4 * $(nproc)))}
# Properties take other values in each run; `make soak` takes ten times as many.
export PROPTEST_CASES=${PROPTEST_CASES:-100}
packages=(--workspace --locked)
python=(.venv/bin/python)

case $suite in
    test) steps=(build unit doc integration python timed timed-python) ;;
    test-all) steps=(wide-build wide-rust wide-python) ;;
    *)
        echo "test: unknown suite '$suite'; choose test or test-all" >&2
        exit 2
        ;;
esac
for step in "${steps[@]}"; do rm -f "$kept/$step".{log,end,took}; done

step() {
    case $1 in
        build) run build cargo test "${packages[@]}" --no-run ;;
        unit) run unit "${python[@]}" scripts/rust_tests.py unit ;;
        doc) run doc cargo test "${packages[@]}" --no-fail-fast --doc ;;
        # These two beside each other: both wait more than they compute.
        integration) run integration env WEIR_EXAMPLES_BUILT=1 "${python[@]}" scripts/rust_tests.py integration & ;;
        python)
            run python "${python[@]}" scripts/python_tests.py package
            wait
            ;;
        timed) run timed "${python[@]}" scripts/rust_tests.py timed ;;
        timed-python) run timed-python "${python[@]}" scripts/python_tests.py timed ;;
        # Benchmarks are compiled and not run.
        wide-build) run wide-build cargo build "${packages[@]}" --benches ;;
        wide-rust) run wide-rust "${python[@]}" scripts/rust_tests.py wide & ;;
        wide-python)
            run wide-python "${python[@]}" scripts/python_tests.py wide
            wait
            ;;
    esac
}

{
    trap 'exit 130' INT TERM
    for each in "${steps[@]}"; do step "$each"; done
} &
steps_pid=$!
for each in "${steps[@]}"; do show "$each"; done

printf '%s\n' "${names[@]}" | .venv/bin/python scripts/flaky.py "$suite"
if [ ${#failed[@]} != 0 ]; then
    echo "$suite: these failed (output in $kept/):" >&2
    printf '  %s\n' "${failed[@]}" "${names[@]/#/  }" "${reasons[@]}" >&2
    exit 1
fi
echo "$suite: all passed"
