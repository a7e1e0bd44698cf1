r"""Sia, the specification: one configuration for each job in a round, or to wait.

The integer program of Sia's scheduling policy (Jayaram Subramanya et al., "Sia:
Heterogeneity-aware, goodput-optimized ML-cluster scheduling", SOSP 2023, section 3.4), with a power
below 0: then its normalised goodputs are costs, to be minimised, as in the released code
(siasosp23/artifacts, sia-simulator/sia.py).

Sets, parameters and variables:

=============================  ==================================================================
:math:`j \in J`                jobs
:math:`c \in C_j`              configurations that job j may have: a GPU type t and n GPUs of it
:math:`t \in T`                types of GPUs
-----------------------------  ------------------------------------------------------------------
:math:`v_{jc}`                 goodput, above 0
:math:`f_{jc}`                 restart factor: 1 for a job that waits, and for its current
                               configuration; else what a restart leaves of the goodput, in [0, 1]
:math:`p`                      power, below 0
:math:`\lambda`                cost of waiting
:math:`n_{jc}, t_{jc}`         number and type of the configuration's GPUs
:math:`b_t`                    GPUs of a type
-----------------------------  ------------------------------------------------------------------
:math:`x_{jc}`                 1 if job j gets configuration c
:math:`o_j`                    1 if it waits; for jobs that may
=============================  ==================================================================

.. math::

    \min \quad & \sum_j \Big( \sum_{c \in C_j} g_{jc}\, x_{jc} + \lambda\, o_j \Big)
               && \quad \text{(objective)} \\
    \text{s.t.} \quad
    & \sum_{c \in C_j} x_{jc} + o_j = 1 \quad \forall j && \quad \text{(one\_choice)} \\
    & \sum_j \sum_{c \in C_j :\, t_{jc} = t} n_{jc}\, x_{jc} \le b_t \quad \forall t
      && \quad \text{(gpus)} \\
    & x, o \in \{0, 1\}

with the costs

.. math::

    g_{jc} = \min\left( \Big( \max\big(f_{jc} v_{jc} / \min_{c'} v_{jc'},\, 10^{-4}\big) \Big)^p,\;
             3000 \right) \quad \text{rounded to hundredths.}

A job that is not preemptible has only its current configuration, and neither it nor one that must
run has :math:`o_j`.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo

from optsched.sia.plan import Assignment, SiaPlan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.sia.instance import SiaInstance, SiaJob


def build(instance: SiaInstance) -> pyo.ConcreteModel:
    """Write down the model of an instance: that of this module's docstring.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With variables ``x[job, type, GPUs]`` and ``waits[job]``.
    """
    rows = list(_costs(instance))
    costs = {(job, name, gpus): cost for job, name, gpus, cost in rows}
    of_job: dict[str, list[Any]] = {job.id: [] for job in instance.jobs}
    of_type: dict[str, list[Any]] = {name: [] for name in instance.gpus}
    for key in costs:
        of_job[key[0]].append(key)
        of_type[key[1]].append(key)
    waiting = [job.id for job in instance.jobs if job.preemptible and not job.must_run]

    m = pyo.ConcreteModel(name="sia")
    m.x = pyo.Var(list(costs), domain=pyo.Binary)
    m.waits = pyo.Var(waiting, domain=pyo.Binary)
    m.objective = pyo.Objective(
        expr=sum(cost * m.x[key] for key, cost in costs.items())
        + instance.waiting_cost * sum(m.waits[j] for j in waiting)
    )
    may_wait = set(waiting)

    @m.Constraint(list(of_job))
    def one_choice(m: Any, j: str) -> Any:
        return sum(m.x[key] for key in of_job[j]) + (m.waits[j] if j in may_wait else 0) == 1

    @m.Constraint([name for name, keys in of_type.items() if keys])
    def gpus(m: Any, t: str) -> Any:
        return sum(key[2] * m.x[key] for key in of_type[t]) <= instance.gpus[t]

    return m


def extract(model: pyo.ConcreteModel, instance: SiaInstance) -> SiaPlan:
    """Read the plan off a solved model; a job without a configuration waits.

    Raises
    ------
    ValueError
        If a variable has no value.
    """
    chosen = {key[0]: key for key in model.x if pyo.value(model.x[key]) > 0.5}
    rows = (chosen.get(job.id, (job.id, None, 0)) for job in instance.jobs)
    return SiaPlan(jobs=tuple(Assignment(id=j, type=t, gpus=n) for j, t, n in rows))


def _costs(instance: SiaInstance) -> Iterator[tuple[str, str, int, float]]:
    """Yield job, type, number of GPUs and cost g of every configuration that a job may have."""
    for job in instance.jobs:
        least = min(each.goodput for each in job.configurations)
        for each in job.configurations:
            moves = job.current is not None and not _is_current(job, each.type, each.gpus)
            if moves and not job.preemptible:
                continue
            ratio = each.goodput / least * (job.restart_factor if moves else 1.0)
            yield job.id, each.type, each.gpus, _cost(ratio, instance.power)


def _is_current(job: SiaJob, name: str, gpus: int) -> bool:
    return job.current is not None and (job.current.type, job.current.gpus) == (name, gpus)


def _cost(ratio: float, power: float) -> float:
    try:
        cost: float = max(ratio, 1e-4) ** power
    except OverflowError:  # beyond all floats
        cost = 3000.0
    return round(100 * min(cost, 3000.0)) / 100
