"""BOA's policies where rented GPUs are of several types: an option is a type and a width."""

from __future__ import annotations

import random
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from optsched.boa.instance import BoaInstance, JobClass, Phase
from optsched.boa.plan import BoaPlan
from optsched.boa.speedups import ByType, Table, TypeCurve
from optsched.rollout.policies.budgets import arrival_rates as known
from optsched.rollout.policies.budgets.ledgered import Ledgered
from optsched.rollout.policies.budgets.priced_jobs import HOLES
from optsched.rollout.policies.budgets.priced_widths import (
    WorkOnTypes,
    billed,
)
from optsched.rollout.policies.budgets.spot_speeds import SpotSpeeds
from optsched.rollout.policies.budgets.streams import StreamWidths
from optsched.rollout.policies.budgets.typed_nodes import TypedNodes
from optsched.rollout.policies.epoch_solver import recorded, solved
from optsched.rollout.prices.markets import interruption_rates, offers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.budgets.boa import BoaOptions, FixedOptions
    from optsched.rollout.policies.budgets.priced_widths import Held
    from optsched.rollout.policies.budgets.typed_nodes import Option
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario

    Rows = tuple[tuple[float, tuple[Option, ...]], ...]
    """Sequences of options, each with the share of jobs up to it."""


class FixedOnTypes(TypedNodes):
    """Every job k GPUs of one type for life; where its model cannot run there, what is cheapest."""

    def __init__(self, name: str, scenario: Scenario, options: FixedOptions) -> None:
        super().__init__(name, scenario, options)
        self.k, self.gpu_type = options.k, options.gpu_type or self.curves.types.reference

    def option(self, view: View, job: int) -> Option:
        """Return the type and the width of a job."""
        phases = self.curves.by_type(view.model(job), view.demand(job))
        own = phases[min(view.phase(job), len(phases) - 1)]
        curve = own.get(self.gpu_type)
        if curve is None:
            return cheapest(own, self.usd_per_h)
        return self.gpu_type, curve.at_most(self.k) or curve.least


class BoaOnTypes(StreamWidths, TypedNodes):
    """The stationary types and widths that the problem BOA gives, with an offer for each type.

    If not even the least use of money keeps within the budget, jobs get the options of least use.
    """

    changing: ClassVar[tuple[str, ...]] = (
        *dict.fromkeys((*StreamWidths.changing, *TypedNodes.changing)),
        *("table", "_solves"),
    )

    def __init__(self, name: str, scenario: Scenario, seed: int, options: BoaOptions) -> None:
        super().__init__(name, scenario, seed, options)
        self.method, self.widths = options.method, options.widths
        self.gap, self.time_limit_s = options.gap, options.time_limit_s
        self.speeds = SpotSpeeds(scenario, self.curves)
        self.table: dict[known.Key, Rows] = {}
        self._solves: list[SolveRecord] = []

    def option(self, view: View, job: int) -> Option:
        """Return the type and the width that the table has for a job in its phase."""
        key = self.sums.key(view.model(job), view.demand(job))
        rows = self.table.get(key) or ((1.0, self._least(key)),)
        draw = random.Random(f"{self.seed}/{job}").random()
        phases = next((options for upto, options in rows if draw < upto), rows[-1][1])
        return phases[min(view.phase(job), len(phases) - 1)]

    def refresh(self, view: View) -> list[SolveRecord]:
        """Return the solves since the last decision."""
        solves, self._solves = self._solves, []
        return solves

    def renewed(self) -> None:
        """Solve for the options."""
        instance = self._instance()
        result = solved(instance, self.method, gap=self.gap, time_limit_s=self.time_limit_s)
        self.table = {}
        if isinstance(result.plan, BoaPlan):
            for key, planned in zip(self.streams, result.plan.classes, strict=True):
                upto, rows = 0.0, []
                for row in planned.sequences:
                    upto += row.share
                    pairs = zip(row.offers or (), row.gpus, strict=True)
                    rows.append((upto, tuple((name, int(gpus)) for name, gpus in pairs)))
                self.table[key] = tuple(rows)
        self._solves.append(recorded(instance, result))

    def _least(self, key: known.Key) -> tuple[Option, ...]:
        return tuple(cheapest(own, self.usd_per_h) for own in self.speeds.by_type(*key))

    def _instance(self) -> BoaInstance:
        """Return the instance of the streams; a class for each, in the same order."""
        is_interrupted = bool(interruption_rates(self.scenario))
        checkpoint_s = self.scenario.costs.checkpoint_every_s if is_interrupted else None
        classes = tuple(
            JobClass(
                id=f"{key[0] or '?'} x{key[1]}" if key[1] else key[0],
                arrival_rate_per_h=stream.rate_per_h,
                rescale_s=known.rescale_s(self.scenario, key[0]),
                checkpoint_s=checkpoint_s,
                phases=tuple(map(_phase, stream.works_s, self.curves.by_type(*key))),
            )
            for key, stream in self.streams.items()
        )
        budget = {"budget_usd_per_h": self.budget, "widths": self.widths}
        pools = tuple(offers(self.scenario).values())
        return BoaInstance(name="rollout", offers=pools, classes=classes, **budget)


