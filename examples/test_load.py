"""Load tests beside other tests: objectives are assertions, and runs are compared with the last good one.

pytest --weir examples/test_load.py
"""

from collections.abc import Iterator

import pytest

import weir
from weir.pytest_plugin import WeirLoad


@pytest.fixture(scope="session")
def weir_url() -> Iterator[str]:
    """Start the service to be tested, here a test server of weir, and return its base URL."""
    with weir.serve("work", mix={"good": 1}, delay="5ms..20ms", seed=1) as service:
        yield service.url


def test_work_is_done_in_time_at_200_per_second(weir_load: WeirLoad) -> None:
    """Miss an objective, and the test fails with what was asked and measured."""
    run = weir_load("/api/work", rate=200, duration=2, slo=["p99<1s", "errors<1%"])
    assert run.status == {200: 400}


@pytest.mark.parametrize("connections", [1, 10])
def test_connections_do_not_disturb_each_other(weir_load: WeirLoad, connections: int) -> None:
    """A run is a value: whatever it has can be asserted."""
    run = weir_load("/api/work", connections=connections, requests=200)
    assert run.requests.ok == 200
    assert run.service_ms.p50 < 500
