"""The free GPUs of every domain from the best score on, while jobs take one after the other.

What a rule asks again and again is kept, and brought up to date only in the domains where GPUs were
taken since; so a job costs what it takes and a look at each level, whatever the cluster holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.greedy.free_gpus import FreeGpus


class Ranking:
    """The GPUs of every domain from the best score for one class on; ties in order of GPUs."""

    def __init__(self, state: FreeGpus, scores: Floats) -> None:
        self.state = state
        self.scores = scores
        self._orders = [np.lexsort((scores, column.owner)) for column in state.columns]
        self._released = state.released
        self._swept: dict[tuple[int, int], Indices] = {}  # orders of domains, without some taken
        self._worst: dict[tuple[int, int], Floats] = {}  # by level and size
        self._seen: dict[tuple[int, int], int] = {}  # changes of the state that they know of

    def worst_of_best(self, level: int, size: int) -> Floats:
        """Return the worst score of the `size` best free GPUs in each domain of a level.

        It is infinite in domains with fewer free GPUs. What is returned changes with the state.
        """
        self._forget_if_released()
        key, changes = (level, size), self.state.changes
        if key not in self._worst:
            self._worst[key] = self._computed(level, size)
        elif self._seen[key] < len(changes):
            self._update(key, np.concatenate(changes[self._seen[key] :]))
        self._seen[key] = len(changes)
        return self._worst[key]

    def best(self, level: int, domain: int, size: int) -> Indices:
        """Return the `size` best free GPUs of a domain, or all that are free."""
        self._forget_if_released()
        column, free = self.state.columns[level], self.state.free
        order = self._swept.get((level, domain))
        if order is None:
            order = self._orders[level][column.span(domain)]
        taken = len(order) - int(self.state.counts(level)[domain])
        if taken > SETTINGS.swept:
            order = self._swept[level, domain] = order[free[order]]
            return order[:size]
        head = order[: size + taken]
        chosen: Indices = head[free[head]][:size]
        return chosen

    def _computed(self, level: int, size: int) -> Floats:
        counts = self.state.counts(level)
        worst = np.full(len(counts), np.inf)
        fits = counts >= size
        if fits.any():
            order = self._orders[level]
            free = order[self.state.free[order]]
            firsts = np.cumsum(counts) - counts
            worst[fits] = self.scores[free[firsts[fits] + size - 1]]
        return worst

    def _update(self, key: tuple[int, int], changed: Indices) -> None:
        level, size = key
        worst, counts = self._worst[key], self.state.counts(level)
        for domain in set(self.state.columns[level].owner[changed].tolist()):
            fits = counts[domain] >= size
            last = self.best(level, domain, size)[-1] if fits else -1
            worst[domain] = self.scores[last] if fits else np.inf

    def _forget_if_released(self) -> None:
        """Forget everything if GPUs came back, which is rare: what was swept out may be free."""
        if self._released == self.state.released:
            return
        self._released = self.state.released
        for known in (self._swept, self._worst, self._seen):
            known.clear()
