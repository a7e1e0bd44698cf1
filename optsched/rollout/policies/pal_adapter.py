"""The exact placement of a round: all admitted jobs at once, as an instance of PAL (SC 2024)."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optsched.cluster import binning
from optsched.cluster.profile import Profile
from optsched.cluster.topology import Domain, Topology
from optsched.pal.exact.bounding import Solver
from optsched.pal.exact.warm_start import WarmStart
from optsched.pal.greedy import pal_rules
from optsched.pal.instance import Job, PalInstance
from optsched.pal.plan import PalPlan
from optsched.results.result import Result, Status
from optsched.rollout.policies.placement_round import Placed
from optsched.rollout.policies.verified_claims import Solved, recorded
from optsched.search import Search

if TYPE_CHECKING:
    from optsched.pal.exact.branch_and_bound import PlacementTree
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.greedy.free_gpus import Indices
    from optsched.pal.plan import PalCertificate
    from optsched.rollout.policies.placement_round import Batch, ClusterData

STEP = 1.1  # remaining times are rounded to powers of it, so that like jobs stay alike


@dataclass
class ExactPlacement:
    """Place a batch at least total cost, by the problem's exact method from PAL's greedy plan on.

    What the last round left comes first: if its plan, carried over, is proven by its prices, that
    is all; no linear program is solved.

    The cost of a job is its slowdown (weights "equal") or its remaining time x slowdown (weights
    "remaining"), and where moves cost, the seconds of a move: with equal weights a job counts for
    one epoch. The tree has at most `work` / labels nodes, but 7 at least, so the plan does not
    depend on the clock unless the time limit is hit. Jobs that hold their GPUs already are left
    alone if they are the same as in the last round: what was optimal still is.
    """

    weights: str = "equal"
    gap: float = 1e-3
    work: int = 0
    time_limit_s: float = 60.0
    seed: int = 0
    settled: bool = field(default=True, init=False)
    sticky: bool = field(default=False, init=False)
    _frame: PalInstanceParts | None = field(default=None, init=False, repr=False)
    _last: tuple[Result, PalInstance, WarmStart] | None = field(
        default=None, init=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.weights not in ("equal", "remaining"):
            raise ValueError(f"weights must be 'equal' or 'remaining', not '{self.weights}'")

    def place(self, batch: Batch) -> Placed:
        """Return GPUs for the jobs of a batch."""
        if not batch.jobs:
            return Placed({})
        started = time.perf_counter()
        if self._frame is None:
            self._frame = PalInstanceParts.of(batch.world)
        lengths = self._lengths(batch)
        instance = self._frame.instance(batch, lengths)
        search = Search(instance, self.time_limit_s, self.gap, self.seed, start=self._started())
        solver = Planted(instance, search)
        certificate, is_greedy = solver.resume(), False
        if certificate is None:
            is_greedy = self._offer_greedy(batch, instance, search)
            greedy = search.objective
            certificate = solver.solve(self.work)
            is_greedy = is_greedy and search.objective == greedy
        assert isinstance(search.plan, PalPlan)
        assert search.objective is not None
        solved = Solved(search.objective, self.gap, started, is_greedy, is_warm=not solver.trees)
        record = recorded(instance, certificate, solved)
        if record.verified is False:
            certificate = None  # the next round does not begin with it
        left = WarmStart(solver.problem.gpus)
        self._last = _result(instance, search, certificate), instance, left
        gpus = _unswapped(batch, lengths, self._frame.numbers(search.plan))
        return Placed(gpus, [record])

    def _started(self) -> Result | None:
        """Return the result of the last round, with what a pickle leaves out of it."""
        if self._last is None:
            return None
        result, instance, left = self._last
        return result.attached(instance, left)

    def _offer_greedy(self, batch: Batch, instance: PalInstance, search: Search) -> bool:
        """Offer PAL's greedy plan and the quick ones; tell whether one of them is now the best."""
        before = search.objective
        scores = batch.world.scores(binning.kmeans_as_released)
        for plan in (pal_rules.pal(instance, scores), pal_rules.quick_start(instance)):
            if plan is not None:
                search.offer(plan)
        assert search.objective is not None
        return before is None or search.objective < before

    def _lengths(self, batch: Batch) -> list[float | None]:
        """Return the seconds for which each job counts; None if moves are free and all equal."""
        scenario = batch.world.scenario
        if self.weights == "remaining":
            left = np.nan_to_num(batch.view.remaining_us(batch.jobs) / 1e6, nan=scenario.epoch_s)
            powers = np.round(np.log(np.maximum(left, 1.0)) / math.log(STEP))
            return [STEP**power for power in powers.tolist()]
        free = not (scenario.costs.restore_s or scenario.costs.checkpoint_s)
        return [None if free else scenario.epoch_s] * len(batch.jobs)


class Planted(Solver):
    """A prover that counts its trees: without one, no linear program was solved."""

    least_nodes = 7
    trees = 0

    def tree(self, options: GangOptions) -> PlacementTree | None:
        """Return a tree with its root."""
        self.trees += 1
        return super().tree(options)


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
            topology = _uniform(scenario.nodes or 0, scenario.gpus_per_node or 0)
        profile = Profile.model_construct(
            gpus=topology.gpus,
            slowdown={name: tuple(row.tolist()) for name, row in world.slowdown.items()},
            kind="single-run" if scenario.profile is None else scenario.profile.kind,
            source="",
        )
        costs = scenario.costs
        return cls(topology, profile, costs.restore_s + costs.checkpoint_s)

    def instance(self, batch: Batch, lengths: list[float | None]) -> PalInstance:
        """Return the instance of a batch; it is valid by construction, so it is not validated."""
        names = self.topology.gpus
        jobs = tuple(
            Job.model_construct(
                id=str(job),
                gpus=gang.gpus,
                application_class=gang.application_class,
                model=gang.model or "?",
                remaining_s=length,
                current=tuple(names[gpu] for gpu in held),
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


def _uniform(nodes: int, width: int) -> Topology:
    inside = [tuple(f"{n}/{gpu}" for gpu in range(width)) for n in range(nodes)]
    root = Domain(id="cluster", level="cluster")
    below = (
        Domain(id=f"node-{n}", level="node", parent="cluster", gpus=gpus)
        for n, gpus in enumerate(inside)
    )
    return Topology(levels=("node", "cluster"), domains=(root, *below))


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


def _result(instance: PalInstance, search: Search, certificate: PalCertificate | None) -> Result:
    """Return what the next round begins with; it is valid by construction."""
    return Result.model_construct(
        problem=instance.problem,
        instance=instance.name,
        instance_sha256="",
        method="exact",
        status=Status.FEASIBLE,
        objective=search.objective,
        objective_unit="",
        seconds=0.0,
        plan=search.plan,
        certificate=certificate,
        versions={},
    )
