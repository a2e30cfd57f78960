#!/usr/bin/env bash
# Installs each package in dist/ in a clean folder, runs it, and removes it. Prints a line for each step and ends with
# exit code 1 if one failed. Packages of the system and the image need root, for chroot; without it they are skipped, and
# the last line says so.
#
#     scripts/package/try.sh [wheel|sdist|binary|deb|rpm|oci|chart]...
set -uo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# The same as Python writes it: 1.2.3rc1 for 1.2.3-rc.1.
py_version=$(sed 's/-alpha\./a/; s/-beta\./b/; s/-rc\./rc/' <<<"$version")
work=$PWD/target/package/try
failed=() skipped=()
# Debian of the clean root.
suite=bookworm

say() { echo "try: $*"; }

# A step: its name, and the command that has to end with 0.
step() {
    local name=$1
    shift
    if "$@" >"$work/step.log" 2>&1; then
        say "ok      $name"
    else
        say "FAILED  $name"
        sed 's/^/        /' "$work/step.log"
        failed+=("$name")
    fi
}

skip() {
    say "skipped $1: $2"
    skipped+=("$1")
}

main() {
    mkdir -p "$work"
    local packages=("$@") package
    [ $# -gt 0 ] || packages=(wheel sdist binary deb rpm oci chart)
    for package in "${packages[@]}"; do "try_$package"; done
    rm -f "$work/step.log"
    [ ${#skipped[@]} = 0 ] || say "skipped: ${skipped[*]}"
    [ ${#failed[@]} = 0 ] && say "all that was tried works" && return
    say "failed: ${failed[*]}"
    exit 1
}

# A load of a service that the same command serves: the first two commands of a reader. Arguments are how `weir` is
# called, then, after --, further flags of the load.
first_report() {
    local out=$work/service.out url code pid command=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        command+=("$1")
        shift
    done
    [ $# = 0 ] || shift
    rm -f "$out"
    "${command[@]}" serve httpbin --port 0 -q >"$out" &
    pid=$!
    # The first line has the address; the service takes connections by then.
    until [ -s "$out" ]; do kill -0 "$pid" && sleep 0.02 || return 1; done
    url=$(sed 's/.*"listening":"\([^"]*\)".*/\1/' "$out")
    "${command[@]}" load "$url/" -n 200 -c 4 --slo "errors<1%" "$@"
    code=$?
    kill "$pid"
    wait "$pid"
    return $code
}

# --- Python

try_wheel() {
    local wheel=(dist/weir_http-"$py_version"-*manylinux*.whl) python
    [ -f "${wheel[0]}" ] || { skip wheel "no wheel in dist/"; return; }
    for python in python3.10 python3.11 python3.12 python3.13 python3.14; do
        "$python" -c '' 2>/dev/null || continue
        local venv=$work/$python began=$SECONDS
        rm -rf "$venv"
        step "wheel, $python: pip install in a clean venv" install_wheel "$python" "$venv" "${wheel[0]}"
        step "wheel, $python: a service and a load by the command" first_report "$venv/bin/weir"
        say "        from nothing to the first report: $((SECONDS - began)) s"
        step "wheel, $python: import weir" "$venv/bin/python" -I -c 'import weir; assert weir.__version__ == "'"$version"'"
with weir.serve("httpbin") as service:
    assert weir.load(service.url, requests=200).requests.ok == 200'
        rm -rf "$venv"
    done
}

install_wheel() { "$1" -m venv "$2" && "$2/bin/pip" install --quiet --disable-pip-version-check --no-index "$3"; }

try_sdist() {
    local sdist=dist/weir_http-$py_version.tar.gz
    [ -f "$sdist" ] || { skip sdist "no sdist in dist/"; return; }
    step "sdist: every crate and the build backend are in it" sdist_is_whole "$sdist"
    step "sdist: pip gets its metadata by the build backend" sdist_has_metadata "$sdist"
}

# With the build backend in an environment of its own, as pip installs it.
sdist_has_metadata() {
    python3 -m venv "$work/sdist-venv" && "$work/sdist-venv/bin/pip" install --quiet --disable-pip-version-check --dry-run --no-deps "$1"
    local code=$?
    rm -rf "$work/sdist-venv"
    return $code
}

# What cargo needs to build both packages is there; a whole build takes minutes, and is that of the wheel.
sdist_is_whole() {
    local folder=$work/sdist
    rm -rf "$folder" && mkdir -p "$folder" && tar -xzf "$1" --strip-components=1 -C "$folder" || return
    [ -f "$folder/python/build/backend.py" ] && [ -f "$folder/python/weir/__init__.py" ] || return
    # As the build backend does: crates of tests are not in it, and leave Cargo.lock.
    (cd "$folder" && cargo metadata --offline --format-version 1 >/dev/null 2>&1 && cargo metadata --locked --offline --format-version 1 >"$folder/metadata.json") || return
    local missing
    missing=$(grep -o '"manifest_path":"[^"]*"' "$folder/metadata.json" | cut -d'"' -f4 | while read -r file; do
        [ -f "$file" ] || echo "$file"
    done)
    rm -rf "$folder"
    [ -z "$missing" ] || { echo "$missing"; return 1; }
}

# --- The command alone

try_binary() {
    local archive=dist/weir-$version-x86_64-linux.tar.gz folder=$work/binary
    [ -f "$archive" ] || { skip binary "no archive in dist/"; return; }
    rm -rf "$folder" && mkdir -p "$folder" && tar -xzf "$archive" --strip-components=1 -C "$folder"
    step "binary: a service and a load" first_report "$folder/weir"
    step "binary: an error that a compiled loop of a script raises is caught" script_error "$folder/weir"
    step "binary: manual and completions" test -s "$folder/man/weir-load.1.gz" -a -s "$folder/completions/_weir"
    rm -rf "$folder"
}

# The unwinder that the linker has added finds the frames of code that LuaJIT compiled: without them the process ends.
script_error() {
    cat >"$work/long.lua" <<'LUA'
local times = {}
for i = 1, 1000 do times[i] = 1 end
times[900] = 2000000000
local ok, message = pcall(function()
    local length = 0
    for i = 1, 1000 do length = length + #string.rep("ab", times[i]) end
    return length
end)
assert(not ok and message:find("memory"), tostring(message))
LUA
    first_report "$@" -- -s "$work/long.lua"
}

# --- Packages of the system, in a root that debootstrap has made

try_deb() {
    local deb=$PWD/dist/weir_${version}_amd64.deb
    [ -f "$deb" ] || { skip deb "no .deb in dist/"; return; }
    clean_root || { skip deb "no clean root: needs root and debootstrap"; return; }
    cp "$deb" "$root/tmp/weir.deb"
    files_of "$root" >"$work/before"
    step "deb: dpkg --install in a clean Debian $suite" chroot "$root" dpkg --install /tmp/weir.deb
    step "deb: the command runs a service and a load" first_report chroot "$root" weir
    step "deb: manual, completions, units and the user" chroot "$root" sh -c 'test -s /usr/share/man/man1/weir-load.1.gz -a \
        -s /usr/share/bash-completion/completions/weir -a -s /usr/lib/systemd/system/weir-gate.service && getent passwd weir &&
        su -s /bin/sh weir -c "weir gate --config /etc/weir/gate.toml --check"'
    step "deb: dpkg --purge" chroot "$root" dpkg --purge weir
    step "deb: no trace is left" no_trace
}

try_rpm() {
    local rpm=$PWD/dist/weir-$version.x86_64.rpm
    [ -f "$rpm" ] || { skip rpm "no .rpm in dist/"; return; }
    command -v rpm >/dev/null || { skip rpm "rpm is not installed"; return; }
    clean_root || { skip rpm "no clean root: needs root and debootstrap"; return; }
    cp "$rpm" "$root/tmp/weir.rpm"
    # Folders that a package of Fedora's base system has, and Debian's smallest set lacks.
    mkdir -p "$root"/usr/lib/sysusers.d "$root"/usr/share/{fish/vendor_completions.d,licenses,zsh/site-functions}
    files_of "$root" >"$work/before"
    # The root is Debian's: its libraries are not in the database of rpm.
    local in_root=(rpm --root "$root" --dbpath /tmp/rpmdb --nodeps)
    step "rpm: rpm --install in a clean root" "${in_root[@]}" --install "$root/tmp/weir.rpm"
    step "rpm: rpm --verify finds no difference" rpm --root "$root" --dbpath /tmp/rpmdb --verify --nodeps --nogroup weir
    step "rpm: the command runs a service and a load" first_report chroot "$root" weir
    step "rpm: rpm --erase" "${in_root[@]}" --erase weir
    rm -rf "$root/tmp/rpmdb"
    step "rpm: no trace is left" no_trace
}

# A root with Debian's smallest set of packages, in $root: a copy of the one that debootstrap has made.
clean_root() {
    local made=$work/root-$suite
    root=$work/root
    [ "$(id -u)" = 0 ] || return 1
    command -v debootstrap >/dev/null || return 1
    if ! [ -f "$made/.ready" ]; then
        say "        making a clean root by debootstrap (a minute)"
        rm -rf "$made"
        debootstrap --variant=minbase "$suite" "$made" http://deb.debian.org/debian >"$work/debootstrap.log" 2>&1 || return 1
        touch "$made/.ready"
    fi
    rm -rf "$root" && cp -a "$made" "$root"
}

# Paths of a root with the contents of /etc, without what dpkg and useradd keep of every change.
files_of() {
    (cd "$1" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log \) \
        -prune -o -print | grep -v -E '^\./etc/(passwd|group|shadow|gshadow|sub[ug]id)-?$|^\./tmp/|^\./etc/\.pwd\.lock$' | sort
    sort ./etc/passwd ./etc/group)
}

no_trace() {
    files_of "$root" >"$work/after"
    diff "$work/before" "$work/after"
}

# --- Image

try_oci() {
    local image=dist/weir-$version-x86_64-linux.oci.tar folder=$work/oci
    [ -f "$image" ] || { skip oci "no image in dist/"; return; }
    [ "$(id -u)" = 0 ] || { skip oci "needs root, for chroot"; return; }
    rm -rf "$folder" && mkdir -p "$folder/layout" "$folder/root" && tar -xf "$image" -C "$folder/layout"
    step "oci: every digest is right, and there is one layer" layers_are_right "$folder/layout"
    tar -xzf "$(layer_of "$folder/layout")" -C "$folder/root"
    local inside=(chroot --userspec=65532:65532 "$folder/root" /usr/bin/weir)
    step "oci: the command runs a service and a load, as a user without rights" first_report "${inside[@]}"
    step "oci: CA certificates are found" has_certificates "${inside[@]}"
    rm -rf "$folder"
}

# --- Kubernetes

# Releases of Kubernetes between which the chart and the job are checked: the chart's first one, and a new one.
kubernetes=(1.30.0 1.37.0)

try_chart() {
    command -v go >/dev/null || { skip chart "Go is missing; it builds helm"; return; }
    local tools=$PWD/target/package
    step "chart: helm $helm_version is built" helm_built
    step "chart: helm lint" "$tools/helm" lint packaging/helm/weir-gate --strict
    python3 -m venv "$work/kubernetes" && "$work/kubernetes/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate
    local release
    for release in "${kubernetes[@]}"; do
        step "chart: its objects are those of Kubernetes $release" objects_are_valid "$release"
    done
    rm -rf "$work/kubernetes"
}

helm_version=v3.22.0

helm_built() {
    [ -x target/package/helm ] && return
    GOBIN=$PWD/target/package GOFLAGS=-mod=mod go install "helm.sh/helm/v3/cmd/helm@$helm_version"
}

# The schemas of Kubernetes come with the validator. Objects of the Prometheus Operator are not among them.
objects_are_valid() {
    local validate=("$work/kubernetes/bin/kubernetes-validate" --strict -k "$1") each
    target/package/helm template shop packaging/helm/weir-gate --kube-version "$1" >"$work/plain.yaml" || return
    target/package/helm template shop packaging/helm/weir-gate --kube-version "$1" \
        --set replicas=1 --set image.tag=1 --set resources=null >"$work/other.yaml" || return
    for each in "$work/plain.yaml" "$work/other.yaml" examples/kubernetes/load-job.yaml; do
        "${validate[@]}" "$each" || return
    done
}

has_certificates() { "$@" doctor --json | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["facts"]["ca_certificates"] < 1)'; }

layer_of() {
    python3 - "$1" <<'PYTHON'
import json
import pathlib
import sys

layout = pathlib.Path(sys.argv[1])


def blob(entry):
    return layout / "blobs" / entry["digest"].replace(":", "/")


index = json.loads((layout / "index.json").read_text())
manifest = json.loads(blob(index["manifests"][0]).read_text())
[layer] = manifest["layers"]
print(blob(layer))
PYTHON
}

layers_are_right() {
    local file
    for file in "$1"/blobs/sha256/*; do
        [ "$(sha256sum "$file" | cut -d' ' -f1)" = "${file##*/}" ] || return 1
    done
    [ -f "$(layer_of "$1")" ]
}

main "$@"
