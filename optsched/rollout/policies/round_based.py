"""Policies that place jobs in rounds: an order, who is admitted, and a placement.

Source: the rounds of Blox and of its fork for PAL, hal-uw/blox-pal, branch artifact: the longest
prefix of the order whose gangs fit together is placed, and nothing is placed behind it. Where
placements are sticky, running jobs behind it go on as long as nobody before them needs their GPUs;
one that is preempted waits for the next round. The released code preempts from the end of the order
until a job fits; those of the preempted that it fits beside go on here.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from optsched.cluster import kmeans
from optsched.pal.greedy.rules import BY_NAME
from optsched.rollout.checkpoints.restorable import RestorablePolicy
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies import job_orders
from optsched.rollout.policies.placement_round import Batch, ClusterData
from optsched.rollout.policies.placement_rules import NonSticky, RoundRule, Sticky
from optsched.rollout.policies.repacking.kept_rounds import RepackingRounds
from optsched.rollout.policies.repacking.placement import Repacking
from optsched.rollout.policies.repacking.unsteady_rounds import UnsteadyRounds
from optsched.rollout.policies.round_options import (
    BinnedOptions,
    LasOptions,
    OrderedOptions,
    PalOptions,
    RoundOptions,
    SrtfOptions,
    TiresiasOptions,
    binned,
)
from optsched.rollout.policies.rounds import moving_rules
from optsched.rollout.policies.rounds.drawn_rounds import DrawnRounds
from optsched.rollout.policies.rounds.places import places_of
from optsched.rollout.policies.rounds.sticky_rounds import StickyRounds
from optsched.rollout.policies.tiresias.queues import Tiresias
from optsched.rollout.policy_options import Maker, takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.placement_rules import Placement
    from optsched.rollout.policies.rounds.active_jobs import ActiveJobs
    from optsched.rollout.policies.tiresias.gittins import Gittins
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


class Rounds(RestorablePolicy):
    """At every call the first jobs of an order get GPUs by a placement.

    Parameters
    ----------
    backfill
        Whether jobs that fit may overtake a gang that does not.
    every_epoch
        Whether it wants to be called when nothing has changed.
    """

    changing = ("order", "placement", "_last")

    def __init__(
        self,
        name: str,
        order: job_orders.Order,
        placement: Placement,
        *,
        backfill: bool = False,
        every_epoch: bool = False,
    ) -> None:
        self.name = name
        self.order = order
        self.placement = placement
        self.backfill = backfill
        self.every_epoch = every_epoch
        self._world: ClusterData | None = None
        self._last: tuple[list[int], list[bool]] | None = None
        self._kept: StickyRounds | RepackingRounds | ActiveJobs | None = None

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; what is kept from round to round is asked for again."""
        super().restore(state)
        self._kept = None

    def decide(self, view: View) -> Decision:
        """Place the admitted jobs; running ones that are not among them are stopped."""
        if self._world is None:
            self._world = ClusterData(view)
        if self._can_keep(view.scenario):
            return self._go_on(view, self._world)
        return self._anew(view, self._world)

    def _can_keep(self, scenario: Scenario) -> bool:
        """Return whether rounds may look at what has changed alone."""
        if scenario.quotas or scenario.nodes_change:
            return False
        if isinstance(self.placement, Sticky):
            return self.order.steady(scenario) is not None
        return isinstance(self.placement, NonSticky | Repacking)

    def _go_on(self, view: View, world: ClusterData) -> Decision:
        if self._kept is None:
            self._kept = self._keeping(view, world)
        else:
            self._kept.note(view)
        return self._kept.decide(view)

    def _keeping(
        self, view: View, world: ClusterData
    ) -> StickyRounds | RepackingRounds | ActiveJobs:
        placement, order, backfill = self.placement, self.order, self.backfill
        if isinstance(placement, NonSticky):
            if placement.rules.row.draws:
                return DrawnRounds(view, world, placement.rules.generator, order, backfill)
            return moving_rules.moving_rounds_of(view, world, placement.rules, order, backfill)
        steady = order.steady(view.scenario)
        if isinstance(placement, Repacking):
            if steady is None:
                return UnsteadyRounds(view, world, placement, order, backfill)
            return RepackingRounds(view, world, placement, steady, order, backfill)
        assert isinstance(placement, Sticky)
        assert steady is not None
        places = places_of(view, world, placement.rules)
        return StickyRounds(view, world, places, steady, backfill)

    def _anew(self, view: View, world: ClusterData) -> Decision:
        """Look at all jobs."""
        running = view.running.tolist()
        active = self.order.sort(view, [*running, *view.pending.tolist()])
        quotas = dict(view.scenario.quotas)
        chosen = admitted = self._admitted(view, active, quotas)
        if self.placement.sticky:
            chosen = _with_running(view, active, admitted, quotas)
        first = set(admitted)
        lent = frozenset(n for n, job in enumerate(chosen) if job not in first)
        held = [view.gpus_of(job) for job in chosen]
        last, self._last = self._last, (chosen, list(view.ready))
        if self.placement.settled and last == self._last and all(held):
            return NOTHING
        batch = Batch(view, world, chosen, held, world.usable(view.ready), lent)
        return self.placement.place(batch).decision(batch, running)

    def _admitted(self, view: View, active: list[int], quotas: dict[str, int]) -> list[int]:
        """Return the jobs that get GPUs, in order, and take them off the quotas.

        A job over its queue's quota holds up its own queue only.
        """
        available = sum(
            size for size, ready in zip(view.cluster.size, view.ready, strict=True) if ready
        )
        full: set[str] = set()
        admitted = []
        for job in active:
            size, queue = view.demand(job), view.queue(job)
            if queue in full:
                continue
            if size > quotas.get(queue, size):
                if not self.backfill:
                    full.add(queue)
                continue
            if size > available:
                if self.backfill:
                    continue
                break
            available -= size
            if queue in quotas:
                quotas[queue] -= size
            admitted.append(job)
        return admitted


