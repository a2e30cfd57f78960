"""HTTP/2: CPU cost of a request over streams, beside h2load, oha and k6."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from harness.generators import (
    Generator,
    Load,
    read_h2load,
    read_k6,
    read_oha,
    read_weir,
    weir,
)
from harness.process import environment, pinned
from harness.programs import SCRIPTS
from harness.servers import Nginx, await_port, free_port, nginx_head
from harness.trial import Bench, Trial, rounds

WEIR = "weir"
H2LOAD = "h2load"
BODY = "hello, world\\n"
LARGE, LARGE_BYTES = "large", 10 << 10
RATE = 5_000
IDLE_CONNECTIONS = 100
MEMORY = f"{IDLE_CONNECTIONS} connections x 10 streams"
OPEN = f"open loop, {RATE:,}/s"


@dataclass(frozen=True)
class Shape:
    """Connections and streams of a case."""

    connections: int
    streams: int
    path: str = ""
    over_tls: bool = False

    @property
    def name(self) -> str:
        """Name in the tables."""
        size = f", responses of {LARGE_BYTES // 1024} KB" if self.path else ""
        return f"{self.connections} x {self.streams}{size}, {'TLS' if self.over_tls else 'h2c'}"

    @property
    def is_multiplexed(self) -> bool:
        """Whether a connection has several streams."""
        return self.streams > 1


SHAPES = [
    Shape(connections, streams, path, over_tls)
    for over_tls in (False, True)
    for connections, streams, path in ((1, 100, ""), (10, 32, ""), (100, 1, ""), (10, 10, LARGE))
]


class Http2Nginx(Nginx):
    """nginx with one worker and a listener for each version; `requests` counts those of all."""

    h2c_port = 0
    tls_port = 0

    def url_of(self, shape: Shape) -> str:
        """URL of a case."""
        scheme, port = ("https", self.tls_port) if shape.over_tls else ("http", self.h2c_port)
        return f"{scheme}://127.0.0.1:{port}/{shape.path}"


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of all generators in each case, then the open loop and memory."""
    if "nginx" not in bench.programs:
        return []
    plan, trials = bench.plan, []
    with http2_nginx(bench.programs["nginx"], bench.server_core) as server:
        pairs = [(shape, name) for shape in SHAPES for name in generators(bench, server, shape)]
        for number, (shape, name) in rounds(pairs, plan.pairs, plan.seed):
            generator = generators(bench, server, shape)[name]
            if generator.slow and number >= plan.slow_rounds:
                continue
            load = Load("", plan.closed_s, Path(), connections=shape.connections, depth=shape.streams)
            trials.append(bench.measure(generator, server, load, case=shape.name, round_=number))
        even = Load("", plan.open_s, Path(), connections=100, rate_per_s=RATE)
        for number, (label, generator) in rounds(opened(bench, server), plan.pairs, plan.seed):
            trials.append(bench.measure(generator, server, even, case=OPEN, round_=number, label=label))
        shape = Shape(IDLE_CONNECTIONS, 10)
        for name, generator in generators(bench, server, shape).items():
            load = Load("", plan.closed_s, Path(), connections=shape.connections, depth=shape.streams)
            trials.append(bench.measure(generator, server, load, case=MEMORY, label=name))
    return trials


def opened(bench: Bench, server: Http2Nginx) -> list[tuple[str, Generator]]:
    """Return weir in the open loop, by HTTP/1.1, and by HTTP/2 with one stream and with several."""
    program = bench.programs["weir"]

    def streams(count: int) -> Generator:
        flags = ["--h2c", "--streams", str(count)]
        url = server.url_of(Shape(1, count))
        return Generator(WEIR, program, lambda load: [*weir(replace(load, url=url)), *flags], read_weir)

    plain = Generator(WEIR, program, weir, read_weir)
    return [("weir, HTTP/1.1", plain), ("weir, 1 stream", streams(1)), ("weir, 32 streams", streams(32))]


