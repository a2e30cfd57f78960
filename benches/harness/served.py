"""CPU cost of `weir serve` beside other servers, and accuracy of its delays."""

from __future__ import annotations

from pathlib import PurePosixPath

from harness import soak
from harness.servers import FILE, FILE_BYTES, HELLO
from harness.serving import NGINX, PEERS, Ask, Room
from harness.trial import Bench, Trial

BODY = "weir serve httpbin"
FUNCTIONS = "weir serve functions"
WORK = "weir serve work"
RATELIMIT = "weir serve ratelimit"

SMALL_GET, SMALL_POST, SMALL_CONNECTIONS = "small responses, GET", "small responses, POST", 100
STATIC, STATIC_CONNECTIONS = "5 MiB", 10

ROUTES = ("helloworld?str=Raja", "arithmetic/prime?num=523", "arithmetic/fibonacci?num=20")
POOLS = (1, 2, 3)
CLOSES, KEEPS = "a connection each", "keep-alive"
MANY = 22  # maximum of the reference load test
#: Route, connections, and whether they are kept alive: the reference loads, and one with keep-alive.
POOL_LOADS: tuple[tuple[str, int, str], ...] = (
    *((ROUTES[0], connections, CLOSES) for connections in (1, 8)),
    *((route, MANY, mode) for mode in (CLOSES, KEEPS) for route in ROUTES),
)

BUSY = "closed loop"
DELAY_RATE = 5_000
NO_DELAY = "no delay"
#: Uniform delays: service, minimum and maximum in ms.
DELAYS: dict[str, tuple[str, float, float]] = {
    "constant 20 ms": (WORK, 20.0, 20.0),
    "uniform 10-50 ms": (WORK, 10.0, 50.0),
    "10 ms in, 10 ms out": (RATELIMIT, 20.0, 20.0),
}
#: A key of the reference API. `weir load` sends a constant nonce, so the first response is 200 and all others are 400,
#: which comes after the same steps: a slot in the limiter, the delay in and the delay out.
RATELIMIT_PATH = "api/request?api_key=UT4NHL1J796WCHULA1750MXYF9F5JYA6&nonce=1&req_id=1"
WORK_PATH = "api/work"
#: No request reaches the rate limit, and all work succeeds.
RATELIMIT_FLAGS = ("--limit", "1000000/1s", "--keepalive")
WORK_FLAGS = ("--mix", "good=1")


def measure(bench: Bench) -> list[Trial]:
    """Measure small responses, a large one, thread pools, delays, and a soak."""
    if "weir" not in bench.programs:
        return []
    parts = (_small, _static, _pools, _busy, _delays, soak.measure)
    return [trial for part in parts for trial in part(bench)]


def pool_case(route: str, connections: int, mode: str, threads: int) -> str:
    """Return the name of a load on thread pools of a size."""
    function = PurePosixPath(route.partition("?")[0]).name
    return f"{function}, c={connections}, {mode}, threads={threads}"


def _small(bench: Bench) -> list[Trial]:
    def get(path: str) -> Ask:
        return Ask(SMALL_GET, path, SMALL_CONNECTIONS)

    def post(path: str) -> Ask:
        return Ask(SMALL_POST, path, SMALL_CONNECTIONS, body=HELLO)

    with Room(bench) as room:
        room.add(NGINX, [], get("hello"), post("hello"))
        room.add(BODY, [], get("echo"), post("echo"))
        room.add(FUNCTIONS, ["--threads", "1"], get(ROUTES[0]))
        return room.measure(bench.plan.closed_s)


def _static(bench: Bench) -> list[Trial]:
    with Room(bench) as room:
        room.add(NGINX, [], Ask(STATIC, FILE, STATIC_CONNECTIONS))
        room.add(BODY, [], Ask(STATIC, f"static?bytes={FILE_BYTES}", STATIC_CONNECTIONS))
        return room.measure(bench.plan.closed_s)


def _pools(bench: Bench) -> list[Trial]:
    with Room(bench) as room:
        for threads in POOLS:
            asks = [
                Ask(pool_case(route, connections, mode, threads), route, connections, keep_alive=mode == KEEPS)
                for route, connections, mode in POOL_LOADS
            ]
            room.add(FUNCTIONS, ["--threads", str(threads)], *asks)
            for peer in PEERS:
                room.add(peer, [str(threads)], *asks)
        return room.measure(bench.plan.serve_s)


def _busy(bench: Bench) -> list[Trial]:
    with Room(bench) as room:
        room.add(WORK, _work("5ms"), Ask(BUSY, WORK_PATH, 400))
        room.add(RATELIMIT, _ratelimit("0ms"), Ask(BUSY, RATELIMIT_PATH, 100, statuses=("200", "400")))
        return room.measure(bench.plan.closed_s)


def _delays(bench: Bench) -> list[Trial]:
    constant, uniform, ways = DELAYS
    with Room(bench) as room:
        room.add(BODY, [], Ask(NO_DELAY, "echo", rate_per_s=DELAY_RATE))
        for case, delay in ((constant, "20ms"), (uniform, "10ms..50ms")):
            room.add(WORK, _work(delay), Ask(case, WORK_PATH, rate_per_s=DELAY_RATE))
        ask = Ask(ways, RATELIMIT_PATH, rate_per_s=DELAY_RATE, statuses=("200", "400"))
        room.add(RATELIMIT, _ratelimit("10ms"), ask)
        return room.measure(bench.plan.delay_s)


def _work(delay: str) -> list[str]:
    return [*WORK_FLAGS, "--delay", delay]


def _ratelimit(way: str) -> list[str]:
    return [*RATELIMIT_FLAGS, "--latency-in", way, "--latency-out", way]
