"""Convex combinations of two dual solutions: mixed widths that use up the limit (EPEW'24)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from optsched.boa.arrays import BoaArrays, WidthChoice, choice, class_plan, complementary, to_plan
from optsched.boa.exact.continuous import STEPS_BACK
from optsched.boa.plan import BoaPlan
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import feasibility

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.boa.exact.lagrangian_dual import Dual
    from optsched.boa.instance import BoaInstance
    from optsched.boa.plan import ClassPlan
    from optsched.documents.arrays import Indices
    from optsched.search import Search


def offer_mixture(
    instance: BoaInstance,
    search: Search,
    problem: BoaArrays,
    dual: Dual,
    widths: Callable[[WidthChoice], list[list[float]]],
) -> None:
    """Offer the mixture that uses up the limit: one class or free phase splits its jobs.

    All plans between `within` and `beyond` have the same priced value, so they are moved from one
    to the other part by part, and the part that would cross the limit is split (docs/math/boa.md,
    Hulls and mixed widths).

    Parameters
    ----------
    widths
        Returns the width of every (class, phase) that a choice stands for.
    """
    below, above = _neighbours(problem, dual)
    low, high = widths(below), widths(above)
    split = [i for i, row in enumerate(low) if row != high[i]]
    classes = list(to_plan(instance, [(1.0, low)]).classes)
    slack, more = _slack(
        instance, classes, [class_plan(instance, i, [(1.0, high[i])]) for i in split]
    )
    span = above.use - below.use
    share = min(1.0, (problem.limit - below.use) / span) if span > 0 else 0.0
    for step in STEPS_BACK:
        upper, lower = complementary(max(0.0, share - step))
        if Fraction(upper) * more > slack:
            continue
        for i in split:
            classes[i] = class_plan(instance, i, [(lower, low[i]), (upper, high[i])])
        if search.offer(BoaPlan(classes=tuple(classes))):
            return
    search.offer(to_plan(instance, [(1.0, widths(dual.within))]))


def _slack(
    instance: BoaInstance, classes: list[ClassPlan], instead: list[ClassPlan]
) -> tuple[int, int]:
    """Return at most what is left of the limit, and at least what other plans of classes add.

    Both as multiples of 2**-192: who goes beyond them is refused, without a look at the others.
    """
    names = {plan.id for plan in instead}
    before = [plan for plan in classes if plan.id in names]
    used, more, less = (
        feasibility.used(instance, BoaPlan(classes=tuple(plans)))
        for plans in (classes, instead, before)
    )
    slack = feasibility.rounded_down(feasibility.limit(instance)) + 1 - used.below
    return slack, more.below - less.above


def _neighbours(problem: BoaArrays, dual: Dual) -> tuple[WidthChoice, WidthChoice]:
    """Return two choices beside the limit that differ in one class or free phase only.

    Parts, groups before chains, are moved in their order as long as they keep within the limit.
    """
    source, target = dual.within, dual.beyond
    rows, groups = np.arange(len(source.columns)), problem.groups
    saved = groups.value[rows, source.columns] - groups.value[rows, target.columns]
    added = groups.use[rows, target.columns] - groups.use[rows, source.columns]
    paths = list(zip(source.paths, target.paths, strict=True))
    saved = np.r_[saved, [a.value - b.value for a, b in paths]]
    added = np.r_[added, [b.use - a.use for a, b in paths]]
    moves = np.flatnonzero(saved > 0)
    beyond = source.use + np.cumsum(added[moves]) > problem.limit * (1 - SETTINGS.limit_tolerance)
    count = int(beyond.argmax()) if beyond.any() else len(moves)
    below = _moved(problem, source, target, moves[:count])
    return below, _moved(problem, source, target, moves[: count + 1])


def _moved(
    problem: BoaArrays, source: WidthChoice, target: WidthChoice, parts: Indices
) -> WidthChoice:
    """Replace the columns of groups and the paths of chains by those of another choice."""
    count = len(source.columns)
    columns, paths = source.columns.copy(), list(source.paths)
    moved = parts[parts < count]
    columns[moved] = target.columns[moved]
    for chain in (parts[parts >= count] - count).tolist():
        paths[chain] = target.paths[chain]
    return choice(problem, columns, tuple(paths))
