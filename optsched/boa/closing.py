"""Integer widths to proven optimality: what the price leaves open is enumerated.

At the best price every plan costs at least the Lagrangian value plus its own reduced costs. So all
plans below a target value can be enumerated as labels (value, use) that grow phase by phase and
class by class: a label is dropped when its priced value plus the least priced completion reaches
the target (no plan through it is below the target), or when another label has neither more value
nor more use. If a plan within the limit remains, the best of them is optimal; if none remains, the
target is a proven lower bound and is raised. The gap between price and integers is a small part of
the objective, so few labels live at any time (boa.md 1.4 items 6 to 8).

Where exchange rates are equal, as those of classes with one speedup curve, the price tells nothing
apart, and no label dominates another: n classes would have 2**n. So labels grow in two lists that
meet in the middle, 2**(n/2) in each, and every label of the one finds its best partner in the other
by bisection. Where even these are too many, a beam of both still gives a million pairs or more,
which fill the limit as a subset sum does: the plan then is so near to the price's bound that
nothing is left to enumerate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.arrays import Arrays, Choice, choice
from optsched.boa.labels import Effort, Labels, Unit, undominated, ways_through
from optsched.boa.price import ROUNDING, Dual, least_priced
from optsched.boa.stacks import Path

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

FIRST_WINDOW = 1 / 64  # of the gap between the price's bound and its plan
GROWTH = 4.0
MAX_PAIRS = 2_000_000
MAX_MOVES = 200
MAX_REFUSED = 1_000  # pairs that the limit refuses exactly, though not in floats
PLAN_SHARE = 1 / 20  # of the labels, for searches until the plan gets no better

LABEL_LIMIT = "label limit"


class Closed(NamedTuple):
    """The best choice found (None if none was accepted) and a proven lower bound on the value.

    Attributes
    ----------
    gave_up
        Why the gap was left open, if neither the gap nor the time was the reason.
    """

    best: Choice | None
    bound: float
    gave_up: str = ""


class Open(NamedTuple):
    """What a target leaves open at a price.

    Attributes
    ----------
    columns
        Shape (groups,): the column of least priced value of every free phase.
    groups
        The free phases that have more than this column below the target.
    units
        The options of every chain, then of every open group.
    least
        The least priced value of each unit.
    base
        Value and use of the phases that are settled.
    """

    columns: NDArray[np.intp]
    groups: NDArray[np.intp]
    units: list[Unit]
    least: list[float]
    base: tuple[float, float]


def close(
    arrays: Arrays,
    dual: Dual,
    gap: float,
    accept: Callable[[Choice], bool],
    stop: Callable[[], bool],
) -> Closed:
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
    bound, share = dual.bound, PLAN_SHARE
    worst = best.value if best else max(dual.within.value, dual.beyond.value) * 2
    window = max((worst - dual.bound) * FIRST_WINDOW, gap * abs(worst), ROUNDING * abs(worst))
    while (best is None or bound < best.value * (1 - gap)) and not stop():
        # A little above what the gap asks for, so that rounding cannot miss it again.
        ceiling = np.inf if best is None else best.value * (1 - 0.9 * gap)
        target = min(dual.bound + window, ceiling)
        found, complete = _search(arrays, dual.price, target, accept, Effort(stop, share))
        if found is not None and (best is None or found.value < best.value):
            best = found
        if complete:
            bound = min(target, best.value) if best else target
            if best is None and window > 1e3 * (worst + arrays.limit * dual.price + 1):
                return Closed(best, bound, "no plan within the limit was found")
            window *= GROWTH
        elif best is None or best.value - dual.bound > (target - dual.bound) / 2:
            if share == 1:
                return Closed(best, bound, LABEL_LIMIT)
            share = 1.0
    return Closed(best, bound)


def fill(arrays: Arrays, chosen: Choice, stop: Callable[[], bool] = lambda: False) -> Choice:
    """Spend what a choice leaves of the limit on the free phases, the largest saving first."""
    groups, columns = arrays.groups, chosen.columns.copy()
    rows, room = np.arange(len(columns)), arrays.limit - chosen.use
    if not len(rows):
        return chosen
    for _ in range(MAX_MOVES):
        saved = groups.value[rows, columns][:, None] - groups.value
        needed = groups.use - groups.use[rows, columns][:, None]
        saved[needed > room] = 0.0
        row, column = np.unravel_index(saved.argmax(), saved.shape)
        if saved[row, column] <= 0 or stop():
            break
        room -= needed[row, column]
        columns[row] = column
    return choice(arrays, columns, chosen.paths)


def _search(
    arrays: Arrays,
    price: float,
    target: float,
    accept: Callable[[Choice], bool],
    effort: Effort,
) -> tuple[Choice | None, bool]:
    """Enumerate what may be below `target`; return the best choice, and whether all were seen."""
    cutoff = target + price * arrays.limit
    left = _left_open(arrays, price, cutoff, effort)
    if left is None or effort.out_of_time():
        return None, effort.complete
    sides = _merged(left, price, cutoff, arrays.limit, effort)
    if sides is None:  # nothing is left below the target, or time was up
        return None, effort.complete
    return _best(arrays, sides, left, target, accept, effort), effort.complete


def _left_open(arrays: Arrays, price: float, cutoff: float, effort: Effort) -> Open | None:
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
        unit = ways_through(chain, price, least_of_chain + slack, effort)
        if not len(unit.value) or effort.out_of_time():
            return None  # a rounding below the least priced way, or time is up
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


def _options(arrays: Arrays, group: int, columns: NDArray[np.intp]) -> Unit:
    value, use = arrays.groups.value[group, columns], arrays.groups.use[group, columns]
    kept = undominated(value, use)
    columns = columns[kept]
    return Unit(value[kept], use[kept], lambda option: int(columns[option]))


@dataclass
class Side:
    """Some units combined.

    Attributes
    ----------
    layers
        Labels before any unit, and after each in `order`.
    least, least_use
        The least priced value and the least use of these units, and of what is settled.
    order
        Numbers of the units.
    """

    layers: list[Labels]
    least: float
    least_use: float
    order: list[int] = field(default_factory=list)

    @property
    def last(self) -> Labels:
        """The labels of all units."""
        return self.layers[-1]


def _side(value: float, use: float, price: float) -> Side:
    nothing = np.zeros(1, np.intp)
    first = Labels(np.array([value]), np.array([use]), nothing, nothing)
    return Side([first], value + price * use, use)


def _merged(
    left: Open, price: float, cutoff: float, limit: float, effort: Effort
) -> tuple[Side, Side] | None:
    """Combine the options of all units on two sides; None if there are none, or time was up.

    Each unit, the short ones first, comes to the side that has fewer labels.
    """
    one, other = _side(*left.base, price), _side(0.0, 0.0, price)
    least_uses = [float(unit.use.min()) for unit in left.units]
    least, least_use = one.least + sum(left.least), one.least_use + sum(least_uses)
    for u in sorted(range(len(left.units)), key=lambda u: len(left.units[u].value)):
        side = min(one, other, key=lambda side: len(side.last.value))
        side.least += left.least[u]
        side.least_use += least_uses[u]
        side.order.append(u)
        room = cutoff - (least - side.least)
        ceiling = limit * (1 + ROUNDING) - (least_use - side.least_use)
        layer = _product(side.last, left.units[u], price, room, ceiling, effort)
        if not len(layer.value) or effort.out_of_time():
            return None
        side.layers.append(effort.kept(layer, price))
    return one, other


def _product(
    labels: Labels, unit: Unit, price: float, room: float, ceiling: float, effort: Effort
) -> Labels:
    """Extend every label by every option that keeps below `room` (priced) and `ceiling` (use)."""
    option_priced = unit.value + price * unit.use
    by_price = np.argsort(option_priced, kind="stable")
    label_priced = labels.value + price * labels.use
    counts = np.searchsorted(option_priced[by_price], room - label_priced)
    effort.spend(int(counts.sum()))
    if counts.sum() > MAX_PAIRS:
        counts = np.minimum(counts, max(1, MAX_PAIRS // len(counts)))
        effort.complete = False
    parent = np.repeat(np.arange(len(counts)), counts)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    pick = by_price[np.arange(len(parent)) - starts]
    value, use = labels.value[parent] + unit.value[pick], labels.use[parent] + unit.use[pick]
    kept = np.flatnonzero(use <= ceiling)
    kept = kept[undominated(value[kept], use[kept])]
    return Labels(value[kept], use[kept], parent[kept], pick[kept])


def _best(
    arrays: Arrays,
    sides: tuple[Side, Side],
    left: Open,
    target: float,
    accept: Callable[[Choice], bool],
    effort: Effort,
) -> Choice | None:
    """Return the complete choice of least value below `target` that is accepted.

    Labels are by growing use and falling value: the best partner of one is the last that fits.
    """
    one, other = (side.last for side in sides)
    room = arrays.limit * (1 + ROUNDING) - one.use
    partner = np.searchsorted(other.use, room, side="right") - 1
    value = one.value + other.value[partner]
    possible = np.flatnonzero((partner >= 0) & (value < target))
    best = value[possible].tolist(), possible.tolist(), partner[possible].tolist()
    pairs = list(zip(*best, strict=True))
    heapify(pairs)
    for _ in range(MAX_REFUSED):
        if not pairs:
            return None
        _, label, with_label = heappop(pairs)
        found = _traced(arrays, sides, left, (label, with_label))
        if accept(found):
            return found
        if with_label:
            following = float(one.value[label] + other.value[with_label - 1])
            if following < target:
                heappush(pairs, (following, label, with_label - 1))
    effort.complete = False
    return None


def _traced(
    arrays: Arrays, sides: tuple[Side, Side], left: Open, labels: tuple[int, int]
) -> Choice:
    picks: dict[int, int | Path] = {}
    for side, label in zip(sides, labels, strict=True):
        at = label
        for layer, u in zip(side.layers[:0:-1], reversed(side.order), strict=True):
            picks[u] = left.units[u].make(int(layer.pick[at]))
            at = int(layer.parent[at])
    columns = left.columns.copy()
    paths = tuple(p for u in range(len(arrays.chains)) if isinstance(p := picks[u], Path))
    for u, g in enumerate(left.groups, start=len(paths)):
        columns[g] = picks[u]
    return choice(arrays, columns, paths)
