"""Scenarios as values: what a user does, step by step. They become text in the format of hurl, which weir compiles."""

import json as json_module
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote

from weir._errors import UsageError
from weir._headers import pairs_of
from weir._redaction import representation
from weir._time import Time

__all__ = ["Scenario", "Step"]

_Path: TypeAlias = str | PathLike[str]
_Pairs: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TOKEN = re.compile(r"[A-Z][A-Z0-9_-]*")


@dataclass(frozen=True, kw_only=True, repr=False)
class Step:
    r"""Step of a scenario: a request, what its response must be, and what is taken from it.

    Texts may have templates, such as ``{{token}}``: variables, columns of data, captures of earlier steps, and
    functions such as ``{{newUuid}}``. A URL without a host begins with ``/``; the host is then that of `weir.load`.

    Attributes:
        method: Request method.
        url: URL or path.
        name: Name in the results. Default: method and path; unique in a scenario.
        headers: Names and values.
        query: Parameters of the query, encoded as needed.
        form: Fields of a form; the body is urlencoded.
        cookies: Cookies of this request, beside those that the service has set.
        json: Body as an object for `json.dumps`; a text in it may have templates.
        body: Body: text, which may have templates, or bytes, which are sent as they are.
        auth: User and password for basic authentication.
        status: Expected status. Without one, a status below 400 is a success.
        capture: Variables for later steps: name and query. ``"$.items[0].id"`` is a JSONPath in the body; other
            queries are those of hurl, such as ``'header "Location"'`` or ``'regex /id=(\\d+)/'``.
        check: Predicates on the response in the format of hurl, such as ``'jsonpath "$.total" > 0'``.
        success: Predicate that makes the response a success, in place of the status.
        options: Options of hurl, such as ``{"delay": "1s", "location": "true", "retry": "3"}``.

    >>> print(weir.Step.get("/items", capture={"id": "$.items[0].id"}, status=200))
    GET /items
    HTTP 200
    [Captures]
    id: jsonpath "$.items[0].id"
    """

    method: str = "GET"
    url: str
    name: str | None = None
    # Their values may be secrets.
    headers: _Pairs = field(default=(), repr=False)
    query: _Pairs = field(default=(), repr=False)
    form: _Pairs = field(default=(), repr=False)
    cookies: _Pairs = field(default=(), repr=False)
    json: object = field(default=None, repr=False)
    body: str | bytes | None = field(default=None, repr=False)
    auth: tuple[str, str] | None = field(default=None, repr=False)
    status: int | None = None
    capture: Mapping[str, str] = field(default_factory=dict)
    check: str | Sequence[str] = ()
    success: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.method):
            raise UsageError(f"invalid method {self.method!r}; write e.g. 'GET'")
        given = [name for name in ("json", "body", "form") if getattr(self, name)]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} cannot be combined; each is a body")
        options = (text for pair in self.options.items() for text in pair)
        for text in (self.url, self.name or "", self.success or "", *self.checks(), *options):
            if "\n" in text or "\r" in text:
                raise UsageError(f"invalid line break in {text!r}; write it in one line")
        # Reports values that are not text.
        pairs_of(self.headers)
        for name in self.capture:
            if not _NAME.fullmatch(name):
                raise UsageError(f"invalid name of a variable {name!r}; write letters, digits, _ and -")

    @classmethod
    def get(cls, url: str, **settings: object) -> "Step":
        """Step with a GET request; `settings` are the other attributes."""
        return cls(method="GET", url=url, **settings)  # type: ignore[arg-type]

    @classmethod
    def head(cls, url: str, **settings: object) -> "Step":
        """Step with a HEAD request; `settings` are the other attributes."""
        return cls(method="HEAD", url=url, **settings)  # type: ignore[arg-type]

    @classmethod
    def post(cls, url: str, **settings: object) -> "Step":
        """Step with a POST request; `settings` are the other attributes."""
        return cls(method="POST", url=url, **settings)  # type: ignore[arg-type]

    @classmethod
    def put(cls, url: str, **settings: object) -> "Step":
        """Step with a PUT request; `settings` are the other attributes."""
        return cls(method="PUT", url=url, **settings)  # type: ignore[arg-type]

    @classmethod
    def patch(cls, url: str, **settings: object) -> "Step":
        """Step with a PATCH request; `settings` are the other attributes."""
        return cls(method="PATCH", url=url, **settings)  # type: ignore[arg-type]

    @classmethod
    def delete(cls, url: str, **settings: object) -> "Step":
        """Step with a DELETE request; `settings` are the other attributes."""
        return cls(method="DELETE", url=url, **settings)  # type: ignore[arg-type]

    def checks(self) -> tuple[str, ...]:
        """Checks, as a tuple also where one text was given."""
        return (self.check,) if isinstance(self.check, str) else tuple(self.check)

    def __repr__(self) -> str:
        """Return the attributes; secrets are hidden."""
        return representation(self)

    def __str__(self) -> str:
        """Step in the format of hurl."""
        lines = []
        if self.name is not None:
            lines.append(f"# @name {self.name}")
        if self.success is not None:
            lines.append(f"# @success {self.success}")
        lines.append(f"{self.method} {_value(self.url)}")
        headers = pairs_of(self.headers)
        if self.json is not None and not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("Content-Type", "application/json"))
        lines += [f"{_key(name)}: {_value(value)}" for name, value in headers]
        auth = () if self.auth is None else (self.auth,)
        # Names of fields are sent as they are, unlike their values.
        form = [(_percent_encoded(name), value) for name, value in _pairs(self.form)]
        sections = {"BasicAuth": auth, "Query": self.query, "Form": form, "Cookies": self.cookies}
        for title, pairs in sections.items():
            lines += _section(title, (f"{_key(name)}: {_value(value)}" for name, value in _pairs(pairs)))
        lines += _section("Options", (f"{name}: {value}" for name, value in self.options.items()))
        if self.json is not None:
            lines.append(json_module.dumps(self.json, ensure_ascii=False))
        elif isinstance(self.body, bytes):
            lines.append(f"hex,{self.body.hex()};")
        elif self.body is not None:
            lines.append(f"`{_escaped(self.body, '`')}`")
        captures = [f"{name}: {_query(query)}" for name, query in self.capture.items()]
        if self.status is not None or captures or self.checks():
            lines.append(f"HTTP {'*' if self.status is None else self.status}")
        lines += _section("Captures", captures)
        lines += _section("Asserts", self.checks())
        return "\n".join(lines)


