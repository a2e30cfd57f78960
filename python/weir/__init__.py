"""Find out how much load an HTTP service can take.

>>> import weir
>>> run = weir.load("http://localhost:8080/", connections=50, duration="10s")  # doctest: +SKIP
>>> print(run)  # doctest: +SKIP

`load` drives a service and returns a `Run`: a typed, read-only record that prints as a report. The same load from a
shell is `weir load http://localhost:8080/ -c 50 -d 10s`. `serve` starts services that misbehave on purpose, to try
clients against: `with weir.serve("work") as upstream: ...`.
"""

from weir._errors import Interrupted, SetupError, UsageError, WeirError
from weir._load import Stage, Time, load
from weir._run import (
    Bytes,
    Connections,
    Manifest,
    Objective,
    Point,
    Rate,
    Requests,
    Run,
    Spread,
    Target,
    Trust,
)
from weir._serve import Flag, Service, serve
from weir._weir import __version__

__all__ = [
    "Bytes",
    "Connections",
    "Flag",
    "Interrupted",
    "Manifest",
    "Objective",
    "Point",
    "Rate",
    "Requests",
    "Run",
    "Service",
    "SetupError",
    "Spread",
    "Stage",
    "Target",
    "Time",
    "Trust",
    "UsageError",
    "WeirError",
    "__version__",
    "load",
    "serve",
]
