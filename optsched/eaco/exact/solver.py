"""Branch-price-and-cut over all groups (Barnhart et al., Operations Research 46, 1998).

The method "exact". Source: EaCO, arXiv 2412.08294, as set partitioning (docs/math/eaco.md): linear
program with cuts, groups fixed by reduced cost, then a tree; if that proves too little, with more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.exact.listed_groups import (
    is_closed_sooner_by_listing,
    is_large,
    over_all,
    prove_over_all,
    refuse_below_idle_power,
)

if TYPE_CHECKING:
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoCertificate
    from optsched.search import Search


def exact(instance: EacoInstance, search: Search) -> EacoCertificate | None:
    """Part the jobs into groups at least cost, from a greedy plan on, and prove the bound.

    Raises
    ------
    Infeasible
        If the power cap, the nodes or the tolerances leave no room for all jobs.
    """
    refuse_below_idle_power(instance)
    if is_large(instance) and not is_closed_sooner_by_listing(instance, search):
        from optsched.eaco.exact import large_scale  # for large instances only

        return large_scale.columns(instance, search)
    search.begin()
    return over_all(instance, search)


def certify(instance: EacoInstance, search: Search) -> EacoCertificate | None:
    """Certify what the root of the tree proves; a method that found no plan gets one if it can."""
    refuse_below_idle_power(instance)
    if is_large(instance):
        from optsched.eaco.exact import large_scale  # for large instances only

        return large_scale.certify(instance, search)
    return prove_over_all(instance, search, np.inf, most_nodes=1)
