#!/usr/bin/env bash
# Prepares a machine for a make target: system packages, .venv, and weir in it.
#
#     scripts/setup.sh demo|test|test-all|studies|docs|check|fuzz|soak|bench
#     scripts/setup.sh packages        what the tests of both targets need in .venv besides weir
#
# A fresh Debian 12 with Rust (stable) is sufficient. Packages are installed where that is allowed (root, or sudo
# without a password, and apt); elsewhere missing ones are printed in one line, and the exit code is 2. Another call
# only applies changes: a fraction of a second without any.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin:/usr/sbin:/usr/local/go/bin
python=${PYTHON:-python3}
. scripts/machine.sh
. scripts/judges.sh

main() {
    local purpose=${1:-}
    case $purpose in
        demo | studies | docs) ;;
        # Redis for queues, shells for completions, a formatter for manual pages; tests without their program are skipped.
        test)
            spares=(redis-server fish groff zsh)
            wants+=("${spares[@]}")
            ;;
        # A browser for pages, and npm for the accessibility checker.
        test-all)
            spares=(chromium npm redis-server)
            wants+=("${spares[@]}")
            ;;
        packages)
            spares=(chromium npm redis-server fish groff zsh)
            wants+=("${spares[@]}")
            ;;
        check) ;;
        fuzz) wants+=(c++) ;;      # fuzz targets contain libFuzzer, which is C++
        # Newman and JMeter judge what is imported, Go and Java gRPC, Node, Go and nginx WebSocket; without them tests are skipped.
        soak)
            wants+=(c++)
            spares=(npm javac mvn go nginx)
            wants+=("${spares[@]}")
            ;;
        bench) wants+=(c++ nginx haproxy wrk ab h2load civetweb microhttpd) ;;
        *) fail "unknown target '$purpose'; choose demo, test, test-all, packages, studies, docs, check, fuzz, soak or bench" ;;
    esac
    space "$purpose"
    system
    rust "$purpose"
    case $purpose in
        fuzz) return ;;
        *) venv ;;
    esac
    # Each in a line of its own: bash goes on after a failure to the left of `&&`.
    case $purpose in
        demo) demonstration ;;
        test) beside tests ;;
        test-all) beside packages ;;
        packages) packages ;;
        studies | bench)
            tools
            package release
            ;;
        docs)
            site
            package dev
            ;;
        check) tools ;;
        soak)
            tools
            ray
            judges
            package dev
            ;;
    esac
}

say() { echo "setup: $*" >&2; }

fail() {
    say "$*"
    exit 2
}

# --- The command

# What the demonstration needs: the examples' packages, and meanwhile the command.
demonstration() {
    examples &
    local packages=$!
    command_alone
    wait "$packages"
}

# Packages that tests need, by this function, and meanwhile weir. Its backend is one of the tools, too.
beside() {
    backend
    "$1" &
    local packages=$!
    package dev suite
    wait "$packages"
}

tests() { group test "what the tests need"; }

packages() {
    tools
    examples
    from_npm axe axe-core@4.14.1          # accessibility checker that the test of pages injects
    from_npm pyright pyright@1.1.414      # type checker that reads the snippets of users, beside mypy
    from_npm k6-types @types/k6@2.3.0      # names of k6, as its types have them
    from_npm typescript typescript@5.9.3   # compiler that reads them and checks examples/k6
    frameworks
    site
}

# The command without the Python package: from a wheel in dist/ if there is one, else built.
command_alone() {
    local version wheels
    version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
    wheels=(dist/weir_http-"$version"-*.whl)
    mkdir -p target/demo
    if [ -f "${wheels[0]}" ]; then
        say "installing ${wheels[0]}"
        pip install --no-deps --force-reinstall "${wheels[0]}"
        ln -sf "$PWD/.venv/bin/weir" target/demo/weir
        return
    fi
    say "building weir: some minutes on 2 cores the first time, seconds after that"
    # Without Lua, JavaScript, Redis, SQLite, the tokenizer and JSON Schemas, half of which is C: an error names what is left out.
    build --profile demo -p weir-cli --no-default-features
}

# cargo build, with a line every 15 s.
build() {
    local log=target/setup.log all began=$SECONDS
    mkdir -p target
    all=$(cargo tree --locked --quiet --edges normal,build --prefix none --no-dedupe "${@:3}" | sort -u | wc -l)
    cargo build --locked "$@" >"$log" 2>&1 &
    local cargo=$!
    while sleep 0.5 && kill -0 "$cargo" 2>/dev/null; do
        if [ $(((SECONDS - began) % 15)) = 14 ]; then
            say "$(grep -c Compiling "$log") of at most $all crates, $((SECONDS - began)) s"
            sleep 1
        fi
    done
    wait "$cargo" || {
        cat "$log" >&2
        fail "weir could not be built; see above"
    }
}

# --- .venv, and what is in it. A stamp holds the digest of what a step was made from.

