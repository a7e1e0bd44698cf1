"""What gangs need on a cluster, as a quick simulation counts it."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from optsched.rollout.policies.foresight.quick_schedule import GangWorks, QuickSchedule
from optsched.rollout.policies.list_schedule import unit_us
from optsched.rollout.policies.placement_round import ClusterData
from optsched.rollout.policies.rounds.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.view import View

    Need = tuple[int, int, float, list[float], int]  # width, kind, factor, places, size

MOST_NEEDS = 10_000
"""Of so many models and widths it is remembered what gangs need."""


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
        self._needs: Remembered[tuple[str, int], Need] = Remembered(self._needs_of, MOST_NEEDS)

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
        needs = [self._needs[model, min(gpus, width)] for width, model in gangs]
        widths, kinds, factors, places, sizes = zip(*needs, strict=True) if needs else [()] * 5
        works = GangWorks(
            [ceil(time / self.unit) if in_rounds else time for time in release_us],
            [time / self.unit for time in work_us],
            widths,
            kinds,
            factors,
            places,
            sizes,
        )
        return QuickSchedule(works, gpus, in_rounds)

    def _needs_of(self, model: str, width: int) -> Need:
        """Return what a gang of a model needs."""
        name = self._world.class_of(model)
        row, size = self._places_of(name, width)
        return width, self._number[name], self._factor(model, width), row, size

    def _places_of(self, name: str, width: int) -> tuple[list[float], int]:
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
