r"""EaCO, the compact pairwise program: slots of GPUs and pairs of jobs, instead of groups.

A second, small formulation to compare `optsched.models.eaco` with. It can express costs of pairs
only, and its relaxation is weak. It is defined where at most two jobs share GPUs, all gangs are of
one size, there is one kind of nodes, and nothing runs yet; no power levels, no power cap.

=============================  ==================================================================
:math:`i, j \in J`             jobs
:math:`k = 0, 1, \dots`        slots: sets of as many GPUs as a gang needs
:math:`\gamma_i, \gamma_{ij}`  costs of a job and of a pair on GPUs of their own
:math:`\beta, \omega`          cost of a node that is on, and of waking one; a of them are on now
:math:`g, K'`                  size of a gang, and GPUs of a node that gangs of it can use
-----------------------------  ------------------------------------------------------------------
:math:`x_{ik}`                 1 if job i is in slot k
:math:`q_{ijk}`                1 if jobs i and j are
:math:`s_k, y_i`               1 if the slot is in use; 1 if the job waits
:math:`N, V`                   nodes in use, and nodes that are woken
=============================  ==================================================================

.. math::

    \min \quad & \sum_{i,k} \gamma_i x_{ik} + \sum_{i<j,k} (\gamma_{ij} - \gamma_i - \gamma_j)
                 q_{ijk} + \sum_i \pi_i y_i + \beta N + \omega V && \text{(objective)} \\
    \text{s.t.} \quad
    & \sum_k x_{ik} + y_i = 1 \quad \forall i && \text{(one\_slot)} \\
    & \sum_i x_{ik} \le m\, s_k, \quad s_{k+1} \le s_k \quad \forall k
      && \text{(slot, order)} \\
    & q_{ijk} \le x_{ik}, \; q_{ijk} \le x_{jk}, \; q_{ijk} \ge x_{ik} + x_{jk} - 1
      && \text{(first, second, both)} \\
    & g \sum_k s_k \le K' N, \quad V \ge N - a && \text{(nodes, waking)}

with :math:`q_{ijk} = 0` for pairs that are not allowed, and :math:`x, s, y \in \{0, 1\}`.

Source: optsched; the weaker way by far: docs/math/eaco.md, 'Set partitioning'.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo

from optsched.models.eaco_columns import columns, node_cost, waiting_cost

if TYPE_CHECKING:
    from optsched.eaco.instance import EacoInstance


def build_pairwise(instance: EacoInstance) -> pyo.ConcreteModel:
    """Write down the compact model of an instance: that of this module's docstring.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With variables ``x[job, slot]``, ``q[job, job, slot]``, ``s[slot]``, ``waits[job]``, ``on``
        and ``woken``. The objective is in `EacoInstance.unit`.

    Raises
    ------
    ValueError
        If the instance has what the model cannot express.
    """
    _refuse(instance)
    jobs, nodes, gang = [j.id for j in instance.jobs], instance.nodes[0], instance.jobs[0].gpus
    cost = {c.jobs: c.cost for c in columns(instance)}
    waiting = {job.id: waiting_cost(instance, job) for job in instance.jobs}
    usable = nodes.gpus - nodes.gpus % min(gang, nodes.gpus)  # of a node, for gangs of that size
    slots = range(min(len(jobs), nodes.count * usable // gang))
    pairs = [(i, j, k) for i, j in combinations(jobs, 2) for k in slots]
    on_cost, waking_cost = node_cost(instance, nodes)

    m = pyo.ConcreteModel(name="eaco_pairwise")
    m.x = pyo.Var([(i, k) for i in jobs for k in slots], domain=pyo.Binary)
    m.q = pyo.Var([(i, j, k) for i, j, k in pairs if (i, j) in cost], bounds=(0, 1))
    m.s = pyo.Var(slots, domain=pyo.Binary)
    m.waits = pyo.Var([j for j in jobs if waiting[j] is not None], domain=pyo.Binary)
    m.on = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, nodes.count))
    m.woken = pyo.Var(domain=pyo.NonNegativeReals)

    alone = sum(cost[i,] * m.x[i, k] for i, k in m.x)
    shared = sum((cost[i, j] - cost[i,] - cost[j,]) * m.q[i, j, k] for i, j, k in m.q)
    waits = sum((waiting[j] or 0) * m.waits[j] for j in m.waits)
    m.objective = pyo.Objective(
        expr=alone + shared + waits + on_cost * m.on + waking_cost * m.woken
    )

    @m.Constraint(jobs)
    def one_slot(m: Any, i: str) -> Any:
        return sum(m.x[i, k] for k in slots) + (0 if waiting[i] is None else m.waits[i]) == 1

    @m.Constraint(slots)
    def slot(m: Any, k: int) -> Any:
        return sum(m.x[i, k] for i in jobs) <= instance.max_jobs_per_gpu * m.s[k]

    @m.Constraint(slots[1:])
    def order(m: Any, k: int) -> Any:
        return m.s[k] <= m.s[k - 1]

    @m.Constraint(list(m.q))
    def first(m: Any, i: str, j: str, k: int) -> Any:
        return m.q[i, j, k] <= m.x[i, k]

    @m.Constraint(list(m.q))
    def second(m: Any, i: str, j: str, k: int) -> Any:
        return m.q[i, j, k] <= m.x[j, k]

    @m.Constraint(pairs)
    def both(m: Any, i: str, j: str, k: int) -> Any:
        return (m.q[i, j, k] if (i, j) in cost else 0) >= m.x[i, k] + m.x[j, k] - 1

    m.nodes = pyo.Constraint(expr=gang * sum(m.s[k] for k in slots) <= usable * m.on)
    m.waking = pyo.Constraint(expr=m.woken >= m.on - nodes.awake)
    return m


def _refuse(instance: EacoInstance) -> None:
    """Refuse what the model cannot express."""
    has = {
        f"{instance.max_jobs_per_gpu} jobs per GPU": instance.max_jobs_per_gpu > 2,
        "gangs of several sizes": len({job.gpus for job in instance.jobs}) > 1,
        "several kinds of nodes": len(instance.nodes) > 1,
        "running jobs": bool(instance.running),
        "power levels": any(gpu.levels for gpu in instance.gpu_types),
        "a power cap": instance.power_cap_w is not None,
    }
    reasons = [reason for reason, is_present in has.items() if is_present]
    if reasons:
        text = f"{instance.name}: the pairwise model cannot express " + ", ".join(reasons)
        raise ValueError(text)
