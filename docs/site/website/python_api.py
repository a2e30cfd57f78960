"""Pages of the Python package, made from its names, signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from website.page import Page

_PARTS = [f"_run:{name}" for name in ("Bytes", "Connections", "EndReason", "Interval", "Manifest", "Objective", "Rate")]
_PARTS += [f"_run:{name}" for name in ("Requests", "Responses", "Target", "Trust")]
"""Parts that each run has."""

_SCENARIO_PARTS = [
    f"_run:{name}" for name in ("ScenarioResult", "StepResult", "StepInterval", "CheckResult", "Iterations")
]
"""Parts of runs of scenarios."""

PAGES = {
    "load": ("weir.load", "`weir.load` and the types of its options.", ("_load", "_time")),
    "started-load": ("weir.start_load", "loads that are changed while they run.", ("_started_load",)),
    "llm": ("weir.llm", "load tests of language models.", ("_llm",)),
    "run": ("weir.Run", "the result of a load test.", ("_run:Run",)),
    "results": ("Parts of a run in Python", "the objects of a `weir.Run`.", ("_run:Percentiles", *_PARTS)),
    "scenario-results": ("Results of scenarios in Python", "steps, iterations, checks.", tuple(_SCENARIO_PARTS)),
    "special-results": ("Parts of special runs in Python", "streams, replays, agents, changes.", ("_run",)),
    "scenarios": ("Scenarios in Python", "what users do in a load.", ("_scenario",)),
    "users": ("Users in Python", "users of scripts.", ("_user", "_task", "_grpc_call")),
    "studies": ("Studies in Python", "results of `weir study` as data.", ("_study",)),
    "compare": ("Comparisons in Python", "`weir.compare` and its verdicts.", ("_compare",)),
    "serve": ("Test servers in Python", "`weir.serve`.", ("_serve", "_flags")),
    "simulate": ("Simulations in Python", "`weir.simulate` and its results.", ("_simulate",)),
    "client": ("weir.Client", "calls with deadlines, hedging and retries.", ("_client:Client",)),
    "async-client": ("weir.AsyncClient", "the same calls, for asyncio.", ("_client",)),
    "policies": ("Policies in Python", "options of calls: hedges, retries, budgets.", ("_policy", "_client_base")),
    "retry": (
        "weir.retry",
        "retries around any function or block.",
        ("_retry", "_retry_call", "_retry_record", "_shared_budget"),
    ),
    "responses": (
        "Responses in Python",
        "responses, attempts and headers of calls.",
        ("_response", "_headers", "_call_log"),
    ),
    "functions": ("weir.get, weir.post and others", "calls without a client of one's own.", ("_shared",)),
    "sender": ("weir.Sender", "jobs through rate limits.", ("_sender",)),
    "async-sender": ("weir.AsyncSender", "the same jobs, for asyncio.", ("_async_sender",)),
    "jobs": ("Jobs in Python", "jobs, their results, tickets and batches.", ("_job", "_ticket")),
    "limiter": ("weir.Limiter", "rate limits for any code.", ("_limiter", "_limiter_slot")),
    "errors": ("Exceptions in Python", "exceptions that the package raises.", ("_errors",)),
}
"""Pages: title, subject, and the modules whose public names they have; after a colon one of their names. A name is on
the first page that has it."""

_LEFT_OUT = {"_weir"}
"""Modules without documented names: the extension, whose only public name is the version."""


def pages() -> Iterator[Page]:
    """Yield the page with the list of all names, and the pages of names by subject."""
    package = importlib.import_module("weir")
    modules: dict[str, tuple[str, ...]] = package._NAMES
    unplaced = {name: module for module, names in modules.items() if module not in _LEFT_OUT for name in names}
    rows = []
    for name, (title, subject, has) in PAGES.items():
        public = [member for entry in has for member in _members(entry, modules) if unplaced.pop(member, None)]
        rows += [
            f"| `weir.{member}` | [{title}](python-api/{name}.md) | {_first(package, member)} |" for member in public
        ]
        yield _page(f"python-api/{name}", f"# {title}\n\nReference: {subject}\n", package, public)
    if unplaced:
        raise LookupError(f"docs/site/website/python_api.py: PAGES lacks {', '.join(sorted(unplaced))}")
    pytest = importlib.import_module("weir.pytest_plugin")
    yield _page(
        "python-api/pytest", "# pytest fixtures\n\nReference: fixtures of `pytest --weir`.\n", pytest, pytest.__all__
    )
    rows.append(
        "| `weir.pytest_plugin` | [pytest fixtures](python-api/pytest.md) | Fixtures `weir_load`, `weir_url`. |"
    )
    head = "# Python API\n\nReference of all public names of the package `weir`, from its docstrings.\n\n"
    yield Page("python-api", "", head + "| name | page | purpose |\n|---|---|---|\n" + "\n".join(rows) + "\n")


def _members(entry: str, modules: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    module, _, name = entry.partition(":")
    return (name,) if name else modules[module]


def _page(name: str, head: str, module: Any, public: list[str]) -> Page:
    text, plain = [head], [head]
    for member in public:
        value = getattr(module, member)
        path = f"{module.__name__}.{member}"
        text.append(f"\n## {member}\n\n```{{eval-rst}}\n{_directive(path, value)}```\n")
        plain.append(f"\n## {member}\n\n```python\n{_signature(path, value)}\n```\n\n{_docstring(value)}\n")
        plain += [
            f"\n### {member}.{inner}\n\n```python\n{_signature(f'{member}.{inner}', of)}\n```\n\n{_docstring(of)}\n"
            for inner, of in _methods(value)
        ]
    return Page(name, "", "".join(text), "".join(plain))


def _directive(path: str, value: Any) -> str:
    if inspect.isclass(value):
        return f".. autoclass:: {path}\n   :members:\n   :inherited-members: BaseException, KeyboardInterrupt, str\n"
    return f".. autofunction:: {path}\n" if callable(value) else f".. autodata:: {path}\n"


def _methods(value: Any) -> list[tuple[str, Any]]:
    if not inspect.isclass(value):
        return []
    own = [owner for owner in value.__mro__ if owner.__module__.startswith("weir")]
    found = {name: of for owner in reversed(own) for name, of in vars(owner).items() if name[0] != "_"}
    return [(name, of) for name, of in found.items() if inspect.getdoc(of) and not inspect.ismemberdescriptor(of)]


def _signature(path: str, value: Any) -> str:
    function = getattr(value, "__func__", value)
    try:
        return f"{path}{inspect.signature(function)}" if callable(function) else path
    except ValueError:
        return path


def _docstring(value: Any) -> str:
    return inspect.getdoc(value) or ""


def _first(package: Any, member: str) -> str:
    """First line of a docstring, for a cell of a table."""
    value = getattr(package, member)
    known = inspect.isclass(value) or inspect.isfunction(value)
    return (_docstring(value).partition("\n")[0] if known else "Alias of types.").replace("|", "\\|")
