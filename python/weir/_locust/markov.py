"""Sets of tasks that follow each other by chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from weir._locust.exception import LocustError
from weir._locust.task_set import TaskSet, TaskSetMeta

__all__ = ["MarkovTaskSet", "transition", "transitions"]

_Task = TypeVar("_Task", bound=Callable[..., object])


def transition(func_name: str, weight: int = 1) -> Callable[[_Task], _Task]:
    """Let a task be followed by another one, in proportion to a weight."""
    return transitions({func_name: weight})


def transitions(weights: Mapping[str, int] | Sequence[str | tuple[str, int]]) -> Callable[[_Task], _Task]:
    """Let a task be followed by others, in proportion to their weights."""
    pairs = (
        weights if isinstance(weights, Mapping) else dict((one, 1) if isinstance(one, str) else one for one in weights)
    )

    def marked(one: Any) -> Any:
        one.transitions = {**getattr(one, "transitions", {}), **pairs}
        return one

    return marked


class MarkovTaskSetMeta(TaskSetMeta):
    """Class of sets of tasks that follow each other by chance: it checks that each is there."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> MarkovTaskSetMeta:
        """Find the first task."""
        chain = {key: one for key, one in members.items() if hasattr(one, "transitions")}
        for key, one in chain.items():
            for target in one.transitions:
                if target not in chain:
                    raise LocustError(f"{name}.{key}: {target} is not a task with a transition of its own")
        if chain:
            members["current"] = next(iter(chain.values()))
            members["tasks"] = list(chain.values())
        made: Any = super().__new__(cls, name, bases, members)
        # Not those of the bases: a chain is whole.
        made.tasks = list(chain.values())
        return made  # type: ignore[no-any-return]


class MarkovTaskSet(TaskSet, metaclass=MarkovTaskSetMeta):
    """Set of tasks of which each says which may follow, the first one first."""

    current: Any = None

    def get_next_task(self) -> Any:
        """Return the current task, and choose the one after it."""
        one = self.current
        if one is None:
            raise LookupError(f"{type(self).__name__} has no task; mark a method with @transition")
        names, weights = zip(*one.transitions.items(), strict=True)
        self.current = getattr(self, self._user._weir_player.random.choices(names, weights)[0])
        return one