class ForecastRounds(Rounds):
    """Rounds of an order that is told of the trace beforehand."""

    order: Gittins

    def prepare(self, trace: Trace) -> None:
        """Let the order take what it needs from the trace of the rollout."""
        self.order.prepare(trace)


def _with_running(
    view: View, active: list[int], admitted: list[int], quotas: dict[str, int]
) -> list[int]:
    """Return the admitted jobs and the running ones for which their queues have quota left."""
    kept = set(admitted)
    for job in active:
        size, queue = len(view.gpus_of(job)), view.queue(job)
        if job in kept or not size or size > quotas.get(queue, size):
            continue
        kept.add(job)
        if queue in quotas:
            quotas[queue] -= size
    return [job for job in active if job in kept]


# --- policies ---------------------------------------------------------------------------------


def placing(name: str) -> Maker[OrderedOptions, Rounds]:
    """Return the maker of the policy that places jobs by the rule of a name."""
    row = BY_NAME[name]

    def build(scenario: Scenario, seed: int, options: OrderedOptions) -> Rounds:
        bins = options.bins if isinstance(options, BinnedOptions) else None
        if bins in ("released", "silhouette"):
            kmeans.load()  # else the first decision would take so much longer
        if row.bins is not None:
            moving_rules.load(scenario)  # and here
        rule = RoundRule(row, bins, random.Random(seed))
        if row.running == "preempted":
            return _rounds(name, Sticky(rule), options)
        policy = _rounds(name, NonSticky(rule, settled=not row.draws), options)
        policy.every_epoch |= row.draws  # also if nothing has changed
        return policy

    return Maker(build, OrderedOptions if row.bins is None else binned(row.bins), row.draws)


@takes(PalOptions, draws=True)
def pal(scenario: Scenario, seed: int, options: PalOptions) -> Rounds:
    """Place the admitted jobs at least total cost; see `pal_adapter.Exact`."""
    from optsched.rollout.policies.epoch_solver import EpochSolver
    from optsched.rollout.policies.pal_adapter import ExactPlacement

    solver = EpochSolver(
        time_limit_s=options.time_limit_s,
        program_limit=options.programs,
        gap=options.gap,
        seed=seed,
    )
    return _rounds("pal", ExactPlacement(options.weights, solver), options)


@takes(LasOptions)
def las(scenario: Scenario, seed: int, options: LasOptions) -> Rounds:
    """Least attained service first; running jobs keep their GPUs or are stopped."""
    return _preemptive("las", job_orders.Las(options.one_dimensional), options)


@takes(SrtfOptions)
def srtf(scenario: Scenario, seed: int, options: SrtfOptions) -> Rounds:
    """Shortest remaining time first; running jobs keep their GPUs or are stopped."""
    return _preemptive("srtf", job_orders.Srtf(options.times_gpus), options)


@takes(TiresiasOptions)
def tiresias(scenario: Scenario, seed: int, options: TiresiasOptions) -> Rounds:
    """Tiresias' discretised 2D-LAS, by default with jobs that fit overtaking others."""
    lease_us = lease(scenario, options)
    order = Tiresias(options.thresholds_gpu_s, options.promote, lease_us)
    placement = consolidating(scenario, options)
    return Rounds("tiresias", order, placement, backfill=options.backfill, every_epoch=True)


@takes(TiresiasOptions)
def tiresias_gittins(scenario: Scenario, seed: int, options: TiresiasOptions) -> Rounds:
    """Tiresias with the distribution of service known: Gittins indices within queues."""
    from optsched.rollout.policies.tiresias.gittins import Gittins

    order = Gittins(options.thresholds_gpu_s, options.promote, lease(scenario, options))
    placement, name = consolidating(scenario, options), "tiresias-gittins"
    return ForecastRounds(name, order, placement, backfill=options.backfill, every_epoch=True)


def lease(scenario: Scenario, options: TiresiasOptions) -> int:
    """Return Tiresias' lease in microseconds."""
    return round((scenario.epoch_s if options.lease_s is None else options.lease_s) * US)


def consolidating(scenario: Scenario, options: TiresiasOptions) -> Sticky:
    """Return a placement that consolidates skewed models, or all."""
    from optsched.rollout.policies.tiresias.skewed_models import SkewedRule, skewed_models

    skewed, row = skewed_models(scenario), BY_NAME["packed-sticky"]
    if skewed is None or options.consolidate == "all":
        return Sticky(RoundRule(row))
    return Sticky(SkewedRule(row, skewed=skewed))


def _rounds(name: str, placement: Placement, options: OrderedOptions) -> Rounds:
    chosen = job_orders.order(options.order, **options.of_order())
    changing = options.order != "fifo"
    return Rounds(name, chosen, placement, backfill=options.backfill, every_epoch=changing)


def _preemptive(name: str, order: job_orders.Order, options: RoundOptions) -> Rounds:
    placement = Sticky(RoundRule(BY_NAME["packed-sticky"]))
    return Rounds(name, order, placement, backfill=options.backfill, every_epoch=True)
