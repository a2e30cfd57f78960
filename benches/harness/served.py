"""What `weir serve` costs beside other servers, and whether its delays are the ones asked for."""

from __future__ import annotations

from pathlib import PurePosixPath

from harness import soak
from harness.servers import FILE, FILE_BYTES, HELLO
from harness.serving import NGINX, PEERS, Ask, Room
from harness.trial import Bench, Trial

BODY = "weir serve body"
FUNCTIONS = "weir serve functions"
WORK = "weir serve work"
EXCHANGE = "weir serve exchange"

SMALL_GET, SMALL_POST, SMALL_CONNECTIONS = "small responses, GET", "small responses, POST", 100
STATIC, STATIC_CONNECTIONS = "5 MiB", 10

ROUTES = ("helloworld?str=Raja", "arithmetic/prime?num=523", "arithmetic/fibonacci?num=20")
POOLS = (1, 2, 3)
CLOSES, KEEPS = "a connection each", "keep-alive"
MANY = 22  # where the original load test ends
#: Route, connections and whether they are kept: the original loads, and one that keeps them.
POOL_LOADS: tuple[tuple[str, int, str], ...] = (
    *((ROUTES[0], connections, CLOSES) for connections in (1, 8)),
    *((route, MANY, mode) for mode in (CLOSES, KEEPS) for route in ROUTES),
)

BUSY = "closed loop"
DELAY_RATE = 5_000
NO_DELAY = "no delay"
#: What is asked for, from the least to the most, evenly: service and range in ms.
DELAYS: dict[str, tuple[str, float, float]] = {
    "constant 20 ms": (WORK, 20.0, 20.0),
    "uniform 10-50 ms": (WORK, 10.0, 50.0),
    "10 ms in, 10 ms out": (EXCHANGE, 20.0, 20.0),
}
#: A key of the reference API. `weir load` cannot make its nonce grow: the first answer is 200, all others are 400, which
#: comes after the same steps: the slot in the limiter, the way in and the way out.
EXCHANGE_PATH = "api/request?api_key=UT4NHL1J796WCHULA1750MXYF9F5JYA6&nonce=1&req_id=1"
WORK_PATH = "api/work"
#: The exchange's limit is out of reach, and nothing goes wrong with the work.
EXCHANGE_FLAGS = ("--limit", "1000000/1s", "--keep-alive")
WORK_FLAGS = ("--mix", "good=1")


def measure(bench: Bench) -> list[Trial]:
    """Small answers, a large one, pools of threads, delays, and a soak."""
    if "weir" not in bench.programs:
        return []
    parts = (_small, _static, _pools, _busy, _delays, soak.measure)
    return [trial for part in parts for trial in part(bench)]


def pool_case(route: str, connections: int, mode: str, threads: int) -> str:
    """The name of a load on pools of that size."""
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
        room.add(EXCHANGE, _exchange("0ms"), Ask(BUSY, EXCHANGE_PATH, 100, statuses=("200", "400")))
        return room.measure(bench.plan.closed_s)


def _delays(bench: Bench) -> list[Trial]:
    constant, uniform, ways = DELAYS
    with Room(bench) as room:
        room.add(BODY, [], Ask(NO_DELAY, "echo", rate_per_s=DELAY_RATE))
        for case, delay in ((constant, "20ms"), (uniform, "10ms..50ms")):
            room.add(WORK, _work(delay), Ask(case, WORK_PATH, rate_per_s=DELAY_RATE))
        ask = Ask(ways, EXCHANGE_PATH, rate_per_s=DELAY_RATE, statuses=("200", "400"))
        room.add(EXCHANGE, _exchange("10ms"), ask)
        return room.measure(bench.plan.delay_s)


def _work(delay: str) -> list[str]:
    return [*WORK_FLAGS, "--delay", delay]


def _exchange(way: str) -> list[str]:
    return [*EXCHANGE_FLAGS, "--latency-in", way, "--latency-out", way]
