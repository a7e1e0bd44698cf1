"""Jobs as the search for groups sees them: in the order of work, with what each may add to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.energy import JOULES_PER_KWH, Book
from optsched.eaco.groups import NEAR, JobClass, least_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.instance import EacoInstance

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

BLOCK = 8  # positions that share one entry of that table: that of the first
CELLS, STEPS = 24, 12  # of memory and of utilisation, in the table of what further jobs can add


class Goods:
    """Jobs of one gang size on nodes of one pool, in the order of work, and what they may add.

    Parameters
    ----------
    among
        Indices of the classes of jobs that fit alone.

    Attributes
    ----------
    classes
        Shape (jobs,): theirs, by position: in the order of work.
    """

    def __init__(
        self,
        instance: EacoInstance,
        classes: list[JobClass],
        among: list[int],
        pool: int,
        gang: int,
    ) -> None:
        book, nodes, table = Book(instance), instance.nodes[pool], instance.interference
        self.pool, self.gang, self._most = pool, gang, instance.max_jobs_per_gpu
        kinds = [book.types[classes[c].job.type] for c in among]
        gpu = book.gpus[nodes.gpu]
        speed = np.array([float(kind.speeds.get(gpu.id, 1.0)) for kind in kinds])
        work = np.array([classes[c].job.work_s for c in among]) / speed
        order = np.argsort(-work, kind="stable")
        self.classes = np.array(among)[order]
        per_j = gang * float(instance.per_kwh) / JOULES_PER_KWH
        self.work = work[order] * per_j  # what a watt of it costs
        self._busy = np.array([kind.utilisation for kind in kinds])[order]
        self._memory = np.array([kind.memory_gb for kind in kinds])[order]
        least = [least_rate(book, classes[c].job, gpu.id) for c in among]
        self._least = np.array(least)[order]
        self._copies = np.array([len(classes[c].jobs) for c in among])[order]
        self._room = gpu.memory_gb * (1 - instance.memory_headroom)
        self._slope, self._partner = table.saturation_slope, table.partner_slowdown
        self._limit = instance.utilisation_limit or np.inf
        self._context = gpu.power.context_w + float(book.node_share_w(nodes))
        self._span = gpu.power.peak_w - gpu.power.context_w
        unit = self._room / CELLS or 1.0
        cells = np.floor(self._memory / unit * (1 - NEAR)).astype(int)
        self._cell, self._unit = np.minimum(cells, CELLS), unit
        top = float(np.sort(self._busy)[-self._most :].sum())
        if self._slope > 0:
            top = min(top, 1 + (1 / float(self._least.min(initial=1.0)) - 1) / self._slope)
        self._stride = top / STEPS or 1.0
        steps = np.floor(self._busy / self._stride * (1 - NEAR)).astype(int)
        self._step = np.minimum(steps, STEPS)
        self._sag = self._greatest_sags()

    def _greatest_sags(self) -> Floats:
        """Return by size how far the watts of larger groups may lie below those of calm jobs."""
        count = np.arange(2, max(self._most, 2) + 1)
        least = max(float(self._least.min(initial=1.0)), 1e-9)
        room = np.maximum(1 / least - 1 - self._partner * (count - 1), 0)
        beyond = np.full(len(count), self._most * float(self._busy.max(initial=0.0)))
        if self._slope > 0:
            beyond = np.minimum(beyond, room / self._slope * (1 + NEAR) + NEAR)
        lower = self._span * (beyond * (1 - self._slope) - self._partner * (count - 1))
        lower = np.maximum(lower - self._context * self._slope * beyond, 0.0)
        worst = np.maximum.accumulate(lower[::-1])[::-1]
        return np.concatenate([worst[:1], worst, np.zeros(1)])

    def shares(self) -> Floats:
        """Return what each job would pay in a full group of jobs that end with it."""
        others = self._partner * (self._most - 1)
        calm = self._context * (1 + others) / self._most + self._span * self._busy
        return np.asarray(self.work * calm)

    def _gains(self, pays: Floats) -> list[Floats]:
        """Return what 0, 1, ... further jobs add at most, by blocks of first positions."""
        net = pays - self.work * (self._context * self._partner + self._span * self._busy)
        one = np.full((len(pays) + 1, CELLS + 1, STEPS + 1), 0.0)
        one[np.arange(len(pays)), self._cell, self._step] = np.maximum(net, 0.0)
        one = np.maximum.accumulate(np.maximum.accumulate(one, axis=1), axis=2)
        one = np.maximum.accumulate(one[::-1], axis=0)[::-1]
        one = one[::BLOCK]
        gains = [np.zeros_like(one), one]
        for _ in range(2, self._most):
            before, more = gains[-1], np.zeros_like(one)
            for a, b in np.ndindex(CELLS + 1, STEPS + 1):
                both = before[:, : CELLS + 1 - a, : STEPS + 1 - b] + one[:, a, b, None, None]
                np.maximum(more[:, a:, b:], both, out=more[:, a:, b:])
            gains.append(more)
        return gains
