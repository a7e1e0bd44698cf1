r"""The fluid bound, a linear program over configurations (Lawler & Labetoulle, J. ACM 25, 1978).

The least energy of any schedule that shares GPUs only in allowed groups.

A schedule may form other groups at any moment, move jobs and leave them waiting; it ends each job
by the time that it is due (`due_times.due_s`). With :math:`\tau_p` the seconds in which pattern p
runs, that is a group on GPUs of a type at a power level, r the work per second and P the watts,

.. math::

    \min \sum_p P_p \tau_p \quad \text{s.t.} \quad
    \sum_{p \ni j} r_{jp} \tau_p \ge w_j, \quad
    \sum_{p \ni j} \tau_p \le D_j \ \text{if j has a deadline}, \quad \tau \ge 0 .

**Why no schedule takes less.** Let :math:`\tau_p` be the seconds that a schedule spends in each
pattern. It draws at least the objective: a group's watts and its share of the node, on the nodes
that take least; waking is left out. It does all work, and more if it moves jobs. A job is in one
group at a time, all of it before :math:`D_j`. So :math:`\tau` is feasible. Which groups are
patterns matters:

- One that would miss a deadline, were it to run to the end, may run for a while: deadlines take no
  pattern away, only time.
- As a group shrinks, its utilisation may rise, so that what is left breaks `utilisation_limit`,
  which binds whole groups; what may be left of an allowed group is a pattern, too. All other rules
  hold for what is left, since neither memory nor slowdowns rise.
- What is left of a group may be of types whose rates are not known; then rates and watts stay as
  they were, as if those who ended still ran. Seconds of a pattern with such parts count for no
  job's :math:`D_j`: those rows only get weaker.

**Why rounding does not matter.** Duals :math:`\lambda, \mu \ge 0` with :math:`\sum_{j \in p}
(\lambda_j r_{jp} - \mu_j) \le P_p` for all patterns prove :math:`\sum_j (\lambda_j w_j - \mu_j
D_j)`, by weak duality. Those of the linear program are lowered in fractions, all by one factor,
until no pattern is charged more than it draws, and the sum is rounded down.

Source: docs/math/eaco.md, fluid bound.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from optsched.cluster.power import Measured
from optsched.eaco.exact.fluid_prices import FluidDuals, Patterns, lowered
from optsched.eaco.group_figures import JOULES_PER_KWH, TypeFigures, gang_fits
from optsched.eaco.groups.enumeration import Enumeration, job_classes
from optsched.eaco.settings import SETTINGS
from optsched.mip import highs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.groups.type_multisets import Level
    from optsched.eaco.instance import EacoInstance, GpuType, Nodes

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Bools = NDArray[np.bool_]


class Fluid(NamedTuple):
    """The fluid bound in kWh, rounded down, and each job's share of it by its id."""

    bound_kwh: float
    energy_kwh: dict[str, float]


def fluid(instance: EacoInstance) -> Fluid:
    """Return the least energy to do all work in allowed groups, and what each job pays of it.

    GPUs, and the share of nodes that goes with them; no waking, no migration, and as many nodes as
    are useful. Groups are those of the instance; a schedule that forms others, or ends a job later
    than it is due, is not bounded.

    Raises
    ------
    TooManyGroupsError
        If there are too many groups.

    Examples
    --------
    >>> import optsched
    >>> four = optsched.read("eaco/paper-four")
    >>> round(optsched.eaco.fluid(four).bound_kwh, 2), round(optsched.solve(four).objective, 2)
    (93.66, 93.66)
    """
    classes = job_classes(instance)
    parts = list(_patterns(instance, classes))
    duals = lowered(TypeFigures(instance), classes, parts, _solved(classes, parts))
    shares = []
    for c, work, time in zip(classes, duals.work, duals.time, strict=True):
        joules = work * Fraction(c.job.work_s) - time * (c.due or 0)
        shares.append(joules / JOULES_PER_KWH)
    each = list(zip(classes, shares, strict=True))
    bound = sum((len(c.jobs) * share for c, share in each), Fraction(0))
    if bound <= 0:
        return Fluid(0.0, {job.id: 0.0 for job in instance.jobs})
    return Fluid(_down(bound), {name: float(share) for c, share in each for name in c.jobs})


def _down(value: Fraction) -> float:
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


# --- the linear program -----------------------------------------------------------------------


