r"""EaCO, the specification: which jobs share GPUs so that the work takes least energy.

The problem behind EaCO ("Energy-aware co-location", arXiv 2412.08294), which the paper solves by a
greedy rule, as an integer program: a partition of the jobs into groups, each on GPUs of its own.
All that is not linear - interference, watts, phases, power levels, tolerances - lies in the
columns, which `optsched.models.eaco_columns` writes down.

Sets, parameters and variables:

=============================  ==================================================================
:math:`j \in J`                jobs
:math:`p \in P`                nodes of one kind, each with :math:`K_p` GPUs
:math:`c \in C`                columns: a group :math:`S_c` on nodes p at a power level, with
                               gangs of :math:`g_c` GPUs, at a location or on other GPUs
:math:`C_l \subseteq C`        columns that stay at location l, on its nodes
:math:`C_{pg} \subseteq C`     columns on other GPUs of nodes p, with gangs of g GPUs
:math:`q \in Q_p`              parts of the nodes p: single nodes, or many, see below
-----------------------------  ------------------------------------------------------------------
:math:`\gamma_c`               cost of a column: energy or eq. (1) of the paper, see below
:math:`\pi_j`                  cost of waiting: least energy alone and penalty; if j may wait
:math:`n_q, a_q`               nodes of a part, and how many of them are on now
:math:`k_{gq'q}`               GPUs in part q that a gang of g takes that begins in part q'
:math:`\beta_p, \omega_p`      cost of a node that is on in the epoch, and of waking one
:math:`s_p`                    watts of a node asleep
:math:`h_p`                    watts of a node without jobs, base and bare GPUs, above sleep
:math:`b_p, W_c`               watts of a bare GPU, and greatest watts of each GPU of a column
:math:`W^{\max}`               power cap of the cluster, W
-----------------------------  ------------------------------------------------------------------
:math:`z_c`                    1 if the group runs so
:math:`y_j`                    1 if the job waits, where that is allowed
:math:`u_{gq}`                 how many gangs of g GPUs that do not stay begin in part q
:math:`N_q, V_q`               how many nodes of part q are in use, and how many of them are woken
=============================  ==================================================================

.. math::

    \min \quad & \sum_c \gamma_c z_c + \sum_j \pi_j y_j
                 + \sum_p \sum_{q \in Q_p} \big( \beta_p N_q + \omega_p V_q \big)
                 && \text{(objective)} \\
    \text{s.t.} \quad
    & \sum_{c :\, j \in S_c} z_c + y_j = 1 \quad \forall j && \text{(one\_place)} \\
    & \sum_{c \in C_l} z_c \le 1 \quad \forall l && \text{(one\_stays)} \\
    & \sum_{c \in C_{pg}} z_c = \sum_{q \in Q_p} u_{gq} \quad \forall p, g && \text{(begin)} \\
    & \sum_{g, q'} k_{gq'q} u_{gq'} + \sum_l \sum_{c \in C_l} k_{g_c q_l q} z_c \le K_p N_q
      \quad \forall p, q \in Q_p && \text{(room)} \\
    & V_q \ge N_q - a_q \quad \forall q :\, a_q < n_q && \text{(waking)} \\
    & \sum_p \Big( s_p \nu_p + h_p \sum_{q \in Q_p} N_q \Big)
      + \sum_c g_c (W_c - b_p) z_c \le W^{\max} && \text{(power\_cap)} \\
    & z, y \in \{0, 1\}, \quad 0 \le N_q \le n_q, \quad 0 \le V, u, \quad N, u \text{ whole}

with :math:`\nu_p` nodes in p. Without a power cap there is no (power_cap). Objectives:

- ``run-to-completion``, O1: :math:`\gamma_c = g_c \sum_A \tau_A (W_A + (\text{base} -
  \text{sleep}) / K_p)` over the phases of the column, and :math:`\beta = 0`.
- ``epoch``, O2, of D seconds: :math:`\gamma_c = D g_c (W_c - b_p) - \sum_{j \in S_c} \lambda_j v_j
  (D / \sigma_j - \kappa_j)` with credits :math:`\lambda`, speeds v and, for jobs that are moved,
  :math:`\kappa_j` seconds of migration; :math:`\beta_p = D h_p`; of :math:`\pi` the penalty only.
- ``eaco``: O1 and the jobs' mean time per training epoch, weighted; no job waits.

**Parts.** Which node a group has makes no difference, if it does not stay, but how many are in use,
and how many sleep. If the gangs that fit a node divide each other and :math:`K_p`, and nothing runs
on the nodes p now, they are one part: by falling size, from node 0 on, gangs fill node after node,
since what is left of a node is a multiple of every gang to come. If something runs on them, its
nodes are parts of their own; so are all nodes where sizes do not divide, or where gangs of several
nodes, which follow each other, could be cut in two by what stays. (Five gangs of 3 do not fit two
nodes of 8.) Of nodes that are parts of their own only the first (A + B + 1) L are needed, and those
where something runs: A is how many nodes the gangs of all jobs would take one by one, B on how
many something runs, and L how many the largest gang takes; among these nodes there is always a free
stretch of L. Moving a group to a lower number wakes no more nodes.

The usual compact program, over slots of GPUs instead of groups, is `optsched.models.eaco_pairwise`.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyomo.environ as pyo

from optsched.eaco.plan import EacoPlan, Group
from optsched.models.eaco_columns import columns, empty_w, node_cost, waiting_cost
from optsched.models.eaco_figures import fits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optsched.eaco.instance import EacoInstance, Nodes

Key = tuple[str, int]  # of a part: id of the nodes, and the least number in it


class Part(NamedTuple):
    """Nodes among which it makes no difference where groups begin.

    Attributes
    ----------
    numbers
        Of its nodes, ascending.
    awake
        How many of them are on now.
    """

    numbers: tuple[int, ...]
    awake: int


def build(instance: EacoInstance) -> pyo.ConcreteModel:
    """Write down the model of an instance: that of this module's docstring.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With variables ``z[number of a column]``, ``waits[job]``, ``begins[gang, nodes, part]``,
        ``on[nodes, part]`` and ``woken[nodes, part]``; a part goes by its first node. The columns
        stand in its attribute ``columns``. The objective is in `EacoInstance.unit`.

    Notes
    -----
    Source: EaCO, arXiv 2412.08294; as set partitioning by this project.
    """
    found, pools = columns(instance), {nodes.id: nodes for nodes in instance.nodes}
    places = {place.id: place for place in instance.running}
    parts = {(p, q): part for p in pools for q, part in parts_of(instance, pools[p]).items()}
    waiting = {job.id: waiting_cost(instance, job) for job in instance.jobs}
    beginning = sorted({(c.gpus, c.nodes) for c in found if c.location is None})
    takes = {
        (g, p, q): take
        for g, p in beginning
        for p_, q in parts
        if p_ == p and (take := _take(g, pools[p], q, parts))
    }
    staying = {
        n: _take(c.gpus, pools[c.nodes], places[c.location].node, parts)
        for n, c in enumerate(found)
        if c.location is not None
    }

    m = pyo.ConcreteModel(name="eaco")
    m.columns = found
    m.z = pyo.Var(range(len(found)), domain=pyo.Binary)
    m.waits = pyo.Var([j for j, cost in waiting.items() if cost is not None], domain=pyo.Binary)
    m.begins = pyo.Var(list(takes), domain=pyo.NonNegativeIntegers)
    m.on = pyo.Var(list(parts), domain=pyo.NonNegativeIntegers)
    m.woken = pyo.Var([q for q, part in parts.items() if part.awake < len(part.numbers)])
    for key, part in parts.items():
        m.on[key].setub(len(part.numbers))
    for key in m.woken:
        m.woken[key].setlb(0)
    m.objective = pyo.Objective(expr=_objective(m, instance, waiting))

    @m.Constraint(list(waiting))
    def one_place(m: Any, j: str) -> Any:
        chosen = sum(m.z[n] for n, c in enumerate(found) if j in c.jobs)
        return chosen + (0 if waiting[j] is None else m.waits[j]) == 1

    @m.Constraint([place for place in places if any(c.location == place for c in found)])
    def one_stays(m: Any, location: str) -> Any:
        return sum(m.z[n] for n, c in enumerate(found) if c.location == location) <= 1

    @m.Constraint(beginning)
    def begin(m: Any, g: int, p: str) -> Any:
        fresh = (n for n, c in enumerate(found) if (c.gpus, c.nodes, c.location) == (g, p, None))
        return sum(m.z[n] for n in fresh) == sum(m.begins[k] for k in takes if k[:2] == (g, p))

    @m.Constraint(list(parts))
    def room(m: Any, p: str, q: int) -> Any:
        used = sum(take[p, q] * m.begins[k] for k, take in takes.items() if (p, q) in take)
        kept = sum(take[p, q] * m.z[n] for n, take in staying.items() if (p, q) in take)
        return used + kept <= pools[p].gpus * m.on[p, q]

    @m.Constraint(list(m.woken))
    def waking(m: Any, p: str, q: int) -> Any:
        return m.woken[p, q] >= m.on[p, q] - parts[p, q].awake

    if instance.power_cap_w is not None:
        m.power_cap = pyo.Constraint(expr=_cluster_w(m, instance) <= instance.power_cap_w)
    return m


def extract(model: pyo.ConcreteModel, instance: EacoInstance) -> EacoPlan:
    """Read the plan off a solved model.

    Parameters
    ----------
    model
        As `build` made it, its variables set by any solver; they may be off by its tolerances.

    Returns
    -------
    EacoPlan
        Where there are more groups than begin anywhere, which no solution of the model allows, some
        stand on node 0; `optsched.check` tells.

    Raises
    ------
    ValueError
        If a variable has no value.
    """
    chosen = [c for n, c in enumerate(model.columns) if pyo.value(model.z[n]) > 0.5]
    places = {place.id: place.node for place in instance.running}
    free: dict[tuple[int, str], list[int]] = {}
    for pool in instance.nodes:
        for g, number in _beginnings(model, instance, pool):
            free.setdefault((g, pool.id), []).append(number)
    groups = []
    for c in chosen:
        numbers = free.get((c.gpus, c.nodes)) or [0]
        number = numbers.pop(0) if c.location is None else places[c.location]
        groups.append(
            Group(jobs=c.jobs, nodes=c.nodes, node=number, level=c.level, location=c.location)
        )
    waiting = tuple(j for j in model.waits if pyo.value(model.waits[j]) > 0.5)
    return EacoPlan(groups=tuple(groups), waiting=waiting)


def parts_of(instance: EacoInstance, nodes: Nodes) -> dict[int, Part]:
    """Return Q: the parts of nodes of one kind, by their least numbers."""
    sizes = [job.gpus for job in instance.jobs if fits(job.gpus, nodes)]
    held = _held(instance, nodes)
    ladder = [*sorted({g for g in sizes if g <= nodes.gpus}), nodes.gpus]
    divide = all(large % small == 0 for small, large in pairwise(ladder))
    longest = max([1, *(g // nodes.gpus for g in sizes)])
    if divide and (longest == 1 or not held):
        rest = [n for n in range(nodes.count) if n not in held]
        groups = [[n] for n in sorted(held)] + ([rest] if rest else [])
    else:
        wanted = sum(max(1, g // nodes.gpus) for g in sizes)
        first = range(min(nodes.count, (wanted + len(held) + 1) * longest))
        groups = [[n] for n in sorted({*first, *held})]
    return {g[0]: Part(tuple(g), sum(n < nodes.awake for n in g)) for g in groups}


def _held(instance: EacoInstance, nodes: Nodes) -> set[int]:
    """Return the numbers of nodes on which something runs now."""
    gang = {job.id: job.gpus for job in instance.jobs}
    return {
        place.node + n
        for place in instance.running
        if place.nodes == nodes.id
        for n in range(max(1, gang[place.jobs[0]] // nodes.gpus))
    }


def _take(g: int, nodes: Nodes, first: int, parts: Mapping[Key, Part]) -> dict[Key, int]:
    """Return k: how many GPUs a gang takes in which parts, if it begins in one of them.

    Nothing if it would end beyond the last node.
    """
    if g <= nodes.gpus or len(parts[nodes.id, first].numbers) > 1:
        return {(nodes.id, first): g}
    keys = [(nodes.id, first + n) for n in range(g // nodes.gpus)]
    return dict.fromkeys(keys, nodes.gpus) if all(key in parts for key in keys) else {}


def _objective(m: Any, instance: EacoInstance, waiting: Mapping[str, float | None]) -> Any:
    costs = {nodes.id: node_cost(instance, nodes) for nodes in instance.nodes}
    groups = sum(c.cost * m.z[n] for n, c in enumerate(m.columns))
    waits = sum((waiting[j] or 0) * m.waits[j] for j in m.waits)
    on = sum(costs[p][0] * m.on[p, q] for p, q in m.on if costs[p][0])
    return groups + waits + on + sum(costs[p][1] * m.woken[p, q] for p, q in m.woken)


def _cluster_w(m: Any, instance: EacoInstance) -> Any:
    """Return the watts of the cluster if every group had its greatest at once."""
    bare = {gpu.id: gpu.power.bare_w for gpu in instance.gpu_types}
    above = {nodes.id: float(empty_w(instance, nodes)) for nodes in instance.nodes}
    bare_in = {nodes.id: bare[nodes.gpu] for nodes in instance.nodes}
    watts = sum(c.gpus * (c.gpu_w - bare_in[c.nodes]) * m.z[n] for n, c in enumerate(m.columns))
    return float(instance.idle_floor_w) + sum(above[p] * m.on[p, q] for p, q in m.on) + watts


def _beginnings(model: Any, instance: EacoInstance, nodes: Nodes) -> Iterator[tuple[int, int]]:
    """Yield the size of every gang that does not stay, and the node on which it begins."""
    for q, part in parts_of(instance, nodes).items():
        free = dict.fromkeys(part.numbers, nodes.gpus)
        begins = [k for k in model.begins if k[1:] == (nodes.id, q)]
        for key in sorted(begins, reverse=True):
            for _ in range(round(pyo.value(model.begins[key]))):
                yield key[0], _next(key[0], nodes, free)


def _next(g: int, nodes: Nodes, free: dict[int, int]) -> int:
    """Take GPUs of the first nodes that have enough; of the last one if none has."""
    need = min(g, nodes.gpus)
    found = next((n for n in free if free[n] >= need), max(free))
    for n in range(found, found + max(1, g // nodes.gpus)):
        free[n] = free.get(n, 0) - need
    return found
