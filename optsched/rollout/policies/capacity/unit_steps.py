"""Curves with every width up to their greatest, whose steps surely become less steep."""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from optsched.rollout.policies.capacity.slopes import sure_slopes

if TYPE_CHECKING:
    from optsched.rollout.policies.width_curves import Curve, Curves
    from optsched.rollout.scenario import Scenario


class UnitSteps(NamedTuple):
    """The steps of a curve, each to one GPU more and less steep than the one before.

    Attributes
    ----------
    slopes
        By steps taken, how much shorter the last of these made each second of work at speed 1;
        infinity at none, then 0 beyond the last.
    """

    curve: Curve
    slopes: tuple[float, ...]

    def steps_above(self, slope: float) -> int:
        """Return how many steps are steeper."""
        return bisect_left(self.slopes, -slope, 1, key=float.__neg__) - 1


def may_be_followed(scenario: Scenario, curves: Curves) -> bool:
    """Tell whether jobs have one phase and unit steps, and speeds that depend on their GPUs alone.

    What is not so of a cluster is told as it is, whatever errors there are in what is believed.
    """
    return (
        scenario.estimates.kind == "exact"
        and not curves.types.are_several
        and scenario.events is None
        and scenario.neighbours.shared_server == 1
        and scenario.sharing.max_jobs_per_gpu == 1
        and all(len(curves.phases(name)) < 2 for name in scenario.models)
        and all(_slopes(curves.useful(name, 1)[0]) is not None for name in scenario.models)
    )


def _slopes(curve: Curve) -> list[float] | None:
    """Return the slopes of a curve if each step surely is less steep and takes one GPU."""
    if curve.gpus[-1] - curve.gpus[0] != len(curve.gpus) - 1:
        return None
    slopes = sure_slopes(curve)
    return None if slopes is None else slopes.tolist()


def unit_steps(curves: Curves, model: str, demand: int) -> UnitSteps:
    """Return the steps of jobs of a model that ask for so many GPUs."""
    curve = curves.useful(model, demand)[0]
    return UnitSteps(curve, (inf, *(_slopes(curve) or ()), 0.0))
