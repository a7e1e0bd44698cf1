"""The method "milp": the formulation of models/boa.py, solved by HiGHS.

It is the second, independent way to an exact answer. The plan is HiGHS' own, or a greedy one where
that is better; of HiGHS' bound as much is stated as can be proven without HiGHS.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.boa.exact import solver as exact
from optsched.boa.exact.certificate_writer import least_use
from optsched.boa.exact.one_width_per_class import class_width
from optsched.boa.greedy.methods import same_k
from optsched.boa.plan import BoaPlan
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import feasibility
from optsched.mip import highs
from optsched.mip.pyomo_model import claimed_bound, disbelieve, extracted
from optsched.models import boa

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance
    from optsched.boa.plan import BoaCertificate
    from optsched.documents.arrays import Floats
    from optsched.search import Search


def milp(instance: BoaInstance, search: Search) -> BoaCertificate | None:
    """Solve the Pyomo formulation with HiGHS, from the best greedy plan, and certify the bound.

    Source: EPEW'24 problem (3); formulations A2 to A5 of `optsched.models.boa`.

    Raises
    ------
    ValueError
        If widths are continuous.
    """
    model = boa.build(instance)
    same_k(instance, search)
    class_width(instance, search)
    bound, objective = 0.0, np.inf
    if not search.out_of_time():
        bound, objective = _solve(instance, search, model)
    if search.plan is None:
        return None  # `solver.certify` brings a plan, or proves that there is none
    certificate = exact.prove_integer(instance, search, bound)
    disbelieve(search, objective, certificate.bound, objective)
    return certificate


def _solve(instance: BoaInstance, search: Search, model: Any) -> tuple[float, float]:
    """Offer HiGHS' plan; return the bound that HiGHS claims and the objective that it states."""
    compiled = highs.compile_model(model)
    limit = model.target if instance.budget is None else model.budget
    row = next(n for n, constraint in enumerate(compiled.constraints) if constraint is limit)
    program, bound, step = compiled.program, 0.0, 0.0
    for attempt in range(SETTINGS.highs_attempts):
        outcome = highs.solve(
            program,
            time_limit_s=search.seconds_left(),
            gap=SETTINGS.highs_gap_share * search.gap,
            seed=search.seed,
            threads=search.threads,
            start=_start(model, compiled.variables, search),
            keep_best=True,
        )
        if outcome.status == "interrupted":
            search.interrupt()
        if attempt == 0:
            bound = _claimed(instance, search, outcome)
        if outcome.x is None or outcome.objective is None:
            break
        plan = extracted(compiled.variables, outcome.x, lambda: boa.extract(model, instance))
        if plan is None:
            break
        if search.offer(plan):
            return bound, outcome.objective
        if search.stopped:
            break
        step += _excess(instance, plan) * SETTINGS.highs_growth**attempt
        program = _drawn_in(compiled.program, row, step)
    return bound, np.inf


def _start(model: Any, variables: list[Any], search: Search) -> Floats | None:
    """Return the values of w and y for the best plan so far, if it has one width per phase."""
    plan = search.plan
    if not isinstance(plan, BoaPlan) or any(len(c.sequences) > 1 for c in plan.classes):
        return None
    chosen = {
        (c.id, e, k if c.sequences[0].offers is None else f"{k} x {c.sequences[0].offers[e]}")
        for c in plan.classes
        for e, k in enumerate(c.sequences[0].gpus)
    }

    def value(variable: Any) -> float:
        i, e, k = variable.index()
        keeps = variable.parent_component() is model.y and (i, e - 1, k) in chosen
        return float((i, e, k) in chosen and not keeps)

    return np.array([value(variable) for variable in variables])


def _claimed(instance: BoaInstance, search: Search, outcome: highs.HighsOutcome) -> float:
    """Return the bound that is worth proving, and note why HiGHS ended early, if it did."""
    claimed = claimed_bound(search, outcome, 0.0)
    if np.isfinite(claimed):
        return claimed
    least, limit = least_use(instance), feasibility.limit(instance)
    if least * (1 + Fraction(SETTINGS.disagreement)) < limit:
        unit = feasibility.limit_divisor(instance)
        search.disbelieved = (
            f"HiGHS finds no plan, but one needs only {float(least / unit)!r} "
            f"of the limit {float(limit / unit)!r}"
        )
    return 0.0


def _excess(instance: BoaInstance, plan: BoaPlan) -> float:
    """Return how far to draw in the limit, in its unit, so that HiGHS drops this plan."""
    figures = feasibility.performance(instance, plan)
    used = figures.mean_rent if instance.target_mean_jct_s is None else figures.mean_jct_s
    limit = float(feasibility.limit(instance) / feasibility.limit_divisor(instance))
    if instance.widths == "integer":  # the plan cannot move, so all of the tolerance is needed
        return max(used - limit, SETTINGS.highs_tolerance * limit)
    return 1.001 * max(used - limit, float(np.spacing(limit)))


def _drawn_in(program: highs.Program, row: int, step: float) -> highs.Program:
    row_upper = program.row_upper.copy()
    row_upper[row] -= step
    return replace(program, row_upper=row_upper)