class BudgetedOnTypes(Ledgered, TypedNodes):
    """Types and widths at a price of a ledger in USD (`Ledgered`), on nodes of each type.

    At the price mu a job gets the options of least time + mu x money billed (`priced_plan`).
    GPU-seconds of `Ledgered` are USD per hour times seconds.
    """

    changing: ClassVar[tuple[str, ...]] = tuple(
        dict.fromkeys((*Ledgered.changing, *TypedNodes.changing))
    )

    @cached_property
    def speeds(self) -> SpotSpeeds:
        """How fast jobs get on on each type, with interruptions."""
        return SpotSpeeds(self.scenario, self.curves)

    def option(self, view: View, job: int) -> Option:
        """Return the type and the width that a job wants in its phase, at the price."""
        option = self.plan(view, job).width(self.phase(view, job), self.holding(job))
        assert isinstance(option, tuple), "a job that is not done wants GPUs"
        return option

    def holding(self, job: int) -> Held:
        """Return the type and the number of GPUs that a job holds."""
        name = self.type_of(job)
        return 0 if name is None else (name, self.held.width(job))

    def work(self, key: known.Key, scale: float) -> WorkOnTypes:
        """Return what a job of a class does that is so much longer than the mean of its class."""
        lost_s = known.rescale_s(self.scenario, key[0]), self.provision_s
        curves, works = self.speeds.by_type(*key), self.scaled(key, scale)
        return WorkOnTypes(works, curves, *lost_s, self.usd_per_h, self.node_sizes, HOLES)

    def cheapest(self, key: known.Key) -> list[tuple[float, float]]:
        """Return by phase of a class what its option of least use is billed, and its speed."""
        found = []
        for own in self.speeds.by_type(*key):
            name, gpus = cheapest(own, self.usd_per_h)
            found.append((self.usd_per_h[name] * gpus, own[name].speed_at(gpus)))
        return found

    def use(self, view: View) -> tuple[float, float]:
        """Return what GPUs cost that are held, and that are ready, in USD per hour."""
        held, rents = self.held, self.usd_per_h
        used = sum(rents[self.type_of(job) or ""] * len(gpus) for job, gpus in held.of.items())
        ready = sum(
            rents[name] * self.node_sizes[name] * (nodes & held.usable).bit_count()
            for name, nodes in held.nodes_of.items()
        )
        return used, ready

    def billed_s(self, view: View) -> float:
        """Return what was billed so far, in USD per hour times seconds."""
        return view.billed_usd * 3600

    def phase_bill(self, view: View, job: int) -> tuple[Held, float]:
        """Return the option that a job holds, and what its phase is billed there."""
        name, width = option = self.type_of(job) or "", self.held.width(job)
        rent = self.usd_per_h[name] * billed(width, self.node_sizes[name], HOLES)
        return option, rent * self.phase_s(view, job, width)


def cheapest(curves: Mapping[str, Curve], usd_per_h: Mapping[str, float]) -> Option:
    """Return the type and the width that take the least money per unit of work."""
    options = [
        (usd_per_h[name] * gpus / speed, name, gpus)
        for name, curve in curves.items()
        for gpus, speed in zip(curve.gpus, curve.speed, strict=True)
    ]
    return min(options)[1:]


def _phase(work_s: float, curves: Mapping[str, Curve]) -> Phase:
    """Return a phase of an instance with the curves of a model."""
    tables = tuple(
        TypeCurve(gpu_type=name, speedup=Table(gpus=curve.gpus, speedup=curve.speed))
        for name, curve in curves.items()
    )
    return Phase(work_gpu_s=max(work_s, known.LEAST_WORK_S), speedup=ByType(curves=tables))
