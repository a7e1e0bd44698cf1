"""Where nothing but the slowest GPU counts: the smallest gang first (Smith, Naval Research 1956).

With one class, penalties that are the same at every level and jobs of equal cost, jobs take
consecutive GPUs in the order of their slowdown (docs/math/pal.md, analytic cases).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.exact.rounding import GangPacking

if TYPE_CHECKING:
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.instance import PalInstance
    from optsched.search import Search


def offer_smallest_first(instance: PalInstance, search: Search, problem: PalArrays) -> None:
    """Offer the plan of the smallest gangs on the fastest GPUs; nothing where more counts."""
    factors = {jobs.factor.tobytes() for jobs in problem.types}
    first = problem.types[0].factor if problem.types else np.zeros(1)
    is_flat = len(factors) == 1 and bool((first == first[0]).all())
    if not is_flat or len(problem.slowdown) > 1 or problem.keeps:
        return
    packing, taken = GangPacking(problem), 0
    order = np.argsort(problem.slowdown[0], kind="stable")
    for jobs in sorted(problem.types, key=lambda each: each.gpus):
        for job in jobs.jobs:
            if taken + jobs.gpus <= len(order):
                packing.put(job, order[taken : taken + jobs.gpus])
                taken += jobs.gpus
    search.offer(packing.plan(instance))
