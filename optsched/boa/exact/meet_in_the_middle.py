"""Meet in the middle (Horowitz & Sahni, JACM 1974): the options of all units in two lists.

Where exchange rates are equal, as those of classes with one speedup curve, the price tells nothing
apart, and no label dominates another: n classes would have 2**n. In two lists there are 2**(n/2) in
each, and every label of the one finds its best partner in the other by bisection. Where even these
are too many, a beam of both still gives a million pairs or more, which fill the limit as a subset
sum does: the plan then is so near to the price's bound that nothing is left to enumerate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.exact.label_setting import LabelEffort, Labels, Unit, undominated
from optsched.boa.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Indices


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

    columns: Indices
    groups: Indices
    units: list[Unit]
    least: list[float]
    base: tuple[float, float]


@dataclass
class Side:
    """Some units combined.

    Attributes
    ----------
    layers
        Labels before any unit, and after each in `order`.
    least
        Of these units, and of what is settled: of the priced value, the use and the value each.
    order
        Numbers of the units.
    """

    layers: list[Labels]
    least: Ends
    order: list[int] = field(default_factory=list)

    @property
    def last(self) -> Labels:
        """The labels of all units."""
        return self.layers[-1]


def _side(value: float, use: float, price: float) -> Side:
    nothing = np.zeros(1, np.intp)
    first = Labels(np.array([value]), np.array([use]), nothing, nothing)
    return Side([first], Ends(value + price * use, use, value))


class Ends(NamedTuple):
    """What labels keep to: below a priced value, up to a use, and up to a value."""

    priced: float
    use: float
    value: float


def merged(left: Open, price: float, ends: Ends, effort: LabelEffort) -> tuple[Side, Side] | None:
    """Combine the options of all units on two sides; None if there are none, or time was up.

    Each unit, the short ones first, comes to the side that has fewer labels. A label is dropped
    where it and the least of all others together, of the priced value, use or value, are too much.
    """
    one, other = _side(*left.base, price), _side(0.0, 0.0, price)
    least_uses = [float(unit.use.min()) for unit in left.units]
    least_values = [float(unit.value.min()) for unit in left.units]
    spare = Ends(
        ends.priced - one.least.priced - sum(left.least),
        ends.use * (1 + SETTINGS.rounding) - one.least.use - sum(least_uses),
        ends.value * (1 + SETTINGS.rounding) - one.least.value - sum(least_values),
    )
    for u in sorted(range(len(left.units)), key=lambda u: len(left.units[u].value)):
        side = min(one, other, key=lambda side: len(side.last.value))
        own = Ends(left.least[u], least_uses[u], least_values[u])
        side.least = Ends(*map(sum, zip(side.least, own, strict=True)))
        side.order.append(u)
        cutoffs = Ends(*map(sum, zip(spare, side.least, strict=True)))
        layer = _product(side.last, left.units[u], price, cutoffs, effort)
        if not len(layer.value) or effort.out_of_time():
            return None
        side.layers.append(effort.kept(layer, price))
    return one, other


def _product(labels: Labels, unit: Unit, price: float, ends: Ends, effort: LabelEffort) -> Labels:
    """Extend every label by every option that keeps to the ends."""
    option_priced = unit.value + price * unit.use
    by_price = np.argsort(option_priced, kind="stable")
    label_priced = labels.value + price * labels.use
    counts = np.searchsorted(option_priced[by_price], ends.priced - label_priced)
    effort.spend(int(counts.sum()))
    if counts.sum() > SETTINGS.most_pairs:
        counts = np.minimum(counts, max(1, SETTINGS.most_pairs // len(counts)))
        effort.complete = False
    parent = np.repeat(np.arange(len(counts)), counts)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    pick = by_price[np.arange(len(parent)) - starts]
    value, use = labels.value[parent] + unit.value[pick], labels.use[parent] + unit.use[pick]
    kept = np.flatnonzero((use <= ends.use) & (value <= ends.value))
    kept = kept[undominated(value[kept], use[kept])]
    return Labels(value[kept], use[kept], parent[kept], pick[kept])


def pairs(sides: tuple[Side, Side], limit: float, target: float) -> Iterator[tuple[int, int]]:
    """Yield the labels that together lie below a target and within the limit, by growing value.

    Labels are by growing use and falling value: the best partner of one is the last that fits.
    """
    one, other = (side.last for side in sides)
    slack = limit * (1 + SETTINGS.rounding) - one.use
    partner = np.searchsorted(other.use, slack, side="right") - 1
    value = one.value + other.value[partner]
    possible = np.flatnonzero((partner >= 0) & (value < target))
    best = value[possible].tolist(), possible.tolist(), partner[possible].tolist()
    queue = list(zip(*best, strict=True))
    heapify(queue)
    while queue:
        _, label, with_label = heappop(queue)
        yield label, with_label
        if with_label:
            following = float(one.value[label] + other.value[with_label - 1])
            if following < target:
                heappush(queue, (following, label, with_label - 1))


def traced(sides: tuple[Side, Side], labels: tuple[int, int]) -> dict[int, int]:
    """Return the option of every unit that a label of each side came about by."""
    picks = {}
    for side, label in zip(sides, labels, strict=True):
        at = label
        for layer, u in zip(side.layers[:0:-1], reversed(side.order), strict=True):
            picks[u] = int(layer.pick[at])
            at = int(layer.parent[at])
    return picks
