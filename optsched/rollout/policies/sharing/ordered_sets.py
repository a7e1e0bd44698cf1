"""Sets of GPUs of all nodes in one order, of which those of a few nodes change at a time."""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    GpuSet = tuple[float, bool, tuple[int, ...]]

FEW = 16
"""If more nodes change at a time, all sets are sorted again."""


class OrderedSets:
    """Sets of GPUs, each within a node.

    Attributes
    ----------
    ordered
        All of them, ascending.
    seen
        How many changes of nodes they know of.
    """

    def __init__(self, nodes: int) -> None:
        self.ordered: list[GpuSet] = []
        self.seen = 0
        self._of: list[list[GpuSet]] = [[] for _ in range(nodes)]

    def update(self, changed: Mapping[int, list[GpuSet]]) -> None:
        """Let nodes have other sets; the list that was `ordered` stays as it was."""
        news = {node: sets for node, sets in changed.items() if sets != self._of[node]}
        if not news:
            return
        ordered = list(self.ordered)
        for node, sets in news.items():
            if len(news) <= FEW:
                for gpus in self._of[node]:
                    del ordered[bisect_left(ordered, gpus)]
                for gpus in sets:
                    insort(ordered, gpus)
            self._of[node] = sets
        self.ordered = ordered if len(news) <= FEW else sorted(chain(*self._of))
