"""The exact placement of a round: all admitted jobs at once, as an instance of PAL (SC 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optsched.cluster import binning
from optsched.cluster.profile import Profile
from optsched.cluster.topology import Domain, Topology
from optsched.pal.greedy import pal_rules
from optsched.pal.instance import Job, PalInstance
from optsched.pal.plan import PalPlan
from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.epoch_solver import EpochSolver, recorded
from optsched.rollout.policies.placement_round import Placed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.pal.greedy.free_gpus import Indices
    from optsched.rollout.policies.placement_round import Batch, ClusterData

STEP = 1.1  # remaining times are rounded to powers of it, so that like jobs stay alike


@dataclass
class ExactPlacement(Restorable):
    """Place a batch at least total cost, by the problem's exact method from PAL's greedy plan on.

    What the last round left comes first: if its plan, carried over, is proven by its prices, that
    is all; no linear program is solved.

    The cost of a job is its slowdown (weights "equal") or its remaining time x slowdown (weights
    "remaining"), and where moves cost, the seconds of a move: with equal weights a job counts for
    one epoch. The limit is one of linear programs, so that the plan does not depend on the clock
    unless the time limit is hit. Jobs that hold their GPUs already are left
    alone if they are the same as in the last round: what was optimal still is.
    """

    changing = ("solver",)

    weights: str = "equal"
    solver: EpochSolver = field(default_factory=EpochSolver)
    settled: bool = field(default=True, init=False)
    sticky: bool = field(default=False, init=False)
    _frame: PalInstanceParts | None = field(default=None, init=False, repr=False)

    def place(self, batch: Batch) -> Placed:
        """Return GPUs for the jobs of a batch."""
        if not batch.jobs:
            return Placed({})
        if self._frame is None:
            self._frame = PalInstanceParts.of(batch.world)
        lengths = self._lengths(batch)
        instance = self._frame.instance(batch, lengths)
        result = self.solver.solve(instance, plans=_greedy_plans(batch, instance))
        assert isinstance(result.plan, PalPlan)
        gpus = _unswapped(batch, lengths, self._frame.numbers(result.plan))
        return Placed(gpus, [recorded(instance, result)])

    def _lengths(self, batch: Batch) -> list[float | None]:
        """Return the seconds for which each job counts; None if moves are free and all equal."""
        scenario = batch.world.scenario
        if self.weights == "remaining":
            left = np.nan_to_num(batch.view.remaining_us(batch.jobs) / 1e6, nan=scenario.epoch_s)
            powers = np.round(np.log(np.maximum(left, 1.0)) / math.log(STEP))
            return [STEP**power for power in powers.tolist()]
        free = not (scenario.costs.restore_s or scenario.costs.checkpoint_s)
        return [None if free else scenario.epoch_s] * len(batch.jobs)


@dataclass(frozen=True)
class PalInstanceParts:
    """The parts of an instance that stay the same from round to round."""

    topology: Topology
    profile: Profile
    restart_s: float

    @classmethod
    def of(cls, world: ClusterData) -> PalInstanceParts:
        """Return the frame of a rollout's cluster."""
        scenario = world.scenario
        topology = scenario.topology
        if topology is None:
            topology = _tree(Cluster(scenario))
        profile = Profile.model_construct(
            gpus=topology.gpus,
            slowdown={name: tuple(row.tolist()) for name, row in world.slowdown.items()},
            kind="single-run" if scenario.profile is None else scenario.profile.kind,
            source="",
        )
        costs = scenario.costs
        return cls(topology, profile, costs.restore_s + costs.checkpoint_s)

    def instance(self, batch: Batch, lengths: list[float | None]) -> PalInstance:
        """Return the instance of a batch; it is valid by construction, so it is not validated.

        Where moves are free and all jobs count alike, nobody has GPUs to keep: what is held without
        a `restart_s` would be no instance.
        """
        names = self.topology.gpus
        jobs = tuple(
            Job.model_construct(
                id=str(job),
                gpus=gang.gpus,
                application_class=gang.application_class,
                model=gang.model or "?",
                remaining_s=length,
                current=() if length is None else tuple(names[gpu] for gpu in held),
                restart_s=self.restart_s if held and length is not None else None,
            )
            for job, gang, held, length in zip(
                batch.jobs, batch.gangs, batch.held, lengths, strict=True
            )
        )
        return PalInstance.model_construct(
            name="round",
            topology=self.topology,
            profile=self.profile,
            locality={model or "?": row for model, row in batch.penalties.items()},
            jobs=jobs,
            unavailable=tuple(names[gpu] for gpu in np.flatnonzero(~batch.usable).tolist()),
        )

    def numbers(self, plan: PalPlan) -> list[tuple[int, ...]]:
        """Return the GPUs of each job of a plan, as ascending numbers."""
        number = {gpu: n for n, gpu in enumerate(self.topology.gpus)}
        return [tuple(sorted(number[gpu] for gpu in placed.gpus)) for placed in plan.jobs]


def _tree(cluster: Cluster) -> Topology:
    """Return the topology of a cluster whose scenario has none."""
    domains = [Domain(id="cluster", level="cluster")]
    around = ["cluster"] * cluster.nodes
    if len(cluster.levels) > 2:
        around = [f"domain-{number}" for number in cluster.ancestors[1]]
        for name in dict.fromkeys(around):
            domains.append(Domain(id=name, level=cluster.levels[1], parent="cluster"))
    for n, (size, parent) in enumerate(zip(cluster.size, around, strict=True)):
        gpus = tuple(f"{n}/{gpu}" for gpu in range(size))
        domains.append(Domain(id=f"node-{n}", level="node", parent=parent, gpus=gpus))
    return Topology(levels=cluster.levels, domains=domains)


def _greedy_plans(batch: Batch, instance: PalInstance) -> Iterator[PalPlan]:
    """Yield the quick greedy plan, and PAL's; its bins of slowdowns take seconds at first."""
    quick = pal_rules.quick_start(instance)
    if quick is not None:
        yield quick
    best = pal_rules.pal(instance, batch.world.scores(binning.kmeans_as_released))
    if best is not None:
        yield best


def _unswapped(
    batch: Batch, lengths: list[float | None], gpus: list[tuple[int, ...]]
) -> dict[int, Indices]:
    """Let equal jobs keep what they hold, where the plan only exchanges it among them."""
    alike: dict[object, dict[tuple[int, ...], int]] = {}
    for n, key in enumerate(zip(batch.gangs, lengths, strict=True)):
        alike.setdefault(key, {})[gpus[n]] = n
    for owner in alike.values():
        for n in list(owner.values()):
            other = owner.get(batch.held[n], n)
            gpus[n], gpus[other] = gpus[other], gpus[n]
            owner[gpus[n]], owner[gpus[other]] = n, other
    return {n: np.array(chosen, dtype=np.intp) for n, chosen in enumerate(gpus)}
