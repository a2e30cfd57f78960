"""Tests that failed beside others, run again alone.

As many tests run at a time as keep all cores busy, and many have bounds on time, which hold where a thread that is
ready soon runs. What such a test finds beside others may be the machine's doing, so it is run again with nothing beside
it, several times: what is wrong with weir is so there, too. Each of these tests is named at the end of the suite with
what it has found, also if all others passed.
"""

from __future__ import annotations

from collections.abc import Callable

# Times that a test has to pass alone: what happens one time in two is seen by seven of eight.
RUNS = 3
# Where more fail, the machine is not the reason.
MOST = 20


def failed_alone(failed: list[str], run: Callable[[list[str]], list[str]]) -> list[str]:
    """Return the tests that fail alone, too; `run` runs those given and returns the failed ones."""
    if len(failed) > MOST:
        print(f"{len(failed)} tests failed, which are too many to be run again")
        return failed
    wrong: list[str] = []
    for _ in range(RUNS):
        left = [test for test in failed if test not in wrong]
        wrong += run(left) if left else []
    for test in failed:
        if test not in wrong:
            print(f"alone: {test} failed beside others, and passed {RUNS} times of {RUNS} alone", flush=True)
    return wrong
