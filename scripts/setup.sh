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

# --- Space

# Fails where the disk has less than a build takes, which what is built already counts for.
space() {
    local least=8 free used
    case $1 in
        demo) least=2 ;;
        test | check | docs) least=6 ;;
    esac
    free=$(df -Pk . | awk 'NR == 2 { print $4 }')
    [ "${free:-0}" -lt $((least * 1024 * 1024)) ] || return 0
    used=$({ du -skc target .venv 2>/dev/null || true; } | tail -1 | cut -f1)
    [ $((free + ${used:-0})) -ge $((least * 1024 * 1024)) ] ||
        fail "$((free / 1024)) MB are free in $PWD, and make $1 needs $least GB: free some, or clone weir to another disk"
}

# --- System packages

wants=(cc headers python venv) # required programs and headers
spares=()                      # optional ones of them

has() {
    case $1 in
        headers) includes stdio ;;
        civetweb | microhttpd) includes "$1" ;;
        python) command -v "$python" >/dev/null ;;
        venv) "$python" -c 'import ensurepip, venv' 2>/dev/null ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

includes() { echo "#include <$1.h>" | cc -E - >/dev/null 2>&1; }

# Debian package of a program or header.
package_of() {
    case $1 in
        cc) echo gcc ;;
        headers) echo libc6-dev ;;
        c++) echo g++ ;;
        python) echo python3 ;;
        venv) echo python3-venv ;;
        ab) echo apache2-utils ;;
        groff) echo groff-base ;;
        javac) echo default-jdk-headless ;;
        mvn) echo maven ;;
        go) echo golang-go ;;
        h2load) echo nghttp2-client ;;
        civetweb | microhttpd) echo "lib$1-dev" ;;
        *) echo "$1" ;;
    esac
}

missing() {
    local want
    for want in "${wants[@]}"; do has "$want" || package_of "$want"; done
}

# Removes missing optional packages from the list, and prints them.
spare() {
    local each kept=() want
    for want in "${wants[@]}"; do
        for each in "${spares[@]}"; do
            if [ "$want" = "$each" ] && ! has "$want"; then
                say "without $(package_of "$want"), which could not be installed: some tests are skipped"
                continue 2
            fi
        done
        kept+=("$want")
    done
    wants=("${kept[@]}")
}

system() {
    local packages root=()
    [ -z "${PYTHON:-}" ] || has python || fail "PYTHON=$PYTHON is not on this machine; give another one, e.g. PYTHON=python3"
    mapfile -t packages < <(missing)
    if [ ${#packages[@]} -gt 0 ]; then
        [ "$(id -u)" = 0 ] || root=(sudo -n)
        if command -v apt-get >/dev/null && { [ ${#root[@]} = 0 ] || sudo -n true 2>/dev/null; }; then
            say "installing ${packages[*]}"
            install_packages || true
        fi
        spare
        mapfile -t packages < <(missing)
        [ ${#packages[@]} = 0 ] || fail "$(missed)"
    fi
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        fail "$("$python" --version) is too old; weir needs Python 3.10 or newer (PYTHON=... chooses another)"
}

# What is missing, and how it is installed.
missed() {
    if ! command -v apt-get >/dev/null; then
        echo "missing: ${packages[*]}, by the names of Debian; install them with this system's package manager"
    elif [ "$(id -u)" = 0 ]; then
        echo "missing, and apt-get could not install it: ${packages[*]}"
    else
        echo "missing, and cannot be installed without root: ${packages[*]}; run: apt-get install ${packages[*]}"
    fi
}

# Package lists are updated only if the installation with the current ones fails.
install_packages() {
    local install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends)
    "${install[@]}" "${packages[@]}" >/dev/null 2>&1 && return
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null
    "${install[@]}" "${packages[@]}" >/dev/null
}

# --- Rust

rust() {
    local least have
    least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    command -v cargo >/dev/null || fail "Rust is missing; install the stable toolchain, $least or newer, with rustup: https://rustup.rs"
    have=$(cargo --version 2>/dev/null | cut -d' ' -f2) || true
    [ -n "$have" ] || fail "cargo has no toolchain; run: rustup default stable"
    [ "$(printf '%s\n' "$least" "${have%%-*}" | sort -V | head -1)" = "$least" ] ||
        fail "Rust $have is too old; weir needs $least or newer: rustup update stable, or https://rustup.rs beside a system's own Rust"
    if [ "$1" = check ]; then
        local tool
        for tool in fmt clippy; do
            cargo $tool --version >/dev/null 2>&1 || rustup component add "${tool/#fmt/rustfmt}" ||
                fail "cargo $tool is missing; run: rustup component add rustfmt clippy"
        done
    fi
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
