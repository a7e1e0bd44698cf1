"""One round: branch and bound, then enumeration of partial plans where a gap is left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.sia.branch_and_bound import ChoiceTree, WarmStart
from optsched.sia.gap_closing import Rows, close_gap, prove_none
from optsched.sia.settings import SETTINGS
from optsched.sia.verify.certificate import ChoiceCertificate, Enumeration, Prices

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.sia.arrays import Floats, Indices, Round
    from optsched.sia.gap_closing import Closed


def _never() -> bool:
    return False


def _unheard(plan: Indices) -> None:
    pass


class Limits(NamedTuple):
    """How far to go, and who hears of plans.

    Attributes
    ----------
    gap
        Relative gap at which to stop.
    most_nodes
        Nodes of branch and bound; with few, nothing is enumerated.
    seed
        Of HiGHS.
    is_over
        Whether time is up.
    offer
        Takes each better plan: an option of the common list for every job.
    """

    gap: float
    most_nodes: int
    seed: int = 0
    is_over: Callable[[], bool] = _never
    offer: Callable[[Indices], None] = _unheard


class Solved(NamedTuple):
    """What a round came to.

    Attributes
    ----------
    plan
        Shape (jobs,): an option of the common list for every job; None without a plan.
    certificate
        What proves the bound.
    search
        The branch and bound, with what the next round begins from.
    programs
        Linear programs that were solved.
    """

    plan: Indices | None
    certificate: ChoiceCertificate
    search: ChoiceTree
    programs: int


def solve_round(
    instance: Round, start: WarmStart, limits: Limits, known: Indices | None = None
) -> Solved:
    """Find a plan, and prove how good it is.

    Parameters
    ----------
    known
        A plan to begin with: an option of the common list for every job.
    """
    most_nodes = limits.most_nodes
    search = _tree(instance, start, limits)
    search.offer(known)
    certificate = search.run(min(most_nodes, SETTINGS.nodes_before_enumeration))
    programs, prices = 0, search.root_prices
    if not _is_done(search, certificate):
        cheap = _without_expensive_costs(instance, search)
        if cheap is not None:
            again = _tree(cheap, _nothing(cheap), limits)
            again.offer(search.plan)
            better = again.run(min(most_nodes, SETTINGS.nodes_before_enumeration))
            search.offer(again.plan)
            certificate, prices = _higher(certificate, better), again.root_prices
            programs = again.programs
    is_long = most_nodes > SETTINGS.nodes_before_enumeration
    if is_long and not (_is_done(search, certificate) or limits.is_over()):
        certificate = _enumerated(search, certificate, prices, limits)
    if is_long and not (_is_done(search, certificate) or limits.is_over()):
        certificate = _higher(certificate, search.run(most_nodes))
    return Solved(search.plan, certificate, search, programs + search.programs)


def _tree(instance: Round, start: WarmStart, limits: Limits) -> ChoiceTree:
    tree = ChoiceTree(instance, start, limits.gap, limits.seed)
    tree.is_over, tree.heard = limits.is_over, limits.offer
    return tree


def _is_done(search: ChoiceTree, certificate: ChoiceCertificate) -> bool:
    """Tell whether there is no plan, or the gap is closed."""
    return certificate.bound is None or search.is_closed(certificate.bound)


def _higher(one: ChoiceCertificate, other: ChoiceCertificate) -> ChoiceCertificate:
    """Return the certificate of the higher bound; None is the highest."""
    if one.bound is None or other.bound is None:
        return one if one.bound is None else other
    return other if other.bound > one.bound else one


def _nothing(instance: Round) -> WarmStart:
    capacities = len(instance.capacity)
    basic = np.zeros(len(instance.cost), dtype=np.bool_)
    return WarmStart(np.zeros(capacities), basic, np.ones(capacities, dtype=np.bool_))


def _without_expensive_costs(instance: Round, search: ChoiceTree) -> Round | None:
    """Return a round in which what costs more than the plan by itself costs a little more than it.

    No plan costs more there, so that its bounds hold for the round. None if nothing is.
    """
    if search.plan is None:
        return None
    least = np.minimum.reduceat(instance.cost, instance.first)
    slack = search.objective - float(least.sum())
    if not instance.scale > SETTINGS.expensive_costs * max(slack, 0.0):
        return None
    limit = np.repeat(least, instance.counts) + 2 * slack
    if not (instance.cost > limit).any():
        return None
    return replace(instance, cost=np.minimum(instance.cost, limit))


def _enumerated(
    search: ChoiceTree, certificate: ChoiceCertificate, prices: Floats, limits: Limits
) -> ChoiceCertificate:
    """Enumerate what may be better than the best plan, or all plans if there is none yet."""
    instance = search.round
    assert certificate.bound is not None
    if search.plan is None:
        none = prove_none(instance, prices, limits.is_over)
        if np.isposinf(none.bound):
            return ChoiceCertificate(bound=None, nodes=(_leaf(none.rows),))
        if none.plan is not None:
            search.offer(none.plan)
    closed: Closed = close_gap(instance, prices, certificate.bound, search.aim, limits.is_over)
    if closed.plan is not None:
        search.offer(closed.plan)
    if not closed.bound > certificate.bound:
        return certificate
    return ChoiceCertificate(bound=closed.bound, nodes=(_leaf(closed.rows),))


def _leaf(rows: Rows) -> Enumeration:
    pairs = zip(rows.prices.tolist(), rows.farkas.tolist(), strict=True)
    return Enumeration(
        rows=tuple(
            Prices(kind="infeasible" if farkas else "cost", prices=tuple(row))
            for row, farkas in pairs
        )
    )
