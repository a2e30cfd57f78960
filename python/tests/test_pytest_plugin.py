"""`pytest --weir`, as suites use it: pytest with a suite in a fresh folder, loads on real sockets."""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Service
from naming import ROOT
from programs import finished, started

# A session within this process drops the modules that it was the first to import, and classes of two copies differ.
import weir._load_test.fixture

pytest_plugins = ["pytester"]

LOAD = """
def test_load(weir_load):
    run = weir_load("/api/work", requests=20, connections=2, slo=["p99<10s", "errors<1%"])
    assert run.requests.ok == 20
"""
THREE = """
def test_load(weir_load):
    weir_load("/api/work", requests=30, connections=2, repeat=3)
"""


@pytest.fixture(scope="module")
def upstream() -> Iterator[weir.Service]:
    with weir.serve("work", mix={"good": 1}, delay="2ms", seed=1) as service:
        yield service


@pytest.fixture(scope="module")
def slow() -> Iterator[weir.Service]:
    with weir.serve("work", mix={"good": 1}, delay="60ms", seed=1) as service:
        yield service


class Suite:
    """A suite of one file in a fresh folder."""

    def __init__(self, pytester: pytest.Pytester, url: str) -> None:
        """Take the folder, and the base URL."""
        self.pytester = pytester
        self.url = url

    def run(self, *args: str, url: str | None = None, **counts: int) -> str:
        """Run it with `--weir`, as a session of this process, check the numbers of outcomes, and return its output."""
        done = self.pytester.runpytest_inprocess("--weir", "--weir-url", url or self.url, *args)
        done.assert_outcomes(**counts)
        assert done.stderr.str() == ""
        return done.stdout.str()

    def saved(self) -> list[Path]:
        """List the saved runs, the oldest first within a load."""
        return sorted(self.pytester.path.glob(".weir/runs/*/*/*/*.json"))

    def good(self) -> list[Path]:
        """List the recordings that are marked as good."""
        marks = self.pytester.path.glob(".weir/runs/*/*/*.passed")
        return sorted(mark.with_suffix("") for mark in marks)

    def trust(self) -> None:
        """Make all saved runs trusted ones, as if they were longer."""
        for file in self.saved():
            data = json.loads(file.read_text("utf-8"))
            data["trust"] = {"ok": True, "reasons": []}
            file.write_text(json.dumps(data), "utf-8")


@pytest.fixture(autouse=True)
def _without_other_plugins(pytester: pytest.Pytester) -> None:
    """Packages that other tests need have some, which take half a second to two seconds of each start."""
    others = ("langsmith_plugin", "respx", "anyio")
    pytester._monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(f"-p no:{name}" for name in others))


@pytest.fixture
def suite(pytester: pytest.Pytester, upstream: weir.Service) -> Suite:
    return Suite(pytester, upstream.url)


def test_load_tests_are_skipped_without_the_flag_and_selected_by_their_marker(suite: Suite) -> None:
    suite.pytester.makepyfile(
        LOAD + "def test_unit(): pass\ndef test_late(request): request.getfixturevalue('weir_load')"
    )
    done = suite.pytester.runpytest_subprocess("--strict-markers", "-rs")
    done.assert_outcomes(passed=1, skipped=2)
    assert "load test; pytest --weir runs it" in done.stdout.str()
    assert not (suite.pytester.path / ".weir").exists()
    suite.pytester.runpytest_subprocess("-m", "not load").assert_outcomes(passed=1, skipped=1, deselected=1)
    assert "test_load.py" not in suite.run("-m", "load", passed=1, deselected=2).partition("= weir =")[0]


