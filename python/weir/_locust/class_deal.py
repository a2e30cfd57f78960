"""Classes of users by their numbers, in Locust's order: with few users it decides which classes there are at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import log2
from typing import Any

__all__ = ["LocustClassDeal"]


class LocustClassDeal:
    """Classes of users by their numbers: fixed counts first, then by weight."""

    def __init__(self, classes: Sequence[Any]) -> None:
        """Deal users among classes with `fixed_count` and `weight`."""
        fixed = [int(one.fixed_count or 0) for one in classes]
        weights = [0.0 if count else float(one.weight or 0) for one, count in zip(classes, fixed, strict=True)]
        names = [one.__name__ for one in classes]
        self._dealt = list(islice(_spread(fixed, names), sum(fixed)))
        # Classes that all weigh nothing take turns.
        self._next = _spread(weights if any(weights) else [1.0] * len(classes), names)

    def index(self, number: int) -> int:
        """Return the index of the class of a user."""
        while len(self._dealt) <= number:
            self._dealt.append(next(self._next))
        return self._dealt[number]


def _spread(weights: Sequence[float], names: Sequence[str]) -> Iterator[int]:
    """Return indices, of which the next one brings the numbers closest to the weights by their relative entropy.

    A weight counts as if it had been dealt before; among equals the name decides.
    """
    shares = [(weight, weight, name, index) for index, (weight, name) in enumerate(zip(weights, names, strict=True))]
    shares = [share for share in shares if share[0] > 0]
    while shares:
        nearest = min(shares, key=lambda one: (one[1] * log2(one[0] / (one[0] + 1)), *one))
        count, weight, name, index = nearest
        shares[shares.index(nearest)] = (count + 1, weight, name, index)
        yield index
