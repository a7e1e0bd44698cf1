"""A placement that moves running gangs where they, or others, gain more than the moves take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.placement_round import Placed
from optsched.rollout.policies.repacking.losses import Mover, PlaceLosses
from optsched.rollout.policies.repacking.plan import Plan
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.placement_round import Batch, ClusterData

    Gpus = tuple[int, ...]
    Start = tuple[dict[int, Gpus], list[int]]  # gangs that stay, and in which order others choose


@dataclass
class Repacking(Restorable):
    """The best of a few plans, by the GPU-seconds that are lost until a horizon.

    In the first plan every running gang stays; in others those that are slowed down, all but whole
    gangs in their best places, or all may go elsewhere. Who may choose does so the widest first;
    where GPUs differ, in one more plan by class as PAL, the first of the profile first. Each takes
    the place where it and those beside it lose least, and of such places the tightest.

    Parameters
    ----------
    horizon_s
        For how long a placement is taken to stand: what moves take is weighed against it.

    Attributes
    ----------
    settled_jobs
        Those that were placed last, ascending.

    Notes
    -----
    Nothing is placed again before a job comes, ends, starts or stops.
    """

    changing = ("settled_jobs",)

    horizon_s: float = 3600.0
    sticky: bool = field(default=False, init=False)
    settled: bool = field(default=True, init=False)
    settled_jobs: list[int] = field(default_factory=list, init=False, repr=False)
    _losses: PlaceLosses | None = field(default=None, init=False, repr=False, compare=False)

    def place(self, batch: Batch) -> Placed:
        """Return GPUs for the jobs of a batch."""
        usable = batch.usable.tolist()
        held = {
            n: gpus
            for n, gpus in enumerate(batch.held)
            if gpus and all(usable[gpu] for gpu in gpus)
        }
        before, self.settled_jobs = self.settled_jobs, sorted(batch.jobs)
        if len(held) == len(batch.jobs) and before == self.settled_jobs:
            return _placed(held)
        losses = self.losses(batch.view, batch.world)
        return _placed(self._least(losses, batch, usable, held))

    def losses(self, view: View, world: ClusterData) -> PlaceLosses:
        """Return what places cost in a scenario."""
        if self._losses is None:
            self._losses = PlaceLosses(view.scenario, view.cluster, world, self.horizon_s)
        return self._losses

    def _least(
        self, losses: PlaceLosses, batch: Batch, usable: list[bool], held: dict[int, Gpus]
    ) -> dict[int, Gpus]:
        """Return the places of the plan by which least is lost; the first one of equal ones."""
        cluster, gangs = batch.view.cluster, _movers(batch)
        free: list[list[int]] = [[] for _ in cluster.size]
        for gpu, node in enumerate(cluster.node_of):
            if usable[gpu]:
                free[node].append(gpu)
        least, best = np.inf, held
        tried: list[Start] = []
        for start in _starts(losses, batch, gangs, held):
            if start in tried:
                continue
            tried.append(start)
            kept, order = start
            plan = Plan(gangs, cluster, losses, free, kept)
            for n in order:
                plan.add(n)
            lost = losses.total(gangs, plan.places)
            if lost < least:
                least, best = lost, plan.places
            if lost == 0:
                break
        return best


def _movers(batch: Batch) -> list[Mover]:
    left_s = np.nan_to_num(batch.view.remaining_us(batch.jobs) / US, nan=np.inf).tolist()
    return [
        Mover(gang.gpus, gang.application_class, gang.model, seconds, held)
        for gang, seconds, held in zip(batch.gangs, left_s, batch.held, strict=True)
    ]


def _starts(
    losses: PlaceLosses, batch: Batch, gangs: list[Mover], held: dict[int, Gpus]
) -> Iterator[Start]:
    """Yield who stays and in which order the others choose, all that stay at first."""
    widest_first = sorted(range(len(gangs)), key=lambda n: (-gangs[n].width, n))
    slowed = losses.slowed(gangs, held)
    at_their_best = {n: gpus for n, gpus in held.items() if n not in slowed}
    whole = {n: gpus for n, gpus in at_their_best.items() if len(gpus) > 1}
    for kept in (held, at_their_best, whole, {}):
        yield kept, [n for n in widest_first if n not in kept]
    if any(losses.differs.values()):
        yield {}, batch.class_order()


def _placed(places: dict[int, Gpus]) -> Placed:
    return Placed({n: np.array(gpus, dtype=np.intp) for n, gpus in places.items()})