def _solved(classes: list[JobClass], parts: list[Patterns]) -> FluidDuals:
    """Return duals that about solve the program; in kWh and hours for HiGHS."""
    rows, columns, paces, timed, first = [], [], [], [], 0
    for part in parts:
        count, size = part.members.shape
        rows.append(part.members.ravel())
        columns.append(first + np.repeat(np.arange(count), size))
        paces.append(part.pace.ravel())
        timed.append(np.repeat(part.is_timed, size).astype(float))
        first += count
    at = (np.concatenate(rows), np.concatenate(columns))
    shape = (len(classes), first)
    work = csr_array((np.concatenate(paces), at), shape=shape)
    time = csr_array((np.concatenate(timed), at), shape=shape)
    due = np.array([n for n, c in enumerate(classes) if c.due is not None], dtype=int)
    dues = [float(len(classes[n].jobs) * (classes[n].due or 0)) for n in due.tolist()]
    works = np.array([len(c.jobs) * c.job.work_s for c in classes])
    matrix = csr_array(vstack([work, time[due]])) if len(due) else work
    matrix.sum_duplicates()
    outcome = highs.solve(
        highs.Program(
            cost=np.concatenate([part.watts for part in parts]) / 1000,
            offset=0.0,
            lower=np.zeros(first),
            upper=np.full(first, np.inf),
            integer=np.zeros(first, dtype=bool),
            matrix=matrix,
            row_lower=np.append(works / 3600, np.full(len(due), -np.inf)),
            row_upper=np.append(np.full(len(classes), np.inf), np.array(dues) / 3600),
        )
    )
    duals = np.zeros(len(classes)), np.zeros(len(classes))
    if outcome.row_duals is not None:
        duals[0][:] = np.maximum(outcome.row_duals[: len(classes)], 0)
        duals[1][due] = np.maximum(-outcome.row_duals[len(classes) :], 0)
    exact = [[1000 * Fraction(dual) for dual in part.tolist()] for part in duals]
    return FluidDuals(*exact)


def _patterns(instance: EacoInstance, classes: list[JobClass]) -> Iterator[Patterns]:
    """Yield groups by gang, GPU type, size and power level, whatever deadlines say."""
    figures, free = TypeFigures(instance), [c._replace(due=None) for c in classes]
    calm = instance.model_copy(update={"utilisation_limit": None})
    for gpu in instance.gpu_types:
        for gang in sorted({c.job.gpus for c in classes}):
            among = figures.alone_on(classes, gang, gpu.id)
            pools = [n for n in instance.nodes if n.gpu == gpu.id and gang_fits(gang, n)]
            if among and pools:
                least = min(pools, key=figures.node_share_w)
                enumeration = Enumeration(calm, free, among, gpu)
                yield from _on(instance, classes, enumeration, among, gpu, least, gang)


def _on(
    instance: EacoInstance,
    classes: list[JobClass],
    enumeration: Enumeration,
    among: list[int],
    gpu: GpuType,
    nodes: Nodes,
    gang: int,
) -> Iterator[Patterns]:
    """Yield the patterns of jobs of one gang size on GPUs of one type."""
    figures, levels = TypeFigures(instance), enumeration.sets.levels
    names = sorted({classes[n].job.type for n in among})
    speed = np.array([figures.types[c.job.type].speeds.get(gpu.id, 1.0) for c in classes])
    allowed, known = _parts_allowed(instance, levels), _parts_known(levels)
    share = float(figures.node_share_w(nodes))
    is_smooth = not isinstance(gpu.power.curve, Measured)
    near_w = SETTINGS.calm_watts * gang * gpu.power.peak_w if is_smooth else np.inf
    for size, groups in enumerate(enumeration.sizes, start=1):
        kept = allowed[size][groups.sets]
        members, sets = groups.members[kept], groups.sets[kept]
        if not len(members):
            continue
        at, (present, mix) = levels[size], np.unique(sets, return_inverse=True)
        keys = [tuple(names[t] for t in row) for row in at.types[present].tolist()]
        mixes = list(zip(keys, known[size][present].tolist(), strict=True))
        for level in (None, *gpu.levels):
            rate, power, limit = (
                (1.0, 1.0, np.inf) if level is None else (level.rate, level.power, level.limit_w)
            )
            watts = gang * (np.minimum(at.watts[sets] * power, limit) + share)
            pace = at.rates[sets] * rate * speed[members]
            timed = known[size][sets]
            yield Patterns(members, pace, watts, timed, mix, mixes, near_w, among, nodes, level)


def _parts_allowed(instance: EacoInstance, levels: list[Level]) -> list[Bools]:
    """Tell by size which multisets keep the utilisation limit, or may be left of one that does."""
    limit = instance.utilisation_limit
    allowed = [
        np.ones(len(at.codes), dtype=bool)
        if limit is None or size <= 1
        else at.utilisation <= limit * (1 + SETTINGS.near)
        for size, at in enumerate(levels)
    ]
    for size in range(len(levels) - 1, 1, -1):
        allowed[size - 1][levels[size].children[allowed[size]].ravel()] = True
    return allowed


def _parts_known(levels: list[Level]) -> list[Bools]:
    """Tell by size of which multisets all parts have known rates."""
    known = [np.ones(len(levels[0].codes), dtype=bool)]
    for at in levels[1:]:
        whole = known[-1][at.children].all(axis=1)
        known.append(np.asarray(whole & ~np.isnan(at.rates).any(axis=1)))
    return known
