"""The contract: names that users depend on are those of contract.txt, which is changed on purpose alone."""

from __future__ import annotations

from collections import Counter

import contract

HELP = """Measure

Usage: weir load [OPTIONS] [URL]

Options:
  -c, --connections <N>
          open N connections [default: 50]; open loop: at most N

      --retry-methods <METHODS>  retry only these [default: safe] [possible values: safe,
                                 idempotent, all]
  -f, --format <FORMAT>
          print the report in this format

          Possible values:
          - text: for a terminal
          - json: one JSON object

          [default: text]

Request:
  -4                  use IPv4
      --no-keepalive  open a connection for each request, unlike --keepalive

Examples:
  weir load --rate 5
"""


def test_the_contract_is_what_its_file_says() -> None:
    kept = contract.FILE.read_text("utf-8").splitlines()
    now = contract.lines()
    gone = [f"- {line}" for line in kept if line not in set(now)]
    new = [f"+ {line}" for line in now if line not in set(kept)]
    advice = (
        "names of the contract have changed; if that is meant, list what is gone in CHANGELOG.md under Changed, and run"
        "\n    python python/tests/contract.py > python/tests/contract.txt\n"
    )
    assert not gone + new, advice + "\n".join(gone + new)
    assert kept == now, "the order of python/tests/contract.txt is not that of contract.py"


def test_each_part_of_the_contract_has_names() -> None:
    kept = contract.FILE.read_text("utf-8").splitlines()
    counts = Counter(line.split()[0] for line in kept)
    least = {"command": 30, "exit": 5, "flag": 500, "json": 700, "label": 10, "metric": 50, "python": 500, "toml": 150}
    assert {part: counts[part] for part, count in least.items() if counts[part] < count} == {}
    assert counts.keys() == least.keys()


def test_flags_are_read_with_values_and_defaults() -> None:
    assert list(contract.flags_of(HELP)) == [
        "-c, --connections <N> = 50",
        "--retry-methods <METHODS> {safe, idempotent, all} = safe",
        "-f, --format <FORMAT> {text, json} = text",
        "-4",
        "--no-keepalive",
    ]


def test_fields_are_read_with_types_and_whether_they_may_be_absent() -> None:
    schema = {
        "required": ["a"],
        "properties": {
            "a": {"type": "object", "additionalProperties": {"properties": {"n": {"type": ["integer", "null"]}}}},
            "b": {"type": "array", "items": {"$ref": "#/$defs/part"}},
            "c": {"enum": ["x", "y"]},
        },
    }
    assert list(contract._fields(schema, "")) == [
        "a: object",
        "a.*.n?: integer | null",
        "b?: part[]",
        'c?: "x" | "y"',
    ]
