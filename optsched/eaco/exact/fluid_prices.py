"""Safe duals of the fluid bound, in fractions (Neumaier & Shcherbina, Math. Programming 99, 2004).

They are lowered until no group is charged more than it draws.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.group_figures import TypeFigures
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import Nodes, PowerLevel

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Bools = NDArray[np.bool_]


class Patterns(NamedTuple):
    """Groups of one size on GPUs of one type at one power level.

    Attributes
    ----------
    members
        Shape (count, k): classes of jobs.
    pace
        Shape (count, k): work per second of each, at the speeds stated.
    watts
        Shape (count,): of all GPUs, with their share of the node.
    is_timed
        Shape (count,): whether their seconds count for when jobs are due.
    mix
        Shape (count,): which of the `mixes` its types are.
    mixes
        Multisets of types, and whether the seconds of their patterns count.
    near_w
        Watts below which floats may be off by more than `NEAR`; infinite for measured curves.
    among, nodes, level
        All classes that may be members; nodes of the least share; power level.
    """

    members: Indices
    pace: Floats
    watts: Floats
    is_timed: Bools
    mix: Indices
    mixes: list[tuple[tuple[str, ...], bool]]
    near_w: float
    among: list[int]
    nodes: Nodes
    level: PowerLevel | None


class FluidDuals(NamedTuple):
    """By class: what a second of work pays, and what a second in a group is paid back; joules."""

    work: list[Fraction]
    time: list[Fraction]


def lowered(
    figures: TypeFigures, classes: list[JobClass], parts: list[Patterns], duals: FluidDuals
) -> FluidDuals:
    """Return duals at which no pattern pays more than it draws, as high as one factor allows.

    Jobs that may run for nothing pay nothing.
    """
    for part in parts:
        for n in np.unique(part.members[part.watts == 0]).tolist():
            duals.work[n] = duals.time[n] = Fraction(0)
    factor = Fraction(1)
    for part in parts:
        charge = _Charge(figures, classes, part, duals)
        for number in _to_look_at(part, duals):
            most, watts = charge.of(*part.mixes[number])
            if most > watts:
                factor = min(factor, watts / most)
    return FluidDuals(*([factor * dual for dual in row] for row in duals))


def _to_look_at(part: Patterns, duals: FluidDuals) -> list[int]:
    """Return the multisets of types that floats cannot tell to draw more than they are charged.

    Their figures are right to about 1e-12 but for cliffs in measured curves, and watts next to 0.
    """
    work = np.array([float(dual) for dual in duals.work])
    time = np.array([float(dual) for dual in duals.time])
    paid = work[part.members] * part.pace
    back = time[part.members] * part.is_timed[:, None]
    most = (paid - back).sum(axis=1) + SETTINGS.near * (paid + back).sum(axis=1)
    near = (most > part.watts * (1 - SETTINGS.near)) | (part.watts <= part.near_w)
    return [int(number) for number in np.unique(part.mix[near])]


class _Charge:
    """What jobs pay for patterns of one size, in fractions."""

    def __init__(
        self, figures: TypeFigures, classes: list[JobClass], part: Patterns, duals: FluidDuals
    ) -> None:
        self.figures, self.nodes, self.level = figures, part.nodes, part.level
        self.gang = classes[part.among[0]].job.gpus
        self.of_type: dict[str, list[tuple[JobClass, Fraction, Fraction]]] = {}
        for n in part.among:
            c = classes[n]
            pay = duals.work[n] * figures.speed(c.job, part.nodes)
            self.of_type.setdefault(c.job.type, []).append((c, pay, duals.time[n]))

    def of(self, types: tuple[str, ...], is_timed: bool) -> tuple[Fraction, Fraction]:
        """Return what jobs of these types pay at most for a second together, and what they draw."""
        gpu = self.nodes.gpu
        rates = self.figures.instance.rates[gpu].of(types).by_type
        level = Fraction(1 if self.level is None else self.level.rate)
        most = Fraction(0)
        for kind in dict.fromkeys(types):
            pays: list[Fraction] = []
            for c, work, time in self.of_type[kind]:
                cap = c.job.max_slowdown
                if cap is None or rates[kind] * Fraction(cap) >= 1:
                    pay = work * rates[kind] * level - (time if is_timed else 0)
                    pays += [pay] * min(len(c.jobs), len(types))
            most += sum(heapq.nlargest(types.count(kind), pays), Fraction(0))
        watts = self.figures.gpu_w(types, gpu, self.level) + self.figures.node_share_w(self.nodes)
        return most, self.gang * watts
