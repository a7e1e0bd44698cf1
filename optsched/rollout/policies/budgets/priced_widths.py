"""Widths at a price: the widths of a job's phases of least time plus price times GPU time billed.

A shortest path through layers of (phase, width), after docs/math/boa.md, Widths at a price. At a
fixed price the widths of a class do not depend on arrival rates, its own or those of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Indices
    from optsched.rollout.policies.width_curves import Curve

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
        nodes = -(-gpus // self.node_gpus)
        whole = float(nodes * self.node_gpus)
        return whole if nodes > 1 else min(gpus * self.holes, whole)


class PricedPlan(NamedTuple):
    """What is best from the beginning of each phase on, for each width held before it.

    Attributes
    ----------
    widths
        No GPUs, then the widths that any phase may have, ascending.
    best
        Shape (phases, widths): the place in `widths` of the width that a phase gets.
    cost
        Shape (phases + 1, widths): time plus price times GPU time from there on; 0 at the end.
    seconds, gpu_s
        Shape (phases + 1, widths): the time, and the GPU time billed, of the same.
    """

    widths: tuple[int, ...]
    best: Indices
    cost: Floats
    seconds: Floats
    gpu_s: Floats

    def width(self, phase: int, held: int) -> int:
        """Return the width of a phase for a job that holds so many GPUs before it, 0 for none."""
        return self.widths[int(self.best[phase, self.place(held)])]

    def place(self, held: int) -> int:
        """Return the place of a width; that of no GPUs if no phase may have it."""
        return self.widths.index(held) if held in self.widths else 0


def priced_plan(work: Work, price: float) -> PricedPlan:
    """Return the best widths of all phases at a price of a GPU-second, in seconds of JCT.

    A GPU more than before is ordered, and billed while it starts; it is counted as billed by the
    job that asks for it, while the job runs on as it was.
    """
    widths = (0, *sorted({k for curve in work.curves for k in curve.gpus}))
    gpus, rows = np.array([work.billed(width) for width in widths]), np.arange(len(widths))
    count = len(work.works_s)
    best = np.zeros((count, len(widths)), dtype=np.intp)
    cost, seconds, gpu_s = np.zeros((3, count + 1, len(widths)))
    more = np.maximum(gpus[None, :] - gpus[:, None], 0.0)  # from the row's to the column's width
    weight, ordered = 1 + price * gpus, price * work.provision_s * more
    for phase in reversed(range(count)):
        run = work.works_s[phase] / _speeds(widths, work.curves[phase])
        change = weight * (run + work.rescale_s) + cost[phase + 1] + ordered
        change[rows, rows] = weight * run + cost[phase + 1]
        chosen = best[phase] = change.argmin(axis=1)
        takes = run[chosen] + np.where(chosen == rows, 0.0, work.rescale_s)
        cost[phase] = change[rows, chosen]
        seconds[phase] = takes + seconds[phase + 1, chosen]
        billed = takes * gpus[chosen] + work.provision_s * more[rows, chosen]
        gpu_s[phase] = billed + gpu_s[phase + 1, chosen]
    return PricedPlan(widths, best, cost, seconds, gpu_s)


def _speeds(widths: Sequence[int], curve: Curve) -> Floats:
    """Return the speed of a phase at each width, next to none where it may not have it."""
    known = dict(zip(curve.gpus, curve.speed, strict=True))
    return np.array([known.get(k, SLOWEST) for k in widths])
