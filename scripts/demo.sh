#!/usr/bin/env bash
# Starts a service that stalls periodically, and loads it in two ways. `make demo` sets up and runs this.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/.venv/bin
# The one that setup.sh has just built, or installed from a wheel.
weir=$PWD/target/demo/weir
page=$PWD/target/demo/run.html
[ -x "$weir" ] || {
    echo "demo: weir is not built; run: make demo" >&2
    exit 2
}
scratch=$(mktemp -d)

main() {
    start_service
    heading "A FastAPI service under uvicorn, at $url"
    print "It responds within milliseconds, but stalls for 1 s in every 5 s, as with a garbage collection," \
        "a deployment or a lock. How does that look from outside?"

    heading "1. Closed loop: 20 connections that wait for each response before the next request"
    load closed -c 20 -d 10s
    print "A stall delays 20 requests and prevents all others from being sent, so a fifth of the time is hidden" \
        "behind $(figure closed requests total) fast responses: 99% of them within $(figure closed response_ms p99)."

    heading "2. Open loop: 200 requests per second, independent of responses, as from many users"
    load open --rate 200 -d 10s
    print "The same service; response times count from the intended start of each request." \
        "One user in ten waited $(figure open response_ms p90) or longer; the closed loop shows $(figure closed response_ms p90)." \
        "Both reports are correct; only this one has the response times of users."

    "$weir" report "$scratch/open.json" --html "$page" >/dev/null
    heading "The second run as a page, with percentiles over time: file://$page"
    show_page
    heading "Next"
    printf '    %s\n' \
        "$weir load URL --rate 100 -d 30s        your own service" \
        "$weir capacity URL --slo 'p99<200ms'    the highest load that it takes" \
        "$weir gate --upstream URL --listen 8081 overload protection in front of it"
}

start_service() {
    "$venv/python" -m uvicorn --app-dir examples service:app --port 0 --no-access-log \
        --timeout-graceful-shutdown 1 >"$scratch/service.log" 2>&1 </dev/null &
    service=$!
    trap stop_service EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    for _ in $(seq 200); do
        # With port 0 the system chooses one; uvicorn prints it.
        url=$(sed -n 's|.*running on \(http://[0-9.:]*\).*|\1/|p' "$scratch/service.log")
        [ -n "$url" ] && responds && return
        kill -0 "$service" 2>/dev/null || break
        sleep 0.1
    done
    cat "$scratch/service.log" >&2
    echo "demo: the service does not respond; see above" >&2
    exit 2
}

stop_service() {
    kill "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
    rm -rf "$scratch"
}

responds() {
    "$venv/python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$url" 2>/dev/null
}

# Opens the page where a person sits before a screen.
show_page() {
    if [ -t 1 ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null; then
        xdg-open "$page" >/dev/null 2>&1 || true
    fi
}

# load NAME ARGUMENTS...: prints the command, runs it, saves the run.
load() {
    local name=$1
    shift
    printf '\n%s$ weir load %s%s\n\n' "$dim" "$url $*" "$plain"
    "$weir" load "$url" "$@" --out "$scratch/$name.json"
}

# figure NAME GROUP KEY: formats a number of a saved run.
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

print() { echo; fold -s -w 100 <<<"$*"; }

main
