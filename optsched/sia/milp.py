"""The method "milp": the formulation of models/sia.py, solved by HiGHS.

It is the second, independent way to an exact answer. The plan is HiGHS' own, or a greedy one where
that is better; of HiGHS' bound as much is stated as can be proven without HiGHS' branch and bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.mip.pyomo_model import claimed_bound, disbelieve, run_model
from optsched.models import sia
from optsched.sia import solver as exact
from optsched.sia.greedy.methods import in_order
from optsched.sia.plan import SiaPlan

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats
    from optsched.search import Search
    from optsched.sia.instance import SiaInstance
    from optsched.sia.verify.certificate import ChoiceCertificate


def milp(instance: SiaInstance, search: Search) -> ChoiceCertificate | None:
    """Solve the Pyomo formulation with HiGHS, from a greedy plan, and certify the bound.

    Source: Sia, SOSP 2023; formulation of `optsched.models.sia`.

    Raises
    ------
    Infeasible
        If HiGHS finds that there is no plan, and that can be proven.
    """
    in_order(instance, search)
    claimed, stated = 0.0, math.inf
    if not search.out_of_time():
        model = sia.build(instance)
        outcome = run_model(
            model,
            lambda: sia.extract(model, instance),
            search,
            lambda variables: _start(model, variables, search),
        )
        claimed = claimed_bound(search, outcome, 0.0)
        stated = math.inf if outcome.objective is None else outcome.objective
    certificate = exact.certify_claim(instance, search, claimed)
    disbelieve(search, stated, certificate.bound, stated)
    return certificate


def _start(model: Any, variables: list[Any], search: Search) -> Floats | None:
    """Return the values of the variables for the best plan so far."""
    if not isinstance(search.plan, SiaPlan):
        return None
    rows = search.plan.jobs
    ones = [model.waits[r.id] if r.type is None else model.x[r.id, r.type, r.gpus] for r in rows]
    chosen = {id(variable) for variable in ones}
    return np.array([float(id(variable) in chosen) for variable in variables])
