"""Gap closing by label setting below reduced costs (Handler & Zang, Networks 1980).

Integer widths to proven optimality: what the price leaves open is enumerated.
At the best price every plan costs at least the Lagrangian value plus its own reduced costs. So all
plans below a target value can be enumerated as labels (value, use) that grow phase by phase and
class by class: a label is dropped when its priced value plus the least priced completion reaches
the target (no plan through it is below the target), or when another label has neither more value
nor more use. If a plan within the limit remains, the best of them is optimal; if none remains, the
target is a proven lower bound and is raised. The gap between price and integers is a small part of
the objective, so few labels live at any time (docs/math/boa.md, Gap closing). Where
there are many all the same, two lists of them meet in the middle (`meet_in_the_middle.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.arrays import BoaArrays, WidthChoice, choice
from optsched.boa.exact.label_setting import LabelEffort, Unit, paths_through, undominated
from optsched.boa.exact.lagrangian_dual import Dual, least_priced, priced_rounding
from optsched.boa.exact.meet_in_the_middle import Ends, Open, Side, merged, pairs, traced
from optsched.boa.exact.phase_graphs import Path
from optsched.boa.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Indices


LABEL_LIMIT = "label limit"


class ClosedGap(NamedTuple):
    """The best choice found (None if none was accepted) and a proven lower bound on the value.

    Attributes
    ----------
    labels
        How many labels it took to prove the bound.
    is_enumerated
        Whether labels proved it, not the price alone.
    gave_up
        Why the gap was left open, though there was time.
    """

    best: WidthChoice | None
    bound: float
    labels: int = 0
    gave_up: str = ""
    is_enumerated: bool = False


def close(
    arrays: BoaArrays,
    dual: Dual,
    gap: float,
    accept: Callable[[WidthChoice], bool],
    stop: Callable[[], bool],
) -> ClosedGap:
    """Find the best integer choice and prove it, or get as far as `stop` allows.

    Parameters
    ----------
    gap
        Relative gap at which to stop.
    accept
        Tells exactly whether a choice keeps within the limit; asked in order of growing value.
    stop
        Tells whether time is up.
    """
    best = dual.within if accept(dual.within) else None
    filled = fill(arrays, dual.within, stop)
    if filled.value < dual.within.value and accept(filled):
        best = filled
    bound, labels, share = dual.bound, 0, SETTINGS.plan_share
    bound -= rounding_beside(arrays, dual.price, dual.bound)
    is_enumerated = False
    worst = best.value if best else max(dual.within.value, dual.beyond.value) * 2
    window = max((worst - dual.bound) * SETTINGS.first_window, gap * abs(worst))
    window = max(window, SETTINGS.rounding * abs(worst))
    while (best is None or bound < best.value * (1 - gap)) and not stop():
        # A little above what the gap asks for, so that rounding cannot miss it again.
        ceiling = np.inf if best is None else best.value * (1 - 0.9 * gap)
        target = min(dual.bound + window, ceiling)
        effort = LabelEffort(stop, share)
        better = _search(arrays, dual.price, target, accept, effort)
        if better is not None and (best is None or better.value < best.value):
            best = better
        if effort.complete:
            bound, labels = min(target, best.value) if best else target, effort.made
            is_enumerated = True
            if best is None and window > 1e3 * (worst + arrays.limit * dual.price + 1):
                text = "no plan within the limit is found"
                return ClosedGap(best, bound, labels, text, is_enumerated)
            window *= SETTINGS.window_growth
        elif best is None or best.value - dual.bound > (target - dual.bound) / 2:
            if share == 1:
                return ClosedGap(best, bound, labels, LABEL_LIMIT, is_enumerated)
            share = 1.0
    return ClosedGap(best, bound, labels, is_enumerated=is_enumerated)


def rounding_beside(arrays: BoaArrays, price: float, value: float) -> float:
    """Return by what priced values may be off where a steep price makes that matter; else 0."""
    phases = len(arrays.groups.members) + sum(len(chain.value) for chain in arrays.chains)
    rounding = priced_rounding(phases, value + price * arrays.limit)
    return rounding if rounding > SETTINGS.value_tolerance * value else 0.0


def fill(
    arrays: BoaArrays, chosen: WidthChoice, stop: Callable[[], bool] = lambda: False
) -> WidthChoice:
    """Spend what a choice leaves of the limit on the free phases, the largest saving first."""
    groups, columns = arrays.groups, chosen.columns.copy()
    rows, slack = np.arange(len(columns)), arrays.limit - chosen.use
    if not len(rows):
        return chosen
    for _ in range(SETTINGS.most_moves):
        saved = groups.value[rows, columns][:, None] - groups.value
        needed = groups.use - groups.use[rows, columns][:, None]
        saved[needed > slack] = 0.0
        row, column = np.unravel_index(saved.argmax(), saved.shape)
        if saved[row, column] <= 0 or stop():
            break
        slack -= needed[row, column]
        columns[row] = column
    return choice(arrays, columns, chosen.paths)


def _search(
    arrays: BoaArrays,
    price: float,
    target: float,
    accept: Callable[[WidthChoice], bool],
    effort: LabelEffort,
) -> WidthChoice | None:
    """Enumerate what may be below `target`; return the best choice."""
    cutoff = target + price * arrays.limit + rounding_beside(arrays, price, target)
    left = _left_open(arrays, price, cutoff, effort)
    if left is None or effort.out_of_time():
        return None
    sides = merged(left, price, Ends(cutoff, arrays.limit, target), effort)
    if sides is None:  # nothing is left below the target, or time was up
        return None
    return _best(arrays, sides, left, target, accept, effort)


def _left_open(arrays: BoaArrays, price: float, cutoff: float, effort: LabelEffort) -> Open | None:
    """Return the options below a target, which is a priced value of `cutoff`; None without any."""
    priced = arrays.groups.priced(price)
    columns = priced.argmin(axis=1)
    rows = np.arange(len(priced))
    least_groups = priced[rows, columns]
    least = least_priced(arrays, price)
    slack = cutoff - float(least_groups.sum()) - sum(least)
    if slack <= 0:
        return None
    units = []
    for chain, least_of_chain in zip(arrays.chains, least, strict=True):
        unit = paths_through(chain, price, least_of_chain + slack, effort)
        if not len(unit.value) or effort.out_of_time():
            return None  # a rounding below the least priced path, or time is up
        units.append(unit)
    possible = priced < (least_groups + slack)[:, None]
    groups = np.flatnonzero(possible.sum(axis=1) > 1)
    units += [_options(arrays, int(g), np.flatnonzero(possible[g])) for g in groups]
    settled = np.delete(rows, groups)
    base = (
        float(arrays.groups.value[settled, columns[settled]].sum()),
        float(arrays.groups.use[settled, columns[settled]].sum()),
    )
    return Open(columns, groups, units, least + least_groups[groups].tolist(), base)


def _options(arrays: BoaArrays, group: int, columns: Indices) -> Unit:
    value, use = arrays.groups.value[group, columns], arrays.groups.use[group, columns]
    kept = undominated(value, use)
    columns = columns[kept]
    return Unit(value[kept], use[kept], lambda option: int(columns[option]))


def _best(
    arrays: BoaArrays,
    sides: tuple[Side, Side],
    left: Open,
    target: float,
    accept: Callable[[WidthChoice], bool],
    effort: LabelEffort,
) -> WidthChoice | None:
    """Return the complete choice of least value below `target` that is accepted."""
    for refused, labels in enumerate(pairs(sides, arrays.limit, target)):
        selected = _chosen(arrays, left, traced(sides, labels))
        if accept(selected):
            return selected
        if refused == SETTINGS.most_refused:
            effort.complete = False
            break
    return None


def _chosen(arrays: BoaArrays, left: Open, options: dict[int, int]) -> WidthChoice:
    picks = {u: left.units[u].make(option) for u, option in options.items()}
    columns = left.columns.copy()
    paths = tuple(p for u in range(len(arrays.chains)) if isinstance(p := picks[u], Path))
    for u, g in enumerate(left.groups, start=len(paths)):
        columns[g] = picks[u]
    return choice(arrays, columns, paths)
