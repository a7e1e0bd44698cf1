"""Verifier of PAL: what jobs add to the objective, in multiples of 2**-192, rounded down."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

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


class ObjectiveCosts:
    """What jobs add to the objective."""

    def __init__(self, instance: PalInstance) -> None:
        self.penalties = instance.penalties
        self.left_out_costs = instance.admission == "optional"

    def placed(self, job: Job, level: int, slowdowns: Sequence[float]) -> list[int]:
        """Cost of a job at a level, for each slowdown of its slowest GPU; without a restart."""
        time = Fraction(1 if job.remaining_s is None else job.remaining_s)
        factor = Fraction(job.weight) * time * Fraction(self.penalties[job.model][level])
        m, d = factor.as_integer_ratio()
        ratios = (slowdown.as_integer_ratio() for slowdown in slowdowns)
        return [(m * top << SCALE_BITS) // (d * bottom) for top, bottom in ratios]

    def restart(self, job: Job) -> int:
        """Cost of moving a running job."""
        return scaled(Fraction(job.weight) * Fraction(job.restart_s or 0)) if job.current else 0

    def left_out(self, job: Job) -> int | None:
        """Cost of leaving a job out; None where that is not allowed."""
        return scaled(job.reward or 0.0) if self.left_out_costs else None


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
