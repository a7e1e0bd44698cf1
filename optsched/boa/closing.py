"""Integer widths to proven optimality: what the price leaves open is enumerated.

At the best price every plan costs at least the Lagrangian value plus its own reduced costs. So all
plans below a target value can be enumerated as labels (value, use) that grow phase by phase and
class by class: a label is dropped when its priced value plus the least priced completion reaches
the target (no plan through it is below the target), or when another label has neither more value
nor more use. If a plan within the limit remains, the best of them is optimal; if none remains, the
target is a proven lower bound and is raised. The gap between price and integers is a small part of
the objective, so few labels live at any time (boa.md 1.4 items 6 to 8).
"""

from __future__ import annotations

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


class Closed(NamedTuple):
    """The best choice found (None if none was accepted) and a proven lower bound on the value."""

    best: Choice | None
    bound: float


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
    bound = dual.bound
    worst = best.value if best else max(dual.within.value, dual.beyond.value) * 2
    window = max((worst - dual.bound) * FIRST_WINDOW, gap * abs(worst), ROUNDING * abs(worst))
    while (best is None or bound < best.value * (1 - gap)) and not stop():
        # A little above what the gap asks for, so that rounding cannot miss it again.
        ceiling = np.inf if best is None else best.value * (1 - 0.9 * gap)
        target = min(dual.bound + window, ceiling)
        found, complete = _search(arrays, dual.price, target, accept, stop)
        if found is not None and (best is None or found.value < best.value):
            best = found
        if not complete:
            break
        bound = min(target, best.value) if best else target
        if best is None and window > 1e3 * (worst + arrays.limit * dual.price + 1):
            break
        window *= GROWTH
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
    stop: Callable[[], bool],
) -> tuple[Choice | None, bool]:
    """Enumerate what may be below `target`; return the best choice, and whether all were seen."""
    cutoff, effort = target + price * arrays.limit, Effort(stop)
    left = _left_open(arrays, price, cutoff, effort)
    if left is None or effort.out_of_time():
        return None, effort.complete
    order = sorted(range(len(left.units)), key=lambda u: len(left.units[u].value))
    layers = _merge(left, order, price, cutoff, arrays.limit, effort)
    if len(layers) <= len(order):  # nothing is left below the target, or time was up
        return None, effort.complete
    return _best(arrays, layers, left, order, target, accept), effort.complete


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


def _merge(
    left: Open, order: list[int], price: float, cutoff: float, limit: float, effort: Effort
) -> list[Labels]:
    """Combine the options of all units in the given order, as long as labels are left."""
    nothing = np.zeros(1, np.intp)
    layers = [Labels(np.array([left.base[0]]), np.array([left.base[1]]), nothing, nothing)]
    rest = sum(left.least)
    least_use = sum(float(unit.use.min()) for unit in left.units)
    for u in order:
        unit = left.units[u]
        rest -= left.least[u]
        least_use -= float(unit.use.min())
        ceiling = limit * (1 + ROUNDING) - least_use
        layer = _product(layers[-1], unit, price, cutoff - rest, ceiling, effort)
        if not len(layer.value) or effort.out_of_time():
            break
        layers.append(effort.kept(layer, price))
    return layers


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
    layers: list[Labels],
    left: Open,
    order: list[int],
    target: float,
    accept: Callable[[Choice], bool],
) -> Choice | None:
    """Return the complete choice of least value below `target` that is accepted."""
    last = layers[-1]
    within = np.flatnonzero((last.value < target) & (last.use <= arrays.limit * (1 + ROUNDING)))
    for label in within[np.argsort(last.value[within], kind="stable")]:
        found = _traced(arrays, layers, left, order, int(label))
        if accept(found):
            return found
    return None


def _traced(
    arrays: Arrays, layers: list[Labels], left: Open, order: list[int], label: int
) -> Choice:
    picks: dict[int, int | Path] = {}
    for layer, u in zip(layers[:0:-1], reversed(order), strict=True):
        picks[u] = left.units[u].make(int(layer.pick[label]))
        label = int(layer.parent[label])
    columns = left.columns.copy()
    paths = tuple(p for u in range(len(arrays.chains)) if isinstance(p := picks[u], Path))
    for u, g in enumerate(left.groups, start=len(paths)):
        columns[g] = picks[u]
    return choice(arrays, columns, paths)
