"""Over all groups of an instance, listed: a plan, and a proof; and whether to list them."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.exact import proving
from optsched.eaco.exact.heuristics import quick_start
from optsched.eaco.exact.memory import groups
from optsched.eaco.groups.enumeration import TooManyGroupsError, job_classes
from optsched.eaco.groups.pricing_scope import has_pricing_problems
from optsched.eaco.groups.type_sequences import needs_sequences
from optsched.eaco.plan import EacoCertificate
from optsched.eaco.settings import SETTINGS
from optsched.search import Infeasible

if TYPE_CHECKING:
    from optsched.eaco.instance import EacoInstance
    from optsched.search import Search


def is_large(instance: EacoInstance) -> bool:
    """Tell whether an instance has too many jobs or groups to list them, and need not be listed.

    From about eighty jobs on, more than two of which share, `columns` has better plans and bounds
    in the same time; from forty on where watts are not affine in utilisation, since there pricing
    takes little. Where the tree over all groups comes to its end, as below, it takes less.
    """
    if not has_pricing_problems(instance):
        return False
    classes, most = len(job_classes(instance)), instance.max_jobs_per_gpu
    is_bent = any(needs_sequences(gpu) for gpu in instance.gpu_types)
    few = SETTINGS.most_bent_classes if is_bent else SETTINGS.most_wide_classes
    is_wide = most > 2 and classes > few
    multisets = comb(classes + most - 1, most)
    is_long = len(instance.jobs) > SETTINGS.most_listed_jobs
    return is_wide or is_long or multisets > SETTINGS.most_groups


def is_closed_sooner_by_listing(instance: EacoInstance, search: Search) -> bool:
    """Tell whether so small a gap takes a tree over the groups anyway, and they can be listed."""
    left = search.seconds_left()
    is_in_time = left is None or left > SETTINGS.listing_s
    if search.gap > SETTINGS.tight_gap or not is_in_time:
        return False
    return groups(instance) <= SETTINGS.most_closed_groups


def over_all(instance: EacoInstance, search: Search) -> EacoCertificate | None:
    """Solve and prove over all groups, listed."""
    refuse_below_idle_power(instance)
    if search.plan is None:
        search.begin(quick_start)
    return prove_over_all(instance, search, np.inf, SETTINGS.most_nodes)


def certify_claim(instance: EacoInstance, search: Search, claimed: float) -> EacoCertificate | None:
    """Prove a bound that a solver claims, or as much of it as time and nodes allow."""
    return prove_over_all(instance, search, claimed, SETTINGS.most_nodes)


def prove_over_all(
    instance: EacoInstance, search: Search, claimed: float, most_nodes: int
) -> EacoCertificate | None:
    """Prove over all groups, until a claimed bound or so many nodes of the tree."""
    refuse_below_idle_power(instance)
    try:
        proof = proving.Solver(instance, search, None)
    except TooManyGroupsError as error:
        search.stopped = search.stopped or str(error)
        return None
    proof.run(claimed, most_nodes)
    search.state = proof.warm_start()
    return proof.certificate()


def _is_below_idle_power(instance: EacoInstance) -> bool:
    cap = instance.power_cap_w
    return cap is not None and Fraction(cap) < instance.idle_floor_w


def refuse_below_idle_power(instance: EacoInstance) -> None:
    """Raise `Infeasible` if the power cap is below what the cluster draws asleep."""
    if _is_below_idle_power(instance):
        floor = float(instance.idle_floor_w)
        raise Infeasible(
            f"{instance.name}: the power cap of {instance.power_cap_w!r} W is below the idle floor "
            f"of {floor!r} W, which the cluster draws with all nodes asleep",
            EacoCertificate(kind="below_idle_power"),
        )
