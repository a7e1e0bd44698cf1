"""The method "milp": the formulation of models/pal.py, solved by HiGHS.

It is the second, independent way to an exact answer. The plan is HiGHS' own, or a greedy one where
that is better; of HiGHS' bound as much is stated as can be proven without HiGHS.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.mip.pyomo_model import claimed_bound, disbelieve, run_model
from optsched.models import pal
from optsched.pal.exact import solver as exact
from optsched.pal.greedy import pal_rules
from optsched.pal.plan import PalPlan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.mip import highs
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalCertificate
    from optsched.search import Search


def milp(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Solve the Pyomo formulation with HiGHS, from a greedy plan, and certify the bound.

    Source: PAL, SC'24, arXiv 2408.11919; formulation of `optsched.models.pal`.

    Raises
    ------
    Infeasible
        If HiGHS finds that there is no plan, and that can be proven.
    """
    greedy = pal_rules.quick_start(instance)
    if greedy is not None:
        search.offer(greedy)
    claimed, stated = 0.0, math.inf
    if not search.out_of_time():
        outcome = solve_formulation(instance, search)
        claimed = claimed_bound(search, outcome, 0.0)
        stated = math.inf if outcome.objective is None else outcome.objective
    certificate = exact.certify_claim(instance, search, claimed)
    disbelieve(search, stated, None if certificate is None else certificate.bound, stated)
    return certificate


def solve_formulation(instance: PalInstance, search: Search) -> highs.HighsOutcome:
    """Build the formulation, solve it from the best plan so far, and offer HiGHS' plan."""
    model = pal.build(instance)
    return run_model(
        model,
        lambda: pal.extract(model, instance),
        search,
        lambda variables: _start(model, variables, instance, search),
    )


def ones(model: Any, instance: PalInstance, plan: PalPlan) -> Iterator[Any]:
    """Yield the variables of the formulation that are 1 in a plan; the others are 0."""
    columns = pal.job_columns(instance)
    jobs = {job.id: job for job in instance.jobs}
    for placement in plan.jobs:
        j, gpus = placement.id, set(placement.gpus)
        if not gpus:
            yield model.left_out[j]
        elif gpus == set(jobs[j].current):
            yield model.stay[j]
        else:
            around = [column for column in columns[j].values() if gpus <= set(column.gpus)]
            tightest = min(around, key=lambda column: (column.level, column.slowdown))
            yield model.y[j, tightest.domain, tightest.bin]
            yield from (model.x[j, gpu] for gpu in placement.gpus)


def _start(
    model: Any, variables: list[Any], instance: PalInstance, search: Search
) -> NDArray[np.float64] | None:
    if not isinstance(search.plan, PalPlan):
        return None
    chosen = {id(variable) for variable in ones(model, instance, search.plan)}
    return np.array([float(id(variable) in chosen) for variable in variables])
