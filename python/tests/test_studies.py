"""Findings of `studies/` agree with their results."""

import sys
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "studies"
sys.path.insert(0, str(STUDIES))

pytest.importorskip("jinja2", reason="no jinja2; scripts/setup.sh test-all installs it")

import finding  # noqa: E402
import words  # noqa: E402

pytestmark = pytest.mark.wide

FOUND = sorted(path.parent for path in STUDIES.glob("*/results"))


@pytest.mark.parametrize("folder", FOUND, ids=lambda folder: folder.name)
def test_a_finding_is_what_its_results_give_and_no_number_was_typed(folder: Path) -> None:
    assert finding.check(folder) == []


@pytest.mark.parametrize("template", sorted(STUDIES.glob("*/finding.md.j2")), ids=lambda path: path.parent.name)
def test_a_template_has_no_typed_number_before_there_are_results(template: Path) -> None:
    assert list(finding.typed(template.read_text())) == []


@pytest.mark.parametrize(
    "text",
    [
        "It answers 40 requests.",
        "It takes 1.5 s.",
        "`40/s` at most",
        "```\n12 ms\n```",
        "{{ 40 | per_second }}",
        "{{ '40' ~ summary.x }}",
        "{{ summary.x + ' of 40' }}",
        "{{ 'up to 40' }}",
        "{% set most = 40 %}",
        "{{ table(['a', 'b'], [['x', 40]]) }}",
        "{% call said() %}25 s{% endcall %}, and here 2 s",
        "{% for users in [10] %}{% endfor %}",
        "{{ summary.x | ms ~ ' of 40' }}",
    ],
)
def test_a_typed_number_is_found(text: str) -> None:
    assert len(list(finding.typed(f"first\n{text}"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "the 99th percentile, p99, `HTTP/1.1` and [a page](https://example.org/40)",
        "{{ summary.x | per_second }} and {{ at(summary, 'a', users=40).loads.x.p50_ms | ms }}",
        "{{ said('25 s') }} {% call said() %}\n25 s at 100 users\n{% endcall %}",
        "{{ table(['a', 'b'], [['x', said('40/s')], ['y', summary.x | spread('ms')]]) }}",
        "{{ (1 - summary.x) | share }} and {{ (summary.s * 1000) | ms }}",
        "{% for point in summary.points %}{{ point.users }}{% endfor %}",
    ],
)
def test_names_and_what_others_said_are_no_typed_numbers(text: str) -> None:
    assert list(finding.typed(text)) == []


def test_a_finding_that_is_not_of_its_results_is_found(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "summary.json").write_text('{"x": [1, 2, 3]}')
    (tmp_path / "finding.md.j2").write_text("{{ summary.x.median | ms }}\n")
    assert len(finding.check(tmp_path)) == 1
    (tmp_path / "README.md").write_text("1 ms\n")
    assert finding.check(tmp_path) == []
    (tmp_path / "README.md").write_text("2 ms\n")
    assert len(finding.check(tmp_path)) == 1


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1234.5, "per_second", "1,230/s"),
        (40.04, "per_second", "40.0/s"),
        (40, "number", "40"),
        (0.01234, "share", "1.23%"),
        (0.0, "share", "0%"),
        (25346.0, "ms", "25.3 s"),
        (0.2104, "ms", "0.21 ms"),
        (0.0523, "ms", "52.3 µs"),
        (1500.0, "us", "1.50 ms"),
        (2.04, "ratio", "x 2.04"),
        (0.958, "ratio", "-4.2%"),
        (123456, "count", "123,456"),
    ],
)
def test_numbers_have_three_digits_that_count_and_their_unit(value: float, unit: str, shown: str) -> None:
    assert words.UNITS[unit](value) == shown