def test_a_suite_without_load_tests_does_not_load_the_extension(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys
        def test_modules():
            assert [name for name in sys.modules if name.startswith("weir")] == ["weir", "weir.pytest_plugin"]
    """)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_weir_may_be_imported_before_pytest_starts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_unit(): pass")
    code = "import sys, weir, pytest; weir.load; sys.exit(pytest.main(['-W', 'error']))"
    assert finished(sys.executable, "-c", code, cwd=pytester.path).returncode == 0


def test_a_load_has_a_line_in_the_summary_and_a_saved_run(suite: Suite) -> None:
    suite.pytester.makepyfile(LOAD)
    text = suite.run(passed=1)
    line = next(line for line in text.splitlines() if line.endswith("test_load"))
    assert re.fullmatch(
        r"[\d,.]+/s  p99 [\d.]+m?u?s  0 failed  2 of 2 met, not trusted  no good run before  \S+::test_load", line
    )
    assert "not trusted: too few successes" in text
    (file,) = suite.saved()
    assert weir.Run.from_json(file.read_text("utf-8")).requests.ok == 20
    assert [file.parent] == suite.good()
    assert (suite.pytester.path / ".weir/runs/.gitignore").read_text() == "*\n"
    assert "no verdict: rate " in suite.run(passed=1)


def test_a_missed_objective_fails_with_what_was_asked_and_measured(suite: Suite) -> None:
    suite.pytester.makepyfile("""
        def test_load(weir_load):
            weir_load("/api/work", requests=20, connections=2, slo=["p99<1us", "errors<1%"])
    """)
    text = suite.run(failed=1)
    assert "E       AssertionError: 1 of 2 objectives missed\n" in text
    assert re.search(r"^E         missed  p99<1us    p99 response time [\d.]+m?s$", text, re.M)
    assert re.search(r"^E         met     errors<1%  errors 0%.*$", text, re.M)
    assert re.search(r"^E         GET http://\S+/api/work: 20 requests in .* 0 failed$", text, re.M)
    assert re.search(r"^E         not trusted: too few successes", text, re.M)
    saved = re.search(r"^E       saved: (\S+)$", text, re.M)
    assert saved
    assert suite.saved()[0].parent == suite.pytester.path / saved[1]
    assert "-- weir --" in text, "the report of the run"
    assert "_load_test" not in text, "frames of weir"
    assert suite.good() == []


def test_without_asserts_the_run_is_returned_and_pytest_explains_it(suite: Suite) -> None:
    suite.pytester.makepyfile("""
        def test_load(weir_load):
            run = weir_load("/api/work", requests=20, connections=2, slo="p99<1us", asserts=False)
            assert not run.slo[0].ok
            assert run.requests.failed > 5
    """)
    text = suite.run(failed=1)
    assert re.search(r"where 0 = Requests\(.*<weir.Run closed GET", text, re.S)


def test_a_load_without_any_success_fails_without_objectives(pytester: pytest.Pytester, service: Service) -> None:
    pytester.makepyfile(THREE.replace("/api/work", "/status?code=503"))
    text = Suite(pytester, service.url).run(failed=1)
    assert "not one of 30 requests succeeded (run 1 of 3)" in text
    assert "(30 x 5xx)" in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'http://127.0.0.1:1/'", "weir.SetupError: cannot connect to 127.0.0.1:1: Connection refused"),
        ("'/', duration='5 moons'", "weir.UsageError: duration: invalid time '5 moons'"),
        ("'/', rat=200", "TypeError: load() got an unexpected keyword argument 'rat'"),
        ("'/', repeat=0", "weir.UsageError: repeat: invalid value 0"),
        ("'/', name=''", "weir.UsageError: name: invalid name ''"),
        ("'/', name=3", "TypeError: name: text is needed, not int"),
    ],
)
def test_what_cannot_start_is_one_clear_failure(suite: Suite, call: str, message: str) -> None:
    suite.pytester.makepyfile(f"def test_load(weir_load):\n    weir_load({call})")
    text = suite.run("--no-header", failed=1)
    assert f"E       {message}" in text
    assert len(text.splitlines()) < 22, text
    assert suite.saved() == []


def test_the_base_url_is_an_option_of_the_file_or_a_fixture(suite: Suite) -> None:
    suite.pytester.makepyfile(LOAD)
    nothing = suite.pytester.runpytest_subprocess("--weir")
    nothing.assert_outcomes(failed=1)
    assert "url: '/api/work' is a path, and there is no base URL; write --weir-url" in nothing.stdout.str()
    suite.pytester.makeini(f"[pytest]\nweir_url = {suite.url}\nstrict_config = true\nweir_runs = kept")
    suite.pytester.runpytest_subprocess("--weir").assert_outcomes(passed=1)
    assert len(list(suite.pytester.path.glob("kept/*/*/*/*.json"))) == 1
    suite.pytester.makeconftest(f"""
        import pytest
        @pytest.fixture(params=["", "/"])
        def weir_url(request):
            return {suite.url!r} + request.param
    """)
    suite.pytester.runpytest_subprocess("--weir", "--weir-url", "http://127.0.0.1:1").assert_outcomes(passed=2)


@pytest.mark.parametrize("choice", ["fail", "warn", "ignore"])
def test_an_untrusted_run_does_what_the_option_says(suite: Suite, choice: str) -> None:
    suite.pytester.makepyfile(LOAD)
    text = suite.run(f"--weir-untrusted={choice}", failed=int(choice == "fail"), passed=int(choice != "fail"))
    assert ("AssertionError: the run is not trusted" in text) is (choice == "fail")
    assert ("::test_load: not trusted: too few successes" in text) is (choice != "ignore")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--weir-compare=always", "--weir-compare: unknown value 'always'; choose off, report or fail"),
        ("--weir-keep=0", "--weir-keep: invalid value '0': not a number above 0; write e.g. 10"),
        ("--weir-min-effect=3", "--weir-min-effect: invalid percentage '3': not in 0% to 100%; write e.g. 3%"),
        ("-oweir_repeat=x", "weir_repeat: invalid value 'x': not a number above 0; write e.g. 1"),
    ],
)
def test_invalid_options_end_pytest_in_one_line(pytester: pytest.Pytester, args: str, message: str) -> None:
    done = pytester.runpytest_inprocess("--weir", args)
    assert (done.ret, done.stderr.str().strip()) == (4, f"ERROR: {message}")


@pytest.mark.timed
def test_a_regression_is_reported_and_fails_if_wanted(suite: Suite, slow: weir.Service) -> None:
    suite.pytester.makepyfile(THREE)
    suite.run(passed=1)
    suite.trust()
    before = suite.good()
    text = suite.run("--weir-compare=fail", url=slow.url, failed=1)
    assert re.search(
        r"^E +AssertionError: worse than the last good run: .*p[59][09] x [\d.]+ \([\d.]+ms to [\d.]+ms\)", text, re.M
    )
    assert "B vs A: worse: " in text
    assert suite.good() == before, "the last good run is still the fast one"
    text = suite.run(url=slow.url, passed=1)
    assert re.search(r"  worse: .*p[59][09] x [\d.]+.*  \S+::test_load$", text, re.M)
    assert len(suite.good()) == 2, "the test passed, so the slow run is what others are compared with"
    assert f"A is the last good run ({suite.good()[-1].relative_to(suite.pytester.path)})" in suite.run("-rP", passed=1)


def test_too_few_runs_for_a_verdict_are_named_where_one_is_wanted(suite: Suite, slow: weir.Service) -> None:
    suite.pytester.makepyfile(LOAD)
    suite.run(passed=1)
    text = suite.run("--weir-compare=fail", url=slow.url, passed=1)
    assert "no verdict on 1 of 1 loads: it needs 3 runs now, and 3 when the test passed last; write" in text
    assert "no verdict" not in suite.run("--weir-compare=off", passed=1)


def test_runs_of_another_plan_are_not_compared(suite: Suite) -> None:
    suite.pytester.makepyfile(LOAD)
    suite.run(passed=1)
    suite.pytester.makepyfile(LOAD.replace("connections=2", "connections=3"))
    text = suite.run("--weir-compare=fail", passed=1)
    assert "  not compared: different plans: " in text


def test_a_damaged_saved_run_is_named_and_the_one_before_is_used(suite: Suite) -> None:
    suite.pytester.makepyfile(LOAD)
    suite.run(passed=1)
    first, damages = suite.good()[0], ['{"schema": 3', "", "\udcff", '{"schema": 1}']
    for damage in damages:
        suite.run(passed=1)
        newest = suite.good()[-1] / "1.json"
        newest.write_bytes(damage.encode("utf-8", "surrogateescape"))
    (suite.good()[-2] / "1.json").unlink()
    text = suite.run("-vv", passed=1)
    notes = [line for line in text.splitlines() if "damaged saved run ignored: " in line]
    assert len(notes) == len(damages), text
    assert all(
        note.endswith(f"; remove {path.relative_to(suite.pytester.path)}")
        for note, path in zip(notes, reversed(suite.good()[1:-1]), strict=True)
    )
    assert "no verdict: rate " in text, f"compared with {first}"
    assert "Traceback" not in text


def test_the_newest_runs_are_kept_and_the_last_good_one(suite: Suite) -> None:
    suite.pytester.makepyfile("""
        import os
        def test_load(weir_load):
            weir_load("/api/work", requests=20, connections=2)
            assert "FAIL" not in os.environ
    """)
    for _ in range(4):
        suite.run("--weir-keep=3", passed=1)
    assert len(suite.saved()) == len(suite.good()) == 3
    good = suite.good()[-1]
    suite.pytester._monkeypatch.setenv("FAIL", "1")
    for _ in range(5):
        suite.run("--weir-keep=3", failed=1)
    assert suite.good() == [good]
    assert len(suite.saved()) == 4, "three, and the last good one"


def test_names_and_numbers_of_loads_keep_their_runs_apart(suite: Suite) -> None:
    suite.pytester.makepyfile("""
        import pytest
        names = ["a/b", "a_b", "..", "", "\\u00e4 '\\"$(x)`", "x" * 300, "x" * 301]
        @pytest.mark.parametrize("value", names, ids=lambda value: value)
        def test_load(weir_load, value):
            weir_load("/api/work", requests=10, connections=1)
            weir_load("/api/work", requests=10, connections=1, name=value or "empty")
            weir_load("/api/work", requests=10, connections=1)
            with pytest.raises(ValueError, match="name: invalid name '1'"):
                weir_load("/api/work", requests=10, name="1")
    """)
    suite.run(passed=7)
    assert len({file.parents[1] for file in suite.saved()}) == len(suite.saved()) == 21
    assert all(len(os.fsencode(part)) < 120 for file in suite.saved() for part in file.parts[-4:])
    text = suite.run(passed=7)
    assert "no good run before" not in text
    summary = text.partition("= weir =")[2].partition("not trusted: ")[0]
    assert summary.count("(..)") == 1


def test_a_folder_that_cannot_be_written_is_one_clear_failure(suite: Suite) -> None:
    suite.pytester.makepyfile(LOAD)
    suite.pytester.path.joinpath("file").write_text("")
    text = suite.run("--weir-runs=file/runs", failed=1)
    assert re.search(
        r"^E       weir.UsageError: cannot save runs in \S+/file/runs: Not a directory; --weir-runs", text, re.M
    )


def test_workers_of_xdist_take_turns_and_report_to_one_summary(suite: Suite) -> None:
    suite.pytester.makepyfile("""
        import pytest
        @pytest.mark.parametrize("n", range(6))
        def test_load(weir_load, n):
            weir_load("/api/work", rate=200, duration=0.2, slo="p99<10s")
    """)
    text = suite.run("-n", "3", passed=6)
    assert len(re.findall(r"::test_load\[\d\]$", text.partition("= weir =")[2], re.M)) == 6
    runs = [weir.Run.from_json(file.read_text("utf-8")) for file in suite.saved()]
    spans = sorted((run.manifest.started_unix_s, run.duration_s) for run in runs)
    assert len(spans) == len(suite.good()) == 6
    assert all(begin + length <= after for (begin, length), (after, _) in pairwise(spans))
    assert "worse" not in suite.run("-n", "2", "--weir-compare=fail", passed=6)


def test_ctrl_c_ends_the_session_and_keeps_the_run(pytester: pytest.Pytester, service: Service) -> None:
    pytester.makepyfile("def test_load(weir_load):\n    weir_load('/', connections=2, duration='10m')")
    with started(sys.executable, "-m", "pytest", "--weir", "--weir-url", service.url, cwd=pytester.path) as process:
        assert service.asked.wait(120)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (2, ""), out
    assert re.search(r"  interrupted, .*  \S+::test_load$", out, re.M), out
    assert "Interrupted: after" in out
    suite = Suite(pytester, service.url)
    assert [weir.Run.from_json(file.read_text("utf-8")).interrupted for file in suite.saved()] == [True]
    assert suite.good() == []


def test_a_load_of_a_fixture_belongs_to_the_test_and_an_expected_failure_is_not_good(suite: Suite) -> None:
    suite.pytester.makepyfile("""
        import pytest
        @pytest.fixture
        def warm(weir_load):
            return weir_load("/api/work", requests=10, connections=1)
        def test_fixture(warm):
            assert warm.requests.ok == 10
        def test_later_failure(warm):
            assert warm.requests.ok == 11
        @pytest.mark.xfail(strict=False)
        @pytest.mark.parametrize("ok", [10, 11])
        def test_expected(warm, ok):
            assert warm.requests.ok == ok
    """)
    text = suite.run(passed=1, failed=1, xfailed=1, xpassed=1)
    assert len(re.findall(r"^[\d.,]+/s +p99 .*::test_", text, re.M)) == 4
    (good,) = suite.good()
    assert "_test_fixture-" in str(good)


def test_a_class_of_users_goes_to_the_base_url(suite: Suite) -> None:
    suite.pytester.makepyfile("""
        import weir
        class Reader(weir.User):
            @weir.task
            async def read(self):
                await self.get("/api/work", name="read")
        def test_load(weir_load):
            assert weir_load(Reader, users=2, loops=5).steps[0].requests == 10
    """)
    suite.run(passed=1)


def test_the_documentation_has_every_option(pytester: pytest.Pytester) -> None:
    page = (ROOT / "docs" / "pytest.md").read_text("utf-8")
    text = pytester.runpytest_subprocess("--help").stdout.str()
    for pattern, documented in [(r"^ +(--weir[a-z-]*)", r"`(--weir[a-z-]*)"), (r"^ +(weir_\w+) \(", r"`(weir_\w+)`")]:
        found = set(re.findall(pattern, text, re.M))
        assert len(found) >= 7
        assert found <= set(re.findall(documented, page))
    assert "load: load test" in pytester.runpytest_subprocess("--markers").stdout.str()