is_done() { [ "$(cat ".venv/stamps/$1" 2>/dev/null)" = "$2" ]; }

stamp() { echo "$2" >".venv/stamps/$1"; }

digest() { cat -- "$@" | sha256sum | cut -d' ' -f1; }

pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@" </dev/null; }

# Installs packages, by the arguments of pip, with uv: it takes a tenth of pip's time. pip does where uv cannot, and where
# its configuration, which uv does not read, says where packages come from.
add() {
    by_uv "$@" 2>/dev/null || pip install --no-compile "$@"
}

by_uv() {
    local settings links
    settings=$(.venv/bin/python -m pip config list)
    links=$(sed -n "s/^[^']*\.find-links='\(.*\)'$/\1/p" <<<"$settings" | tail -1)
    if grep -qE '\.(index-url|extra-index-url|no-index|proxy|trusted-host|client-cert|constraint)=' <<<"$settings"; then
        return 1
    fi
    [ -x .venv/bin/uv ] || pip install uv==0.13.9 || return
    UV_FIND_LINKS=$links .venv/bin/uv pip install --quiet --python .venv/bin/python "$@" </dev/null
}

# The same, of a list in pyproject.toml: NAME KEY...
add_list() {
    local list=.venv/stamps/$1.txt
    requirements "${@:2}" >"$list"
    add -r "$list"
}

venv() {
    if ! .venv/bin/python -c '' 2>/dev/null; then
        say "making .venv"
        "$python" -m venv --clear .venv
    fi
    mkdir -p .venv/stamps
}

# Reads a list of requirements from pyproject.toml.
requirements() {
    .venv/bin/python - "$@" <<'PYTHON'
import sys

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

with open("pyproject.toml", "rb") as file:
    table = tomllib.load(file)
for key in sys.argv[1:]:
    table = table[key]
print(*table, sep="\n")
PYTHON
}

tools() {
    tests
    group dev "the development tools"
    group sdks "clients of language models"
}

examples() {
    local now
    now=$(digest examples/requirements.txt)
    if ! is_done examples "$now"; then
        say "installing the packages of the examples"
        add -r examples/requirements.txt
        stamp examples "$now"
    fi
}

# A tool from npm, in a folder of .venv; its test is skipped without it.
from_npm() { # FOLDER PACKAGE@VERSION
    if ! is_done "$1" "$2"; then
        say "installing $2"
        if has npm && timeout 180 npm install --silent --no-audit --no-fund --fetch-retries 1 --prefix ".venv/$1" "$2" </dev/null; then
            stamp "$1" "$2"
        else
            say "without $2, which could not be installed: its test is skipped"
        fi
    fi
}

# Packages of one of the optional groups of the project: NAME, what it is called.
group() {
    local now
    now=$(requirements project optional-dependencies "$1" | digest -)
    if ! is_done "$1" "$now"; then
        say "installing $2"
        add_list "$1" project optional-dependencies "$1"
        stamp "$1" "$now"
    fi
}

# The same, where it may be that they cannot be installed: NAME, what they are called, what is not tested without them.
optional() {
    local now
    now=$(requirements project optional-dependencies "$1" | digest -)
    if ! is_done "$1" "$now"; then
        say "installing $2"
        if add_list "$1" project optional-dependencies "$1"; then
            stamp "$1" "$now"
        else
            say "without $2, which could not be installed: $3"
        fi
    fi
}

# Cluster for the tests of agents.
ray() {
    optional ray Ray "agents on a cluster are not tested"
}

# Libraries that call language models, for the tests of `weir serve llm`.
frameworks() {
    optional frameworks "LiteLLM and LangChain" "the service of language models is not tested with them"
}

# Generator of the documentation's site.
site() {
    optional docs Sphinx "the documentation's site cannot be built"
}

# What builds the package.
backend() { add_list backend build-system requires; }

# The package, and the suite before it if that is asked for, built in this profile, unless WEIR_PROFILE names another: tests
# share what is compiled with those in Rust, and measurements need a build with optimisation.
package() {
    local now profile=${WEIR_PROFILE:-$1}
    now=$profile-$(find src crates python Cargo.toml Cargo.lock pyproject.toml README.md -type f -not -name '*.pyc' \
        -not -path 'python/tests/*' -not -path 'python/weir.data/*' -print0 | sort -z | xargs -0 sha256sum | digest -)
    if ! is_done package "$now" || ! [ -x .venv/bin/weir ]; then
        say "building weir in the profile $profile and installing it into .venv (some minutes the first time)"
        backend
        # All that the suite builds, so that no core waits for the last crates of the package alone. What is wrong here is
        # shown by the same build in the suite.
        [ -z "${2:-}" ] || cargo test --workspace --locked --no-run >/dev/null 2>&1 || true
        WEIR_PROFILE=$profile PATH="$PWD/.venv/bin:$PATH" pip install --no-build-isolation --no-deps --force-reinstall .
        stamp package "$now"
    fi
}

main "$@"
