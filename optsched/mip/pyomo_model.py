"""Runs of Pyomo's models (Hart, Watson & Woodruff, Math. Programming Computation 3, 2011) by HiGHS.

The formulations are those in models/; what HiGHS says of them is compared with what is proven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.mip import highs
from optsched.search import SolverDisagreement

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Floats
    from optsched.instance import Document, Instance
    from optsched.search import Search

    Start = Callable[[list[Any]], Floats | None]


def run_model(
    model: Any, extract: Callable[[], Document], search: Search, start: Start
) -> highs.HighsOutcome:
    """Solve a Pyomo model by HiGHS, and offer the plan that `extract` reads off its variables.

    Parameters
    ----------
    start
        Values of the variables to begin with, given these; None if there are none.
    """
    compiled = highs.compile_model(model)
    outcome = highs.solve(
        compiled.program,
        time_limit_s=search.seconds_left(),
        gap=0.9 * search.gap,  # more, so that rounding its bound down cannot miss it
        seed=search.seed,
        threads=search.threads,
        start=start(compiled.variables),
    )
    if outcome.x is not None:
        for variable, x in zip(compiled.variables, outcome.x.tolist(), strict=True):
            variable.set_value(x, skip_validation=True)
        search.offer(extract())
    return outcome


def claimed_bound(search: Search, outcome: highs.HighsOutcome, least: float) -> float:
    """Return the bound that is worth proving, and note why HiGHS ended early, if it did.

    Parameters
    ----------
    least
        What every plan costs at least, without any proof.
    """
    if outcome.status == "optimal":
        return outcome.bound
    if outcome.status == "infeasible":
        return float("inf")
    if outcome.status == "limit":
        search.stopped = "time limit"
        return max(outcome.bound, least)
    if outcome.status == "interrupted":
        search.stopped = "interrupted"
    else:
        search.stopped = f"HiGHS ends with '{outcome.message}'"
    return least


def must_agree(instance: Instance, stated: float, bound: float | None, terms: float) -> None:
    """Compare the objective that HiGHS states with a bound that was proven without it.

    Parameters
    ----------
    terms
        Size of what is added up in the objective.

    Raises
    ------
    SolverDisagreement
        If every plan costs more than HiGHS states, by more than its tolerances explain.
    """
    if bound is not None and bound > stated + 1e-6 * terms:
        raise SolverDisagreement(
            f"{instance.name}: HiGHS states the objective {stated!r}, "
            f"but every plan has at least {bound!r}"
        )
