#!/usr/bin/env bash
# Builds packages of weir into dist/, for x86_64 Linux but for the last one. `make packages` and the release workflow run this.
#
#     scripts/package.sh binary|wheel|sdist|deb|rpm|oci|all
#     scripts/package.sh native        on any Unix: the command for this system, with its own linker and C library
#
# The command and the extension are linked by zig against glibc 2.17, so that they run on any distribution since 2014.
# WEIR_PROFILE names another profile of cargo than dist. SOURCE_DATE_EPOCH is the time in archives, by default that of
# the last commit. WEIR_PROFDATA is a profile of the command at work, by default one that is recorded first: with that of
# a release its packages are repeated byte by byte. Tools are installed below target/package/.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin:/usr/local/go/bin

glibc=2.17
triple=x86_64-unknown-linux-gnu
profile=${WEIR_PROFILE:-dist}
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# The same as Python writes it: 1.2.3rc1 for 1.2.3-rc.1.
py_version=$(sed 's/-alpha\./a/; s/-beta\./b/; s/-rc\./rc/' <<<"$version")
work=$PWD/target/package
tools=$work/tools
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)}
export SOURCE_DATE_EPOCH
# Places in panics and logs are those of the sources, not of this machine: the same bytes from any folder.
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
export RUSTFLAGS="--remap-path-prefix=$registry=registry --remap-path-prefix=$PWD=weir ${RUSTFLAGS:-}"
# LuaJIT registers the frames of what it compiles with the unwinder, as a section. zig links that of LLVM, where this
# function takes a single frame, and that for sections has a name of its own. Without it an error that a compiled loop of
# a script raises would end the process.
flags=$(sed -n 's/^TARGET_FLAGS = "\(.*\)"/\1/p' .cargo/config.toml)
for each in add:register remove:deregister; do
    flags+=" -D__${each#*:}_frame=__unw_${each%:*}_dynamic_eh_frame_section"
done
export TARGET_FLAGS=$flags TARGET_LDFLAGS=-lunwind
# Linked programs: the folder of a profile is its name, but that of dev.
built=target/$triple/${profile/#dev/debug}
name=weir-$version-x86_64-linux

say() { echo "package: $*" >&2; }

fail() {
    say "$*"
    exit 2
}

main() {
    [ $# -gt 0 ] || fail "which package? choose binary, wheel, sdist, deb, rpm, oci, all, or native alone"
    mkdir -p dist "$work"
    if [ "$*" = native ]; then
        native
        return
    fi
    [ "$(uname -sm)" = "Linux x86_64" ] || fail "packages are built on x86_64 Linux; this is $(uname -sm): choose native"
    local package
    for package in "$@"; do
        case $package in
            binary | wheel | sdist | deb | rpm | oci) "$package" ;;
            all) binary && wheel && sdist && deb && rpm && oci ;;
            *) fail "unknown package '$package'; choose binary, wheel, sdist, deb, rpm, oci, all, or native alone" ;;
        esac
    done
}

# --- Tools

python_tools() {
    local wanted=("ziglang==0.15.2" "cargo-zigbuild==0.24.1" "maturin>=1.9,<2")
    if [ "$(cat "$tools/stamp" 2>/dev/null)" != "${wanted[*]}" ]; then
        say "installing zig, cargo-zigbuild and maturin"
        "${PYTHON:-python3}" -m venv --clear "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check "${wanted[@]}"
        echo "${wanted[*]}" >"$tools/stamp"
    fi
    export PATH=$tools/bin:$PATH
}

# Packager of .deb and .rpm; a Go module.
nfpm() {
    local version=v2.48.0
    if ! [ -x "$work/nfpm-$version" ]; then
        command -v go >/dev/null || fail "Go is missing; it builds nfpm, which makes .deb and .rpm"
        say "building nfpm $version"
        GOBIN=$work GOFLAGS=-mod=mod go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$version"
        mv "$work/nfpm" "$work/nfpm-$version"
    fi
    "$work/nfpm-$version" "$@"
}

# --- Which paths are taken

# Gives the compiler a profile of the command at work: it places together what is taken together, and inlines it.
use_profile() {
    [ "$profile" = dist ] || return 0
    local profdata=${WEIR_PROFDATA:-$work/weir.profdata}
    [ -n "${WEIR_PROFDATA:-}" ] || record_profile "$profdata"
    cp "$profdata" "dist/weir-$version.profdata"
    export RUSTFLAGS="$RUSTFLAGS -Cprofile-use=$(realpath "$profdata")"
}

# Records one, unless there is one of these sources.
record_profile() {
    local merge sources
    sources=$(git ls-files -s 2>/dev/null && git diff HEAD) || sources=$RANDOM
    sources=$(sha256sum <<<"$sources")
    [ "$(cat "$1.sources" 2>/dev/null)" != "$sources" ] || return 0
    merge=$(rustc --print sysroot)/lib/rustlib/$triple/bin/llvm-profdata
    [ -x "$merge" ] || rustup component add llvm-tools || fail "llvm-profdata of this compiler is missing"
    say "building weir with counters"
    rm -rf "$work/counts"
    # Local functions are named by their unit of code: those have to be the package's. They are linked together later.
    env -u TARGET_FLAGS -u TARGET_LDFLAGS CARGO_PROFILE_DIST_LTO=off CARGO_TARGET_DIR="$work/counting" \
        RUSTFLAGS="$RUSTFLAGS -Cprofile-generate=$work/counts" \
        cargo build --locked --profile dist --target "$triple" -p weir-cli -p weir-python --bin weir
    say "recording which paths are taken"
    python3 scripts/package/train.py "$work/counting/$triple/dist/weir"
    "$merge" merge --sparse -o "$1" "$work/counts"
    echo "$sources" >"$1.sources"
}

