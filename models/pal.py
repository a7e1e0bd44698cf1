r"""PAL, the specification: which GPUs for each gang job, on a tree of domains.

The placement problem behind PAL ("PAL: A Variability-Aware Policy for Scheduling ML Workloads in
GPU Clusters", SC 2024, arXiv 2408.11919) as a mixed-integer linear program. The policy goes, for
one job after the other, through the products of locality penalty and slowdown (L x V) in ascending
order, and takes the first for which there are enough GPUs. Here these products are columns, on a
tree of any depth, and all jobs choose theirs at once.

Sets, parameters and variables:

=============================  ==================================================================
:math:`j \in J`                jobs: gangs of :math:`k_j` GPUs, of class c and model m
:math:`g \in G`                GPUs that are free
:math:`d \in D`                domains of the topology, each at a level :math:`l(d)`
:math:`b \in B_c`              bins: the distinct slowdowns :math:`v_{cb}` of the free GPUs
:math:`E_{dcb} \subseteq G`    GPUs in d whose slowdown for class c is at most :math:`v_{cb}`
:math:`P_j \subseteq G`        GPUs that a running job holds, if all are free and within its cap
:math:`A_j`                    columns (d, b) of a job, see below
-----------------------------  ------------------------------------------------------------------
:math:`w_j`                    weight
:math:`r_j`                    base time that is left, s; 1 in all jobs if they are not timed
:math:`R_j`                    restart time of a running job, s; 0 for one that waits
:math:`V_{cg}`                 slowdown of a GPU for a class, relative to the median GPU
:math:`L_{ml}`                 penalty of GPUs that meet at level l; monotone towards the root
:math:`\rho_j`                 reward of a job; what it costs to leave it out
-----------------------------  ------------------------------------------------------------------
:math:`y_{jdb}`                1 if job j stands in d, on GPUs of a slowdown up to :math:`v_{cb}`
:math:`s_j`                    1 if a running job keeps its GPUs, where :math:`P_j` exists
:math:`o_j`                    1 if the job is left out, where that is allowed
:math:`x_{jg}`                 1 if the job gets the GPU otherwise than by keeping it
=============================  ==================================================================

.. math::

    \min \quad & \sum_j w_j \sum_{(d,b) \in A_j} \big( r_j L_{m,l(d)} v_{cb} + R_j \big) y_{jdb} \\
               & + \sum_j w_j r_j L_{m,l(P_j)} \max_{g \in P_j} V_{cg}\, s_j
                 + \sum_j \rho_j o_j && \quad \text{(objective)} \\
    \text{s.t.} \quad
    & \sum_{(d,b) \in A_j} y_{jdb} + s_j + o_j = 1 \quad \forall j && \quad \text{(one\_choice)} \\
    & \sum_g x_{jg} = k_j \sum_{(d,b) \in A_j} y_{jdb} \quad \forall j && \quad \text{(gang)} \\
    & x_{jg} \le \sum_{(d,b) \in A_j :\, g \in E_{dcb}} y_{jdb} \quad \forall j, g
      && \quad \text{(inside)} \\
    & \sum_j x_{jg} + \sum_{j :\, g \in P_j} s_j \le 1 \quad \forall g && \quad \text{(one\_job)} \\
    & y, s \in \{0, 1\}, \quad 0 \le x, o \le 1

No product of variables and no big-M: the factors in (gang) and (inside) are true bounds. For whole
y and s, the x form a flow from jobs to GPUs with whole capacities, so they may stay real, and o is
whole by (one_choice).

Why it is exact. A column may overstate a job's level or its slowest GPU, never understate them, and
cost decreases in neither; so the cheapest column of a set of GPUs states what the set costs. So
it is for a job that gets by a column, with :math:`R_j`, the GPUs that it holds: keeping them costs
no more. Hence :math:`A_j` needs only (d, b) with enough GPUs, :math:`|E_{dcb}| \ge k_j`, with a GPU
of slowdown :math:`v_{cb}` itself in d, and with :math:`E_{dcb}` not all in one domain inside d:
otherwise another column allows the same GPUs and costs no more. A hard cap drops the columns of
domains above its level.

A job without a column has :math:`o_j` in any case, at most 0 if jobs may not be left out: then
there is no plan.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from optsched.pal.plan import PalPlan, Placement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.pal.instance import Job, PalInstance


class PlacementColumn(NamedTuple):
    """Where a job may stand: in a domain, at a level, on GPUs of a slowdown up to that of a bin."""

    domain: str
    level: int
    bin: int
    slowdown: float
    gpus: tuple[str, ...]


Columns = dict[tuple[str, int], PlacementColumn]  # by domain and bin


def build(instance: PalInstance) -> pyo.ConcreteModel:
    """Write down the model of an instance: that of this module's docstring.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With variables ``y[job, domain, bin]``, ``stay[job]``, ``left_out[job]`` and
        ``x[job, gpu]``. The objective is in weighted seconds, or a sum of weighted slowdowns where
        jobs are not timed.

    Notes
    -----
    Source: SC'24, arXiv 2408.11919; as a linear program by this project.
    """
    jobs = {job.id: job for job in instance.jobs}
    columns = job_columns(instance)
    allowing = {j: _allowing(columns[j]) for j in jobs}
    staying = {j: column for j, job in jobs.items() if (column := held_column(instance, job))}
    holder = {g: j for j, column in staying.items() for g in column.gpus}
    usable = set(holder).union(*allowing.values())
    may_leave = instance.admission == "optional"
    leaving = [j for j in jobs if may_leave or not (columns[j] or j in staying)]

    m = pyo.ConcreteModel(name="pal")
    m.y = pyo.Var([(j, d, b) for j in jobs for d, b in columns[j]], domain=pyo.Binary)
    m.stay = pyo.Var(list(staying), domain=pyo.Binary)
    m.left_out = pyo.Var(leaving, bounds=(0, 1 if may_leave else 0))
    m.x = pyo.Var([(j, g) for j in jobs for g in allowing[j]], domain=pyo.UnitInterval)

    @m.Expression(list(jobs))
    def newly_placed(m: Any, j: str) -> Any:
        return sum(m.y[j, d, b] for d, b in columns[j])

    @m.Expression(list(jobs))
    def cost(m: Any, j: str) -> Any:
        placed = [_moving(instance, jobs[j], c) * m.y[j, d, b] for (d, b), c in columns[j].items()]
        kept = _running(instance, jobs[j], staying[j]) * m.stay[j] if j in staying else 0
        return sum(placed) + kept + (jobs[j].reward * m.left_out[j] if may_leave else 0)

    m.objective = pyo.Objective(expr=sum(m.cost[j] for j in jobs))

    @m.Constraint(list(jobs))
    def one_choice(m: Any, j: str) -> Any:
        stays = m.stay[j] if j in staying else 0
        is_left = m.left_out[j] if j in leaving else 0
        return m.newly_placed[j] + stays + is_left == 1

    @m.Constraint([j for j in jobs if columns[j]])
    def gang(m: Any, j: str) -> Any:
        return sum(m.x[j, g] for g in allowing[j]) == jobs[j].gpus * m.newly_placed[j]

    @m.Constraint(list(m.x))
    def inside(m: Any, j: str, g: str) -> Any:
        return m.x[j, g] <= sum(m.y[j, d, b] for d, b in allowing[j][g])

    @m.Constraint([g for g in instance.free_gpus if g in usable])
    def one_job(m: Any, g: str) -> Any:
        kept = m.stay[holder[g]] if g in holder else 0
        return sum(m.x[j, g] for j in jobs if g in allowing[j]) + kept <= 1

    return m


def extract(model: pyo.ConcreteModel, instance: PalInstance) -> PalPlan:
    """Read the plan off a solved model.

    GPUs are given out anew, within the columns that y chooses: x may have been real, but for whole
    y a whole flow exists where a real one does.

    Parameters
    ----------
    model
        As `build` made it, its variables set by any solver; they may be off by its tolerances.

    Returns
    -------
    PalPlan
        With every job. Where the gangs do not fit within their columns, which no solution of the
        model allows, some lack GPUs; `optsched.check` tells.

    Raises
    ------
    ValueError
        If a variable has no value.
    """
    columns = job_columns(instance)
    gpus: dict[str, tuple[str, ...]] = {}
    chosen: dict[str, tuple[str, ...]] = {}
    for job in instance.jobs:
        if job.id in model.stay and pyo.value(model.stay[job.id]) > 0.5:
            gpus[job.id] = tuple(job.current)
        for (d, b), column in columns[job.id].items():
            if pyo.value(model.y[job.id, d, b]) > 0.5:
                chosen[job.id] = column.gpus
    kept = {gpu for held in gpus.values() for gpu in held}
    sizes = {job.id: job.gpus for job in instance.jobs if job.id in chosen}
    gpus |= _given_out(sizes, {j: [g for g in chosen[j] if g not in kept] for j in sizes})
    return PalPlan(jobs=tuple(Placement(id=j.id, gpus=gpus.get(j.id, ())) for j in instance.jobs))


def job_columns(instance: PalInstance) -> dict[str, Columns]:
    """Return A: for every job the columns that it may choose."""
    classes = {job.application_class for job in instance.jobs}
    table = {name: list(_class_columns(instance, name)) for name in classes}
    return {
        job.id: {
            (column.domain, column.bin): column
            for column in table[job.application_class]
            if len(column.gpus) >= job.gpus and column.level <= _highest(instance, job)
        }
        for job in instance.jobs
    }


def held_column(instance: PalInstance, job: Job) -> PlacementColumn | None:
    """Return what a running job holds, as a column without a bin; None if it cannot stay there."""
    if not job.current or not set(job.current) <= set(instance.free_gpus):
        return None
    level = instance.topology.lowest_common_level(job.current)
    if level > _highest(instance, job):
        return None
    slowdown, held = _slowdowns(instance, job.application_class), tuple(job.current)
    return PlacementColumn("", level, -1, max(slowdown[gpu] for gpu in held), held)


def _class_columns(instance: PalInstance, name: str) -> Iterator[PlacementColumn]:
    """Yield the columns of a class, whatever the size of a gang."""
    topology, slowdown = instance.topology, _slowdowns(instance, name)
    bins = {v: b for b, v in enumerate(sorted(set(slowdown.values())))}
    for domain in topology.domains:
        inside = [topology.gpus[n] for n in topology.gpus_in(domain.id)]
        inside = sorted((g for g in inside if g in slowdown), key=lambda gpu: slowdown[gpu])
        level = topology.levels.index(domain.level)
        for count, gpu in enumerate(inside, start=1):
            v = slowdown[gpu]
            is_last_of_bin = count == len(inside) or slowdown[inside[count]] > v
            if is_last_of_bin and topology.lowest_common_level(inside[:count]) == level:
                yield PlacementColumn(domain.id, level, bins[v], v, tuple(inside[:count]))


def _slowdowns(instance: PalInstance, name: str) -> dict[str, float]:
    """Return V of a class for every free GPU."""
    known = dict(zip(instance.profile.gpus, instance.profile.slowdown[name], strict=True))
    return {gpu: known[gpu] for gpu in instance.free_gpus}


def _highest(instance: PalInstance, job: Job) -> int:
    levels = instance.topology.levels
    return len(levels) - 1 if job.highest_level is None else levels.index(job.highest_level)


def _running(instance: PalInstance, job: Job, column: PlacementColumn) -> float:
    """Return w r L v: what it costs to run in a column."""
    remaining = 1.0 if job.remaining_s is None else job.remaining_s
    penalty = instance.penalties[job.model][column.level]
    return job.weight * remaining * penalty * column.slowdown


def _moving(instance: PalInstance, job: Job, column: PlacementColumn) -> float:
    """Return w (r L v + R): what it costs to be placed in a column, if not by staying."""
    restart = job.weight * (job.restart_s or 0.0) if job.current else 0.0
    return _running(instance, job, column) + restart


def _allowing(columns: Columns) -> dict[str, list[tuple[str, int]]]:
    """Return, for every GPU of any column, the columns that allow it."""
    allowing: dict[str, list[tuple[str, int]]] = {}
    for key, column in columns.items():
        for gpu in column.gpus:
            allowing.setdefault(gpu, []).append(key)
    return allowing


def _given_out(sizes: dict[str, int], allowed: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """Give jobs of these sizes GPUs that they are allowed: a greatest flow from jobs to GPUs."""
    gpus = list(dict.fromkeys(gpu for group in allowed.values() for gpu in group))
    if not gpus:
        return {}
    vertex = {gpu: 1 + len(sizes) + n for n, gpu in enumerate(gpus)}
    sink = 1 + len(sizes) + len(gpus)
    edges = [(0, n, size) for n, size in enumerate(sizes.values(), start=1)]
    edges += [(n, vertex[g], 1) for n, j in enumerate(sizes, start=1) for g in allowed[j]]
    edges += [(vertex[gpu], sink, 1) for gpu in gpus]
    tails, heads, capacity = np.array(edges, dtype=np.int32).T
    graph = csr_array((capacity, (tails, heads)), shape=(sink + 1, sink + 1))
    flow = maximum_flow(graph, 0, sink).flow
    return {
        j: tuple(gpu for gpu in allowed[j] if flow[n, vertex[gpu]] > 0)
        for n, j in enumerate(sizes, start=1)
    }