class Scenario:
    """What a user does: steps one after the other, again and again.

    Attributes:
        name: Name in the results.
        text: Steps in the format of hurl; ``str(scenario)`` is the same.
        settings: The other arguments, as given.

    Args:
        steps: Steps in order, or a text in the format of hurl.
        name: Name in the results.
        think: Time between steps: ``"1s"``, ``"1s..3s"``, ``"exponential 2s"``, ``"lognormal 2s 8s"``.
        weight: Weight among the scenarios of a load.
        variables: Values of variables.
        data: Rows, whose columns are variables: a file (csv, json, jsonl), or mappings. Each iteration has one row.
        data_order: Order of the rows: ``"circular"``, ``"unique"`` (each once; the load ends with them), ``"random"``
            or ``"once"`` (a user keeps its row).
        pacing: Minimum time between the starts of two iterations of a user.
        setup: Scenario that is played once before the load; its captures are variables of all users.
        teardown: Scenario that is played once after the load.
        continue_on_error: Whether an iteration goes on after a failed step.
        keep_cookies: Whether a user keeps its cookies from one iteration to the next one.
        max_redirects: Maximum number of redirects that a step follows. Default: none, unless a step has options.
        folder: Folder of the files that the text names; files outside it are rejected.

    >>> shop = weir.Scenario(
    ...     [
    ...         weir.Step.post("/login", json={"user": "{{user}}"}, capture={"token": "$.token"}),
    ...         weir.Step.get("/items", headers={"Authorization": "Bearer {{token}}"}, status=200),
    ...     ],
    ...     data=[{"user": "ada"}, {"user": "bob"}],
    ...     think="1s..3s",
    ... )
    >>> weir.load("http://localhost:8080", scenario=shop, users=100)  # doctest: +SKIP
    """

    def __init__(
        self,
        steps: Sequence[Step] | str,
        *,
        name: str = "scenario",
        think: str | None = None,
        weight: float = 1.0,
        variables: Mapping[str, object] | None = None,
        data: _Path | Sequence[Mapping[str, object]] | None = None,
        data_order: Literal["circular", "unique", "random", "once"] = "circular",
        pacing: Time | None = None,
        setup: "Scenario | None" = None,
        teardown: "Scenario | None" = None,
        continue_on_error: bool = False,
        keep_cookies: bool = False,
        max_redirects: int | None = None,
        folder: _Path = ".",
    ) -> None:
        if not isinstance(steps, str) and not steps:
            raise UsageError("a scenario needs steps; write e.g. [weir.Step.get('/items')]")
        self.name = name
        self.text = steps if isinstance(steps, str) else "\n\n".join(map(str, steps)) + "\n"
        self.settings: dict[str, object] = {
            "think": think,
            "weight": weight,
            "variables": [(key, _text(value)) for key, value in (variables or {}).items()],
            "data": _data(data),
            "data_order": data_order,
            "pacing": pacing,
            "setup": setup,
            "teardown": teardown,
            "continue_on_error": continue_on_error,
            "keep_cookies": keep_cookies,
            "max_redirects": max_redirects,
            "folder": Path(folder),
        }

    @classmethod
    def read(cls, path: _Path, **settings: object) -> "Scenario":
        """Scenario of a ``.hurl`` file; `settings` are the other arguments.

        Raises:
            UsageError: The file cannot be read.
        """
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the scenario {str(file)!r}: {error}") from error
        return cls(text, **({"name": file.stem, "folder": file.parent} | settings))  # type: ignore[arg-type]

    def __str__(self) -> str:
        """Steps in the format of hurl."""
        return self.text

    def __repr__(self) -> str:
        return f"Scenario({self.name!r})"