# --- The command

# Linked command, its manual and completions, once per call.
command_built() {
    [ -z "${is_built:-}" ] || return 0
    python_tools
    use_profile
    say "building weir $version ($profile, glibc $glibc)"
    # Both packages are named, so that the extension has the same features and shares what is compiled.
    cargo zigbuild --locked --profile "$profile" --target "$triple.$glibc" -p weir-cli -p weir-python --bin weir
    python3 scripts/package/glibc.py "$glibc" "$built/weir"
    rm -rf "$work/man" "$work/completions"
    "$built/weir" man --quiet "$work/man"
    gzip --no-name --best "$work"/man/*.1
    mkdir -p "$work/completions"
    "$built/weir" completions bash >"$work/completions/weir"
    "$built/weir" completions zsh >"$work/completions/_weir"
    "$built/weir" completions fish >"$work/completions/weir.fish"
    is_built=yes
}

binary() {
    command_built
    local folder=$work/$name
    rm -rf "$folder"
    install -D -m 755 "$built/weir" "$folder/weir"
    install -m 644 LICENSE README.md CHANGELOG.md "$folder"
    cp -r "$work/man" "$work/completions" "$folder"
    archive "$work" "$name" "dist/$name.tar.gz"
}

# The command for this system, named by the compiler's name of it; neither zig nor GNU's tar is needed.
native() {
    local host folder
    host=$(rustc -vV | sed -n 's/^host: //p')
    folder=weir-$version-$host
    unset TARGET_FLAGS TARGET_LDFLAGS
    say "building weir $version ($profile, $host)"
    cargo build --locked --profile "$profile" -p weir-cli --bin weir
    rm -rf "${work:?}/$folder"
    mkdir -p "$work/$folder"
    cp "target/${profile/#dev/debug}/weir" LICENSE README.md CHANGELOG.md "$work/$folder/"
    tar -C "$work" -czf "dist/$folder.tar.gz" "$folder"
    (cd dist && { sha256sum "$folder.tar.gz" 2>/dev/null || shasum -a 256 "$folder.tar.gz"; } >"$folder.tar.gz.sha256")
    say "dist/$folder.tar.gz"
}

# The same bytes from the same files: sorted, without owners, with one time.
archive() {
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s \
        -C "$1" -cf - "$2" | gzip --no-name --best >"$3"
    say "$3: $(stat -c %s "$3" | numfmt --to=iec --format=%.1f)"
}

# --- Python

wheel() {
    command_built
    local scripts=python/weir.data/scripts
    mkdir -p $scripts
    cp "$built/weir" $scripts/weir
    python3 python/build/doc_pages.py python/weir.data/data/share/doc/weir
    rm -f "dist/weir_http-$py_version"-*.whl
    # The extension is abi3: one wheel for Python 3.10 and later. `maturin --zig` would give the linker another path than
    # cargo-zigbuild does, and so compile everything again; in the place of cargo it gets the same.
    AS_CARGO="maturin build --profile $profile --target $triple --compatibility manylinux2014 --out dist" \
        CARGO=$PWD/scripts/package/as_cargo.sh cargo-zigbuild zigbuild --target "$triple.$glibc" -p weir-python
    local wheel=("dist/weir_http-$py_version"-*.whl)
    python3 scripts/package/glibc.py "$glibc" "${wheel[0]}"
    say "${wheel[0]}: $(stat -c %s "${wheel[0]}" | numfmt --to=iec --format=%.1f)"
}

sdist() {
    python_tools
    # Without the program that a build of the wheel has left there.
    rm -rf python/weir.data && mkdir -p python/weir.data/scripts
    maturin sdist --out dist
    say "dist/weir_http-$py_version.tar.gz: $(stat -c %s "dist/weir_http-$py_version.tar.gz" | numfmt --to=iec --format=%.1f)"
}

# --- Distributions

deb() { system_package deb "weir_${version}_amd64.deb"; }

rpm() { system_package rpm "weir-$version.x86_64.rpm"; }

# A package of the system: its kind, and its file in dist/.
system_package() {
    command_built
    python3 python/build/doc_pages.py "$work/pages"
    VERSION=$version WEIR=$built/weir MAN=$work/man COMPLETIONS=$work/completions PAGES=$work/pages \
        nfpm package --config packaging/nfpm.yaml --packager "$1" --target "dist/$2" >/dev/null
    say "dist/$2: $(stat -c %s "dist/$2" | numfmt --to=iec --format=%.1f)"
}

# Image of one layer, without a daemon.
oci() {
    command_built
    python3 scripts/package/oci_image.py "$built/weir" "$version" "dist/$name.oci.tar"
    say "dist/$name.oci.tar: $(stat -c %s "dist/$name.oci.tar" | numfmt --to=iec --format=%.1f)"
}

main "$@"
