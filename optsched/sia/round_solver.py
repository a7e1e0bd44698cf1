"""One round: branch and bound, then enumeration of partial plans where a gap is left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.sia.branch_and_bound import ChoiceTree, WarmStart, aim_at
from optsched.sia.gap_closing import Rows, close_gap, enumerate_below, price_rows, prove_none
from optsched.sia.lagrangian_bound import Pricing
from optsched.sia.one_capacity import best_plan, best_price, cheapest, in_wholes
from optsched.sia.rounding import moved_to_cheaper
from optsched.sia.settings import SETTINGS
from optsched.sia.verify.certificate import ChoiceCertificate, Enumeration, Prices

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Bools
    from optsched.sia.arrays import Floats, Indices, Round
    from optsched.sia.gap_closing import Closed


def _never() -> bool:
    return False


def _unheard(plan: Indices) -> None:
    pass


def _uncounted() -> None:
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
    each_program
        Called before each linear program.
    """

    gap: float
    most_nodes: int
    seed: int = 0
    is_over: Callable[[], bool] = _never
    offer: Callable[[Indices], None] = _unheard
    each_program: Callable[[], object] = _uncounted


class Basis(NamedTuple):
    """Where the next round may begin.

    Attributes
    ----------
    prices
        Shape (capacities,).
    options
        The basic ones, of the common list.
    loose
        Shape (capacities,): which ones are basic, since they do not bind.
    """

    prices: Floats
    options: Indices
    loose: Bools


class Solved(NamedTuple):
    """What a round came to.

    Attributes
    ----------
    plan
        Shape (jobs,): an option of the common list for every job; None without a plan.
    certificate
        What proves the bound.
    basis
        What the next round begins from.
    programs
        Linear programs that were solved.
    """

    plan: Indices | None
    certificate: ChoiceCertificate
    basis: Basis
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
    if limits.most_nodes > 1:
        direct = _without_programs(instance, limits)
        if isinstance(direct, Solved):
            return direct
        known = direct if known is None else known
    return _branched(instance, start, limits, known)


def _without_programs(instance: Round, limits: Limits) -> Solved | Indices | None:
    """Solve a round whose best plan is at hand; return the plan alone if its proof takes long."""
    plan, prices, uses = cheapest(instance), np.zeros(len(instance.capacity)), None
    if plan is None:
        uses = in_wholes(instance)
        if uses is None:
            return None
        prices, plan = best_price(instance)
        if plan is None:
            return None
        plan = _improved(instance, plan)
    value = Pricing(instance).price(prices, instance.cost)
    if uses is not None and value.bound < _goal(instance, plan, limits):
        most = instance.objective((plan - instance.first).tolist()) - value.bound
        options = np.flatnonzero(value.excess <= most * (1 + SETTINGS.lp_tolerance))
        best = best_plan(instance, uses, options)
        plan = plan if best is None else best
    limits.offer(plan)
    goal = _goal(instance, plan, limits)
    basis = Basis(prices, plan, prices <= 0)
    if value.bound >= goal:
        leaf = Prices(prices=tuple(prices.tolist()))
        return Solved(plan, ChoiceCertificate(bound=value.bound, nodes=(leaf,)), basis, 0)
    rows = price_rows(prices, farkas=False)
    below = enumerate_below(instance, rows, goal, SETTINGS.most_direct_sums, limits.is_over)
    if below.plan is not None or not below.is_complete:
        return plan
    return Solved(plan, ChoiceCertificate(bound=goal, nodes=(_leaf(rows),)), basis, 0)


def _improved(instance: Round, plan: Indices) -> Indices:
    free = instance.capacity - instance.use[plan].sum(axis=0)
    return moved_to_cheaper(instance, plan.copy(), free)


def _goal(instance: Round, plan: Indices, limits: Limits) -> float:
    """Return the bound that closes the gap to a plan."""
    places = (plan - instance.first).tolist()
    objective = instance.objective(places)
    return aim_at(objective, max(abs(objective), instance.gap_scale(places)), limits.gap)


def _branched(instance: Round, start: WarmStart, limits: Limits, known: Indices | None) -> Solved:
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
    basis = Basis(search.root_prices, *search.root_basis)
    return Solved(search.plan, certificate, basis, programs + search.programs)


def _tree(instance: Round, start: WarmStart, limits: Limits) -> ChoiceTree:
    tree = ChoiceTree(instance, start, limits.gap, limits.seed)
    tree.is_over, tree.heard, tree.count = limits.is_over, limits.offer, limits.each_program
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
