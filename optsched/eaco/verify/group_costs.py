"""The verifier of EaCO: lower bounds on what a group costs, by its phases, in whole numbers.

Which job ends first, and what work is left of the others, is exact: all remaining works of a group
are kept as multiples of one number, which is divided by a rate as each phase ends. Rounding, always
downward, is only in what each phase adds to the cost.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from optsched.eaco.verify.group_energy import JOULES_PER_KWH
from optsched.eaco.verify.limits import ceil_at, floor_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.eaco.instance import EacoInstance, Job, Nodes, PowerLevel
    from optsched.eaco.verify.group_energy import ExactFigures
    from optsched.eaco.verify.rates import ExactPace, ExactPaces, Quotient


def per_j(instance: EacoInstance) -> Fraction:
    """Return what a joule costs in the unit of the objective."""
    weight = Fraction(1)
    if instance.objective == "eaco":
        weight = Fraction(instance.energy_weight or 0)
    return weight * instance.per_kwh / JOULES_PER_KWH


class LeastCosts:
    """Least costs of groups.

    Parameters
    ----------
    jobs
        One of each set of equal jobs.
    places
        Where those of each set run now; None if they do not.
    bits, watt_bits
        Costs are multiples of 2**-bits of the unit of the objective, watts of 2**-watt_bits.
    """

    def __init__(
        self,
        figures: ExactFigures,
        jobs: Sequence[Job],
        places: Sequence[str | None],
        paces: ExactPaces,
        bits: int,
        watt_bits: int,
    ) -> None:
        self.instance, self.figures = figures.instance, figures
        self._jobs, self._places, self._paces = jobs, places, paces
        self._types = [job.type for job in jobs]
        self._bits, self._per_j = bits, per_j(figures.instance)
        self._works: dict[tuple[int, str, bool], Quotient] = {}
        self._worths: dict[tuple[int, str], tuple[int, int]] = {}
        self._hours: dict[tuple[int, str], int] = {}
        self._bare = {g.id: ceil_at(g.power.bare_w, watt_bits) for g in figures.instance.gpu_types}

    def least(
        self, members: Sequence[int], nodes: Nodes, level: PowerLevel | None, place: str | None
    ) -> tuple[int, int]:
        """Return lower bounds on the cost of a group, and on its watts above those of bare GPUs.

        Parameters
        ----------
        members
            Numbers of sets of equal jobs, whose rates side by side are known.
        """
        gang = self._jobs[members[0]].gpus
        first = self._paces.of([self._types[n] for n in members], nodes, level)
        assert first is not None
        cost, greatest = self._followed(members, nodes, level, place, first)
        cost *= gang
        if self.instance.objective == "epoch":
            cost = gang * first.epoch_cost - self._worth(members, nodes, place, first)
        elif self.instance.objective == "eaco":
            cost += self._weighted_hours(members, nodes, first)
        return cost, gang * (greatest - self._bare[nodes.gpu])

    def work(self, n: int, gpu: str, *, moved: bool) -> Quotient:
        """Return the seconds that a job takes alone at full power."""
        key = (n, gpu, moved)
        if key not in self._works:
            job = self._jobs[n]
            speed = Fraction(self.figures.types[job.type].speeds.get(gpu, 1.0))
            exact = Fraction(job.work_s) / speed + (Fraction(job.migration_s) if moved else 0)
            self._works[key] = exact.as_integer_ratio()
        return self._works[key]

    def _followed(
        self,
        members: Sequence[int],
        nodes: Nodes,
        level: PowerLevel | None,
        place: str | None,
        pace: ExactPace,
    ) -> tuple[int, int]:
        """Return the cost of one GPU of a group until its last job ends, and the greatest watts.

        Of the phase that goes on, `left` holds the works in multiples of 1 / under.
        """
        left, under = self._left(members, nodes.gpu, place)
        cost, greatest, bits = 0, pace.watts, self._bits
        while True:
            rates = pace.rates
            least, kind = left[0]
            rate = rates[kind]
            for work, kind in left:
                if work * rate < least * rates[kind]:
                    least, rate = work, rates[kind]
            under *= rate
            cost += (least * pace.cost[0] << bits) // (under * pace.cost[1])  # down
            left = [
                (after, kind)
                for work, kind in left
                if (after := work * rate - least * rates[kind]) > 0
            ]
            if not left:
                return cost, greatest
            pace = self._paces.of([kind for _, kind in left], nodes, level) or pace
            greatest = max(greatest, pace.watts)

    def _left(
        self, members: Sequence[int], gpu: str, place: str | None
    ) -> tuple[list[tuple[int, str]], int]:
        """Return the works of a group in multiples of a unit, with their types, and 1 / unit."""
        types, places = self._types, self._places
        works = [
            (self.work(n, gpu, moved=places[n] is not None and places[n] != place), types[n])
            for n in members
        ]
        under = lcm(*[of for (_, of), _ in works])
        return [(work * (under // of), kind) for (work, of), kind in works], under

    def _worth(
        self, members: Sequence[int], nodes: Nodes, place: str | None, pace: ExactPace
    ) -> int:
        """Return what the work of an epoch is worth at most, less that of moving."""
        worth, (seconds, of) = 0, pace.second
        for n in members:
            whole, moving = self._worth_alone(n, nodes)
            worth -= -whole * pace.rates[self._types[n]] * of // seconds  # up
            if self._places[n] not in (None, place):
                worth -= moving
        return worth

    def _worth_alone(self, n: int, nodes: Nodes) -> tuple[int, int]:
        """Return what an epoch at rate 1 is worth, rounded up; and a move's seconds, down."""
        key = (n, nodes.id)
        if key not in self._worths:
            job = self._jobs[n]
            each = self.figures.credit_w(job) * self.figures.speed(job, nodes) * self._per_j
            whole = ceil_at(each * Fraction(self.instance.epoch_s or 0), self._bits)
            self._worths[key] = whole, floor_at(each * Fraction(job.migration_s), self._bits)
        return self._worths[key]

    def _weighted_hours(self, members: Sequence[int], nodes: Nodes, pace: ExactPace) -> int:
        """Return the weighted hours per training epoch, rounded down."""
        total, (seconds, of) = 0, pace.second
        for n in members:
            alone = self._hours_alone(n, nodes)
            total += alone * seconds // (pace.rates[self._types[n]] * of)  # down
        return total

    def _hours_alone(self, n: int, nodes: Nodes) -> int:
        """Return the weighted hours per training epoch of a job alone, rounded down."""
        key = (n, nodes.id)
        if key not in self._hours:
            job = self._jobs[n]
            weight = 1 - Fraction(self.instance.energy_weight or 0)
            hours = Fraction(job.training_epoch_s or 0) / self.figures.speed(job, nodes) / 3600
            self._hours[key] = floor_at(hours * weight / len(self.figures.jobs), self._bits)
        return self._hours[key]
