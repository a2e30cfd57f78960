"""An outage has no times: None, so that an assertion on them fails."""

import json

import pytest

import weir


def outage() -> weir.Run:
    with weir.serve("work", mix={"error": 1}) as service:
        return weir.load(f"{service.url}/api/work", requests=20, connections=2)


def test_an_assertion_on_the_times_of_an_outage_fails() -> None:
    run = outage()
    assert run.requests.ok == 0
    assert (run.response_ms.p99, run.response_ms.mean, run.service_ms.max) == (None, None, None)
    with pytest.raises(TypeError):
        assert run.response_ms.p99 < 200  # type: ignore[operator]
    assert (run.percentile(99), run.service_percentile(50)) == (None, None)
    assert {interval.p50_ms for interval in run.series} == {None}
    assert json.loads(run.to_json())["response_ms"]["p99"] is None
    assert run.failed_ms.p99 is not None


def test_a_data_frame_of_an_outage_has_nan() -> None:
    pandas = pytest.importorskip("pandas")
    frame = outage().to_pandas()
    assert pandas.isna(frame.p99_ms).all()
    assert not (frame.p99_ms < 200).any()
