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
    """Turns jobs of a view into gangs: classes, widths, distance and units of time.

    Attributes
    ----------
    unit
        Of time, in microseconds: a round, where GPUs are held for whole rounds.
    """

    def __init__(self, view: View) -> None:
        cluster = view.cluster
        self._world = ClusterData(view)
        self._number = {name: n for n, name in enumerate(self._world.classes)}
        self._slowdowns = [sorted(row.tolist()) for row in self._world.slowdown.values()]
        self._rooms = [
            max(sum(cluster.size[node] for node in nodes) for nodes in cluster.domains(level))
            for level in range(len(cluster.levels))
        ]
        self._gpus = cluster.gpus
        self.unit = unit_us(view.scenario)

    def schedule(
        self, view: View, jobs: Sequence[int], work_us: Sequence[float], release_us: Sequence[float]
    ) -> QuickSchedule | None:
        """Return the quick simulation of jobs; None if no node is ready.

        Parameters
        ----------
        work_us
            What each still needs at reference speed.
        release_us
            When it can begin, from now on.
        """
        sizes = view.cluster.size
        gpus = sum(n for n, ready in zip(sizes, view.ready, strict=True) if ready)
        if not gpus:
            return None
        in_rounds = self.unit > 1
        widths = [min(gpus, view.demand(job)) for job in jobs]
        models = [view.model(job) for job in jobs]
        gangs = GangWorks(
            [ceil(time / self.unit) if in_rounds else time for time in release_us],
            [time / self.unit for time in work_us],
            widths,
            [self._number[self._world.class_of(model)] for model in models],
            [self._factor(model, width) for model, width in zip(models, widths, strict=True)],
        )
        return QuickSchedule(gangs, self._slowdowns, gpus, in_rounds)

    def _factor(self, model: str, width: int) -> float:
        """Return how much slower a gang is on as few nodes as can hold it."""
        level = next((n for n, room in enumerate(self._rooms) if room >= width), -1)
        return self._world.penalties(model)[level]
