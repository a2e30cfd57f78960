"""Words: names are plain English or in docs/glossary.md, and words that were replaced occur nowhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from naming import ROOT, Name, flags, glossary, json_keys, metrics, python_names, toml_keys, words_of

PLAIN_WORDS = Path(__file__).with_name("plain_words.txt")


def plain_words() -> list[str]:
    lines = PLAIN_WORDS.read_text("utf-8").splitlines()
    return [word for line in lines if not line.startswith("#") for word in line.split()]


@pytest.mark.parametrize(
    ("names", "minimum"),
    [(flags, 150), (toml_keys, 80), (json_keys, 200), (metrics, 30), (python_names, 300)],
    ids=["flags", "TOML", "JSON", "metrics", "Python"],
)
def test_names_are_plain_english_or_in_the_glossary(names: Callable[[], Iterable[Name]], minimum: int) -> None:
    found = set(names())
    assert len(found) >= minimum
    known = glossary() | set(plain_words())
    unknown = sorted(f"{name} ({place})" for name, place in found if not known.issuperset(words_of(name)))
    assert unknown == []


def test_plain_words_are_unique_and_not_in_the_glossary() -> None:
    words = plain_words()
    assert sorted({word for word in words if words.count(word) > 1}) == []
    assert sorted(glossary() & set(words)) == []


@dataclass(frozen=True)
class Replaced:
    """Word that was replaced.

    Attributes:
        pattern: Regular expression of the word.
        instead: Replacement, for the message.
        allowed: Regular expression of correct uses, which are removed before the search.
    """

    pattern: str
    instead: str
    allowed: str = "(?!)"


_ARTICLE = r"(?:an?|the|its|no|any|each|every|one|two|first|last|next|their|whose|your|own|of|for|good|bad|right|wrong)"

REPLACED = [
    Replaced(r"\bgraveyard", "dead-lettered"),
    Replaced(r"\bdead letters?\b", "retrying, or dead-lettered"),
    Replaced(r"\bpatience\b", "timeout, max_queue_wait"),
    Replaced(r"\bhaste\b", "max_queue_wait_overloaded"),
    Replaced(r"\bmost_out\b", "max_ejected"),
    Replaced(r"\bhost_out\b", "host_ejected"),
    Replaced(r"\bpriority_bar\b", "shed_threshold"),
    Replaced(r"\b[Tt]he document\b", "the reference workload", r"[Tt]he document(?: module|'s (?:root|tables?)|ation)"),
    Replaced(r"\b(?:[Nn]o|[Ss]ome|[Ee]very)body\b", "a client, a thread, nothing, everything"),
    Replaced(r"\b[Ww]ho(?:m)?ever\b", "a client that, a reader who"),
    Replaced(
        r"\b(?:is|are) no [a-z]+",
        "unknown X, invalid X, not a X",
        r"\b(?:[Tt]here|None|0) (?:is|are) no\b"
        r"|\b(?:is|are) no (?:longer|more|less|fewer|other|one|such|need|evidence)\b",
    ),
    Replaced(r"\b[Ss]o many\b", "a number, N"),
    Replaced(r"\b[Ss]o long\b", "a duration"),
    Replaced(rf"\b{_ARTICLE} answers?\b", "response", r"\bthe answer to\b"),
    Replaced(r"\banswer(?:ed|ing)\b", "responded, responding"),
    Replaced(
        r"\b[Rr]efus(?:e|es|ed|al|als|ing)\b",
        "reject, rate-limit, shed",
        r"(?:[Cc]onnections?|connect|host) (?:that )?(?:is |are |was |were )?refused"
        r"|[Rr]efused (?:connections?|ports?|streams?)|REFUSED_STREAM|refused by the (?:kernel|system)|ECONNREFUSED"
        r"|ConnectionRefused(?:Error)?|\"refused\"|``refused``|\"refuse\", \"overflow\"|\"refusal\"",
    ),
    Replaced(
        r"\b(?:[0-9]+|its|their|more|many|few|all|the|no|of|max|between|one|two|three) tries\b|\btries\b\W*[:=(]",
        "attempts",
    ),
    Replaced(r"\bjourneys?\b", "round trip"),
    Replaced(r"\b[Dd]ice\b", "seeded random numbers"),
    Replaced(r"\bfound out\b", "adaptive, measured"),
    Replaced(r"\bkept runs?\b", "saved run"),
    Replaced(r"\b(?:an?|the|each|this|first|last|one) stretch(?:es)?\b|\bstretch_\w+", "interval, phase, period"),
]

SEARCHED = [
    "docs",
    "src",
    "crates/*/*/src",
    "crates/cli/src",
    "python",
    "examples",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
SUFFIXES = {".md", ".json", ".rs", ".py", ".pyi", ".toml", ".h", ".c", ".js", ".css", ".sql", ".lua", ".txt"}

EXCEPTIONS = {
    "crates/testing": "tests, which are not searched",
    "docs/plan": "plans quote old words",
    "docs/benchmarks": "recorded command lines and results stay as they were run",
    "docs/reference-workloads.md": "quotes the report that the workloads are from",
    "python/tests/test_words.py": "the words themselves",
}
"""Files and folders that are not searched, with the reason."""

_TEST_NAME = re.compile(r"^\s*(?:async )?(?:def test_|fn )\w+")


def searched() -> Iterator[Path]:
    for path in (path for name in SEARCHED for path in sorted(ROOT.glob(name))):
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            place = file.relative_to(ROOT).as_posix()
            is_excepted = any(place == exception or place.startswith(f"{exception}/") for exception in EXCEPTIONS)
            if file.suffix in SUFFIXES and not is_excepted and not {"__pycache__", "weir.data"} & set(file.parts):
                yield file


def lines_of(file: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if not _TEST_NAME.match(line):
            yield number, line


def test_replaced_words_occur_nowhere() -> None:
    hits = []
    # Most lines have none of them.
    any_word = re.compile("|".join(f"(?:{word.pattern})" for word in REPLACED))
    for file in searched():
        for number, line in lines_of(file):
            if not any_word.search(line):
                continue
            for word in REPLACED:
                if found := re.search(word.pattern, re.sub(word.allowed, "", line)):
                    hits.append(f"{file.relative_to(ROOT)}:{number}: {found[0]!r}; write {word.instead}")
    assert hits == [], "\n" + "\n".join(hits)


AVOIDED = {
    r"\bwhat of (?:an?|the|this|them|it)\b": "what on this machine, which part of it",
    r"\bhas no place in\b": "the subject first: percentiles cover successful requests only",
    r"(?m)^(?:How-to )?[Ff]or those who\b": "a verb: load a service, import a file",
    r"\bwhat (?:of them )?was tried\b": "tested",
    r"\bfirst acquaintance\b": "first steps",
}
"""Phrases that docs/design/voice.md replaces, and what to write instead."""

OTHER_VOICES = ("design/", "benchmarks")
"""Pages that are not searched for them, by the beginning of their names."""


def test_pages_speak_as_the_page_on_voice_says() -> None:
    folder = ROOT / "docs"
    pages = {page.relative_to(folder).as_posix(): page.read_text("utf-8") for page in folder.rglob("*.md")}
    hits = [
        f"docs/{name}: {found[0]!r}; write {instead}"
        for name, text in sorted(pages.items())
        if not name.startswith(OTHER_VOICES)
        for phrase, instead in AVOIDED.items()
        if (found := re.search(phrase, text))
    ]
    assert hits == [], "\n" + "\n".join(hits)


def test_the_page_on_voice_is_short() -> None:
    assert len((ROOT / "docs" / "design" / "voice.md").read_text("utf-8").splitlines()) <= 15


@pytest.mark.parametrize(
    ("text", "is_replaced"),
    [
        ("the answer came", True),
        ("it answers GET requests", False),
        ("two tries", True),
        ("it tries again", False),
        ("tries: 3", True),
        ("connection refused", False),
        ("a refused call", True),
        ("'v' is no scenario", True),
        ("there is no longer a limit", False),
        ("dead-letter queue", False),
        ("nobody waits", True),
    ],
)
def test_patterns_find_words_but_not_their_correct_uses(text: str, is_replaced: bool) -> None:
    found = any(re.search(word.pattern, re.sub(word.allowed, "", text)) for word in REPLACED)
    assert found is is_replaced
