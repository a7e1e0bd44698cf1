"""Energy: the integral of the cluster's watts, asked for again only where something changed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.rollout.engine.state import State
    from optsched.rollout.physics.physics import Physics


class Meter:
    """The energy that the cluster has drawn.

    Attributes
    ----------
    watts
        Of the whole cluster now.
    """

    def __init__(self, physics: Physics, state: State) -> None:
        self._physics, self._state = physics, state
        self._watts = [physics.node_watts(node, state) for node in range(len(state.node_state))]
        self.watts = math.fsum(self._watts)
        self._joules, self._at = 0.0, 0

    def update(self, nodes: Iterable[int], now: int) -> None:
        """Ask for the watts of nodes on which something changed."""
        changed = False
        for node in nodes:
            watts = self._physics.node_watts(node, self._state)
            changed |= watts != self._watts[node]
            self._watts[node] = watts
        if changed:
            self._joules, self._at = self.joules(now), now
            self.watts = math.fsum(self._watts)

    def joules(self, now: int) -> float:
        """Return the energy drawn until now."""
        return self._joules + self.watts * (now - self._at) / US
