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

from optsched.boa.arrays import Arrays, Chain, Choice, Path, choice
from optsched.boa.price import ROUNDING, Dual, completions

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

FIRST_WINDOW = 1 / 64  # of the gap between the price's bound and its plan
GROWTH = 4.0
MAX_LABELS = 400_000
MAX_PAIRS = 4_000_000


class Closed(NamedTuple):
    """The best choice found (None if none was accepted) and a proven lower bound on the value."""

    best: Choice | None
    bound: float


class Labels(NamedTuple):
    """Partial plans: value and use so far, and how each came about.

    Attributes
    ----------
    parent
        Index of the label that was extended.
    pick
        What it was extended by: a column of a chain's phase, or an option of a unit.
    """

    value: NDArray[np.float64]
    use: NDArray[np.float64]
    parent: NDArray[np.intp]
    pick: NDArray[np.intp]

    def taken(self, index: NDArray[np.intp]) -> Labels:
        """Return the labels at an index."""
        return Labels(self.value[index], self.use[index], self.parent[index], self.pick[index])


class Unit(NamedTuple):
    """The options that one class or free phase has left below the target, by (value, use)."""

    value: NDArray[np.float64]
    use: NDArray[np.float64]
    make: Callable[[int], int | Path]


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
    bound = dual.bound
    worst = dual.within.value if best else max(dual.within.value, dual.beyond.value) * 2
    window = max((worst - dual.bound) * FIRST_WINDOW, gap * abs(worst), ROUNDING * abs(worst))
    while best is None or bound < best.value * (1 - gap):
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


def _search(
    arrays: Arrays,
    price: float,
    target: float,
    accept: Callable[[Choice], bool],
    stop: Callable[[], bool],
) -> tuple[Choice | None, bool]:
    """Enumerate what may be below `target`; return the best choice, and whether all were seen."""
    cutoff = target + price * arrays.limit
    priced = arrays.groups.priced(price)
    least_columns = priced.argmin(axis=1)
    least_priced = priced[np.arange(len(priced)), least_columns]
    chain_least = [float(_least(chain, price)) for chain in arrays.chains]
    total = float(least_priced.sum()) + sum(chain_least)
    slack = cutoff - total
    if slack <= 0:
        return None, True
    open_groups = np.flatnonzero((priced < (least_priced + slack)[:, None]).sum(axis=1) > 1)
    units, rest = [], []
    complete = True
    for chain, least in zip(arrays.chains, chain_least, strict=True):
        unit, whole = _chain_unit(chain, price, least + slack, stop)
        complete &= whole
        if not len(unit.value):  # a rounding below the least priced way
            return None, complete
        units.append(unit)
        rest.append(least)
    for g in open_groups:
        columns = np.flatnonzero(priced[g] < least_priced[g] + slack)
        units.append(_group_unit(arrays, int(g), columns))
        rest.append(float(least_priced[g]))
    fixed = np.ones(len(priced), bool)
    fixed[open_groups] = False
    rows = np.flatnonzero(fixed)
    base = (
        float(arrays.groups.value[rows, least_columns[rows]].sum()),
        float(arrays.groups.use[rows, least_columns[rows]].sum()),
    )
    order = sorted(range(len(units)), key=lambda u: len(units[u].value))
    merged, whole = _merge(base, units, rest, order, price, cutoff, arrays.limit, stop)
    found = _best(arrays, merged, units, order, (least_columns, open_groups), target, accept)
    return found, complete and whole


def _group_unit(arrays: Arrays, group: int, columns: NDArray[np.intp]) -> Unit:
    value, use = arrays.groups.value[group, columns], arrays.groups.use[group, columns]
    kept = _undominated(value, use)
    columns = columns[kept]
    return Unit(value[kept], use[kept], lambda option: int(columns[option]))


def _least(chain: Chain, price: float) -> float:
    nodes, rescaling = chain.priced(price)
    least: float = (nodes[0] + rescaling + completions(chain, price)[0]).min()
    return least


def _chain_unit(
    chain: Chain, price: float, room: float, stop: Callable[[], bool]
) -> tuple[Unit, bool]:
    """Enumerate the undominated ways through a chain whose priced value is below `room`."""
    nodes, rescaling = chain.priced(price)
    after = completions(chain, price)
    usable = _priced_before(nodes, rescaling) + after < room
    layers = [_first_layer(chain, np.flatnonzero(usable[0]))]
    complete = True
    for e in range(1, len(nodes)):
        layer = _next_layer(chain, e, layers[-1], np.flatnonzero(usable[e]))
        priced = layer.value + price * layer.use + after[e][layer.pick]
        layer = layer.taken(np.flatnonzero(priced < room))
        if len(layer.value) > MAX_LABELS or stop():
            complete = False
            layer = _truncated(layer, price)
        layers.append(layer)
    last = layers[-1]
    ends = _undominated(last.value, last.use)
    return Unit(
        last.value[ends], last.use[ends], lambda n: _traced(chain, layers, ends[n])
    ), complete


