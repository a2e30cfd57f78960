"""gRPC: CPU cost of a call, beside ghz and beside weir's own HTTP/2 with the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.generators import Generator, Load, Report, read_weir, weir
from harness.process import Finished
from harness.programs import ROOT, SCRIPTS
from harness.servers import Server, service
from harness.trial import Bench, Trial, rounds

WEIR, PLAIN, GHZ = "weir", "weir, plain HTTP/2", "ghz"
PROTO = SCRIPTS / "echo.proto"
METHOD = "weir.test.v1.Test/Echo"
TEXT = "hello, world"
MESSAGE = json.dumps({"text": TEXT})
#: The same message in its frame: field 1, a text.
FRAME = b"\0" + (len(TEXT) + 2).to_bytes(4, "big") + bytes([10, len(TEXT)]) + TEXT.encode()
RATE = 2_000
OPEN = f"open loop, {RATE:,}/s"


@dataclass(frozen=True)
class Shape:
    """Connections and calls at a time on each."""

    connections: int
    streams: int

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"{self.connections} x {self.streams}"


SHAPES = [Shape(1, 100), Shape(10, 32), Shape(100, 1)]


class GrpcServer(Server):
    """`weir serve grpc`, which counts its calls."""

    @property
    def url(self) -> str:
        """URL of the method."""
        return f"grpc://127.0.0.1:{self.port}/{METHOD}"

    def requests(self) -> int:
        """Return the calls so far."""
        return int(json.loads(self.get("/stats"))["calls"])


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of all generators in each case, closed and open loop."""
    plan, trials = bench.plan, []
    command = [str(bench.programs["weir"]), "serve", "grpc", "--port", "0"]
    with service("weir serve grpc", command, bench.server_core) as running:
        server = GrpcServer(running.name, running.port, running.process)
        pairs = [(shape, name) for shape in SHAPES for name in generators(bench, shape)]
        for number, (shape, name) in rounds(pairs, plan.pairs, plan.seed):
            load = Load(server.url, plan.closed_s, ROOT, connections=shape.connections)
            generator = generators(bench, shape)[name]
            trials.append(bench.measure(generator, server, load, case=shape.name, round_=number))
        even = Load(server.url, plan.open_s, ROOT, connections=10, rate_per_s=RATE)
        several = Shape(10, 10)
        for number, name in rounds(list(generators(bench, several)), plan.pairs, plan.seed):
            generator = generators(bench, several)[name]
            trials.append(bench.measure(generator, server, even, case=OPEN, round_=number))
    return trials


def generators(bench: Bench, shape: Shape) -> dict[str, Generator]:
    """Return the generators that are installed, for a case."""
    streams = ["--streams", str(shape.streams)]
    files = ["--proto", str(PROTO), "--proto-path", str(PROTO.parent)]

    def ours(load: Load) -> list[str]:
        return [*weir(replace(load, depth=1)), *files, "-b", MESSAGE, *streams]

    def plain(load: Load) -> list[str]:
        body = load.scratch / "frame"
        body.write_bytes(FRAME)
        fields = ["-H", "content-type: application/grpc", "-H", "te: trailers", "-H", "grpc-accept-encoding: gzip"]
        url = load.url.replace("grpc://", "http://")
        return [*weir(replace(load, url=url, depth=1)), "--h2c", "-m", "POST", "-b", f"@{body}", *fields, *streams]

    def ghz(load: Load) -> list[str]:
        concurrency = shape.connections * shape.streams
        arguments = ["--insecure", "--cpus", "1", "-O", "json", "--proto", str(PROTO), "--call", METHOD]
        arguments += ["-d", MESSAGE, "-c", str(concurrency), "--connections", str(shape.connections)]
        arguments += ["-z", f"{load.seconds}s", "--duration-stop", "wait"]
        arguments += [] if load.rate_per_s is None else ["--rps", str(load.rate_per_s)]
        return [*arguments, load.url.removeprefix("grpc://").split("/")[0]]

    every: tuple[tuple[str, str, Callable[[Load], list[str]], Callable[[Finished, Load], Report]], ...] = (
        (WEIR, "weir", ours, read_weir),
        (PLAIN, "weir", plain, read_weir),
        (GHZ, "ghz", ghz, read_ghz),
    )
    return {
        name: Generator(name, bench.programs[program], arguments, read)
        for name, program, arguments, read in every
        if program in bench.programs
    }


def read_ghz(finished: Finished, _load: Load) -> Report:
    """Read the JSON of ghz, whose times are nanoseconds."""
    found = json.loads(finished.stdout)
    ok = found["statusCodeDistribution"].get("OK", 0)
    levels = found.get("latencyDistribution") or []
    return Report(
        requests=found["count"],
        failed=found["count"] - ok,
        rate_per_s=found["rps"],
        mean_ms=found["average"] / 1e6,
        percentiles_ms={f"p{level['percentage']}": level["latency"] / 1e6 for level in levels},
    )
