"""Answers in time in front of a service that is unreliable, slow now and then, or broken."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from harness.generators import Load, read_weir
from harness.process import Finished, run
from harness.proxies import POLICIES, gate
from harness.sampling import Sampler
from harness.servers import Server, StartError, service
from harness.trial import Bench, Trial, rounds, shown
from pathlib import Path
