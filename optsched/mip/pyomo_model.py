"""Runs of Pyomo's models (Hart, Watson & Woodruff, Math. Programming Computation 3, 2011) by HiGHS.

The formulations are those in models/; what HiGHS says of them is compared with what is proven, and
where the two contradict each other, the result says so and states what is proven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from optsched.mip import highs
from optsched.mip.failures import note_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from optsched.documents.arrays import Floats
    from optsched.instance import Document
    from optsched.search import Search

    Start = Callable[[list[Any]], Floats | None]

Plan = TypeVar("Plan")


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
        keep_best=True,
    )
    if outcome.x is not None:
        plan = extracted(compiled.variables, outcome.x, extract)
        if plan is not None:
            search.offer(plan)
    return outcome


def extracted(variables: Iterable[Any], x: Floats, extract: Callable[[], Plan]) -> Plan | None:
    """Return the plan that is read off a point; None if a point of HiGHS' makes none at all."""
    for variable, value in zip(variables, x.tolist(), strict=True):
        variable.set_value(value, skip_validation=True)
    try:
        return extract()
    except (ArithmeticError, LookupError, ValueError) as error:
        note_failure(f"a point that is no plan ({type(error).__name__})")
        return None


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
        search.interrupt()
    else:
        search.stopped = f"HiGHS ends with '{outcome.message}'"
    return max(outcome.bound, least) if outcome.status == "out of memory" else least


def disbelieve(search: Search, stated: float, bound: float | None, terms: float) -> None:
    """Note it if HiGHS states an objective below a bound that was proven without it.

    Parameters
    ----------
    terms
        Size of what is added up in the objective, of which HiGHS' tolerances are a share.
    """
    if bound is not None and bound > stated + 1e-6 * terms:
        search.disbelieved = (
            f"HiGHS states the objective {stated!r}, but every plan has at least {bound!r}"
        )
