"""Passing trouble of nodes: an alternating renewal process for each, drawn as it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.random_streams import stream
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.scenario_parts import Events


class Transients(Restorable):
    """Nodes that run slower for a while, again and again, whatever jobs and policies do.

    A node begins in order. Stretches in order and in trouble alternate; their lengths are
    exponential with means `mean_between_s` and `mean_length_s`, rounded to whole microseconds and
    at least one. The factor of each trouble is uniform between the two of `Events.factor`.

    Attributes
    ----------
    factor
        By node its present factor on run times; 1 in order.
    until_us
        By node the end of its present stretch.
    """

    changing = ("_draws", "_in_order", "factor", "until_us")

    def __init__(self, events: Events, nodes: int, seed: int) -> None:
        self._events = events
        self._draws = [stream(seed, "events", node) for node in range(nodes)]
        self._in_order = [True] * nodes
        self.factor = [1.0] * nodes
        self.until_us = [self._length_us(node, events.mean_between_s) for node in range(nodes)]

    def change(self, node: int) -> int:
        """Go on to a node's next stretch and return the moment, in microseconds, of its end."""
        events = self._events
        if self._in_order[node]:
            self.factor[node] = float(self._draws[node].uniform(*events.factor))
            mean_s = events.mean_length_s
        else:
            self.factor[node] = 1.0
            mean_s = events.mean_between_s
        self._in_order[node] = not self._in_order[node]
        self.until_us[node] += self._length_us(node, mean_s)
        return self.until_us[node]

    def _length_us(self, node: int, mean_s: float) -> int:
        return max(1, round(self._draws[node].exponential(mean_s) * US))
