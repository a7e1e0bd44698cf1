"""Verifier of PAL: what jobs add to the objective, exactly and in multiples of 2**-192.

These are rounded down. A new term of the objective is a field of `PlacementTerms`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.pal.instance import Job, PalInstance

SCALE_BITS = 192
SCALE = 1 << SCALE_BITS
NEVER = 1 << 8192
"""The cost of what nobody can take.

More than anybody pays: a cost is a product of four floats below 2**1024 and one more for a restart,
a gang or a charge adds less than 2**100 prices below 2**1024, all of it times 2**192.
"""


def scaled(value: float | Fraction) -> int:
    """Return the multiple of 2**-192 at or below a value."""
    top, bottom = value.as_integer_ratio()
    return (top << SCALE_BITS) // bottom


class PlacementTerms(NamedTuple):
    """What the cost of a placement is made of; the restart is zero for jobs that are not moved."""

    weight: float
    remaining_s: float
    penalty: float
    slowest: float
    restart_s: float

    @classmethod
    def of(
        cls, instance: PalInstance, job: Job, level: int, slowest: float, *, is_moved: bool
    ) -> PlacementTerms:
        """Return the terms of a job, by the level at which its GPUs meet and the slowest of them.

        Source: Jain et al., SC 2024, arXiv 2408.11919: iteration time is L x max V.
        """
        penalty = instance.penalties[job.model][level]
        remaining_s = 1.0 if job.remaining_s is None else job.remaining_s
        restart_s = job.restart_s or 0.0 if is_moved else 0.0
        return cls(job.weight, remaining_s, penalty, slowest, restart_s)

    def cost(self) -> Fraction:
        """Return what the placement adds to the objective, exactly: a line in the slowdown."""
        weight, remaining_s, penalty, slowest, restart_s = map(Fraction, self)
        return weight * (remaining_s * penalty * slowest + restart_s)


def cost_of_leaving_out(job: Job) -> Fraction:
    """Return what a job that is left out adds to the objective, exactly."""
    return Fraction(job.reward or 0)


class ObjectiveCosts:
    """What jobs add to the objective."""

    def __init__(self, instance: PalInstance) -> None:
        self._instance = instance
        self._lines: dict[PlacementTerms, tuple[int, int, int]] = {}

    def placed(self, job: Job, level: int, slowdowns: Sequence[float]) -> list[int]:
        """Cost of a job at a level, for each slowdown of its slowest GPU; without a restart."""
        terms = PlacementTerms.of(self._instance, job, level, 1.0, is_moved=False)
        if terms not in self._lines:
            self._lines[terms] = _line(terms)
        base, m, d = self._lines[terms]
        ratios = (slowdown.as_integer_ratio() for slowdown in slowdowns)
        return [base + (m * top << SCALE_BITS) // (d * bottom) for top, bottom in ratios]

    def restart(self, job: Job) -> int:
        """Cost of moving a running job."""
        if not job.current:
            return 0
        moved = PlacementTerms.of(self._instance, job, 0, 0.0, is_moved=True)
        return scaled(moved.cost() - moved._replace(restart_s=0.0).cost())

    def left_out(self, job: Job) -> int | None:
        """Cost of leaving a job out; None where that is not allowed."""
        if self._instance.admission != "optional":
            return None
        return scaled(cost_of_leaving_out(job))


def _line(terms: PlacementTerms) -> tuple[int, int, int]:
    """Return the cost as a line in the slowdown: its value at 0 in 2**-192, its exact slope."""
    base = terms._replace(slowest=0.0).cost()
    slope = terms._replace(slowest=1.0).cost() - base
    return scaled(base), *slope.as_integer_ratio()


class InfeasibilityCosts:
    """One for each job that is left out, and none for what is placed."""

    def placed(self, job: Job, level: int, slowdowns: Sequence[float]) -> list[int]:
        """Cost of a job at a level, for each slowdown of its slowest GPU: none."""
        return [0] * len(slowdowns)

    def restart(self, job: Job) -> int:
        """Cost of moving a running job: none."""
        return 0

    def left_out(self, job: Job) -> int | None:
        """Cost of leaving a job out."""
        return SCALE
