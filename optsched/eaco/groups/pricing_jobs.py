"""Jobs as the pricing problem sees them: in the order of work, with what each may add to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.group_figures import JOULES_PER_KWH, TypeFigures
from optsched.eaco.groups.completion_bounds import Gains
from optsched.eaco.groups.enumeration import JobClass, least_rate
from optsched.eaco.groups.measured_types import MeasuredTypes
from optsched.eaco.groups.side_by_side import Gpu, SideBySide
from optsched.eaco.groups.type_sequences import needs_sequences
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.instance import EacoInstance, Nodes

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


class PricingJobs:
    """Jobs of one gang size on nodes of one pool, in the order of work, and what they may add.

    Parameters
    ----------
    among
        Indices of the classes of jobs that fit alone.

    Attributes
    ----------
    classes
        Shape (jobs,): theirs, by position: in the order of work.
    work, busy, memory, least, copies
        Shape (jobs,): what a watt of their work costs, utilisation, GB, the least rate that each
        bears, and how many are equal.
    memory_limit, limit
        GB and utilisation of a group at most.
    measured
        Which of them were measured side by side.
    is_measured
        Whether the groups are those that measured figures concern, or those of the formula alone.
    is_scarce
        Whether they are, and few jobs have such types: their groups are found between dives.
    level, rate
        Index of the power level, -1 for full power, and its speed.
    is_sequenced
        Whether groups are found by the sequences of their types.
    is_exact
        Whether groups cost what the search says, or at least that: where rates were measured, or a
        job that runs may stay, each group that is found is worked out by its phases.
    """

    is_sequenced = False

    def __init__(
        self,
        instance: EacoInstance,
        classes: list[JobClass],
        among: list[int],
        pool: int,
        gang: int,
        *,
        is_measured: bool = False,
        level: int = -1,
    ) -> None:
        figures, nodes = TypeFigures(instance), instance.nodes[pool]
        self.pool, self.gang, self._most = pool, gang, instance.max_jobs_per_gpu
        self.level = level
        types = [figures.types[classes[c].job.type] for c in among]
        gpu = figures.gpus[nodes.gpu]
        self.rate = 1.0 if level < 0 else gpu.levels[level].rate
        speed = np.array([float(kind.speeds.get(gpu.id, 1.0)) for kind in types])
        work = np.array([classes[c].job.work_s for c in among]) / speed
        order = np.argsort(-work, kind="stable")
        self.classes = np.array(among)[order]
        per_j = gang * float(instance.per_kwh) / JOULES_PER_KWH
        self.work = work[order] * per_j  # what a watt of it costs
        self.busy = np.array([kind.utilisation for kind in types])[order]
        self.memory = np.array([kind.memory_gb for kind in types])[order]
        least = [least_rate(figures, classes[c], gpu.id) for c in among]
        self.least = np.array(least)[order]
        self.copies = np.array([len(classes[c].jobs) for c in among])[order]
        self.memory_limit = gpu.memory_gb * (1 - instance.memory_headroom)
        self.bare_w, self.per_j = gpu.power.bare_w, per_j
        self._has_cap, self.is_measured = instance.power_cap_w is not None, is_measured
        self.is_exact = not is_measured and not instance.running
        self._tell_where(instance, classes, speed[order])
        self._tell_figures(instance, nodes, [classes[c].job.type for c in self.classes.tolist()])
        if is_measured:
            self._lower()
        self._tell_cells()
        self._sag = self._greatest_sags()

    def _tell_figures(self, instance: EacoInstance, nodes: Nodes, types: list[str]) -> None:
        """Note how slowdowns and watts of groups follow, by the formula and as measured."""
        figures, table = TypeFigures(instance), instance.interference
        gpu, share = figures.gpus[nodes.gpu], float(figures.node_share_w(nodes))
        power, level = gpu.power, None if self.level < 0 else gpu.levels[self.level]
        self._gpu = Gpu(power, share, level)
        self._context, self._span = power.context_w + share, power.peak_w - power.context_w
        self._slope, self._partner = table.saturation_slope, table.partner_slowdown
        self._dynamic = self._slope, self._partner  # of the slowdown that lets watts rise on
        self.limit = self.utilisation_limit = instance.utilisation_limit or np.inf
        self.measured = MeasuredTypes(instance, nodes, types, is_special=needs_sequences(gpu))
        few = SETTINGS.scarce_share * len(types)
        self.is_scarce = self.is_measured and np.count_nonzero(self.measured.weight) <= few
        formula = self._slope, self._partner
        self._phases = SideBySide(self.measured, self.busy, *formula, self._gpu)

    def _tell_cells(self) -> None:
        """Note what each job takes of the cells of memory and utilisation in completion bounds."""
        self._wide = (2, 2)
        if len(self.classes) > SETTINGS.few_priced_jobs:
            self._wide = (SETTINGS.memory_cells, SETTINGS.utilisation_cells)
        if self.is_scarce:
            self._wide = (SETTINGS.memory_cells // 2, SETTINGS.utilisation_cells // 2)
        unit = self.memory_limit / self._wide[0] or 1.0
        cells = np.floor(self.memory / unit * (1 - SETTINGS.near)).astype(int)
        self._cell, self._unit = np.minimum(cells, self._wide[0]), unit
        top = float(np.sort(self.busy)[-self._most :].sum())
        if self._slope > 0:
            top = min(top, 1 + (1 / float(self.least.min(initial=1.0)) - 1) / self._slope)
        self._stride = top / self._wide[1] or 1.0
        steps = np.floor(self.busy / self._stride * (1 - SETTINGS.near)).astype(int)
        self._step = np.minimum(steps, self._wide[1])

    def _tell_where(self, instance: EacoInstance, classes: list[JobClass], speed: Floats) -> None:
        """Note where jobs run, what moving them takes, and what they bear."""
        jobs = [classes[c] for c in self.classes.tolist()]
        self.place = np.array([c.place for c in jobs], dtype=np.intp)
        self.seconds = np.array([c.job.work_s for c in jobs]) / speed
        self.moving = np.array([c.job.migration_s if c.place >= 0 else 0.0 for c in jobs])
        self.cap = np.array([c.job.max_slowdown or np.inf for c in jobs])
        self.due = np.array([np.inf if c.due is None else float(c.due) for c in jobs])
        gangs = {job.id: job.gpus for job in instance.jobs}
        nodes = instance.nodes[self.pool].id
        self.is_here = np.array(
            [p.nodes == nodes and gangs[p.jobs[0]] == self.gang for p in instance.running] + [False]
        )

    def _lower(self) -> None:
        """Let groups cost no more than they can, whatever was measured (docs/math/eaco.md).

        Slowdowns are a share of the formula's, watts a share of the model's; and while jobs are
        slowed, their watts may reach but those of a GPU that is not.
        """
        alone = np.zeros(self.measured.number + 1)
        alone[self.measured.of[:-1]] = self.busy
        share = self.measured.least_slowdown_share(alone, self._slope, self._partner)
        power, span = self._gpu.power, self._span
        drawn = self.measured.least_watts_share(alone, power.context_w, span, self._gpu.share)
        self._slope, self._partner, self._dynamic = (
            share * self._slope,
            share * self._partner,
            (0, 0),
        )
        self._context, self._span, self.limit = drawn * self._context, drawn * self._span, np.inf

    def _greatest_sags(self) -> Floats:
        """Return by size how far the watts of larger groups may lie below those of calm jobs."""
        count = np.arange(2, max(self._most, 2) + 1)
        least = float(self.least.min(initial=1.0))
        slack = np.maximum(1 / least - 1 - self._partner * (count - 1), 0)
        beyond = np.full(len(count), self._most * float(self.busy.max(initial=0.0)))
        if self._slope > 0:
            beyond = np.minimum(beyond, slack / self._slope * (1 + SETTINGS.near) + SETTINGS.near)
        slope, partner = self._dynamic
        lower = self._span * (beyond * (1 - slope) - partner * (count - 1))
        lower = np.maximum(lower - self._context * self._slope * beyond, 0.0)
        worst = np.maximum.accumulate(lower[::-1])[::-1]
        return np.concatenate([worst[:1], worst, np.zeros(1)])

    def _least_w(self) -> float:
        """Return the least watts of a GPU, above a bare one, that any group draws."""
        least, level = np.append(self.measured.watts, self._gpu.power.context_w), self._gpu.level
        if level is not None:
            least = np.minimum(least * level.power, level.limit_w)
        return max(float(np.nanmin(least)) - self.bare_w, 0.0)

    def shares(self) -> Floats:
        """Return what each job would pay in a full group of jobs that end with it."""
        others = self._partner * (self._most - 1)
        calm = self._context * (1 + others) / self._most + self._span * self.busy
        return np.asarray(self.work * calm)

    def slowdown(self, busy: Floats, size: int) -> Floats:
        """Return the slowdown of groups of a size by their utilisation."""
        if size == 1:
            return np.ones(len(busy))
        return 1 + self._partner * (size - 1) + self._slope * np.maximum(busy - 1, 0)

    def watts(self, busy: Floats, slowdown: Floats) -> Floats:
        """Return the watts of a second of work, the share of the node included."""
        most = 1.0 if self.is_measured else slowdown
        return np.asarray(self._context * slowdown + self._span * np.minimum(busy, most))

    def _gains(self, pays: Floats) -> Gains:
        """Return what further jobs add at most."""
        net = pays - self.work * (self._context * self._partner + self._span * self.busy)
        return Gains(net, self._cell, self._step, self._wide, self._most - 1)
