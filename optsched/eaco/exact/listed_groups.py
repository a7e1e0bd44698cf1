"""Over all groups of an instance, listed: a plan, and a proof."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.exact import proving
from optsched.eaco.exact.heuristics import quick_start
from optsched.eaco.groups.enumeration import TooManyGroupsError
from optsched.eaco.plan import EacoCertificate
from optsched.eaco.settings import SETTINGS
from optsched.search import Infeasible

if TYPE_CHECKING:
    from optsched.eaco.instance import EacoInstance
    from optsched.search import Search


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