def _priced_before(
    nodes: NDArray[np.float64], rescaling: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the least priced value from the start to each node, the node included."""
    before = np.empty_like(nodes)
    before[0] = nodes[0] + rescaling
    for e in range(1, len(nodes)):
        np.minimum(before[e - 1], before[e - 1].min() + rescaling, out=before[e])
        before[e] += nodes[e]
    return before


def _first_layer(chain: Chain, columns: NDArray[np.intp]) -> Labels:
    value = chain.value[0, columns] + chain.rescale_value[columns]
    use = chain.use[0, columns] + chain.rescale_use[columns]
    return Labels(value, use, np.full(len(columns), -1), columns)


def _next_layer(chain: Chain, e: int, layer: Labels, columns: NDArray[np.intp]) -> Labels:
    """Extend labels by a phase: each stays at its width, or any undominated one changes."""
    if len(columns) == 1 and (layer.pick == columns[0]).all():
        k = columns[0]
        value, use = layer.value + chain.value[e, k], layer.use + chain.use[e, k]
        return Labels(value, use, np.arange(len(value)), layer.pick)
    if not len(columns):  # the target lies within rounding of the price's bound
        return layer.taken(columns)
    pool = _undominated(layer.value, layer.use)
    parts = []
    for k in columns:
        staying = np.flatnonzero(layer.pick == k)
        moving = pool[layer.pick[pool] != k]
        parent = np.concatenate([staying, moving])
        changed = np.repeat([0.0, 1.0], [len(staying), len(moving)])
        value = layer.value[parent] + (chain.value[e, k] + changed * chain.rescale_value[k])
        use = layer.use[parent] + (chain.use[e, k] + changed * chain.rescale_use[k])
        kept = _undominated(value, use)
        parts.append(Labels(value[kept], use[kept], parent[kept], np.full(len(kept), k)))
    return Labels(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def _traced(chain: Chain, layers: list[Labels], index: int) -> Path:
    columns = np.empty(len(layers), np.intp)
    for e in range(len(layers) - 1, -1, -1):
        columns[e] = layers[e].pick[index]
        index = int(layers[e].parent[index])
    return chain.path(columns)


def _merge(
    base: tuple[float, float],
    units: list[Unit],
    rest: list[float],
    order: list[int],
    price: float,
    cutoff: float,
    limit: float,
    stop: Callable[[], bool],
) -> tuple[list[Labels], bool]:
    """Combine the options of all units, smallest units first."""
    nothing = np.zeros(1, np.intp)
    layers = [Labels(np.array([base[0]]), np.array([base[1]]), nothing, nothing)]
    remaining = sum(rest)
    least_use = sum(float(unit.use.min()) for unit in units)
    complete = True
    for u in order:
        remaining -= rest[u]
        unit = units[u]
        least_use -= float(unit.use.min())
        room = cutoff - remaining
        ceiling = limit * (1 + ROUNDING) - least_use
        layer, whole = _product(layers[-1], unit, price, room, ceiling)
        if not whole or stop():
            complete = False
        layers.append(layer)
        if not len(layer.value):
            break
    return layers, complete


def _product(
    labels: Labels, unit: Unit, price: float, room: float, ceiling: float
) -> tuple[Labels, bool]:
    """Extend every label by every option that keeps below `room` (priced) and `ceiling` (use)."""
    option_priced = unit.value + price * unit.use
    by_price = np.argsort(option_priced, kind="stable")
    label_priced = labels.value + price * labels.use
    counts = np.searchsorted(option_priced[by_price], room - label_priced)
    complete = True
    if counts.sum() > MAX_PAIRS:
        counts = np.minimum(counts, max(1, MAX_PAIRS // len(counts)))
        complete = False
    parent = np.repeat(np.arange(len(counts)), counts)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    pick = by_price[np.arange(len(parent)) - starts]
    value, use = labels.value[parent] + unit.value[pick], labels.use[parent] + unit.use[pick]
    kept = np.flatnonzero(use <= ceiling)
    kept = kept[_undominated(value[kept], use[kept])]
    layer = Labels(value[kept], use[kept], parent[kept], pick[kept])
    if len(kept) > MAX_LABELS:
        return _truncated(layer, price), False
    return layer, complete


def _best(
    arrays: Arrays,
    layers: list[Labels],
    units: list[Unit],
    order: list[int],
    groups: tuple[NDArray[np.intp], NDArray[np.intp]],
    target: float,
    accept: Callable[[Choice], bool],
) -> Choice | None:
    """Return the complete choice of least value below `target` that is accepted."""
    if len(layers) <= len(units):
        return None
    last = layers[-1]
    within = np.flatnonzero((last.value < target) & (last.use <= arrays.limit * (1 + ROUNDING)))
    for index in within[np.argsort(last.value[within], kind="stable")]:
        picks: dict[int, int | Path] = {}
        label = int(index)
        for layer, u in zip(layers[:0:-1], reversed(order), strict=True):
            picks[u] = units[u].make(int(layer.pick[label]))
            label = int(layer.parent[label])
        columns, open_groups = groups[0].copy(), groups[1]
        count = len(arrays.chains)
        paths = tuple(p for u in range(count) if isinstance(p := picks[u], Path))
        for u, g in enumerate(open_groups, start=count):
            columns[g] = picks[u]
        found = choice(arrays, columns, paths)
        if accept(found):
            return found
    return None


def _undominated(value: NDArray[np.float64], use: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices, by growing use, of pairs that no other equals or beats in both."""
    if len(value) <= 1:
        return np.arange(len(value))
    order = np.lexsort((value, use))
    lowest = np.minimum.accumulate(value[order])
    kept = np.r_[True, value[order[1:]] < lowest[:-1]]
    return order[kept]


def _truncated(labels: Labels, price: float) -> Labels:
    """Keep the labels of least priced value: no proof any more, but a good plan."""
    count = min(len(labels.value), MAX_LABELS // 4)
    kept = np.argpartition(labels.value + price * labels.use, count - 1)[:count]
    return labels.taken(np.sort(kept))
