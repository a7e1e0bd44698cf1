r"""EaCO, the columns of the specification: groups that are allowed, what they cost and draw.

Written down from the docstring of `EacoInstance`, in fractions; `optsched.models.eaco` puts the
columns together. A group S on nodes p at level f, at a location or on other GPUs, is a column if

- its gangs are of one size :math:`g`, and fit into a node, :math:`g \le K_p`, or fill whole ones;
- memory: :math:`\sum_{j \in S} m_j \le M_p`, for two or more within the head-room;
- for two or more: :math:`|S| \le m`, rates that are known and above 0, utilisation in its limit;
- for each job :math:`\sigma_j = 1 / (r_j(S) \rho_f)` is at most `max_slowdown`, and
  :math:`w_j \sigma_j` at most :math:`D_j`: its `deadline_s`, or, where that is later, the least
  :math:`w_j` that it has alone, on any nodes where it fits, staying where it runs or moved;
- at a location, one of S runs there now.

The **phases** of a column: with active jobs A, at first S, each job does :math:`r_j(A) \rho_f` of
its work per second, until :math:`\tau_A = \min_{j \in A} w_j / (r_j(A) \rho_f)`; then those that
have ended leave A. If the rates of A are not known, the last ones stay, and so do the watts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.models.eaco_figures import (
    JOULES_PER_KWH,
    ZERO,
    ColumnFigures,
    ColumnPlace,
    fits,
    types_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import EacoInstance, Job, Nodes
    from optsched.models.eaco_figures import Group


class GroupColumn(NamedTuple):
    """A group that may run.

    Attributes
    ----------
    jobs, nodes, level, location
        As in `optsched.eaco.Group`.
    gpus
        Size of its gangs.
    cost
        In the objective's unit, without nodes that are on and waking.
    gpu_w
        Greatest watts of each of its GPUs.
    """

    jobs: tuple[str, ...]
    nodes: str
    level: str | None
    location: str | None
    gpus: int
    cost: float
    gpu_w: float


def columns(instance: EacoInstance) -> list[GroupColumn]:
    """Return C: every group that is allowed, on all nodes, at all levels and locations."""
    figures = ColumnFigures(instance)
    return [
        _column(figures, group, ColumnPlace(nodes, level, location))
        for nodes in instance.nodes
        for group in _groups(figures, nodes)
        for level in (None, *figures.gpus[nodes.gpu].levels)
        for location in (None, *figures.locations(group, nodes))
        if _is_tolerable(figures, group, ColumnPlace(nodes, level, location))
    ]


def waiting_cost(instance: EacoInstance, job: Job) -> float | None:
    """Return what it costs that a job waits, in the objective's unit; None if it must not."""
    if job.waiting_penalty_kwh is None:
        return None
    figures = ColumnFigures(instance)
    move_s = job.migration_s if job.id in instance.location_of else 0.0
    later = figures.least_alone_j(job, move_s)
    joules = ZERO if instance.objective == "epoch" else later
    kwh = joules / JOULES_PER_KWH + Fraction(job.waiting_penalty_kwh)
    return float(kwh * instance.per_kwh)


def node_cost(instance: EacoInstance, nodes: Nodes) -> tuple[float, float]:
    """Return beta and omega: what a node that is on costs, and waking it, in the objective's unit.

    That a node is on costs by itself in the objective 'epoch' only: else groups pay for it.
    """
    per_joule = instance.per_kwh / JOULES_PER_KWH
    if instance.objective == "eaco":
        per_joule *= Fraction(instance.energy_weight or 0)
    asleep = Fraction(nodes.power.wake_s) * Fraction(nodes.power.sleep_w)
    epoch_s = Fraction(instance.epoch_s or 0) if instance.objective == "epoch" else ZERO
    on = float(per_joule * epoch_s * empty_w(instance, nodes))
    return on, float(per_joule * (nodes.power.wake_energy_j - asleep))


