r"""EaCO, the specification: which jobs share GPUs so that the work takes least energy.

The problem behind EaCO ("EaCO: Resource Sharing Dynamics and Its Impact on Energy Efficiency for
DNN Training", arXiv 2412.08294), which the paper solves by a greedy rule, as an integer program: a
partition of the jobs into groups, each on GPUs of its own. All that is not linear (interference,
watts, phases, power levels, tolerances) lies in the columns, which `optsched.models.eaco_columns`
writes down.

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
                 && \quad \text{(objective)} \\
    \text{s.t.} \quad
    & \sum_{c :\, j \in S_c} z_c + y_j = 1 \quad \forall j && \quad \text{(one\_place)} \\
    & \sum_{c \in C_l} z_c \le 1 \quad \forall l && \quad \text{(one\_stays)} \\
    & \sum_{c \in C_{pg}} z_c = \sum_{q \in Q_p} u_{gq} \quad \forall p, g && \quad\text{(begin)} \\
    & \sum_{g, q'} k_{gq'q} u_{gq'} + \sum_l \sum_{c \in C_l} k_{g_c q_l q} z_c \le K_p N_q
      \quad \forall p, q \in Q_p && \quad \text{(room)} \\
    & V_q \ge N_q - a_q \quad \forall q :\, a_q < n_q && \quad \text{(waking)} \\
    & \sum_p \Big( s_p \nu_p + h_p \sum_{q \in Q_p} N_q \Big)
      + \sum_c g_c (W_c - b_p) z_c \le W^{\max} && \quad \text{(power\_cap)} \\
    & z, y \in \{0, 1\}, \quad 0 \le N_q \le n_q, \quad 0 \le V, u, \quad N, u \text{ whole}

with :math:`\nu_p` nodes in p. Without a power cap there is no (power_cap). Objectives:

- ``run-to-completion``, O1: :math:`\gamma_c = g_c \sum_A \tau_A (W_A + (\text{base} -
  \text{sleep}) / K_p)` over the phases of the column, and :math:`\beta = 0`.
- ``epoch``, O2, of D seconds: :math:`\gamma_c = D g_c (W_c - b_p) - \sum_{j \in S_c} \lambda_j v_j
  (D / \sigma_j - \kappa_j)` with credits :math:`\lambda`, speeds v and, for jobs that are moved,
  :math:`\kappa_j` seconds of migration; :math:`\beta_p = D h_p`; of :math:`\pi` the penalty only.
- ``eaco``: O1 and the jobs' mean time per training epoch, weighted; no job waits.

**Parts.** Which nodes must be told apart: `optsched.models.eaco_nodes`.

The usual compact program is over slots of GPUs instead of groups: tests solve it as an oracle.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyomo.environ as pyo

from optsched.eaco.plan import EacoPlan, Group
from optsched.models.eaco_columns import columns, empty_w, node_cost, waiting_cost
from optsched.models.eaco_nodes import beginnings, parts_of, take

if TYPE_CHECKING:
    from optsched.eaco.instance import EacoInstance, Nodes
    from optsched.models.eaco_columns import GroupColumn
    from optsched.models.eaco_nodes import Key, NodePart


class Data(NamedTuple):
    """What the rows are made of.

    Attributes
    ----------
    columns
        C.
    pools, parts
        Nodes by id, and Q by nodes and least number.
    starts
        By gang size, nodes and part: what a gang that begins there takes in which parts.
    stays
        The same by the number of a column that stays.
    waiting
        By job what it costs to wait; None if it must not.
    """

    columns: list[GroupColumn]
    pools: dict[str, Nodes]
    parts: dict[Key, NodePart]
    starts: dict[tuple[int, str, int], dict[Key, int]]
    stays: dict[int, dict[Key, int]]
    waiting: dict[str, float | None]


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
    data = _data(instance)
    m = pyo.ConcreteModel(name="eaco")
    m.columns = data.columns
    _variables(m, instance, data)
    m.objective = pyo.Objective(expr=_objective(m, instance, data))
    _choices(m, data)
    _packing(m, data)
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
        for q, part in parts_of(instance, pool).items():
            begun = {
                k: round(pyo.value(model.begins[k])) for k in model.begins if k[1:] == (pool.id, q)
            }
            gangs = [g for (g, *_), times in begun.items() for _ in range(times)]
            for g, number in beginnings(pool, part, gangs):
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


def _data(instance: EacoInstance) -> Data:
    every, pools = columns(instance), {nodes.id: nodes for nodes in instance.nodes}
    parts = {(p, q): part for p in pools for q, part in parts_of(instance, pools[p]).items()}
    node = {place.id: place.node for place in instance.running}
    starts = {
        (g, p, q): taken
        for g, p in sorted({(c.gpus, c.nodes) for c in every if c.location is None})
        for q in (number for name, number in parts if name == p)
        if (taken := take(g, pools[p], q, parts))
    }
    stays = {
        n: take(c.gpus, pools[c.nodes], node[c.location], parts)
        for n, c in enumerate(every)
        if c.location is not None
    }
    waiting = {job.id: waiting_cost(instance, job) for job in instance.jobs}
    return Data(every, pools, parts, starts, stays, waiting)


def _variables(m: Any, instance: EacoInstance, data: Data) -> None:
    may_wait = [j for j, cost in data.waiting.items() if cost is not None]
    asleep = [key for key, part in data.parts.items() if part.awake < len(part.numbers)]
    m.z = pyo.Var(range(len(data.columns)), domain=pyo.Binary)
    m.waits = pyo.Var(may_wait, domain=pyo.Binary)
    m.begins = pyo.Var(list(data.starts), domain=pyo.NonNegativeIntegers)
    m.on = pyo.Var(list(data.parts), domain=pyo.NonNegativeIntegers)
    m.woken = pyo.Var(asleep, bounds=(0, None))
    for key, part in data.parts.items():
        m.on[key].setub(len(part.numbers))
    for g, p, q in m.begins:
        most = len(data.parts[p, q].numbers) * max(1, data.pools[p].gpus // g)
        m.begins[g, p, q].setub(min(most, sum(job.gpus == g for job in instance.jobs)))


def _choices(m: Any, data: Data) -> None:
    """Write down the rows of jobs and locations."""
    of_job: dict[str, list[Any]] = {j: [] for j in data.waiting}
    of_location: dict[str, list[Any]] = {}
    for n, c in enumerate(data.columns):
        for j in c.jobs:
            of_job[j].append(m.z[n])
        if c.location is not None:
            of_location.setdefault(c.location, []).append(m.z[n])

    @m.Constraint(list(of_job))
    def one_place(m: Any, j: str) -> Any:
        return sum(of_job[j]) + (0 if data.waiting[j] is None else m.waits[j]) == 1

    @m.Constraint(list(of_location))
    def one_stays(m: Any, location: str) -> Any:
        return sum(of_location[location]) <= 1


def _packing(m: Any, data: Data) -> None:
    """Write down the rows of nodes."""
    fresh: dict[tuple[int, str], list[Any]] = {}
    for n, c in enumerate(data.columns):
        if c.location is None:
            fresh.setdefault((c.gpus, c.nodes), []).append(m.z[n])

    @m.Constraint(sorted(fresh))
    def begin(m: Any, g: int, p: str) -> Any:
        return sum(fresh[g, p]) == sum(m.begins[k] for k in data.starts if k[:2] == (g, p))

    @m.Constraint(list(data.parts))
    def room(m: Any, *key: Any) -> Any:
        begun = sum(taken[key] * m.begins[k] for k, taken in data.starts.items() if key in taken)
        kept = sum(taken[key] * m.z[n] for n, taken in data.stays.items() if key in taken)
        return begun + kept <= data.pools[key[0]].gpus * m.on[key]

    @m.Constraint(list(m.woken))
    def waking(m: Any, *key: Any) -> Any:
        return m.woken[key] >= m.on[key] - data.parts[key].awake


def _objective(m: Any, instance: EacoInstance, data: Data) -> Any:
    costs = {nodes.id: node_cost(instance, nodes) for nodes in instance.nodes}
    groups = sum(c.cost * m.z[n] for n, c in enumerate(m.columns))
    waits = sum((data.waiting[j] or 0) * m.waits[j] for j in m.waits)
    on = sum(costs[p][0] * m.on[p, q] for p, q in m.on if costs[p][0])
    return groups + waits + on + sum(costs[p][1] * m.woken[p, q] for p, q in m.woken)


def _cluster_w(m: Any, instance: EacoInstance) -> Any:
    """Return the watts of the cluster if every group had its greatest at once."""
    bare = {gpu.id: gpu.power.bare_w for gpu in instance.gpu_types}
    above = {nodes.id: float(empty_w(instance, nodes)) for nodes in instance.nodes}
    bare_in = {nodes.id: bare[nodes.gpu] for nodes in instance.nodes}
    watts = sum(c.gpus * (c.gpu_w - bare_in[c.nodes]) * m.z[n] for n, c in enumerate(m.columns))
    return float(instance.idle_floor_w) + sum(above[p] * m.on[p, q] for p, q in m.on) + watts