def generators(bench: Bench, server: Http2Nginx, shape: Shape) -> dict[str, Generator]:
    """Return the generators that are installed, for a case."""
    url = server.url_of(shape)

    def ours(load: Load) -> list[str]:
        version = ["--http2=only", "-k"] if shape.over_tls else ["--h2c"]
        return [*weir(replace(load, url=url, depth=1)), *version, "--streams", str(shape.streams)]

    def h2load(load: Load) -> list[str]:
        connections, streams = str(shape.connections), str(shape.streams)
        return ["-t", "1", "-c", connections, "-m", streams, "-D", str(load.seconds), url]

    def oha(load: Load) -> list[str]:
        arguments = ["--no-tui", "--no-color", "--output-format", "json", "--worker-threads", "1", "--http2"]
        arguments += ["--insecure"] if shape.over_tls else []
        connections, streams = str(shape.connections), str(shape.streams)
        return [*arguments, "-c", connections, "-p", streams, "-z", f"{load.seconds}s", url]

    def k6(load: Load) -> list[str]:
        users = str(shape.connections * shape.streams)
        arguments = ["run", "--quiet", "--no-usage-report", "--summary-export", str(load.scratch / "k6.json")]
        arguments += ["-e", f"URL={url}", "-e", f"SECONDS={load.seconds}", "-e", f"CONNECTIONS={users}"]
        return [*arguments, "--insecure-skip-tls-verify", str(SCRIPTS / "k6.js")]

    # k6 has no HTTP/2 without TLS, and a connection for each user.
    has_k6 = shape.over_tls and not shape.is_multiplexed
    every = (
        (WEIR, ours, read_weir, False, True),
        (H2LOAD, h2load, read_h2load, False, True),
        ("oha", oha, read_oha, False, True),
        ("k6", k6, read_k6, True, has_k6),
    )
    return {
        name: Generator(name, bench.programs[name], arguments, read, slow)
        for name, arguments, read, slow, is_able in every
        if is_able and name in bench.programs
    }


@contextmanager
def http2_nginx(program: Path, core: int, files: Mapping[str, int] | None = None) -> Iterator[Http2Nginx]:
    """Start nginx with HTTP/1.1, h2c and HTTP/2 over TLS on free ports, and with files of these sizes."""
    with tempfile.TemporaryDirectory(prefix="weir-http2-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # its worker may be another user
        for path, size in {LARGE: LARGE_BYTES, **(files or {})}.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(b"x" * size)
        _certificate(folder)
        ports = [free_port() for _ in range(3)]
        config = folder / "nginx.conf"
        config.write_text(_config(folder, *ports))
        command = [str(program), "-p", name, "-c", str(config), "-e", f"{folder}/error.log"]
        process = subprocess.Popen(pinned(command, core), text=True, env=environment())
        server = Http2Nginx("nginx", ports[0], process)
        server.h2c_port, server.tls_port = ports[1:]
        try:
            await_port(server)
            yield server
        finally:
            server.stop()


def _certificate(folder: Path) -> None:
    """Make a certificate of its own for the server."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*command, "-days", "30", "-subj", "/CN=localhost"], check=True, capture_output=True)


def _config(folder: Path, plain: int, h2c: int, tls: int) -> str:
    locations = f"""
        location = /_status {{ stub_status; }}
        location = /{LARGE} {{ default_type text/plain; root {folder}; }}
        location /bytes/ {{ default_type text/plain; root {folder}; }}
        location / {{ default_type text/plain; return 200 "{BODY}"; }}"""
    return f"""{nginx_head(folder)}
    open_file_cache max=10;
    http2_max_concurrent_streams 1000;
    server {{
        listen 127.0.0.1:{plain} backlog=4096;{locations}
    }}
    server {{
        listen 127.0.0.1:{h2c} http2 backlog=4096;{locations}
    }}
    server {{
        listen 127.0.0.1:{tls} ssl http2 backlog=4096;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem;{locations}
    }}
}}
"""
