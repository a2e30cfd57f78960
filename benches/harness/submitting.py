"""CPU cost of submitting a job from Python."""

from __future__ import annotations

import json

from harness.clients import python
from harness.process import run
from harness.programs import SCRIPTS
from harness.trial import Bench, Trial, shown

SUBMITTED, SENDER = "submitted from Python", "weir.Sender"
ONE, MANY = "one by one", "batches of ids"


def measure(bench: Bench) -> list[Trial]:
    """Measure all forms of jobs, in one process."""
    trial = Trial(SUBMITTED, SENDER, 0)
    count = bench.plan.peer_jobs
    command = [str(python("weir")), str(SCRIPTS / "submit.py"), str(count)]
    trial.command = shown(command)
    try:
        finished = run(command, core=None, cost=bench.programs["cost"], seconds=300)
        if finished.status:
            lines = finished.stderr.strip().splitlines()
            raise ValueError(lines[-1] if lines else f"exit {finished.status}")
        trial.requests = count
        trial.server = {"us": json.loads(finished.stdout)}
    except (ValueError, OSError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{us}")
    return [trial]
