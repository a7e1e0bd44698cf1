"""What exact policies may say of their decisions: what the verifier confirmed, and no more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from optsched.registry import problem
from optsched.rollout.engine.decision import NOT_STATED, SolveRecord
from optsched.verification import closed, confirmed, relative_gap

if TYPE_CHECKING:
    from optsched.instance import Document, Instance


class Solved(NamedTuple):
    """How a search ended, before anybody verified it.

    Attributes
    ----------
    objective
        Of the plan, recomputed from it; None without a plan.
    gap
        Relative gap that was asked for.
    is_greedy
        Whether nothing better than the greedy plan was found.
    is_warm
        Whether what the last call left was enough.
    """

    objective: float | None
    gap: float
    started: float
    is_greedy: bool = False
    is_warm: bool = False


def recorded(instance: Instance, certificate: Document | None, solved: Solved) -> SolveRecord:
    """Return the record of a search, after its certificate went to the verifier.

    It goes there unless that takes more terms than `optsched.verification.LIMIT`: what it states is
    then called unverified. If the verifier refuses it, no bound is stated; the rollout goes on, for
    the plan keeps the rules all the same.
    """
    begun = time.perf_counter()
    verified = None if certificate is None else confirmed(instance, certificate)
    bound = getattr(certificate, "bound", None)
    objective = solved.objective
    if bound is not None and objective is not None and bound > objective:
        verified = False  # the plan itself refutes it
    if verified is False:
        bound = None
    scale = problem(instance.problem).gap_scale(instance)
    is_closed = closed(relative_gap(objective, bound, scale), solved.gap)
    if objective is None:
        status = "infeasible" if verified and bound is None else "error"
    elif bound is not None and verified is None:
        status = "unverified"
    else:
        status = "optimal" if is_closed else "feasible"
    now = time.perf_counter()
    return SolveRecord(
        status=status,
        objective=NOT_STATED if objective is None else objective,
        bound=NOT_STATED if bound is None else bound,
        seconds=now - solved.started,
        fallback=objective is None or (solved.is_greedy and not is_closed),
        is_warm=solved.is_warm,
        verified=verified,
        verification_s=now - begun,
        scale=scale,
    )
