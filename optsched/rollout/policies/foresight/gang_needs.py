"""What gangs need on a cluster, as a quick simulation counts it."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from optsched.rollout.policies.foresight.quick_schedule import GangWorks, QuickSchedule
from optsched.rollout.policies.list_schedule import unit_us
from optsched.rollout.policies.placement_round import ClusterData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.view import View


class GangNeeds:
    """Turns jobs into gangs: classes, widths, distance and units of time.

    Attributes
    ----------
    unit
        Of time, in microseconds: a round, where GPUs are held for whole rounds.
    """

    def __init__(self, view: View) -> None:
        cluster = view.cluster
        self._world = ClusterData(view)
        self._number = {name: n for n, name in enumerate(self._world.classes)}
        self._node_of, self._largest = cluster.node_of, cluster.largest
        self._places: dict[tuple[str, int], tuple[list[float], int]] = {}
        self._rooms = [
            max(sum(cluster.size[node] for node in nodes) for nodes in cluster.domains(level))
            for level in range(len(cluster.levels))
        ]
        self.unit = unit_us(view.scenario)

    def schedule(
        self,
        gpus: int,
        gangs: Sequence[tuple[int, str]],
        work_us: Sequence[float],
        release_us: Sequence[float],
    ) -> QuickSchedule:
        """Return the quick simulation of jobs.

        Parameters
        ----------
        gpus
            How many can be used, at least 1.
        gangs
            Widths and models of jobs.
        work_us
            What each still needs at reference speed.
        release_us
            When it can begin, from now on.
        """
        in_rounds = self.unit > 1
        widths = [min(gpus, width) for width, _ in gangs]
        models = [model for _, model in gangs]
        classes = [self._world.class_of(model) for model in models]
        places = [self._known(name, width) for name, width in zip(classes, widths, strict=True)]
        works = GangWorks(
            [ceil(time / self.unit) if in_rounds else time for time in release_us],
            [time / self.unit for time in work_us],
            widths,
            [self._number[name] for name in classes],
            [self._factor(model, width) for model, width in zip(models, widths, strict=True)],
            [row for row, _ in places],
            [size for _, size in places],
        )
        return QuickSchedule(works, gpus, in_rounds)

    def _known(self, name: str, width: int) -> tuple[list[float], int]:
        """Return slowdowns of the places of a gang, ascending, and the GPUs of a place."""
        key = name, min(width, self._largest + 1)
        if key not in self._places:
            slowdown, size = self._world.slowdown[name].tolist(), key[1]
            if size > self._largest:
                self._places[key] = sorted(slowdown), 1
            else:
                nodes: dict[int, list[float]] = {}
                for gpu, node in enumerate(self._node_of):
                    nodes.setdefault(node, []).append(slowdown[gpu])
                row = [value for gpus in nodes.values() for value in sorted(gpus)[size - 1 :: size]]
                self._places[key] = sorted(row), size
        return self._places[key]

    def _factor(self, model: str, width: int) -> float:
        """Return how much slower a gang is on as few nodes as can hold it."""
        level = next((n for n, room in enumerate(self._rooms) if room >= width), -1)
        return self._world.penalties(model)[level]
