"""Errors of `weir.load` name Python's arguments, before a request is sent."""

import math
import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import Service

import weir

USAGE: list[tuple[dict[str, Any], str]] = [
    ({"connections": -1}, "connections: -1 is out of range"),
    ({"connections": 0}, "connections: 0 is out of range; give 1 to 1000000"),
    ({"requests": 2**70}, "requests: 1180591620717411303424 is out of range"),
    ({"duration": "10"}, "write e.g. 300ms, 1.5s, 1m30s or 1h"),
    ({"duration": -0.5}, "duration: invalid time -0.5; write seconds from 0 on"),
    ({"duration": math.nan}, "duration: invalid time NaN; write seconds from 0 on"),
    ({"timeout": 0}, "timeout: invalid time 0; write e.g. 10s or 500ms"),
    ({"rate": 0}, "rate: invalid rate 0; write requests per second above 0"),
    ({"arrivals": "uneven"}, "; choose constant, poisson or gamma:BURSTINESS"),
    ({"stages": "fast"}, "; write RATE/TIME or FROM-TO/TIME"),
    ({"stages": [(1, -1, "1s")]}, "stages: invalid stage (1, -1, 1s)"),
    ({"stages": "1/1s", "duration": 1}, "duration and stages "),
    ({"rate_from": "/nowhere.log"}, "/nowhere.log"),
    ({"rate_from": "/nowhere.log", "rate": 5}, "rate_from cannot be used with rate, stages or users"),
    ({"scale": 2}, "scale needs rate_from"),
    ({"rate_from": "/nowhere.log", "speed": 0}, "speed: write a factor from 0.001"),
    ({"mix_from": "/nowhere.log", "log_pattern": "%"}, "log_pattern: "),
    ({"ramp_up": 1}, "ramp_up and loops need users"),
    ({"slo": "quick"}, "slo: "),
    ({"headers": {"a b": "c"}}, "'a ***'"),
    ({"headers": {"a:b": "c"}}, "headers: "),
    ({"headers": {"a": "b\r\nc: d"}}, "headers: the value of 'a' has a control character; remove it"),
    ({"method": "GET /"}, "'GET /'"),
    ({"auth": ("a:b", "c")}, "auth: "),
    ({"body": "x", "json": {}}, "body and json "),
    ({"json": math.inf}, "json: Out of range float values"),
    ({"body": Path("/nowhere/at/all")}, "cannot read body file '/nowhere/at/all'"),
    ({"weights": [1]}, "weights: 1 weights for 0 bodies"),
    ({"url": "ftp://localhost/"}, "scheme 'ftp'"),
    ({"url": "http://"}, "'http://'"),
    ({"url": "http://no.such.host.invalid/"}, "no address for host 'no.such.host.invalid'"),
    ({"url": "https://localhost/", "cert": "/x.pem"}, "cert and cert_key "),
]


@pytest.mark.parametrize(("arguments", "words"), USAGE, ids=[words for _, words in USAGE])
def test_an_invalid_value_is_a_usage_error(service: Service, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(weir.UsageError) as caught:
        weir.load(**{"url": service.url, **arguments})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert service.seen == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": 3}, "url: 'int' object"),
        ({"connections": "many"}, "connections: 'str' object"),
        ({"connections": 1.5}, "connections: 'float' object"),
        ({"duration": []}, "duration: a time is seconds, a timedelta or text"),
        ({"body": [3]}, "body: a body is str, bytes or a path, not"),
        ({"keepalive": "yes"}, "keepalive: 'str' object"),
        ({"slo": [1]}, "slo: 'int' object"),
        ({"conections": 1}, "unexpected keyword argument 'conections'"),
    ],
)
def test_a_wrong_type_is_a_type_error(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError) as caught:
        weir.load(**{"url": "http://127.0.0.1/", **arguments})
    assert words in str(caught.value)


def test_an_unreachable_service_is_a_setup_error() -> None:
    with pytest.raises(weir.SetupError, match=r"cannot connect to 127\.0\.0\.1:1: Connection refused"):
        weir.load("http://127.0.0.1:1/")


def test_a_service_without_tls_is_a_setup_error(service: Service) -> None:
    with pytest.raises(weir.SetupError, match="no TLS with"):
        weir.load(service.url.replace("http:", "https:"), insecure=True)


def test_the_exceptions_have_the_documented_bases() -> None:
    assert weir.UsageError.__mro__[1:3] == (weir.WeirError, ValueError)
    assert issubclass(weir.SetupError, weir.WeirError)
    assert issubclass(weir.Interrupted, KeyboardInterrupt)
    assert not issubclass(weir.Interrupted, Exception)
    assert repr(weir.UsageError) == "<class 'weir.UsageError'>"


def test_an_interrupt_pickles_with_its_run(service: Service) -> None:
    run = weir.load(service.url, requests=3)
    assert pickle.loads(pickle.dumps(weir.Interrupted(run))).run == run
