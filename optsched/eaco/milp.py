"""Mixed-integer programming by HiGHS (Huangfu & Hall, Math. Programming Computation 10, 2018).

The method "milp", of the formulation in models/eaco.py, is the second, independent way to an exact
answer. The plan is HiGHS' own, or a greedy one where that is better; of HiGHS' bound as much is
stated as can be proven without HiGHS.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.eaco.exact import listed_groups
from optsched.eaco.greedy import methods
from optsched.eaco.group_figures import JOULES_PER_KWH
from optsched.eaco.plan import EacoPlan
from optsched.mip.pyomo_model import claimed_bound, disbelieve, run_model
from optsched.models import eaco
from optsched.models.eaco_nodes import parts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoCertificate
    from optsched.mip import highs
    from optsched.search import Search


def milp(instance: EacoInstance, search: Search) -> EacoCertificate | None:
    """Solve the Pyomo formulation with HiGHS, from a greedy plan, and certify the bound.

    Source: EaCO, arXiv 2412.08294; formulation of `optsched.models.eaco`.

    Raises
    ------
    Infeasible
        If HiGHS finds that there is no plan, and that can be proven.
    """
    greedy = methods.quick_start(instance)
    if greedy is not None:
        search.offer(greedy)
    claimed, stated = -math.inf, math.inf
    if not search.out_of_time():
        outcome = solve_formulation(instance, search)
        claimed = claimed_bound(search, outcome, -math.inf)
        stated = math.inf if outcome.objective is None else outcome.objective
    certificate = listed_groups.certify_claim(instance, search, claimed)
    terms = abs(stated) + _cancelling(instance)
    disbelieve(search, stated, None if certificate is None else certificate.bound, terms)
    return certificate


def solve_formulation(instance: EacoInstance, search: Search) -> highs.HighsOutcome:
    """Build the formulation, solve it from the best plan so far, and offer HiGHS' plan."""
    model = eaco.build(instance)
    return run_model(
        model,
        lambda: eaco.extract(model, instance),
        search,
        lambda variables: _start(model, variables, instance, search),
    )


def values(model: Any, instance: EacoInstance, plan: EacoPlan) -> Counter[Any] | None:
    """Return the values of the formulation's variables in a plan by index; others are 0.

    None if a group stands on a node that the formulation leaves out.
    """
    number = {(frozenset(c.jobs), *c[1:4]): n for n, c in enumerate(model.columns)}
    gang = {job.id: job.gpus for job in instance.jobs}
    pools = {nodes.id: nodes for nodes in instance.nodes}
    parts = {
        (pool.id, n): (q, part)
        for pool in instance.nodes
        for q, part in parts_of(instance, pool).items()
        for n in part.numbers
    }
    point = Counter[Any]({("waits", name): 1 for name in plan.waiting})
    used = set()
    for group in plan.groups:
        key = (frozenset(group.jobs), group.nodes, group.level, group.location)
        gpus, each = gang[group.jobs[0]], pools[group.nodes].gpus
        on = {(group.nodes, group.node + n) for n in range(max(1, gpus // each))}
        if not on <= set(parts):
            return None
        used |= on
        point["z", number[key]] = 1
        if group.location is None:
            point["begins", (gpus, group.nodes, parts[group.nodes, group.node][0])] += 1
    for name, n in used:
        point["on", (name, parts[name, n][0])] += 1
    for (name, n), (q, part) in parts.items():
        if n == q and part.awake < len(part.numbers):
            point["woken", (name, q)] = max(0, point["on", (name, q)] - part.awake)
    return point


def _start(
    model: Any, variables: list[Any], instance: EacoInstance, search: Search
) -> NDArray[np.float64] | None:
    if not isinstance(search.plan, EacoPlan):
        return None
    point = values(model, instance, search.plan)
    if point is None:
        return None
    keys = ((v.parent_component().name, v.index()) for v in variables)
    return np.array([float(point[key]) for key in keys])


def _cancelling(instance: EacoInstance) -> float:
    """Return the size of what cancels in the objective 'epoch', power and credits; else 0."""
    if instance.objective != "epoch":
        return 0.0
    most = max(gpu.power.peak_w for gpu in instance.gpu_types)
    watts = sum(max(job.gpus * most, job.work_credit_w or 0.0) for job in instance.jobs)
    return float(instance.per_kwh) * watts * (instance.epoch_s or 0.0) / JOULES_PER_KWH
