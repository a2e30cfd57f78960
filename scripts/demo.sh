#!/usr/bin/env bash
# Starts a real service that stands still now and then, and loads it in two ways. `make demo` sets up and calls this.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/.venv/bin
scratch=$(mktemp -d)

main() {
    start_service
    heading "A FastAPI service under uvicorn, at $url"
    say "It answers within milliseconds, but stands still for 1 s in every 5 s, as a garbage collection," \
        "a deploy or a lock would have it. How does it look from outside?"

    heading "1. Closed loop: 20 connections that wait for each answer before they ask again"
    load closed -c 20 -d 10s
    say "A pause holds up 20 requests and keeps all others from being asked, so a fifth of the time is hidden" \
        "behind $(figure closed requests total) quick answers: 99 % of them within $(figure closed response_ms p99)."

    heading "2. Open loop: 200 requests per second, whether or not answers come, as users do"
    load open --rate 200 -d 10s
    say "The same service, and response times count from the moment at which a request was meant to start." \
        "One user in ten waited $(figure open response_ms p90) or longer; the closed loop called that $(figure closed response_ms p90)." \
        "Both reports are true; only this one says what users see."
}

start_service() {
    "$venv/python" -m uvicorn --app-dir examples service:app --port 0 --no-access-log \
        --timeout-graceful-shutdown 1 >"$scratch/service.log" 2>&1 </dev/null &
    service=$!
    trap stop_service EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    for _ in $(seq 200); do
        # Port 0 lets the system choose; the service's first lines say which one it was.
        url=$(sed -n 's|.*running on \(http://[0-9.:]*\).*|\1/|p' "$scratch/service.log")
        [ -n "$url" ] && answers && return
        kill -0 "$service" 2>/dev/null || break
        sleep 0.1
    done
    cat "$scratch/service.log" >&2
    echo "demo: the service does not answer; see above" >&2
    exit 2
}

stop_service() {
    kill "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
    rm -rf "$scratch"
}

answers() {
    "$venv/python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$url" 2>/dev/null
}

# load NAME ARGUMENTS...: shows the command, runs it, keeps its figures.
load() {
    local name=$1
    shift
    printf '\n%s$ weir load %s%s\n\n' "$dim" "$url $*" "$plain"
    "$venv/weir" load "$url" "$@" --out "$scratch/$name.json"
}

# figure NAME GROUP KEY: a number of a kept run, as people read it.
figure() {
    "$venv/python" - "$scratch/$1.json" "$2" "$3" <<'PYTHON'
import json
import sys

path, group, key = sys.argv[1:]
with open(path) as file:
    value = json.load(file)[group][key]
print(f"{value:,}" if isinstance(value, int) else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms")
PYTHON
}

bold="" dim="" plain=""
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi

heading() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

say() { echo; fold -s -w 100 <<<"$*"; }

main
