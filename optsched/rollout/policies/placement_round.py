"""What a round of placement knows: the jobs that are admitted, and the cluster under them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.greedy.free_gpus import FreeGpus, column_of
from optsched.rollout.engine.decision import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optsched.cluster.binning import Binned
    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.pal.greedy.free_gpus import LevelColumn
    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario


NO_CLASS = "(all GPUs alike)"


class GangJob(NamedTuple):
    """A job as the rules of placement see it."""

    gpus: int
    application_class: str
    model: str
    highest_level: str | None = None


class ClusterData:
    """What does not change in a rollout: the tree of domains, penalties and slowdowns.

    Attributes
    ----------
    classes
        Application classes in the order of the profile; then that of models without one.
    """

    def __init__(self, view: View) -> None:
        self.scenario: Scenario = view.scenario
        cluster = view.cluster
        self.levels = cluster.levels
        self.node_of = np.array(cluster.node_of, dtype=np.intp)
        self.columns: tuple[LevelColumn, ...] = tuple(
            column_of(np.array(domains, dtype=np.intp)[self.node_of])
            for domains in cluster.ancestors
        )
        profile = self.scenario.profile
        told = () if profile is None else profile.classes
        self.slowdown = {name: np.array(view.slowdown(name), dtype=float) for name in told}
        self.slowdown[NO_CLASS] = np.ones(len(self.node_of))
        self.classes = tuple(self.slowdown)
        self._scores: dict[str, dict[str, Floats]] = {}
        self._penalties: dict[str, tuple[float, ...]] = {}

    def class_of(self, model: str) -> str:
        """Return the application class of a model."""
        known = self.scenario.models.get(model)
        name = None if known is None else known.application_class
        return NO_CLASS if name is None else name

    def penalties(self, model: str) -> tuple[float, ...]:
        """Return the locality penalty of a model at each level: at least 1, never falling."""
        if model not in self._penalties:
            known = self.scenario.models.get(model)
            given = (known.locality if known is not None else ()) or self.scenario.locality
            values = self._with_spread(given or (1.0,) * len(self.levels))
            self._penalties[model] = tuple(np.maximum.accumulate([1.0, *values])[1:].tolist())
        return self._penalties[model]

    def _with_spread(self, factors: Sequence[float]) -> list[float]:
        """Return factors by level as if a gang across servers, or domains, were on two of them."""
        spread = self.scenario.spread
        if spread is None:
            return list(factors)
        apart = [1.0] + [1 / spread.servers.at(2)] * (len(factors) - 1)
        if spread.domains is not None:
            far = 1 / spread.domains.at(2)
            apart = [factor * (far if level > 1 else 1.0) for level, factor in enumerate(apart)]
        return [a * b for a, b in zip(factors, apart, strict=True)]

    def scores(self, binning: Callable[[Floats], Binned]) -> dict[str, Floats]:
        """Return the value of each GPU's bin for each class; computed once for each binning."""
        name = binning.__name__
        if name not in self._scores:
            self._scores[name] = {key: binning(row).scores for key, row in self.slowdown.items()}
        return self._scores[name]

    def usable(self, ready: Sequence[bool]) -> Bools:
        """Return whether each GPU stands in a node that is ready, an array (GPUs,)."""
        return np.array(ready, dtype=np.bool_)[self.node_of]


@dataclass
class Batch:
    """The jobs that are to hold GPUs after this round, in their order.

    Attributes
    ----------
    jobs
        Their numbers.
    held
        The GPUs that each holds now; none if it waits.
    usable
        Shape (GPUs,): whether each may be used.
    lent
        Places in the batch of running jobs that were not admitted: they go on as long as no
        admitted job needs their GPUs.
    """

    view: View
    world: ClusterData
    jobs: list[int]
    held: list[tuple[int, ...]]
    usable: Bools
    lent: frozenset[int] = frozenset()

    @cached_property
    def gangs(self) -> list[GangJob]:
        """The jobs as the rules see them."""
        models = [self.view.model(job) for job in self.jobs]
        return [
            GangJob(self.view.demand(job), self.world.class_of(model), model)
            for job, model in zip(self.jobs, models, strict=True)
        ]

    @cached_property
    def penalties(self) -> dict[str, tuple[float, ...]]:
        """Locality penalties of the jobs' models."""
        return {gang.model: self.world.penalties(gang.model) for gang in self.gangs}

    def state(self) -> FreeGpus:
        """Return the usable GPUs as free, whoever holds them."""
        return FreeGpus(self.world.levels, self.world.columns, self.usable.copy())

    def class_order(self) -> list[int]:
        """Return the jobs' places in the batch by class, as PAL: the first of the profile first."""
        rank = {name: n for n, name in enumerate(self.world.classes)}
        return sorted(range(len(self.jobs)), key=lambda n: rank[self.gangs[n].application_class])


@dataclass
class Placed:
    """GPUs by a job's place in the batch; jobs that could not be placed are missing."""

    gpus: dict[int, Indices]
    solves: list[SolveRecord] = field(default_factory=list)

    def decision(self, batch: Batch, running: list[int]) -> Decision:
        """Return what changes by it; running jobs that it does not place are stopped."""
        places = {}
        for n, indices in self.gpus.items():
            gpus = tuple(sorted(indices.tolist()))
            if gpus != batch.held[n]:
                places[batch.jobs[n]] = gpus
        kept = {batch.jobs[n] for n in self.gpus}
        stops = tuple(job for job in running if job not in kept)
        return Decision(place=places, stop=stops, solves=tuple(self.solves))