def empty_w(instance: EacoInstance, nodes: Nodes) -> Fraction:
    """Return h: watts of a node that is on without jobs, above sleep."""
    bare = next(gpu.power.bare_w for gpu in instance.gpu_types if gpu.id == nodes.gpu)
    return nodes.power.idle_w(nodes.gpus, bare) - Fraction(nodes.power.sleep_w)


def _groups(figures: ColumnFigures, nodes: Nodes) -> Iterator[Group]:
    """Yield the groups that may share GPUs of these nodes, as far as tolerances allow."""
    known = dict[tuple[str, ...], bool]()
    for gpus in sorted({job.gpus for job in figures.instance.jobs if fits(job.gpus, nodes)}):
        jobs = [job for job in figures.instance.jobs if job.gpus == gpus]
        for group in sorted(_extended(figures, nodes, (), jobs), key=len):
            types = types_of(group)
            if types not in known:
                known[types] = _may_share(figures, group, nodes)
            if known[types]:
                yield group


def _extended(
    figures: ColumnFigures, nodes: Nodes, group: Group, jobs: Sequence[Job]
) -> Iterator[Group]:
    """Yield groups that contain one and further jobs, except where none of them is allowed.

    Rates never rise as a group grows: what is too slow or does not fit stays so.
    """
    if len(group) == figures.instance.max_jobs_per_gpu:
        return
    for n, job in enumerate(jobs):
        larger = (*group, job)
        if len(larger) > 1 and _is_hopeless(figures, larger, nodes):
            continue
        yield larger
        yield from _extended(figures, nodes, larger, jobs[n + 1 :])


def _is_hopeless(figures: ColumnFigures, group: Group, nodes: Nodes) -> bool:
    """Tell whether a group is too large or too slow for anyone to join it."""
    if not _memory_suffices(figures, group, nodes):
        return True
    pace = figures.pace(group, nodes)
    if pace is None:
        return False
    rates = ((pace.rates[job.type], job.max_slowdown) for job in group)
    return any(not rate or (most is not None and rate * Fraction(most) < 1) for rate, most in rates)


def _may_share(figures: ColumnFigures, group: Group, nodes: Nodes) -> bool:
    """Tell whether jobs of these types may share GPUs of these nodes."""
    if not _memory_suffices(figures, group, nodes):
        return False
    if len(group) == 1:
        return True
    pace, limit = figures.pace(group, nodes), figures.instance.utilisation_limit
    if pace is None or not all(pace.rates.values()):
        return False
    return limit is None or pace.utilisation <= Fraction(limit)


def _memory_suffices(figures: ColumnFigures, group: Group, nodes: Nodes) -> bool:
    limit = Fraction(figures.gpus[nodes.gpu].memory_gb)
    if len(group) > 1:
        limit *= 1 - Fraction(figures.instance.memory_headroom)
    return sum(Fraction(figures.types[job.type].memory_gb) for job in group) <= limit


def _is_tolerable(figures: ColumnFigures, group: Group, place: ColumnPlace) -> bool:
    """Tell whether every job bears its slowdown and meets its deadline."""
    for job in group:
        slowdown = figures.slowdown(job, group, place)
        if job.max_slowdown is not None and slowdown > Fraction(job.max_slowdown):
            return False
        due = figures.due_s(job)
        if due is not None and figures.work_s(job, place) * slowdown > due:
            return False
    return True


def _column(figures: ColumnFigures, group: Group, place: ColumnPlace) -> GroupColumn:
    phases, level, location = list(figures.phases(group, place)), place.level, place.location
    return GroupColumn(
        jobs=tuple(job.id for job in group),
        nodes=place.nodes.id,
        level=None if level is None else level.id,
        location=None if location is None else location.id,
        gpus=group[0].gpus,
        cost=float(figures.cost(group, place, phases)),
        gpu_w=float(max(watts for _, watts in phases)),
    )
