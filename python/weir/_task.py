"""Tasks of users: what they do, how often, and which of them run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, overload

from weir._errors import UsageError

__all__ = ["tag", "task"]

_Task = TypeVar("_Task", bound=Callable[..., object])


@overload
def task(weight: _Task) -> _Task: ...
@overload
def task(weight: int = 1) -> Callable[[_Task], _Task]: ...
def task(weight: object = 1) -> object:
    """Mark a method of a `User` as a task that it does.

    Args:
        weight: How often it is chosen, in proportion to the weights of the other tasks.

    Returns:
        The method, or a decorator.

    >>> class Shopper(weir.User):
    ...     @weir.task(3)
    ...     async def browse(self):
    ...         await self.get("/items")
    """
    if isinstance(weight, int) and weight >= 0:
        return lambda marked: _weighted(marked, weight)
    if not hasattr(weight, "__name__"):
        raise UsageError(f"task: invalid weight {weight!r}; write a whole number from 0 on, e.g. @task(3)")
    return _weighted(weight, 1)


def _weighted(marked: Any, weight: int) -> Any:
    if marked.__name__ in {"on_start", "on_stop"}:
        raise UsageError(f"task: {marked.__name__} is called once; leave out @task")
    marked.locust_task_weight = weight
    return marked


def tag(*names: str) -> Callable[[_Task], _Task]:
    """Name tasks, so that `--tags` and `--exclude-tags` choose among them.

    Args:
        names: One name, or several.

    Returns:
        A decorator of a task or a set of tasks.
    """
    if not names or not all(isinstance(name, str) for name in names):
        raise UsageError("tag: write names, e.g. @tag('slow')")

    def named(marked: Any) -> Any:
        marked.locust_tag_set = set(getattr(marked, "locust_tag_set", ())) | set(names)
        return marked

    return named


def tasks_of(bases: Iterable[type], members: Mapping[str, Any]) -> list[Any]:
    """List the tasks of a class, each as often as its weight: those of its bases, of `tasks`, and marked members."""
    found: list[Any] = []
    for base in bases:
        found += getattr(base, "tasks", None) or []
    found += listed(members.get("tasks") or [])
    for member in members.values():
        weight = member.__dict__.get("locust_task_weight") if hasattr(member, "__dict__") else None
        if weight is not None:
            found += [member] * weight
    return found


def listed(tasks: Mapping[Any, int] | Iterable[Any]) -> list[Any]:
    """List the tasks of `tasks = {task: weight}`, or of a list of tasks or of pairs."""
    found: list[Any] = []
    for one in tasks.items() if isinstance(tasks, Mapping) else tasks:
        if isinstance(one, tuple):
            found += [one[0]] * one[1]
        else:
            found.append(one)
    return found


def choose_by_tags(owner: Any, tags: Sequence[str], exclude: Sequence[str]) -> None:
    """Leave out tasks of a class by their tags, also within its sets of tasks."""
    wanted, unwanted = set(tags), set(exclude)
    named = set(getattr(owner, "locust_tag_set", ()))
    if wanted & named:
        # A tag of a class is one of all its tasks.
        wanted = set()
    kept: list[Any] = []
    checked: dict[int, bool] = {}
    for one in owner.tasks:
        if id(one) not in checked:
            checked[id(one)] = _is_chosen(one, wanted, unwanted)
        if checked[id(one)] and not unwanted & named:
            kept.append(one)
    owner.tasks = kept


def _is_chosen(one: Any, wanted: set[str], unwanted: set[str]) -> bool:
    named = set(getattr(one, "locust_tag_set", ()))
    if unwanted & named:
        return False
    is_wanted = not wanted or bool(wanted & named)
    if hasattr(one, "tasks"):
        # A tag of a set of tasks is one of all of them.
        choose_by_tags(one, () if is_wanted else tuple(wanted), tuple(unwanted))
        return bool(one.tasks)
    return is_wanted


class ClassDeal:
    """Classes of users by their numbers: fixed counts first, then by weight as evenly as possible."""

    def __init__(self, classes: Sequence[Any]) -> None:
        """Deal users among classes with `fixed_count` and `weight`."""
        self._dealt: list[int] = []
        for index, one in enumerate(classes):
            self._dealt += [index] * int(getattr(one, "fixed_count", 0) or 0)
        self._weights = [
            0.0 if getattr(one, "fixed_count", 0) else float(getattr(one, "weight", 1) or 0) for one in classes
        ]
        self._credit = [0.0] * len(classes)

    def index(self, number: int) -> int:
        """Return the index of the class of a user."""
        while len(self._dealt) <= number:
            self._dealt.append(self._next())
        return self._dealt[number]

    def _next(self) -> int:
        total = sum(self._weights)
        if total <= 0:
            return len(self._dealt) % len(self._weights)
        self._credit = [credit + weight for credit, weight in zip(self._credit, self._weights, strict=True)]
        chosen = max(range(len(self._credit)), key=lambda index: self._credit[index])
        self._credit[chosen] -= total
        return chosen


def user_random(seed: int, number: int) -> random.Random:
    """Return the random choices of a user, the same in each run with the same seed."""
    return random.Random(f"{seed}/{number}")