def _pairs(given: _Pairs) -> Iterable[tuple[str, str]]:
    return given.items() if isinstance(given, Mapping) else given


def _section(title: str, lines: Iterable[str]) -> list[str]:
    listed = list(lines)
    return [f"[{title}]", *listed] if listed else []


def _escaped(text: str, special: str) -> str:
    """Text with escapes, but for templates, which have a syntax of their own."""
    parts = re.split(r"(\{\{.*?\}\})", text)
    names = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"} | {mark: "\\" + mark for mark in special}
    for at in range(0, len(parts), 2):
        parts[at] = "".join(names.get(c, c if c >= " " else f"\\u{{{ord(c):x}}}") for c in parts[at])
    return "".join(parts)


def _value(text: str) -> str:
    escaped = _escaped(text, "#")
    # Spaces at the ends would not belong to the value.
    if escaped != escaped.strip(" "):
        inner = escaped.strip(" ")
        before = len(escaped) - len(escaped.lstrip(" "))
        after = len(escaped) - len(inner) - before
        escaped = "\\u{20}" * before + inner + "\\u{20}" * after
    return escaped


def _key(text: str) -> str:
    parts = re.split(r"(\{\{.*?\}\})", text)
    for at in range(0, len(parts), 2):
        parts[at] = re.sub(r"[^A-Za-z0-9_.\[\]@$-]", lambda c: f"\\u{{{ord(c[0]):x}}}", parts[at])
    return "".join(parts)


def _percent_encoded(text: str) -> str:
    """Text as a part of a query, but for templates."""
    parts = re.split(r"(\{\{.*?\}\})", text)
    parts[::2] = [quote(part, safe="") for part in parts[::2]]
    return "".join(parts)


def _query(query: str) -> str:
    if query.startswith("$"):
        return f'jsonpath "{_escaped(query, chr(34))}"'
    if "\n" in query:
        raise UsageError(f"invalid line break in {query!r}; write it in one line")
    return query


def _text(value: object) -> str:
    # In quotes it stays a text, and keeps its own quotes.
    return f'"{value}"' if isinstance(value, str) else json_module.dumps(value)


def _data(data: _Path | Sequence[Mapping[str, object]] | None) -> tuple[str, bytes] | None:
    """Name and content of data."""
    if data is None:
        return None
    if isinstance(data, str | PathLike):
        try:
            return str(data), Path(data).read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read the data {str(data)!r}: {error}") from error
    rows = [dict(row) for row in data]
    return "data.json", json_module.dumps(rows).encode()
