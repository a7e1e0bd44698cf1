"""What HiGHS has to say about a program, as far as it can be believed."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from optsched.mip.failures import note_failure

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats
    from optsched.mip.program import Program

Status = Literal[
    "optimal", "limit", "out of memory", "interrupted", "infeasible", "unbounded", "error"
]


class HighsOutcome(NamedTuple):
    """What HiGHS has to say about a program.

    Attributes
    ----------
    status
        "optimal": within the gap. "limit", "out of memory", "interrupted": stopped early. "error":
        none of these; also where HiGHS raised, or returned what is no number.
    x
        Shape (columns,), feasible within HiGHS' tolerances; None if there is no such point.
    objective
        Of `x`; None without it.
    bound
        HiGHS' lower bound on the objective; minus infinity if it has none.
    row_duals
        Shape (rows,): change of the objective per unit of a row's bound; None for integer programs.
    nodes
        Branch-and-bound nodes.
    message
        The model status in HiGHS' own words, or what went wrong.
    """

    status: Status
    x: Floats | None
    objective: float | None
    bound: float
    row_duals: Floats | None
    nodes: int
    message: str


def failed(text: str) -> HighsOutcome:
    """Return the outcome of a run that came to nothing."""
    note_failure(text)
    return HighsOutcome("error", None, None, -np.inf, None, 0, text)


def trusted(outcome: HighsOutcome) -> HighsOutcome:
    """Return an outcome whose figures are numbers; of a failure, the point if it has one."""
    x, objective, duals = outcome.x, outcome.objective, outcome.row_duals
    has_point = False
    if x is not None and objective is not None:
        has_point = isfinite(objective) and bool(np.isfinite(x).all())
    is_sound = has_point or (x is None and objective is None and outcome.status != "optimal")
    if not (duals is None or np.isfinite(duals).all()):
        is_sound = False
    if outcome.status != "infeasible" and not outcome.bound < np.inf:  # NaN is not, either
        is_sound = False
    if is_sound and outcome.status != "error":
        if outcome.status == "out of memory":
            note_failure(outcome.message)
        return outcome
    text = (outcome.message or "no status") if is_sound else "figures that are no numbers"
    nothing = failed(text)
    return nothing._replace(x=x, objective=objective) if has_point else nothing


def is_within(program: Program, x: Floats) -> bool:
    """Tell whether a point has a value for every column, and keeps to their bounds by and large."""
    if x.shape != program.cost.shape:
        return False
    loose = 1e-3 * (1 + np.abs(x))
    return bool(((x >= program.lower - loose) & (x <= program.upper + loose)).all())
