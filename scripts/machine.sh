# What scripts/setup.sh needs of a machine: space, packages of the system, Rust. It has `python`, and `fail` and `say`.

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
