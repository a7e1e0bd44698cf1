"""The method "milp": the formulation of models/pal.py, solved by HiGHS.

It is the second, independent way to an exact answer. The plan is HiGHS' own, or a greedy one where
that is better; of HiGHS' bound as much is stated as can be proven without HiGHS.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched import highs
from optsched.models import pal
from optsched.pal import exact, heuristics
from optsched.pal.plan import PalPlan
from optsched.solve import SolverDisagreement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalCertificate
    from optsched.solve import Search

# HiGHS is asked for a little more than the gap, so that rounding its bound down cannot miss it.
GAP_SHARE = 0.9
DISAGREEMENT = 1e-6  # between HiGHS and what is proven: more than its tolerances explain


def milp(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Solve the Pyomo formulation with HiGHS, from a greedy plan, and certify the bound.

    Source: PAL, SC'24, arXiv 2408.11919; formulation of `optsched.models.pal`.

    Raises
    ------
    Infeasible
        If HiGHS finds that there is no plan, and that can be proven.
    SolverDisagreement
        If HiGHS contradicts what can be proven without it.
    """
    greedy = heuristics.quick_start(instance)
    if greedy is not None:
        search.offer(greedy)
    claimed, stated = 0.0, math.inf
    if not search.out_of_time():
        outcome = solve_formulation(instance, search)
        claimed = _claimed(search, outcome)
        stated = math.inf if outcome.objective is None else outcome.objective
    certificate = exact.certify_claim(instance, search, claimed)
    bound = None if certificate is None else certificate.bound
    if bound is not None and bound > stated * (1 + DISAGREEMENT):
        raise SolverDisagreement(
            f"{instance.name}: HiGHS states the objective {stated!r}, "
            f"but every plan has at least {bound!r}"
        )
    return certificate


def solve_formulation(instance: PalInstance, search: Search) -> highs.Outcome:
    """Build the formulation, solve it from the best plan so far, and offer HiGHS' plan."""
    model = pal.build(instance)
    compiled = highs.compile_model(model)
    outcome = highs.solve(
        compiled.program,
        time_limit_s=search.seconds_left(),
        gap=GAP_SHARE * search.gap,
        seed=search.seed,
        threads=search.threads,
        start=_start(model, compiled.variables, instance, search),
    )
    if outcome.x is not None:
        for variable, x in zip(compiled.variables, outcome.x.tolist(), strict=True):
            variable.set_value(x, skip_validation=True)
        search.offer(pal.extract(model, instance))
    return outcome


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


def _claimed(search: Search, outcome: highs.Outcome) -> float:
    """Return the bound that is worth proving, and note why HiGHS ended early, if it did."""
    if outcome.status == "optimal":
        return outcome.bound
    if outcome.status == "infeasible":
        return math.inf
    if outcome.status == "limit":
        search.stopped = "time limit"
        return max(outcome.bound, 0.0)
    if outcome.status == "interrupted":
        search.stopped = "interrupted"
    else:
        search.stopped = f"HiGHS ends with '{outcome.message}'"
    return 0.0
