"""Where a gang takes GPUs of several nodes at least cost: a knapsack over nodes (Bellman, 1957)."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools, Floats, Indices


class NodeShares:
    """What it costs jobs within nodes if a wide gang takes so many of the first GPUs of a node.

    Parameters
    ----------
    value
        Shape (nodes, sets): least reduced cost of what stands on a set.
    opened
        Shape (nodes,): the sets that are there.
    order
        Shape (nodes, width): places in a node, ascending by slowdown.

    Attributes
    ----------
    cost
        Shape (nodes, first GPUs, taken GPUs).
    """

    def __init__(self, sets: list[Indices], value: Floats, opened: Indices, order: Indices) -> None:
        nodes, width = order.shape
        every = np.arange(1 << width)
        left = np.take_along_axis(value, opened[:, np.newaxis] & ~every, axis=1)
        left = left - np.take_along_axis(value, opened[:, np.newaxis], axis=1)
        self.cost = np.full((nodes, width + 1, width + 1), np.inf)
        self._set = np.zeros((nodes, width + 1, width + 1), dtype=np.intp)
        first = np.zeros(nodes, dtype=np.intp)
        for end in range(width + 1):
            if end:
                first |= 1 << order[:, end - 1]
            outside = ~(first & opened)[:, np.newaxis]
            for taken in range(end + 1):
                costs = np.where(sets[taken] & outside, np.inf, left[:, sets[taken]])
                best = costs.argmin(axis=1)
                self.cost[:, end, taken] = costs[np.arange(nodes), best]
                self._set[:, end, taken] = sets[taken][best]

    def taken(self, node: int, end: int, count: int) -> int:
        """Return the cheapest set of so many GPUs of the first ones of a node."""
        return int(self._set[node, end, count])

    def only(self, inner: Bools) -> NodeShares:
        """Return the same of some nodes."""
        part = copy(self)
        part.cost, part._set = self.cost[inner], self._set[inner]
        return part

    def cheapest(self, ends: Indices, size: int, slowest: Floats) -> tuple[float, Indices]:
        """Return the least cost of a gang, and its set in each node, by a knapsack.

        Parameters
        ----------
        ends
            Shape (nodes, thresholds): how many GPUs are fast enough.
        slowest
            Shape (thresholds,): what the gang costs itself.
        """
        nodes, thresholds = ends.shape
        width = self.cost.shape[1] - 1
        costs = np.full((thresholds, size + 1), np.inf)
        costs[:, 0] = 0.0
        taken = np.zeros((nodes, thresholds, size + 1), dtype=np.intp)
        for n in range(nodes):
            each = self.cost[n, ends[n]]
            more = np.full((width + 1, thresholds, size + 1), np.inf)
            for count in range(min(width, size) + 1):
                more[count, :, count:] = costs[:, : size + 1 - count] + each[:, count, np.newaxis]
            taken[n] = more.argmin(axis=0)
            costs = more.min(axis=0)
        total = costs[:, size] + slowest
        t = int(total.argmin())
        sets, left = np.zeros(nodes, dtype=np.intp), size
        if total[t] < np.inf:
            for n in range(nodes - 1, -1, -1):
                count = int(taken[n, t, left])
                sets[n] = self._set[n, ends[n, t], count]
                left -= count
        return float(total[t]), sets
