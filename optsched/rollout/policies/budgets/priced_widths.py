"""Widths at a price: the widths of a job's phases of least time plus price times GPU time billed.

A shortest path through layers of (phase, width), after docs/math/boa.md, Widths at a price. At a
fixed price the widths of a class do not depend on arrival rates, its own or those of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.documents.arrays import Floats, Indices
    from optsched.rollout.policies.width_curves import Curve

    Held = int | tuple[str, int]
    """GPUs that a job holds, with their type where there are several; 0 for none."""

SLOWEST = 1e-200  # of a width that a phase may not have


class Work(NamedTuple):
    """What a job of a class does, and what it takes to change its width.

    Attributes
    ----------
    works_s
        By phase, seconds on a GPU of speedup 1, above 0.
    curves
        By phase, the widths that it may have.
    rescale_s
        Seconds that a start and every change of width take.
    provision_s
        Seconds for which a GPU is billed before it can be used.
    node_gpus
        GPUs of a node: nodes are billed whole.
    holes
        GPUs billed per GPU held of nodes that jobs share.
    """

    works_s: Sequence[float]
    curves: Sequence[Curve]
    rescale_s: float
    provision_s: float
    node_gpus: int = 1
    holes: float = 1.0

    def billed(self, gpus: int) -> float:
        """Return the GPUs that are billed for a width: those of whole nodes, or of a shared one."""
        return billed(gpus, self.node_gpus, self.holes)


class WorkOnTypes(NamedTuple):
    """As `Work`, where GPUs are of several types.

    Attributes
    ----------
    curves
        By phase, the widths that it may have on each type.
    usd_per_h
        By type, the price of a GPU-hour.
    node_gpus
        By type, GPUs of a node.
    """

    works_s: Sequence[float]
    curves: Sequence[Mapping[str, Curve]]
    rescale_s: float
    provision_s: float
    usd_per_h: Mapping[str, float]
    node_gpus: Mapping[str, int]
    holes: float = 1.0

    def rent(self, option: tuple[str, int]) -> float:
        """Return what is billed for so many GPUs of a type, in USD per hour."""
        name, gpus = option
        return self.usd_per_h[name] * billed(gpus, self.node_gpus[name], self.holes)


def billed(gpus: int, node_gpus: int, holes: float) -> float:
    """Return the GPUs that are billed for a width: those of whole nodes, or of a shared one."""
    nodes = -(-gpus // node_gpus)
    whole = float(nodes * node_gpus)
    return whole if nodes > 1 else min(gpus * holes, whole)


class PricedPlan(NamedTuple):
    """What is best from the beginning of each phase on, for each width held before it.

    Where GPUs are of several types, a width is of one of them, and GPU time is money: USD per hour
    times seconds.

    Attributes
    ----------
    widths
        No GPUs, then the widths that any phase may have, ascending; or all of each type.
    best
        Shape (phases, widths): the place in `widths` of the width that a phase gets.
    cost
        Shape (phases + 1, widths): time plus price times GPU time from there on; 0 at the end.
    seconds, gpu_s
        Shape (phases + 1, widths): the time, and the GPU time billed, of the same.
    """

    widths: tuple[Held, ...]
    best: Indices
    cost: Floats
    seconds: Floats
    gpu_s: Floats

    def width(self, phase: int, held: Held) -> Held:
        """Return the width of a phase for a job that holds so many GPUs before it, 0 for none."""
        return self.widths[int(self.best[phase, self.place(held)])]

    def place(self, held: Held) -> int:
        """Return the place of a width; that of no GPUs if no phase may have it."""
        return self.widths.index(held) if held in self.widths else 0


def priced_plan(work: Work | WorkOnTypes, price: float) -> PricedPlan:
    """Return the best widths of all phases at a price of a GPU-second, in seconds of JCT.

    A GPU more than before is ordered, and billed while it starts; it is counted as billed by the
    job that asks for it, while the job runs on as it was. Where GPUs are of several types, all of
    another type than before are ordered, and the price is in seconds of JCT per USD per hour and
    second.
    """
    choice = _choice(work)
    best, *times = _paths(work, np.array([price]), choice)
    return PricedPlan(choice.widths, best[:, 0], *(column[:, 0] for column in times))


def priced_bills(work: Work | WorkOnTypes, prices: Floats) -> Floats:
    """Return what `priced_plan` is billed: shape (phases + 1, widths, prices), as its `gpu_s`."""
    return _paths(work, prices, _choice(work)).gpu_s.transpose(0, 2, 1)


def _choice(work: Work | WorkOnTypes) -> _Choice:
    return _of_types(work) if isinstance(work, WorkOnTypes) else _of_widths(work)


def _of_widths(work: Work) -> _Choice:
    widths = (0, *sorted({k for curve in work.curves for k in curve.gpus}))
    gpus = np.array([work.billed(width) for width in widths])
    more = np.maximum(gpus[None, :] - gpus[:, None], 0.0)  # from the row's to the column's width
    return _Choice(widths, gpus, more, [_speeds(widths, curve) for curve in work.curves])


def _of_types(work: WorkOnTypes) -> _Choice:
    options = sorted({(t, k) for phase in work.curves for t, c in phase.items() for k in c.gpus})
    widths: tuple[Held, ...] = (0, *options)
    rents = np.array([0.0, *map(work.rent, options)])
    types = np.array(["", *(name for name, _ in options)])
    more = np.maximum(rents[None, :] - rents[:, None], 0.0)
    more = np.where(types[None, :] == types[:, None], more, rents[None, :])
    speeds = []
    for phase in work.curves:
        known = {(t, k): v for t, c in phase.items() for k, v in zip(c.gpus, c.speed, strict=True)}
        speeds.append(np.array([SLOWEST, *(known.get(option, SLOWEST) for option in options)]))
    return _Choice(widths, rents, more, speeds)


class _Choice(NamedTuple):
    """Widths, what each is billed, what is ordered from one to another, and speeds by phase."""

    widths: tuple[Held, ...]
    gpus: Floats
    more: Floats
    speeds: Sequence[Floats]


class _Paths(NamedTuple):
    """As `PricedPlan`, with prices as the second axis of all."""

    best: Indices
    cost: Floats
    seconds: Floats
    gpu_s: Floats


def _paths(work: Work | WorkOnTypes, prices: Floats, choice: _Choice) -> _Paths:
    """Return the shortest paths from the beginning of each phase, for each price and width."""
    _, gpus, more, _ = choice
    shape = (len(prices), len(gpus))
    rows, each = np.arange(shape[1]), np.arange(shape[0])[:, None]
    count = len(work.works_s)
    best = np.zeros((count, *shape), dtype=np.intp)
    cost, seconds, gpu_s = np.zeros((3, count + 1, *shape))
    weight = 1 + prices[:, None] * gpus
    ordered = prices[:, None, None] * work.provision_s * more
    for phase in reversed(range(count)):
        run = work.works_s[phase] / choice.speeds[phase]
        change = (weight * (run + work.rescale_s) + cost[phase + 1])[:, None, :] + ordered
        change[:, rows, rows] = weight * run + cost[phase + 1]
        chosen = best[phase] = change.argmin(axis=2)
        takes = run[chosen] + np.where(chosen == rows, 0.0, work.rescale_s)
        cost[phase] = change[each, rows, chosen]
        seconds[phase] = takes + seconds[phase + 1][each, chosen]
        billed = takes * gpus[chosen] + work.provision_s * more[rows, chosen]
        gpu_s[phase] = billed + gpu_s[phase + 1][each, chosen]
    return _Paths(best, cost, seconds, gpu_s)


def _speeds(widths: Sequence[int], curve: Curve) -> Floats:
    """Return the speed of a phase at each width, next to none where it may not have it."""
    known = dict(zip(curve.gpus, curve.speed, strict=True))
    return np.array([known.get(k, SLOWEST) for k in widths])
